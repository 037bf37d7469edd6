//! The edge's clock and id source: handed in, so that tests can drive them.

use std::sync::{Arc, Mutex};
use time::OffsetDateTime;
use uuid::Uuid;

/// What time it is here. Decisions about deadlines use the database's clock, not this one.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// A test's, which stands still until it is set.
    Fixed(Arc<Mutex<OffsetDateTime>>),
}

impl Clock {
    /// Now, UTC.
    #[must_use]
    pub fn now(&self) -> OffsetDateTime {
        match self {
            #[expect(clippy::disallowed_methods, reason = "this is the edge")]
            Self::System => OffsetDateTime::now_utc(),
            Self::Fixed(at) => *at.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
        }
    }
}

/// A new UUIDv7.
#[must_use]
pub fn new_id() -> Uuid {
    Uuid::now_v7()
}
