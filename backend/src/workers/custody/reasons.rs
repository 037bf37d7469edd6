//! Why custody doesn't drain: a code, and words for the page.

use crate::{broker::BrokerError, error::Error};
use std::time::Duration;

/// What the broker's answer, or its silence, means.
pub(super) fn broker(error: &BrokerError) -> String {
    match error.reply_code() {
        Some(404) => "queue_missing: the broker has no such queue; it isn't made by Lazaret".to_owned(),
        Some(403) => "access_refused: the broker lets these credentials not read the queue".to_owned(),
        Some(405) => "queue_locked: another connection has the queue for itself".to_owned(),
        Some(406) => format!("precondition_failed: {error}"),
        _ if error.is_unreadable_frame() => {
            "unreadable_message: the next message holds a short string that isn't UTF-8, which the client library can't read".to_owned()
        }
        _ => format!("broker_unreachable: {error}"),
    }
}

/// What the database said.
pub(super) fn database(error: &Error) -> String {
    match error {
        Error::Unavailable { detail, .. } => format!("database_unavailable: {detail}"),
        Error::Internal(cause) => format!("database_error: {cause:#}"),
        other => format!("database_error: {other}"),
    }
}

/// The database has kept custody waiting for so long, and still does.
pub(super) fn stalled(after: Duration) -> String {
    format!(
        "commit_stalled: the database hasn't taken a batch for {} s; its messages stay on the broker until it does",
        after.as_secs()
    )
}
