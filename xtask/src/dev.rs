//! `cargo xtask dev`: a development build that is made again and restarted when a source file changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::Result;

use crate::build::{self, Profile};
use crate::cli;
use crate::run::Run;
use crate::say;
use crate::services::server::{self, Server};
use crate::services::{self, Stack};

/// How often the sources are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// What goes into the browser, and what goes into the server.
const BROWSER: [&str; 2] = ["domain", "frontend"];
const SERVER: [&str; 5] = ["domain", "frontend", "backend", "migrations", ".sqlx"];

/// When each source file was last written.
type State = BTreeMap<PathBuf, SystemTime>;

/// Runs until Ctrl-C. A build that fails is said, and the server of the build before keeps running.
///
/// # Errors
/// When the services can't start.
pub(crate) fn dev(run: &Arc<Run>, arguments: &cli::Dev) -> Result<()> {
    services::ensure_private()?;
    let stack = Stack::start(run, arguments.broker)?;
    let mut server: Option<Server> = None;
    let mut built: Option<(State, State)> = None;
    loop {
        let now = (state(run, &BROWSER)?, state(run, &SERVER)?);
        if built.as_ref() != Some(&now) {
            let browser_changed = built.as_ref().is_none_or(|(browser, _)| *browser != now.0);
            match rebuild(run, browser_changed) {
                Ok(program) => restart(run, &program, &stack, &mut server),
                Err(error) => {
                    crate::run::leave_to_the_signal();
                    say::error(&error);
                }
            }
            built = Some(now);
            say::line("   … watching the sources; Ctrl-C ends everything");
        }
        thread::sleep(LOOK);
    }
}

fn rebuild(run: &Arc<Run>, browser: bool) -> Result<PathBuf> {
    if browser {
        say::step("browser bundle (development build)", || build::bundle::bundle(run, Profile::Dev))?;
    }
    build::programs(run, Profile::Dev).map(|programs| programs.join("lazaret"))
}

/// Ends the old server and starts the new one on the same database, with the same address and accounts.
fn restart(run: &Arc<Run>, program: &Path, stack: &Stack, running: &mut Option<Server>) {
    let build = server::Build { program, site: &run.checkout().target("site-dev"), workers: None };
    let started = match running {
        None => Server::start(run, build, &stack.postgres).map(|started| *running = Some(started)),
        Some(server) => server.restart(run, build, &stack.postgres),
    };
    match (started, running) {
        (Ok(()), Some(server)) => {
            say::line(format!("\n{}", server.base_url()));
            for user in server.users() {
                say::line(format!("log in as {} / {} ({})", user.username, user.password, user.roles.join(", ")));
            }
        }
        (Err(error), _) => {
            crate::run::leave_to_the_signal();
            say::error(&error);
        }
        (Ok(()), None) => {}
    }
}

fn state(run: &Run, folders: &[&str]) -> Result<State> {
    let mut state = State::new();
    for folder in folders {
        let path = run.checkout().path(folder);
        if path.exists() {
            collect(&path, &mut state)?;
        }
    }
    Ok(state)
}

fn collect(folder: &Path, state: &mut State) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // An editor's temporary file may go between the two.
        let Ok(about) = fs::metadata(&path) else { continue };
        if about.is_dir() {
            collect(&path, state)?;
        } else {
            state.insert(path, about.modified()?);
        }
    }
    Ok(())
}
