//! Another Debian's programs in a folder of their own: how two major versions of RabbitMQ run on one machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use rustix::process::geteuid;

use crate::install::{self, Need};
use crate::run::Run;
use crate::say;

/// A release of Debian, for the RabbitMQ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    /// Debian 12: RabbitMQ 3.10.
    Bookworm,
    /// Debian 13: RabbitMQ 4.0.
    Trixie,
}

impl Suite {
    /// As in the package archive.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
        }
    }
}

/// Raised when what is put in the folder changes.
const RECIPE: u32 = 1;

/// The folder of that release with RabbitMQ in it, in the user's cache; made by debootstrap when it isn't there.
///
/// # Errors
/// When it isn't there and can't be made: not root, no debootstrap to be had, no package archive in reach, or mounting
/// not permitted.
pub(crate) fn root_with_rabbitmq(run: &Arc<Run>, suite: Suite) -> Result<PathBuf> {
    let name = format!("debian-{}-rabbitmq-{RECIPE}", suite.name());
    if !geteuid().is_root() {
        bail!(
            "this RabbitMQ runs from a Debian folder of its own ({}), which only root can enter: run as root, or install \
             that major version of RabbitMQ on this system",
            suite.name()
        );
    }
    may_mount(run)?;
    let _held = run.checkout().lock(&name)?;
    let root = run.checkout().cache(&name);
    if root.exists() {
        return Ok(root);
    }
    install::ensure(
        run,
        &[Need { what: "debootstrap", package: "debootstrap", found: || install::in_path("debootstrap").is_some() }],
    )?;
    say::step(&format!("a Debian {} folder with RabbitMQ in {} (once)", suite.name(), root.display()), || {
        let partial = run.checkout().cache(&format!("{name}.partial-{}", process::id()));
        for left in fs::read_dir(run.checkout().cache(""))?.filter_map(Result::ok) {
            // We hold the lock: who made it is gone.
            if left.file_name().to_string_lossy().starts_with(&format!("{name}.partial-")) {
                fs::remove_dir_all(left.path())?;
            }
        }
        let log = run.log("debootstrap");
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", "--include=rabbitmq-server", suite.name()]).arg(&partial);
        debootstrap.arg(install::debian_mirror());
        let mut debootstrap = run.start("debootstrap", &mut debootstrap, crate::run::Signal::TERM)?;
        if !debootstrap.wait()?.success() {
            let tail = debootstrap.log_tail();
            let _ = fs::remove_dir_all(&partial);
            bail!("debootstrap failed ({}){tail}", log.display());
        }
        let _ = fs::remove_dir_all(partial.join("var/cache/apt"));
        fs::create_dir_all(partial.join("srv/lazaret"))?;
        fs::rename(&partial, &root).context("can't move the finished folder to its place")
    })?;
    Ok(root)
}

/// A command that runs `program` inside `root`, where `state.0` is shown as `state.1`.
///
/// The mounts are made in a namespace of their own, so they go with its last process: nothing is left to undo, also
/// after a kill.
pub(crate) fn inside(root: &Path, state: (&Path, &str), program: &str) -> Command {
    let mut command = Command::new("/usr/bin/unshare");
    command.args(["--mount", "--propagation=private", "--", "/bin/sh", "-ec"]);
    command.arg(
        "mount --bind \"$1\" \"$0$2\"; mount -t proc proc \"$0/proc\"; mount --rbind /dev \"$0/dev\"; root=$0; shift 2; \
         exec chroot \"$root\" \"$@\"",
    );
    command.arg(root).arg(state.0).args([state.1, program]);
    command
}

fn may_mount(run: &Arc<Run>) -> Result<()> {
    let mut try_it = Command::new("/usr/bin/unshare");
    try_it.args(["--mount", "--propagation=private", "--", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]);
    run.answer(&mut try_it, b"").map(drop).context(
        "this system does not permit mounting, which the second RabbitMQ needs (in a container: allow CAP_SYS_ADMIN)",
    )
}
