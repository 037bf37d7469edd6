//! Checks of single fields, with the pointer that names them.

use crate::error::{Error, Result};

/// Text of 1 to `longest` characters without control characters but line breaks and tabs.
///
/// # Errors
/// 422 at `pointer`.
pub fn text(pointer: &str, text: &str, longest: usize) -> Result<String> {
    let text = text.trim();
    let control = text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
    if (1..=longest).contains(&text.chars().count()) && !control {
        Ok(text.to_owned())
    } else {
        Err(Error::invalid(pointer, format!("1 to {longest} characters, no control characters")))
    }
}

/// Why something is done: 1 to 2 000 characters.
///
/// # Errors
/// 422 at `/reason`.
pub fn reason(reason: &str) -> Result<String> {
    text("/reason", reason, 2_000)
}

/// A name at the broker: 1 to 255 bytes, as it is; Postgres text holds no NUL.
///
/// # Errors
/// 422 at `pointer`.
pub fn broker_name(pointer: &str, name: &str) -> Result<()> {
    if (1..=255).contains(&name.len()) && !name.contains('\0') {
        Ok(())
    } else {
        Err(Error::invalid(pointer, "1 to 255 bytes, no NUL"))
    }
}
