//! Browser tests: a real Chromium on the demo's running incident.

use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};

use super::outcome::Outcome;
use super::stages::counted;
use crate::demo::Demo;
use crate::install::{self, Need};
use crate::run::Run;
use crate::say;
use crate::services::BrokerVersion;

/// The names that Chromium goes by, Debian's first.
const CHROMIUM: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Installs what is missing, brings the demo up and runs `e2e/`.
///
/// # Errors
/// When something is missing that can't be installed here, or the demo does not come up.
pub(super) fn test(run: &Arc<Run>, broker: BrokerVersion) -> Result<Outcome> {
    let folder = run.checkout().path("e2e");
    if !folder.join("package.json").exists() {
        bail!("{} holds no browser tests", folder.display());
    }
    install::ensure(
        run,
        &[
            Need { what: "Node 18.19 or newer", package: "nodejs", found: || install::in_path("node").is_some() },
            Need { what: "npm", package: "npm", found: || install::in_path("npm").is_some() },
            Need { what: "Chromium", package: "chromium", found: || chromium().is_some() },
        ],
    )?;
    let chromium = chromium().context("Chromium is missing")?;
    say::step("npm ci", || run.answer(Command::new("npm").current_dir(&folder).arg("ci"), b""))?;
    let demo = Demo::start(run, broker)?;
    let mut npm = Command::new("npm");
    npm.current_dir(&folder).arg("test");
    npm.env("LAZARET_E2E", demo.addresses()?.to_string()).env("LAZARET_CHROMIUM", chromium);
    counted(run, &mut npm)
}

fn chromium() -> Option<std::path::PathBuf> {
    CHROMIUM.into_iter().find_map(install::in_path)
}
