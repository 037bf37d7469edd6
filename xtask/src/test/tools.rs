//! Cargo's helpers, pinned and kept in the user's cache so that each is built once a machine.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::Result;

use crate::build;
use crate::install;
use crate::run::Run;
use crate::say;

/// A program of a pinned version: another one may judge, count or render differently.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    /// Its package, also the program's name.
    package: &'static str,
    /// The one version that is used: from `PATH`, or built where that has another one or none.
    version: &'static str,
    /// What of it is built: arguments of `cargo install`.
    features: &'static [&'static str],
}

/// The test runner.
pub(crate) const NEXTEST: Tool = Tool { package: "cargo-nextest", version: "0.9.143", features: &[] };
/// Licences, sources and bans of dependencies.
pub(crate) const DENY: Tool = Tool { package: "cargo-deny", version: "0.20.2", features: &[] };
/// The documents as a book. It is only built here: nothing serves or searches it.
pub(crate) const MDBOOK: Tool = Tool { package: "mdbook", version: "0.5.4", features: &["--no-default-features"] };

impl Tool {
    /// The tool at the checkout's root, built if this machine has none of that version.
    ///
    /// # Errors
    /// When the build of the tool fails.
    pub(crate) fn command(self, run: &Arc<Run>) -> Result<Command> {
        self.program(run).map(|program| build::as_cargo(run, program))
    }

    fn program(self, run: &Arc<Run>) -> Result<PathBuf> {
        let Self { package, version, features } = self;
        if let Some(installed) = install::in_path(package).filter(|program| self.is_pinned(run, program.as_os_str())) {
            return Ok(installed);
        }
        let root = run.checkout().cache(&format!("tools/{package}-{version}"));
        let program = root.join("bin").join(package);
        let _held = run.checkout().lock(package)?;
        if !program.exists() {
            say::step(&format!("build {package} {version} (once, kept in {})", root.display()), || {
                let mut install = build::cargo(run);
                install.args(["install", package, "--version", version, "--locked"]).args(features);
                install.arg("--root").arg(&root);
                // Outside the checkout's target folder: its files are of no use once the tool stands.
                let folder = run.data(package)?;
                run.tool(install.env("CARGO_TARGET_DIR", &folder))?;
                fs::remove_dir_all(folder).map_err(Into::into)
            })?;
        }
        Ok(program)
    }

    /// Whether `program` is of this version, by its own word.
    fn is_pinned(self, run: &Arc<Run>, program: &OsStr) -> bool {
        let said = run.answer(Command::new(program).arg("--version"), b"");
        said.is_ok_and(|said| version_in(&said) == Some(self.version))
    }
}

/// The version in a program's answer to `--version`: `mdbook v0.5.4`, `cargo-nextest 0.9.143 (60fa45f63 2026-08-04)`.
pub(super) fn version_in(said: &str) -> Option<&str> {
    let starts_with_digit = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    said.split_whitespace().map(|word| word.trim_start_matches('v')).find(starts_with_digit)
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn a_version_is_read_whole() {
        assert_eq!(version_in("mdbook v0.5.4\n"), Some("0.5.4"));
        assert_eq!(version_in("cargo-nextest 0.9.143 (60fa45f63 2026-08-04)\nrelease: 0.9.143"), Some("0.9.143"));
        assert_eq!(version_in("cargo-deny 0.20.20"), Some("0.20.20"));
        assert_eq!(version_in("v18.20.4\n"), Some("18.20.4"));
        assert_eq!(version_in("no such command"), None);
    }
}
