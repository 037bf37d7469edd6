//! What has to be on the machine: found, installed where we can (Debian, as root), else named exactly.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use rustix::process::geteuid;

use crate::run::Run;
use crate::say;

/// Something that has to be there.
#[derive(Debug)]
pub(crate) struct Need {
    /// What it is, for people.
    pub(crate) what: &'static str,
    /// Debian's package.
    pub(crate) package: &'static str,
    /// Whether it is there.
    pub(crate) found: fn() -> bool,
}

/// Installs what is missing.
///
/// # Errors
/// When something is missing and this isn't Debian or Ubuntu or we aren't root: names what to install. Also when the
/// installation fails.
pub(crate) fn ensure(run: &Arc<Run>, needs: &[Need]) -> Result<()> {
    let missing: Vec<_> = needs.iter().filter(|need| !(need.found)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<_> = missing.iter().map(|need| need.package).collect();
    let whats = missing.iter().map(|need| need.what).collect::<Vec<_>>().join(", ");
    if in_path("apt-get").is_none() {
        bail!("missing: {whats}. Install that with this system's package manager, then run this command again");
    }
    let by_hand = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if !geteuid().is_root() {
        bail!("missing: {whats}. Run `sudo {by_hand}`, then this command again");
    }
    say::step(&format!("installing {}", packages.join(", ")), || {
        let _held = run.checkout().lock("apt")?;
        let _quiet = NoServices::begin()?;
        apt(run, &["update"])?;
        apt(run, &[&["install", "--yes", "--no-install-recommends"], packages.as_slice()].concat())
    })?;
    if let Some(still) = missing.iter().find(|need| !(need.found)()) {
        bail!("`{by_hand}` did not bring {}: install it by hand, then run this command again", still.what);
    }
    Ok(())
}

fn apt(run: &Arc<Run>, arguments: &[&str]) -> Result<()> {
    let mut apt = Command::new("apt-get");
    apt.args(["--quiet=2", "-o", "DPkg::Lock::Timeout=300"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    run.answer(&mut apt, b"").map(drop)
}

/// The program `name` in `PATH` or where Debian keeps administrators' programs.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Whether dpkg has installed the package.
pub(crate) fn has_package(name: &str) -> bool {
    let asked = Command::new("dpkg-query").args(["--show", "--showformat=${db:Status-Status}", name]).output();
    asked.is_ok_and(|answer| answer.stdout == b"installed")
}

/// The name of this Debian release (`bookworm`), or nothing elsewhere.
pub(crate) fn debian_suite() -> Option<String> {
    let release = fs::read_to_string("/etc/os-release").ok()?;
    let value = |name: &str| {
        release.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix('=')?.trim_matches('"').to_owned()))
    };
    (value("ID")? == "debian").then(|| value("VERSION_CODENAME"))?
}

/// Whether this system has no RabbitMQ of any version.
pub(crate) fn rabbitmq_is_absent() -> bool {
    !Path::new("/usr/lib/rabbitmq/bin/rabbitmq-server").exists()
}

/// The archive that this machine takes its Debian packages from; Debian's own where it names none.
pub(crate) fn debian_mirror() -> String {
    let folder = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten();
    let files = folder.filter_map(|entry| Some(entry.ok()?.path())).chain([PathBuf::from("/etc/apt/sources.list")]);
    files
        .filter_map(|file| fs::read_to_string(file).ok())
        .find_map(|text| mirror_in(&text))
        .unwrap_or_else(|| "http://deb.debian.org/debian".to_owned())
}

/// The first archive of Debian proper (not its security updates) in a list of package sources, old form or new.
fn mirror_in(sources: &str) -> Option<String> {
    let words = sources.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(str::split_whitespace);
    let mut addresses = words.filter(|word| word.starts_with("http://") || word.starts_with("https://"));
    addresses.find(|address| address.trim_end_matches('/').ends_with("/debian")).map(str::to_owned)
}

/// While it lives, packages that are installed start no services.
#[derive(Debug)]
struct NoServices {
    ours: bool,
}

const POLICY: &str = "/usr/sbin/policy-rc.d";
const POLICY_TEXT: &str = "#!/bin/sh\n# Made by Lazaret's xtask while it installs packages.\nexit 101\n";

impl NoServices {
    fn begin() -> Result<Self> {
        // A file of these words was left by a killed command: ours to remove.
        let there = fs::read_to_string(POLICY).ok();
        if there.is_some_and(|text| text != POLICY_TEXT) {
            return Ok(Self { ours: false });
        }
        fs::write(POLICY, POLICY_TEXT).with_context(|| format!("can't write {POLICY}"))?;
        fs::set_permissions(POLICY, fs::Permissions::from_mode(0o755))?;
        Ok(Self { ours: true })
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.ours {
            let _ = fs::remove_file(POLICY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_read_from_both_forms_of_source_lists() {
        let old =
            "# deb http://x/debian bookworm main\ndeb [signed-by=/k] https://mirror.example/debian bookworm main\n";
        assert_eq!(mirror_in(old).as_deref(), Some("https://mirror.example/debian"));
        let new =
            "Types: deb\nURIs: http://mirror.example/debian-security\n\nTypes: deb\nURIs: http://b.example/debian/\n";
        assert_eq!(mirror_in(new).as_deref(), Some("http://b.example/debian/"));
        assert_eq!(mirror_in("deb https://other.example/apt stable main\n"), None);
    }
}
