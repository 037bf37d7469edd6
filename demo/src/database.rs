//! The shop's own database: what was accepted, what was executed, what was done, and the knobs.

use anyhow::Context as _;
use sqlx::{Connection as _, PgConnection, PgPool, postgres::PgPoolOptions};

use crate::{clock, job::Job, revision::Revision};

/// `invoices` is the durable effect, once per idempotency key. `executions` has no unique constraint: a second
/// execution must be able to show.
const SCHEMA: &str = "
CREATE SEQUENCE IF NOT EXISTS order_numbers;

CREATE TABLE IF NOT EXISTS accepted (
  job_id text CONSTRAINT accepted_once PRIMARY KEY,
  idempotency_key text NOT NULL,
  message_id text NOT NULL,
  poisoned boolean NOT NULL,
  accepted_at timestamptz NOT NULL
);

CREATE TABLE IF NOT EXISTS executions (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  job_id text NOT NULL,
  message_id text NOT NULL,
  attempt bigint NOT NULL,
  redrive_id uuid,
  redrive_generation bigint,
  worker_version text NOT NULL,
  worker text NOT NULL
);

CREATE TABLE IF NOT EXISTS invoices (
  idempotency_key text CONSTRAINT invoices_once PRIMARY KEY,
  job_id text NOT NULL,
  invoice_number text NOT NULL,
  customer text NOT NULL,
  amount_cents bigint NOT NULL,
  currency text NOT NULL,
  message_id text NOT NULL,
  attempt bigint NOT NULL,
  redrive_id uuid,
  redrive_generation bigint,
  worker_version text NOT NULL,
  recorded_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS invoices_by_job ON invoices (job_id);

CREATE TABLE IF NOT EXISTS knobs (
  single boolean CONSTRAINT knobs_single PRIMARY KEY DEFAULT true CHECK (single),
  arrival_per_s integer NOT NULL CONSTRAINT knobs_arrival_range CHECK (arrival_per_s BETWEEN 0 AND 500),
  downstream_ms integer NOT NULL CONSTRAINT knobs_downstream_range CHECK (downstream_ms BETWEEN 0 AND 60000)
);
INSERT INTO knobs (arrival_per_s, downstream_ms) VALUES (0, 0) ON CONFLICT DO NOTHING;
";

/// Names the lock under which the schema is made; any number that nobody else uses.
const SCHEMA_LOCK: i64 = 0x6c61_7a61_7265;

/// What people turn while the demo runs; every process reads them twice a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct Knobs {
    /// New orders per second, 0–500.
    pub arrival_per_s: i32,
    /// How long the downstream takes, 0–60 000 ms.
    pub downstream_ms: i32,
}

/// Connects, and makes the tables where they aren't there yet.
///
/// # Errors
/// When the database can't be reached.
pub async fn open(url: &str) -> anyhow::Result<PgPool> {
    let mut connection = PgConnection::connect(url).await.context("the demo's database can't be reached")?;
    // several processes start at once, and IF NOT EXISTS alone races
    let mut transaction = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(SCHEMA_LOCK).execute(&mut *transaction).await?;
    sqlx::raw_sql(SCHEMA).execute(&mut *transaction).await?;
    transaction.commit().await?;
    connection.close().await?;
    Ok(PgPoolOptions::new().max_connections(6).connect(url).await?)
}

/// The knobs now.
///
/// # Errors
/// When the database doesn't answer.
pub async fn knobs(pool: &PgPool) -> sqlx::Result<Knobs> {
    sqlx::query_as("SELECT arrival_per_s, downstream_ms FROM knobs").fetch_one(pool).await
}

/// Sets the arrival rate, per second.
///
/// # Errors
/// Outside 0–500, or when the database doesn't answer.
pub async fn set_arrival(pool: &PgPool, per_s: i32) -> sqlx::Result<()> {
    sqlx::query("UPDATE knobs SET arrival_per_s = $1").bind(per_s).execute(pool).await.map(drop)
}

/// Sets how long the downstream takes, in ms.
///
/// # Errors
/// Outside 0–60 000, or when the database doesn't answer.
pub async fn set_downstream(pool: &PgPool, ms: i32) -> sqlx::Result<()> {
    sqlx::query("UPDATE knobs SET downstream_ms = $1").bind(ms).execute(pool).await.map(drop)
}

/// A number for the next order.
///
/// # Errors
/// When the database doesn't answer.
pub async fn next_order(pool: &PgPool) -> sqlx::Result<i64> {
    sqlx::query_scalar("SELECT nextval('order_numbers')").fetch_one(pool).await
}

/// Whether the one poisoned order is already out.
///
/// # Errors
/// When the database doesn't answer.
pub async fn poison_is_out(pool: &PgPool) -> sqlx::Result<bool> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM accepted WHERE poisoned)").fetch_one(pool).await
}

/// Notes a job that the broker has confirmed.
///
/// # Errors
/// When the database doesn't answer.
pub async fn accept(pool: &PgPool, job: &Job, poisoned: bool) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO accepted (job_id, idempotency_key, message_id, poisoned, accepted_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING",
    )
    .bind(&job.job_id)
    .bind(&job.idempotency_key)
    .bind(&job.message_id)
    .bind(poisoned)
    .bind(clock::now())
    .execute(pool)
    .await
    .map(drop)
}

/// Writes an execution into the ledger, before it begins.
///
/// # Errors
/// When the database doesn't answer.
pub async fn append_execution(pool: &PgPool, job: &Job, revision: Revision, worker: &str) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO executions (at, job_id, message_id, attempt, redrive_id, redrive_generation, worker_version, worker)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(clock::now())
    .bind(&job.job_id)
    .bind(&job.message_id)
    .bind(job.executed_attempt())
    .bind(job.redrive_id)
    .bind(job.redrive_generation)
    .bind(revision.as_str())
    .bind(worker)
    .execute(pool)
    .await
    .map(drop)
}

/// Writes the durable effect; false when it was there already, made by something else.
///
/// # Errors
/// When the database doesn't answer.
pub async fn record_invoice(
    pool: &PgPool,
    job: &Job,
    invoice: &crate::invoice::Invoice,
    revision: Revision,
) -> sqlx::Result<bool> {
    let recorded = sqlx::query(
        "INSERT INTO invoices (idempotency_key, job_id, invoice_number, customer, amount_cents, currency, message_id,
           attempt, redrive_id, redrive_generation, worker_version, recorded_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT ON CONSTRAINT invoices_once DO NOTHING",
    )
    .bind(&job.idempotency_key)
    .bind(&job.job_id)
    .bind(&invoice.invoice_number)
    .bind(&invoice.customer)
    .bind(invoice.amount_cents)
    .bind(&invoice.currency)
    .bind(&job.message_id)
    .bind(job.executed_attempt())
    .bind(job.redrive_id)
    .bind(job.redrive_generation)
    .bind(revision.as_str())
    .bind(clock::now())
    .execute(pool)
    .await?;
    Ok(recorded.rows_affected() == 1)
}

/// How many jobs were accepted, and how many have their effect.
///
/// # Errors
/// When the database doesn't answer.
pub async fn totals(pool: &PgPool) -> sqlx::Result<(i64, i64)> {
    sqlx::query_as("SELECT (SELECT count(*) FROM accepted), (SELECT count(*) FROM invoices)").fetch_one(pool).await
}
