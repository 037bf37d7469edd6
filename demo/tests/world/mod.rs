//! A virtual host and two databases for one test, and the shop's processes in it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "the world of tests: a failure in it fails the test")]

use std::{process::Stdio, time::Duration};

use demo::{
    amqp,
    check::{Check, Plant, Report},
    clock, database,
    events::EventFeed,
    invoice::Invoice,
    job::Job,
    producer,
    revision::Revision,
    settings::{EventFeedSettings, Services},
    topology,
};
use lapin::{
    Channel, Connection,
    options::{BasicAckOptions, BasicGetOptions},
};
use sqlx::{Connection as _, PgConnection, PgPool};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::Instant,
};
use uuid::Uuid;

/// How long anything may take.
const DEADLINE: Duration = Duration::from_secs(40);

pub(crate) struct World {
    pub(crate) services: Services,
    pub(crate) shop: PgPool,
    pub(crate) channel: Channel,
    vault_url: String,
    _connection: Connection,
    _virtual_host: VirtualHost,
}

/// Removed with the test; the databases go with the test cluster.
struct VirtualHost(String);

impl World {
    pub(crate) async fn new(purpose: &str) -> Self {
        let name = format!("demo_{purpose}_{}", Uuid::now_v7().simple());
        let virtual_host = VirtualHost::create(&name);
        let superuser = variable("LAZARET_TEST_DATABASE_URL");
        let (shop_url, vault_url) = (beside(&superuser, &name), beside(&superuser, &format!("{name}_v")));
        create_databases(&superuser, &name, &vault_url).await;
        let services =
            Services { amqp_url: format!("{}/{name}", variable("LAZARET_TEST_AMQP_URL")), database_url: shop_url };
        let shop = database::open(&services.database_url).await.unwrap();
        let connection = amqp::connect(&services.amqp_url, "test").await.unwrap();
        let channel = amqp::confirming_channel(&connection).await.unwrap();
        topology::declare(&channel).await.unwrap();
        topology::declare(&channel).await.unwrap(); // again is harmless
        Self { services, shop, channel, vault_url, _connection: connection, _virtual_host: virtual_host }
    }

    pub(crate) async fn take_orders(&self, orders: i64) {
        let feed = no_feed();
        for _ in 0..orders {
            producer::take_order(&self.channel, &self.shop, &feed).await.unwrap();
        }
    }

    /// The job of an order, as the producer would publish it.
    pub(crate) fn job(&self, number: i64) -> Job {
        let invoice = Invoice::of_order(number);
        Job {
            job_id: invoice.job_id(),
            message_id: format!("m-{number}"),
            parent_message_id: None,
            attempt: 1,
            max_attempts: producer::MAX_ATTEMPTS,
            idempotency_key: invoice.idempotency_key(),
            enqueued_at: Some(clock::now()),
            redrive_id: None,
            redrive_generation: None,
        }
    }

    pub(crate) async fn publish(&self, job: &Job, body: &[u8]) {
        producer::publish(&self.channel, job, body).await.unwrap();
    }

    /// Takes the next dead letter off its queue.
    pub(crate) async fn take_dead_letter(&self) -> (Job, Vec<u8>) {
        let get = self.channel.basic_get(topology::DEAD_LETTER_QUEUE.into(), BasicGetOptions::default());
        let message = get.await.unwrap().unwrap().delivery;
        message.acker.ack(BasicAckOptions::default()).await.unwrap();
        (Job::read(&message.properties).unwrap(), message.data)
    }

    pub(crate) async fn dead_letters(&self) -> u32 {
        amqp::ready(&self.channel, topology::DEAD_LETTER_QUEUE).await.unwrap()
    }

    pub(crate) async fn effects(&self) -> i64 {
        self.count("SELECT count(*) FROM invoices").await
    }

    pub(crate) async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&self.shop).await.unwrap()
    }

    pub(crate) async fn check(&self, plant: Option<Plant>) -> Report {
        // these tests wait for conditions themselves
        let settle = Duration::from_secs(2);
        let check = Check { services: self.services.clone(), vault_url: Some(self.vault_url.clone()), settle, plant };
        check.run().await.unwrap()
    }

    /// A real worker process.
    pub(crate) async fn work(&self, revision: Revision) -> Process {
        self.start(&["worker", "--revision", revision.as_str(), "--slots", "8", "--until-stdin-closes"]).await.0
    }

    /// A real supervisor with two workers.
    pub(crate) async fn control(&self, revision: Revision) -> Process {
        let arguments = [
            "control",
            "--listen",
            "127.0.0.1:0",
            "--revision",
            revision.as_str(),
            "--arrival",
            "0",
            "--until-stdin-closes",
        ];
        let (mut control, line) = self.start(&arguments).await;
        control.url = line.strip_prefix("ready ").unwrap().to_owned();
        control
    }

    async fn start(&self, arguments: &[&str]) -> (Process, String) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_demo"))
            .args(arguments)
            .envs(self.services.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap().expect("it says ready");
        (Process { child, url: String::new() }, line)
    }

    /// Waits until it holds.
    pub(crate) async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !holds().await {
            assert!(Instant::now() < deadline, "waited in vain: {what}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A row as custody makes it, as far as the check looks. Foreign keys are beside the point here.
    pub(crate) async fn put_into_vault(&self, job: &str) -> Uuid {
        let row = Uuid::now_v7();
        let mut vault = self.vault().await;
        sqlx::query(
            "INSERT INTO quarantine (id, dead_letter_queue_id, batch_id, exchange, routing_key, redelivered, job_id, kind,
               fingerprint, fingerprint_version, size_bytes, commitment)
             VALUES ($1, $1, $1, '', '', false, $2, 'permanent', 'f', 1, 0, decode(repeat('00', 32), 'hex'))",
        )
        .bind(row)
        .bind(job.as_bytes())
        .execute(&mut vault)
        .await
        .unwrap();
        sqlx::query(
            "INSERT INTO payloads (quarantine_id, body, properties, commitment_key, sha256, match_hash)
             SELECT $1, '', '', zeros, zeros, zeros FROM (SELECT decode(repeat('00', 32), 'hex')) z (zeros)",
        )
        .bind(row)
        .execute(&mut vault)
        .await
        .unwrap();
        row
    }

    pub(crate) async fn let_out_of_vault(&self, row: Uuid, state: &str) {
        sqlx::query(
            "INSERT INTO cohort_items (id, cohort_id, quarantine_id, position, stratum, state) VALUES ($1, $1, $2, 0, 0, $3)",
        )
        .bind(Uuid::now_v7())
        .bind(row)
        .bind(state)
        .execute(&mut self.vault().await)
        .await
        .unwrap();
    }

    async fn vault(&self) -> PgConnection {
        let mut vault = PgConnection::connect(&self.vault_url).await.unwrap();
        sqlx::query("SET session_replication_role = replica").execute(&mut vault).await.unwrap();
        vault
    }
}

pub(crate) struct Process {
    pub(crate) child: Child,
    url: String,
}

impl Process {
    /// Ends it as its supervisor would.
    pub(crate) async fn end(mut self) {
        drop(self.child.stdin.take());
        let status = tokio::time::timeout(DEADLINE, self.child.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Runs the command of the same name against this control page.
    pub(crate) async fn order(&self, arguments: &[&str]) {
        let status = Command::new(env!("CARGO_BIN_EXE_demo"))
            .args(arguments)
            .env("DEMO_CONTROL_URL", &self.url)
            .status()
            .await
            .unwrap();
        assert!(status.success(), "{arguments:?}: {status}");
    }

    pub(crate) async fn state(&self) -> serde_json::Value {
        let url = format!("{}/state", self.url);
        tokio::task::spawn_blocking(move || ureq::get(url).call().unwrap().body_mut().read_json().unwrap())
            .await
            .unwrap()
    }
}

/// Kills a process that this test's own supervisor started.
pub(crate) fn kill(pid: u64) {
    assert!(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

/// Whether a process is there and no zombie.
pub(crate) fn runs(pid: u64) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z')))
}

fn no_feed() -> EventFeed {
    EventFeed::start(&EventFeedSettings {
        lazaret_url: None,
        lazaret_user: String::new(),
        lazaret_password: String::new(),
    })
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is needed; `cargo xtask test` sets it"))
}

/// The same server, another database.
fn beside(url: &str, database: &str) -> String {
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/{database}")
}

/// The shop's database, empty, and Lazaret's, with its migrations: when a table changes its name, the check must fail here.
async fn create_databases(superuser: &str, shop: &str, vault_url: &str) {
    let mut connection = PgConnection::connect(superuser).await.unwrap();
    for name in [shop.to_owned(), format!("{shop}_v")] {
        let sql = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }
    // roles belong to the cluster: another test may be making them at this moment
    for role in ["lazaret_owner", "lazaret_app"] {
        let sql =
            format!("DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$");
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    }
    let mut vault = PgConnection::connect(vault_url).await.unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "sql"));
    files.sort();
    for file in files {
        let sql = std::fs::read_to_string(&file).unwrap();
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut vault).await;
        done.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

impl VirtualHost {
    fn create(name: &str) -> Self {
        management("PUT", name);
        Self(name.to_owned())
    }
}

impl Drop for VirtualHost {
    fn drop(&mut self) {
        management("DELETE", &self.0);
    }
}

/// Creates or deletes a virtual host with the account of the AMQP address.
fn management(method: &str, name: &str) {
    let amqp = variable("LAZARET_TEST_AMQP_URL");
    let account = amqp.strip_prefix("amqp://").and_then(|rest| rest.split_once('@')).unwrap().0.to_owned();
    let base = variable("LAZARET_TEST_MANAGEMENT_URL").replacen("://", &format!("://{account}@"), 1);
    let url = format!("{base}/api/vhosts/{name}");
    let answer = match method {
        "PUT" => ureq::put(url).send_empty().map(drop),
        _ => ureq::delete(url).call().map(drop),
    };
    if !std::thread::panicking() {
        answer.unwrap();
    }
}
