//! Reasons that people give; they go into the audit trail.

use crate::error::{Error, Result};

/// The longest reason, characters.
const MOST: usize = 2_000;

/// A reason of 1 to 2 000 characters, without space around it and with its controls visible.
///
/// # Errors
/// `Invalid` at `pointer`.
pub fn given(reason: &str, pointer: &str) -> Result<String> {
    let reason = domain::amqp::visible(reason.trim());
    match reason.chars().count() {
        1..=MOST => Ok(reason),
        _ => Err(Error::invalid(pointer, "1 to 2000 characters")),
    }
}
