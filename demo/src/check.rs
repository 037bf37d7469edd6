//! The independent check: what became of every accepted job, from AMQP and SQL alone.
//!
//! `lost`: accepted jobs that are in none of effects, custody and queues. `doubled`: redrive ids that were executed more
//! than once, and further redrive ids of a job within one generation. Neither asks Lazaret's API for anything; what the
//! vault holds is counted from its tables.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Context as _;
use lapin::{
    Channel,
    options::{BasicGetOptions, BasicNackOptions},
    types::AMQPValue,
};
use serde::Serialize;
use sqlx::{Connection as _, PgConnection};
use tokio::time::Instant;
use uuid::Uuid;

use crate::{amqp, database, settings::Services, topology};

/// How often the counts are read again while traffic settles.
const POLL: Duration = Duration::from_millis(250);
/// How many names of lost jobs are listed.
const LISTED: usize = 20;

/// A select over the rows that are in custody: the payload is there, and no item of a cohort says that it left. The
/// projected `disposition` isn't asked: the check judges by the facts under it.
macro_rules! custody {
    ($columns:literal, $where:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM quarantine q WHERE ",
            $where,
            " AND EXISTS (SELECT FROM payloads p WHERE p.quarantine_id = q.id)",
            " AND NOT EXISTS (SELECT FROM cohort_items i WHERE i.quarantine_id = q.id AND i.state IN",
            " ('confirmed', 'verified', 'unverified', 'verification_failed', 'requarantined', 'resolved_arrived'))",
        )
    };
}
/// What to check, and how patiently.
#[derive(Debug, Clone)]
pub struct Check {
    /// Broker and the demo's database.
    pub services: Services,
    /// Lazaret's database; without it nothing counts as in custody.
    pub vault_url: Option<String>,
    /// How long messages may take to come to rest, once nothing new arrives.
    pub settle: Duration,
    /// A fault to pretend, so that the check can be seen to notice.
    pub plant: Option<Plant>,
}

/// A fault that is written into a transaction which is never committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Plant {
    /// An accepted job that is nowhere.
    Loss,
    /// A redrive that was executed twice.
    Double,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Nothing lost, nothing doubled.
    pub ok: bool,
    /// Accepted jobs.
    pub jobs: i64,
    /// Rows in `invoices`: durable effects.
    pub effects: i64,
    /// Messages that the vault holds.
    pub held: i64,
    /// Messages that were found on the queues when nothing moved any more.
    pub queued: i64,
    /// Accepted jobs that are in none of effects, custody and queues.
    pub lost: i64,
    /// The first of them.
    pub lost_jobs: Vec<String>,
    /// Redrives that were executed more than once.
    pub doubled: i64,
    /// The first of them.
    pub doubled_redrives: Vec<Uuid>,
}

impl Check {
    /// Waits until every accepted job has an effect or is in custody and the queues are empty, or the time to settle
    /// is over; then counts. A job that a worker still executes by then counts as lost: red, never falsely green.
    ///
    /// # Errors
    /// When broker or databases can't be reached, or the queues don't exist.
    pub async fn run(&self) -> anyhow::Result<Report> {
        drop(database::open(&self.services.database_url).await?);
        let mut shop = PgConnection::connect(&self.services.database_url).await?;
        let mut vault = match &self.vault_url {
            Some(url) => Some(PgConnection::connect(url).await.context("lazaret's database can't be reached")?),
            None => None,
        };
        let connection = amqp::connect(&self.services.amqp_url, "demo check").await?;
        let channel = connection.create_channel().await?;

        let mut transaction = shop.begin().await?;
        let deadline = Instant::now() + self.settle;
        settle(&mut transaction, vault.as_mut(), &channel, deadline).await?;
        if let Some(plant) = self.plant {
            plant.sow(&mut transaction).await?;
        }
        let mut looked = look(&mut transaction, vault.as_mut(), &channel).await?;
        if !looked.lost.is_empty() && self.plant.is_none() {
            // the producer's last order may have come after the settling, and be in a worker's hands
            settle(&mut transaction, vault.as_mut(), &channel, deadline).await?;
            looked = look(&mut transaction, vault.as_mut(), &channel).await?;
        }
        let Looked { queued, lost } = looked;
        let doubled = doubled(&mut transaction).await?;
        let (jobs, effects): (i64, i64) =
            sqlx::query_as("SELECT (SELECT count(*) FROM accepted), (SELECT count(*) FROM invoices)")
                .fetch_one(&mut *transaction)
                .await?;
        let held = match &mut vault {
            Some(vault) => held(vault).await?,
            None => 0,
        };
        transaction.rollback().await?;
        connection.close(200, "the check ends".into()).await?;
        Ok(Report {
            ok: lost.is_empty() && doubled.is_empty(),
            jobs,
            effects,
            held,
            queued,
            lost: count(lost.len()),
            lost_jobs: lost.into_iter().take(LISTED).collect(),
            doubled: count(doubled.len()),
            doubled_redrives: doubled.into_iter().take(LISTED).collect(),
        })
    }
}

impl Plant {
    async fn sow(self, shop: &mut PgConnection) -> sqlx::Result<()> {
        let sql = match self {
            Self::Loss => {
                "INSERT INTO accepted (job_id, idempotency_key, message_id, poisoned, accepted_at)
                 VALUES ('planted.loss', 'planted.loss', 'planted', false, now())"
            }
            Self::Double => {
                "INSERT INTO executions (at, job_id, message_id, attempt, redrive_id, redrive_generation, worker_version, worker)
                 SELECT now(), 'planted.double', 'planted', 1, '00000000-0000-0000-0000-00000000d0b1', 1, 'planted', 'planted'
                 FROM generate_series(1, 2)"
            }
        };
        sqlx::query(sql).execute(shop).await.map(drop)
    }
}

/// Accepted jobs without an effect, and not in custody.
async fn unaccounted(shop: &mut PgConnection, vault: Option<&mut PgConnection>) -> sqlx::Result<BTreeSet<String>> {
    let mut missing: BTreeSet<String> = sqlx::query_scalar(
        "SELECT job_id FROM accepted a
         WHERE NOT EXISTS (SELECT FROM invoices i WHERE i.idempotency_key = a.idempotency_key)",
    )
    .fetch_all(shop)
    .await?
    .into_iter()
    .collect();
    if let Some(vault) = vault {
        let sql = custody!("q.job_id", "q.job_id IS NOT NULL");
        for job in sqlx::query_scalar::<_, Vec<u8>>(sql).fetch_all(vault).await? {
            missing.remove(String::from_utf8_lossy(&job).as_ref());
        }
    }
    Ok(missing)
}

/// Messages that the vault holds.
async fn held(vault: &mut PgConnection) -> sqlx::Result<i64> {
    sqlx::query_scalar(custody!("count(*)", "true")).fetch_one(vault).await
}

/// Redrives that were executed again: the same id twice, or another id for the same job and generation.
async fn doubled(shop: &mut PgConnection) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar(
        "SELECT redrive_id FROM executions WHERE redrive_id IS NOT NULL GROUP BY redrive_id HAVING count(*) > 1
         UNION
         SELECT later.redrive_id FROM executions later JOIN executions first USING (job_id, redrive_generation)
         WHERE first.redrive_id < later.redrive_id",
    )
    .fetch_all(shop)
    .await
}

/// Waits until nothing is unaccounted for and the queues are empty, or `deadline` has come.
async fn settle(
    shop: &mut PgConnection,
    mut vault: Option<&mut PgConnection>,
    channel: &Channel,
    deadline: Instant,
) -> anyhow::Result<()> {
    while !(unaccounted(shop, vault.as_deref_mut()).await?.is_empty() && ready(channel).await? == 0)
        && Instant::now() < deadline
    {
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// What one look at databases and queues shows.
struct Looked {
    /// Ready messages.
    queued: i64,
    /// Accepted jobs that are nowhere.
    lost: Vec<String>,
}

async fn look(
    shop: &mut PgConnection,
    mut vault: Option<&mut PgConnection>,
    channel: &Channel,
) -> anyhow::Result<Looked> {
    let missing = unaccounted(shop, vault.as_deref_mut()).await?;
    let queued = look_into_queues(channel).await?;
    // what left a queue for the vault or for its effect between the two looks is in neither: look once more
    let after = unaccounted(shop, vault).await?;
    let lost = missing.intersection(&after).filter(|job| !queued.jobs.contains(*job)).cloned().collect();
    Ok(Looked { queued: queued.messages, lost })
}

/// Ready messages on both queues.
async fn ready(channel: &Channel) -> anyhow::Result<u32> {
    let source = amqp::ready(channel, topology::QUEUE).await?;
    Ok(source + amqp::ready(channel, topology::DEAD_LETTER_QUEUE).await?)
}

/// What is on the queues.
#[derive(Default)]
struct Queued {
    messages: i64,
    jobs: BTreeSet<String>,
}

/// Takes every ready message of both queues, reads its job id, and puts all of them back.
async fn look_into_queues(channel: &Channel) -> anyhow::Result<Queued> {
    let mut queued = Queued::default();
    let mut last = None;
    for queue in [topology::QUEUE, topology::DEAD_LETTER_QUEUE] {
        while let Some(message) = channel.basic_get(queue.into(), BasicGetOptions { no_ack: false }).await? {
            queued.messages += 1;
            let headers = message.delivery.properties.headers().as_ref();
            // the header's name is repeated here on purpose: the check shares nothing with what it checks
            if let Some(AMQPValue::LongString(job)) = headers.and_then(|headers| headers.inner().get("job-id")) {
                queued.jobs.insert(String::from_utf8_lossy(job.as_bytes()).into_owned());
            }
            last = Some(message.delivery.delivery_tag);
        }
    }
    if let Some(last) = last {
        channel.basic_nack(last, BasicNackOptions { multiple: true, requeue: true }).await?;
    }
    Ok(queued)
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
