//! The shop of the demo: its database, its topology at the broker, its processes. Crate `demo` is what runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::http;
use crate::run::{Process, Run, Signal, write_private};
use crate::services::postgres::OWNER;
use crate::services::server::{DATABASE, User};
use crate::services::{Stack, ports};

/// The shop's own database, and the role that owns it.
const SHOP: &str = "demo_shop";
/// Lazaret's probe asks as this role: it sees the invoices and nothing else.
const PROBE: &str = "demo_probe";
/// The virtual host: the broker is private, so the default one.
const VHOST: &str = "%2f";

/// Everything of it that runs.
#[derive(Debug)]
pub(super) struct Shop {
    _control: Process,
    run: Arc<Run>,
    program: PathBuf,
    surroundings: Surroundings,
    port: ports::Port,
}

/// What the shop's programs are told by their environment.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    amqp_url: String,
    shop_url: String,
    vault_url: String,
    /// `USER:PASSWORD` of the broker, for Lazaret.
    pub(super) broker_credentials: PathBuf,
    /// The probe's database address, for Lazaret.
    pub(super) probe_database: PathBuf,
}

/// What the independent check prints.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Counts {
    pub(super) ok: bool,
    pub(super) jobs: i64,
    pub(super) effects: i64,
    pub(super) held: i64,
    pub(super) queued: i64,
    pub(super) lost: i64,
    pub(super) doubled: i64,
}

/// Makes the shop's databases and declares its topology; nothing of it runs yet.
///
/// # Errors
/// When Postgres or the broker refuses.
pub(super) fn prepare(run: &Arc<Run>, program: &Path, stack: &Stack) -> Result<Surroundings> {
    let postgres = &stack.postgres;
    postgres.create_role(SHOP)?;
    postgres.create_database(SHOP, SHOP)?;
    let amqp = stack.rabbitmq.amqp_url();
    let account = amqp.strip_prefix("amqp://").and_then(|rest| rest.split_once('@'));
    let (account, _) = account.context("the broker's address names no account")?;
    let folder = run.data("demo")?;
    let surroundings = Surroundings {
        amqp_url: format!("{amqp}/{VHOST}"),
        shop_url: postgres.url(SHOP, SHOP),
        // the check reads Lazaret's tables as their owner: it must see all of them, whatever the server may
        vault_url: postgres.url(OWNER, DATABASE),
        broker_credentials: folder.join("broker-credentials"),
        probe_database: folder.join("probe-database"),
    };
    write_private(&surroundings.broker_credentials, account)?;
    run.answer(surroundings.command(program).arg("topology"), b"")?;
    postgres.create_role(PROBE)?;
    postgres.sql(SHOP, SHOP, &format!("GRANT SELECT ON invoices TO {PROBE};"))?;
    write_private(&surroundings.probe_database, &postgres.url(PROBE, SHOP))?;
    Ok(surroundings)
}

impl Surroundings {
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("DEMO_AMQP_URL", &self.amqp_url).env("DEMO_DATABASE_URL", &self.shop_url);
        command.env("DEMO_VAULT_URL", &self.vault_url);
        command
    }
}

impl Shop {
    /// Starts producer and workers of `revision`; `workers` is the account as which they send events to `base_url`.
    ///
    /// # Errors
    /// When they don't get to work.
    pub(super) fn open(
        run: &Arc<Run>,
        program: PathBuf,
        surroundings: Surroundings,
        (base_url, workers): (&str, &User),
        revision: &str,
        arrival_per_s: u32,
    ) -> Result<Self> {
        let port = ports::free(run.checkout())?;
        let mut command = surroundings.command(&program);
        command.env("DEMO_LAZARET_URL", base_url);
        command.env("DEMO_LAZARET_USER", &workers.username).env("DEMO_LAZARET_PASSWORD", &workers.password);
        command.args(["control", "--listen", &format!("127.0.0.1:{}", port.number()), "--revision", revision]);
        command.args(["--arrival", &arrival_per_s.to_string()]);
        let mut control = run.start("demo", &mut command, Signal::TERM)?;
        control.ready(Duration::from_secs(60), || matches!(http::status(port.number(), "/state", None), Ok(200)))?;
        Ok(Self { _control: control, run: Arc::clone(run), program, surroundings, port })
    }

    /// Where the control page is.
    pub(super) fn control_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port.number())
    }

    /// Replaces the workers.
    ///
    /// # Errors
    /// When the new ones don't get to work.
    pub(super) fn deploy(&self, revision: &str) -> Result<()> {
        self.order(&["deploy", revision])
    }

    /// Sets how many orders arrive.
    ///
    /// # Errors
    /// When the control page can't be reached.
    pub(super) fn arrival(&self, per_s: u32) -> Result<()> {
        self.order(&["arrival", &per_s.to_string()])
    }

    /// Runs the independent check; `plant` is a fault to pretend.
    ///
    /// # Errors
    /// When it can't count.
    pub(super) fn check(&self, plant: Option<&str>) -> Result<Counts> {
        let mut command = self.surroundings.command(&self.program);
        command.args(["check", "--json", "--settle-s", "60"]);
        if let Some(plant) = plant {
            command.args(["--plant", plant]);
        }
        // exit code 1 is an answer as well: the counts say which
        let output = self.run.output(&mut command, b"")?;
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("the check could not count: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }

    fn order(&self, arguments: &[&str]) -> Result<()> {
        let mut command = self.surroundings.command(&self.program);
        command.env("DEMO_CONTROL_URL", self.control_url()).args(arguments);
        self.run.answer(&mut command, b"").map(drop)
    }
}
