//! Filled by its modules.
