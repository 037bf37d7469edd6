//! axum: routes, extractors, problem+json, streams, OpenAPI. No SQL and no broker call lives here.

pub mod act;
pub mod auth;
pub mod problem;

pub use act::{Act, ActKind, Acted};
pub use auth::{Need, Permit};
pub use problem::{Json, Path, Query};

/// What every handler answers.
pub type Answer<T> = std::result::Result<T, crate::error::Error>;
