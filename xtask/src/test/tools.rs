//! Cargo's helpers, pinned and kept in the user's cache so that each is built once a machine.

use std::env;
use std::fs;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result};

use crate::build;
use crate::install;
use crate::run::Run;
use crate::say;

/// A program that cargo calls as `cargo NAME`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    /// Its package, also the program's name.
    package: &'static str,
    /// The version that is built where none is installed.
    version: &'static str,
}

/// The test runner.
pub(crate) const NEXTEST: Tool = Tool { package: "cargo-nextest", version: "0.9.143" };
/// Licences, sources and bans of dependencies.
pub(crate) const DENY: Tool = Tool { package: "cargo-deny", version: "0.20.2" };

impl Tool {
    /// `cargo` at the checkout's root with this tool within its reach, built if this machine has none.
    ///
    /// # Errors
    /// When the build of the tool fails.
    pub(crate) fn cargo(self, run: &Arc<Run>) -> Result<Command> {
        let Self { package, version } = self;
        let mut cargo = build::cargo(run);
        if install::in_path(package).is_some() {
            return Ok(cargo);
        }
        let root = run.checkout().cache(&format!("tools/{package}-{version}"));
        let program = root.join("bin").join(package);
        let _held = run.checkout().lock(package)?;
        if !program.exists() {
            say::step(&format!("build {package} {version} (once, kept in {})", root.display()), || {
                let mut install = build::cargo(run);
                install.args(["install", package, "--version", version, "--locked", "--root"]).arg(&root);
                // Outside the checkout's target folder: its files are of no use once the tool stands.
                let folder = run.data(package)?;
                run.tool(install.env("CARGO_TARGET_DIR", &folder))?;
                fs::remove_dir_all(folder).map_err(Into::into)
            })?;
        }
        let folders = env::var_os("PATH").unwrap_or_default();
        let folders = [root.join("bin")].into_iter().chain(env::split_paths(&folders));
        cargo.env("PATH", env::join_paths(folders).context("PATH can't be extended")?);
        Ok(cargo)
    }
}
