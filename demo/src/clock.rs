//! The wall clock: the demo's processes are an edge, so they read it themselves, and only here.

use time::OffsetDateTime;

/// Now, UTC.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a process of its own, outside the server: this is its edge")]
pub fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}
