//! Lazaret's pages.
