//! Lazaret's server on the private services.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::postgres::{APP, OWNER, Postgres};
use super::{password, ports};
use crate::http;
use crate::run::{Process, Run, Signal};

/// The server's database.
pub(crate) const DATABASE: &str = "lazaret";
/// The accounts of a private server: name and roles.
const PEOPLE: [(&str, &[&str]); 4] =
    [("mara", &["responder"]), ("jon", &["approver"]), ("ada", &["auditor"]), ("root", &["admin"])];

/// An account that can log in.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct User {
    /// Its name.
    pub(crate) username: String,
    /// Its password, made for this run.
    pub(crate) password: String,
    /// Its roles.
    pub(crate) roles: Vec<String>,
}

/// What is run, and with what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Build<'a> {
    /// The program `lazaret`.
    pub(crate) program: &'a Path,
    /// The folder that holds `pkg/`.
    pub(crate) site: &'a Path,
    /// Runtime threads; `None`: one for each core.
    pub(crate) workers: Option<u16>,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    process: Process,
    port: ports::Port,
    users: Vec<User>,
}

impl Server {
    /// Makes the database anew, applies migrations, starts the server and waits until it is ready; then makes the
    /// accounts.
    ///
    /// # Errors
    /// When a step fails: with the end of the server's log, or what the command said.
    pub(crate) fn start(run: &Arc<Run>, build: Build<'_>, postgres: &Postgres) -> Result<Self> {
        postgres.recreate_database(DATABASE, OWNER)?;
        let port = ports::free(run.checkout())?;
        migrate(run, build, postgres, &port)?;
        let process = serve(run, build, postgres, &port)?;
        let users = PEOPLE
            .iter()
            .map(|(name, roles)| {
                let password = password()?;
                let mut add = command(run, build, postgres, &port);
                add.args(["user", "add", name, "--role", &roles.join(","), "--password-stdin"]);
                run.answer(&mut add, password.as_bytes())?;
                let roles = roles.iter().map(ToString::to_string).collect();
                Ok(User { username: (*name).to_owned(), password, roles })
            })
            .collect::<Result<_>>()?;
        Ok(Self { process, port, users })
    }

    /// Ends it and starts `build` in its place: the same address, database and accounts.
    ///
    /// # Errors
    /// When a migration fails, and the old one runs on; or when the new one does not get ready.
    pub(crate) fn restart(&mut self, run: &Arc<Run>, build: Build<'_>, postgres: &Postgres) -> Result<()> {
        migrate(run, build, postgres, &self.port)?;
        self.process.end();
        self.process = serve(run, build, postgres, &self.port)?;
        Ok(())
    }

    /// The address of its pages and API.
    pub(crate) fn base_url(&self) -> String {
        base_url(&self.port)
    }

    /// Who can log in.
    pub(crate) fn users(&self) -> &[User] {
        &self.users
    }

    /// Its process.
    pub(crate) fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

fn migrate(run: &Arc<Run>, build: Build<'_>, postgres: &Postgres, port: &ports::Port) -> Result<()> {
    run.answer(command(run, build, postgres, port).arg("migrate"), b"").map(drop)
}

fn serve(run: &Arc<Run>, build: Build<'_>, postgres: &Postgres, port: &ports::Port) -> Result<Process> {
    let mut process = run.start("lazaret", command(run, build, postgres, port).arg("serve"), Signal::TERM)?;
    process.ready(Duration::from_secs(60), || matches!(http::status(port.number(), "/readyz", None), Ok(200)))?;
    Ok(process)
}

/// The program with its settings, which are all in its environment.
fn command(run: &Run, build: Build<'_>, postgres: &Postgres, port: &ports::Port) -> Command {
    let mut command = Command::new(build.program);
    command.current_dir(run.checkout().root());
    command.env("DATABASE_URL", postgres.url(APP, DATABASE));
    command.env("LAZARET_OWNER_DATABASE_URL", postgres.url(OWNER, DATABASE));
    command.env("LAZARET_LISTEN", format!("127.0.0.1:{}", port.number()));
    command.env("LAZARET_BASE_URL", base_url(port)).env("LAZARET_SITE_DIR", build.site);
    if std::env::var_os("RUST_LOG").is_none() {
        command.env("RUST_LOG", "info");
    }
    if let Some(workers) = build.workers {
        command.env("TOKIO_WORKER_THREADS", workers.to_string());
    }
    command
}

fn base_url(port: &ports::Port) -> String {
    format!("http://127.0.0.1:{}", port.number())
}
