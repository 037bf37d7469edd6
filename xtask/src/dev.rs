//! `cargo xtask dev`: a development build that is made again, restarted and shown when a source file changes.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};

use crate::build::{self, Profile, bundle};
use crate::checkout::Checkout;
use crate::cli;
use crate::run::{Run, leave_to_the_signal};
use crate::say;
use crate::services::server::{self, Server};
use crate::services::{self, Stack};

/// How often the sources are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// What goes into the style sheet.
const STYLE: [&str; 1] = ["frontend/style"];
/// What goes into the code that the browser runs.
const BROWSER: [&str; 7] = [
    "domain",
    "frontend/src",
    "frontend/public",
    "frontend/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
    ".cargo/config.toml",
];
/// What goes into the server beside that.
const SERVER: [&str; 3] = ["backend", "migrations", ".sqlx"];
/// Says in `pkg/` when it was built, as milliseconds since 1970.
const MARK: &str = "built-at";
/// Put behind the bundle: a page that is older than what it would be made of now is loaded again.
const RELOAD: &str = r#"
setInterval(async () => {
  const answer = await fetch("/pkg/built-at", { cache: "no-store" }).catch(() => undefined);
  if (answer?.ok && Number(await answer.text()) > performance.timeOrigin) location.reload();
}, 500);
"#;

/// When each source file was last written.
type State = BTreeMap<PathBuf, SystemTime>;

/// The sources by what is made of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sources {
    style: State,
    browser: State,
    server: State,
}

/// What runs, and what it was made of.
struct Dev<'a> {
    run: &'a Arc<Run>,
    stack: Stack,
    site: PathBuf,
    server: Option<Server>,
    built: Sources,
}

/// Runs until Ctrl-C. A build that fails is said, and the server of the build before keeps running.
///
/// # Errors
/// When the services can't start.
pub(crate) fn dev(run: &Arc<Run>, arguments: &cli::Dev) -> Result<()> {
    services::ensure_private()?;
    let stack = Stack::start(run, arguments.broker)?;
    let site = run.checkout().target("site-dev");
    let mut dev = Dev { run, stack, site, server: None, built: Sources::default() };
    let mut tried = Sources::default();
    loop {
        let now = Sources::look(run.checkout())?;
        if tried != now {
            if let Err(error) = dev.renew(&now) {
                leave_to_the_signal();
                say::error(&error);
            }
            tried = now;
            say::line("   … watching the sources; Ctrl-C ends everything");
        }
        dev.tell_of_its_end()?;
        thread::sleep(LOOK);
    }
}

impl Sources {
    fn look(checkout: &Checkout) -> Result<Self> {
        let state = |paths: &[&str]| {
            let mut state = State::new();
            for path in paths {
                collect(&checkout.path(path), &mut state).with_context(|| format!("can't look at {path}"))?;
            }
            Ok::<_, anyhow::Error>(state)
        };
        let browser = state(&BROWSER)?;
        let mut server = state(&SERVER)?;
        // the server renders the same pages
        server.extend(browser.clone());
        Ok(Self { style: state(&STYLE)?, browser, server })
    }
}

impl Dev<'_> {
    /// Makes anew what `now` has other sources for, and then has open pages loaded again. What fails stays due.
    fn renew(&mut self, now: &Sources) -> Result<()> {
        if self.built.browser != now.browser {
            say::step("browser bundle (development build)", || bundle::bundle(self.run, Profile::Dev))?;
            let script = OpenOptions::new().append(true).open(self.site.join("pkg/frontend.js"));
            script.and_then(|mut script| script.write_all(RELOAD.as_bytes())).context("no script to add to")?;
            self.built.browser.clone_from(&now.browser);
            self.built.style.clone_from(&now.style);
        } else if self.built.style != now.style {
            say::step("style sheet", || bundle::style(self.run, &self.site))?;
            self.built.style.clone_from(&now.style);
        }
        if self.built.server != now.server {
            let program = build::programs(self.run, Profile::Dev)?.join("lazaret");
            self.restart(&program)?;
            self.built.server.clone_from(&now.server);
        }
        fs::write(self.site.join("pkg").join(MARK), now_ms().to_string()).context("can't mark the build")
    }

    /// Ends the old server and starts the new one on the same database, with the same address and accounts.
    fn restart(&mut self, program: &Path) -> Result<()> {
        let build = server::Build { program, site: &self.site, workers: None };
        let server = match &mut self.server {
            Some(server) => {
                server.restart(self.run, build, &self.stack.postgres)?;
                server
            }
            none => none.insert(Server::start(self.run, build, &self.stack.postgres)?),
        };
        say::line(format!("\n{}", server.base_url()));
        for user in server.users() {
            say::line(format!("log in as {} / {} ({})", user.username, user.password, user.roles.join(", ")));
        }
        Ok(())
    }

    /// Says, once, that the server ended by itself; the next change starts it again, whatever changed.
    fn tell_of_its_end(&mut self) -> Result<()> {
        let Some(server) = &mut self.server else { return Ok(()) };
        if self.built.server.is_empty() {
            return Ok(());
        }
        if let Some(ended) = server.process().ended()? {
            leave_to_the_signal();
            let tail = server.process().log_tail();
            say::line(format!("error: the server ended by itself ({ended}): the next change starts it again{tail}"));
            self.built.server.clear();
        }
        Ok(())
    }
}

/// A file's time, or those of all files in a folder; nothing for what isn't there.
fn collect(path: &Path, state: &mut State) -> Result<()> {
    // An editor's temporary file may go between the two.
    let Ok(about) = fs::metadata(path) else { return Ok(()) };
    if !about.is_dir() {
        state.insert(path.to_path_buf(), about.modified()?);
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), state)?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "compared with the clock of a browser on this machine")]
fn now_ms() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_is_looked_at_for_what_is_made_of_it() {
        let now = Sources::look(&Checkout::find().unwrap()).unwrap();
        let holds = |state: &State, end: &str| state.keys().any(|path| path.ends_with(end));
        assert!(holds(&now.style, "frontend/style/lazaret.css") && !holds(&now.browser, "frontend/style/lazaret.css"));
        for both in ["domain/src/lib.rs", "frontend/src/lib.rs", "Cargo.toml", "Cargo.lock", ".cargo/config.toml"] {
            assert!(holds(&now.browser, both) && holds(&now.server, both), "{both}");
        }
        assert!(holds(&now.server, "backend/src/lib.rs") && !holds(&now.browser, "backend/src/lib.rs"));
    }

    #[test]
    fn the_page_asks_for_the_mark_that_is_written() {
        assert!(RELOAD.contains(&format!("\"/pkg/{MARK}\"")));
    }
}
