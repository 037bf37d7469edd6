//! Lazaret's server.
