//! Browser tests: a real Chromium on the demo's running incident.

use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};

use super::outcome::Outcome;
use super::stages::counted;
use super::tools::version_in;
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
            Need { what: "Node 18.19 or newer", package: "nodejs", found: has_node },
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

/// Whether Node is there, and knows what `e2e/package.json` calls it with: 18.19 is the first to take
/// `--test-concurrency`.
fn has_node() -> bool {
    let said = Command::new("node").arg("--version").output();
    said.is_ok_and(|said| version_in(&String::from_utf8_lossy(&said.stdout)).is_some_and(is_new_enough))
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(18), Some(19))
}

fn chromium() -> Option<std::path::PathBuf> {
    CHROMIUM.into_iter().find_map(install::in_path)
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn debian_12s_node_is_new_enough() {
        for (version, is) in [
            ("18.20.4", true),
            ("18.19.0", true),
            ("20.0.0", true),
            ("18.13.0", false),
            ("16.20.2", false),
            ("", false),
        ] {
            assert_eq!(is_new_enough(version), is, "{version}");
        }
    }
}
