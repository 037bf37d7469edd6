//! A compiler that can build for the browser.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};

use crate::install::{self, Need};
use crate::run::Run;
use crate::say;

const TARGET: &str = "wasm32-unknown-unknown";

/// How this machine builds for the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toolchain {
    /// The compiler in use has the target's standard library.
    Installed,
    /// Debian's second compiler builds the standard library from Debian's sources of it.
    DebianWeb,
}

impl Toolchain {
    /// Finds one, adding the target by rustup or Debian's packages where it is missing.
    ///
    /// # Errors
    /// When neither can be had: names both ways.
    pub(crate) fn find(run: &Arc<Run>) -> Result<Self> {
        if has_target(run)? {
            return Ok(Self::Installed);
        }
        if install::in_path("rustup").is_some() {
            let added = say::step(&format!("rustup target add {TARGET}"), || {
                run.answer(Command::new("rustup").args(["target", "add", TARGET]), b"")
            });
            if added.is_ok() && has_target(run)? {
                return Ok(Self::Installed);
            }
        }
        if install::in_path("apt-get").is_none() {
            bail!("the compiler can't build for {TARGET}: `rustup target add {TARGET}`, then run this command again");
        }
        install::ensure(
            run,
            &[
                Need {
                    what: "Debian's rustc for the web",
                    package: "rustc-web",
                    found: || install::has_package("rustc-web"),
                },
                Need {
                    what: "its standard library's sources",
                    package: "rust-web-src",
                    found: || install::has_package("rust-web-src"),
                },
                Need {
                    what: "a linker for wasm",
                    package: "lld-22",
                    found: || install::in_path("wasm-ld-22").is_some(),
                },
            ],
        )
        .with_context(|| {
            format!("the compiler can't build for {TARGET}, and `rustup target add {TARGET}` did not help")
        })?;
        Ok(Self::DebianWeb)
    }

    /// Builds the crate `frontend` and gives the path of its raw wasm file. `profile` is one of the workspace's.
    ///
    /// # Errors
    /// When the build fails.
    pub(crate) fn build(self, run: &Arc<Run>, profile: &str) -> Result<PathBuf> {
        let (mut cargo, folder) = self.cargo(run, "build");
        run.tool(cargo.args(["--profile", profile]))?;
        Ok(folder.join(TARGET).join(profile).join("frontend.wasm"))
    }

    /// Lints the crate `frontend` as the browser's, which the workspace's lints never see. Where Debian's second
    /// compiler builds, which has no clippy, the compiler's own warnings have to do.
    ///
    /// # Errors
    /// When a lint fires, or it does not compile.
    pub(crate) fn lint(self, run: &Arc<Run>) -> Result<()> {
        let (mut cargo, _) = match self {
            Self::Installed => self.cargo(run, "clippy"),
            Self::DebianWeb => self.cargo(run, "rustc"),
        };
        if self == Self::DebianWeb {
            cargo.args(["--profile", "check"]);
        }
        run.tool(cargo.args(["--quiet", "--", "-D", "warnings"]))
    }

    /// Cargo on the browser's side of `frontend`, and its target folder.
    fn cargo(self, run: &Run, command: &str) -> (Command, PathBuf) {
        let mut cargo = super::cargo(run);
        cargo.args([command, "-p", "frontend", "--lib", "--features", "hydrate", "--target", TARGET]);
        // A folder of its own: a build for the browser and one for the server never wait for each other.
        let folder = run.checkout().target("front");
        cargo.env("CARGO_TARGET_DIR", &folder);
        if self == Self::DebianWeb {
            cargo.arg("-Zbuild-std=std,panic_abort").env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1");
            cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld-22");
        }
        (cargo, folder)
    }

    /// The compiler and its version, as part of a build's name.
    ///
    /// # Errors
    /// When the compiler does not answer.
    pub(crate) fn version(self, run: &Arc<Run>) -> Result<String> {
        let compiler = if self == Self::DebianWeb { "/usr/bin/rustc" } else { "rustc" };
        run.answer(Command::new(compiler).current_dir(run.checkout().root()).arg("--version"), b"")
    }
}

/// Whether the compiler in use can build for the browser.
fn has_target(run: &Arc<Run>) -> Result<bool> {
    let mut ask = Command::new("rustc");
    ask.current_dir(run.checkout().root()).args(["--print", "target-libdir", "--target", TARGET]);
    Ok(PathBuf::from(run.answer(&mut ask, b"")?.trim()).exists())
}
