//! `cargo xtask dev`: the server in a development build, rebuilt and restarted when a source changes.

use std::sync::Arc;

use anyhow::{Result, bail};

use crate::cli;
use crate::run::Run;

/// Runs until Ctrl-C.
///
/// # Errors
/// When it can't start.
pub(crate) fn dev(_run: &Arc<Run>, _arguments: &cli::Dev) -> Result<()> {
    bail!("`dev` is not built yet: use `cargo xtask up`")
}
