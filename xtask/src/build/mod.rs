//! Builds: the server and what it serves to the browser.

pub(crate) mod bundle;
mod compress;
mod css;
mod source_hash;
pub(crate) mod wasm;

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::Result;

use crate::run::Run;
use crate::say;

/// How a program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Quick to build.
    Dev,
    /// What people, tests in the browser and measurements run.
    Release,
}

/// What a release build made.
#[derive(Debug)]
pub(crate) struct Built {
    /// The folder of the programs.
    pub(crate) programs: PathBuf,
    /// The folder that holds `pkg/`.
    pub(crate) site: PathBuf,
}

/// Builds what people run: the programs and the browser bundle.
///
/// # Errors
/// When a build fails.
pub(crate) fn release(run: &Arc<Run>) -> Result<Built> {
    let site = bundle::bundle(run, Profile::Release)?;
    Ok(Built { programs: programs(run, Profile::Release)?, site })
}

/// `cargo` at the checkout's root, building offline against `.sqlx` into `target/`.
pub(crate) fn cargo(run: &Run) -> Command {
    as_cargo(run, env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A program that calls cargo, with the surroundings of [`cargo`].
pub(crate) fn as_cargo(run: &Run, program: impl AsRef<OsStr>) -> Command {
    let mut cargo = Command::new(program);
    cargo.current_dir(run.checkout().root());
    // What `cargo run` told us of xtask: build scripts (ring's) watch these names, and would run again for them.
    let of_xtask = |name: &str| {
        ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|start| name.starts_with(start))
    };
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_xtask)) {
        cargo.env_remove(name);
    }
    cargo.env("SQLX_OFFLINE", "true").env("CARGO_TARGET_DIR", run.checkout().target(""));
    cargo
}

/// Builds the server and the demo's programs and gives the folder they are in.
///
/// Always both: cargo builds dependencies with what the packages asked for need together, so that asking for one alone
/// would build them anew.
///
/// # Errors
/// When the build fails.
pub(crate) fn programs(run: &Arc<Run>, profile: Profile) -> Result<PathBuf> {
    let mut cargo = cargo(run);
    cargo.args(["build", "--bins", "-p", "lazaret", "-p", "demo"]);
    let folder = match profile {
        Profile::Dev => "debug",
        Profile::Release => {
            cargo.arg("--release");
            "release"
        }
    };
    say::step(&format!("server and demo ({folder} build)"), || run.tool(&mut cargo))?;
    Ok(run.checkout().target(folder))
}
