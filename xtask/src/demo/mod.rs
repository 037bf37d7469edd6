//! `cargo xtask demo`.

use std::sync::Arc;

use anyhow::{Result, bail};

use crate::cli;
use crate::run::Run;

/// Runs the demo.
///
/// # Errors
/// When it can't start, or the autopilot's story does not end well.
pub(crate) fn demo(_run: &Arc<Run>, _arguments: &cli::Demo) -> Result<()> {
    bail!("`demo` is not built yet: use `cargo xtask up`")
}
