//! Lazaret's rules and wire types: pure, without I/O, clock or runtime.
