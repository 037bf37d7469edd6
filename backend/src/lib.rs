//! Lazaret's server: `http` → `app` → `store`, `broker` → `domain`. `http` holds no SQL and no broker call; `store` no rule.

// The pages' types nest deeply in a release build, which does not erase them.
#![recursion_limit = "512"]

pub mod actor;
pub mod app;
pub mod broker;
pub mod clock;
pub mod config;
pub mod error;
pub mod http;
pub mod serve;
pub mod state;
pub mod store;
pub mod workers;
