//! Which process is meant: a number alone is reused by the system, a number with its start time is not.

use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// A process of this machine since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pid: i32,
    /// Clock ticks between the machine's start and the process's (`proc(5)`, `stat`, field 22).
    started: u64,
}

impl Identity {
    /// The process that has this number now, also when it has ended and was not waited for.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let pid = i32::try_from(pid).ok()?;
        Some(Self { pid, started: stat(pid)?.1 })
    }

    /// Whether it still runs.
    pub(crate) fn lives(self) -> bool {
        stat(self.pid).is_some_and(|(state, started)| started == self.started && !matches!(state, 'Z' | 'X'))
    }

    /// Signals it, if it still runs.
    pub(crate) fn signal(self, signal: Signal) {
        if let (true, Some(pid)) = (self.lives(), Pid::from_raw(self.pid)) {
            // It may end between the two: what we wanted.
            let _ = kill_process(pid, signal);
        }
    }

    /// Signals the process group that it leads, if it still runs.
    pub(crate) fn signal_group(self, signal: Signal) {
        if let (true, Some(pid)) = (self.lives(), Pid::from_raw(self.pid)) {
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.pid, self.started)
    }
}

impl FromStr for Identity {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (pid, started) = text.split_once('-').context("not PID-START")?;
        Ok(Self { pid: pid.parse()?, started: started.parse()? })
    }
}

/// Every running process that inherited `name=value`: children of children too, whatever group or session they chose.
/// Only processes whose environment we may read, which ours are.
pub(crate) fn that_inherited(name: &str, value: &Path) -> Vec<Identity> {
    let wanted = [name.as_bytes(), b"=", value.as_os_str().as_bytes()].concat();
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|pair| pair == wanted))
        })
        .filter_map(Identity::of)
        .filter(|process| process.lives())
        .collect()
}

/// State and start time of a process.
fn stat(pid: i32) -> Option<(char, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name stands in brackets and may hold anything, brackets too.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_number_that_was_given_to_another_process_is_not_the_same_process() {
        let me = Identity::of(std::process::id()).unwrap();
        assert!(me.lives());
        assert!(!Identity { started: me.started + 1, ..me }.lives());
    }

    #[test]
    fn a_process_that_ended_does_not_live_even_before_it_is_waited_for() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let identity = Identity::of(child.id()).unwrap();
        assert!(identity.lives());
        identity.signal(Signal::KILL);
        while identity.lives() {
            std::thread::yield_now();
        }
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn it_is_written_and_read_back() {
        let me = Identity::of(std::process::id()).unwrap();
        assert_eq!(me.to_string().parse::<Identity>().unwrap(), me);
        assert!("12".parse::<Identity>().is_err());
    }

    #[test]
    fn a_grandchild_in_a_session_of_its_own_is_found_by_what_it_inherited() {
        let value = std::env::temp_dir().join(format!("lazaret-identity-{}", std::process::id()));
        let mut parent = Command::new("sh")
            .args(["-c", "setsid sleep 60 & wait"])
            .env("LAZARET_IDENTITY_TEST", &value)
            .spawn()
            .unwrap();
        let found = loop {
            let found = that_inherited("LAZARET_IDENTITY_TEST", &value);
            if found.len() >= 2 {
                break found;
            }
        };
        found.iter().for_each(|process| process.signal(Signal::KILL));
        parent.wait().unwrap();
        while !that_inherited("LAZARET_IDENTITY_TEST", &value).is_empty() {
            std::thread::yield_now();
        }
    }
}
