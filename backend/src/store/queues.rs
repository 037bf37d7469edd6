//! Watched queues.

use super::Tx;
use crate::error::{Error, Result, broken_constraint};
use domain::{
    api::{ApprovalPolicy, DeadLetterQueueRef, HeaderMapping, RetryPolicy, Slo},
    ids::{BrokerId, DeadLetterQueueId, QueueId},
};
use sqlx::{PgExecutor, PgPool};
use time::OffsetDateTime;

/// A watched queue as its row has it.
#[derive(Debug, Clone)]
pub struct QueueRow {
    /// Identity.
    pub id: QueueId,
    /// Its cluster.
    pub broker_id: BrokerId,
    /// Virtual host.
    pub vhost: String,
    /// Name.
    pub name: String,
    /// Where its dead letters go.
    pub dead_letter_queue: DeadLetterQueueRef,
    /// What may change.
    pub settings: Settings,
    /// Version of the retry policy.
    pub policy_version: i64,
    /// The generation counter.
    pub redrive_generation: i64,
    /// Held in the vault.
    pub held: i64,
    /// When it was put under watch.
    pub created_at: OffsetDateTime,
    /// The ETag.
    pub version: i64,
}

/// What an admin sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Header names.
    pub headers: HeaderMapping,
    /// Classes.
    pub retry_policy: RetryPolicy,
    /// Objectives.
    pub slo: Slo,
    /// Who must agree.
    pub approval_policy: ApprovalPolicy,
    /// What a new draft starts with.
    pub default_probe: Option<String>,
}

struct Row {
    id: uuid::Uuid,
    broker_id: uuid::Uuid,
    vhost: String,
    name: String,
    dead_letter_queue_id: uuid::Uuid,
    dead_letter_queue: String,
    headers: serde_json::Value,
    retry_policy: serde_json::Value,
    slo: serde_json::Value,
    approval_policy: serde_json::Value,
    default_probe: Option<String>,
    policy_version: i64,
    redrive_generation: i64,
    held: i64,
    created_at: OffsetDateTime,
    version: i64,
}

impl Row {
    fn read(self) -> Result<QueueRow> {
        fn json<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Result<T> {
            serde_json::from_value(value).map_err(|error| Error::Internal(error.into()))
        }
        Ok(QueueRow {
            id: QueueId(self.id),
            broker_id: BrokerId(self.broker_id),
            vhost: self.vhost,
            name: self.name,
            dead_letter_queue: DeadLetterQueueRef {
                id: DeadLetterQueueId(self.dead_letter_queue_id),
                name: self.dead_letter_queue,
            },
            settings: Settings {
                headers: json(self.headers)?,
                retry_policy: json(self.retry_policy)?,
                slo: json(self.slo)?,
                approval_policy: json(self.approval_policy)?,
                default_probe: self.default_probe,
            },
            policy_version: self.policy_version,
            redrive_generation: self.redrive_generation,
            held: self.held,
            created_at: self.created_at,
            version: self.version,
        })
    }
}

/// A watched queue.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn get(db: impl PgExecutor<'_>, id: QueueId) -> Result<QueueRow> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT q.id, q.broker_id, q.vhost, q.name, q.dead_letter_queue_id, d.name AS dead_letter_queue, q.headers,
             q.retry_policy, q.slo, q.approval_policy, q.default_probe, q.policy_version, q.redrive_generation,
             (SELECT count(*) FROM quarantine v WHERE v.queue_id = q.id AND v.disposition = 'held') AS "held!",
             q.created_at, q.version
           FROM queues q JOIN dead_letter_queues d ON d.id = q.dead_letter_queue_id WHERE q.id = $1"#,
        id.0
    )
    .fetch_optional(db)
    .await?;
    row.ok_or(Error::NotFound { what: "queue" })?.read()
}

/// Locks a watched queue for a change of it; its version.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn lock(tx: &mut Tx, id: QueueId) -> Result<i64> {
    sqlx::query_scalar!("SELECT version FROM queues WHERE id = $1 FOR UPDATE", id.0)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Error::NotFound { what: "queue" })
}

/// Watched queues by name, after `after`; and how many there are.
///
/// # Errors
/// The database's.
pub async fn list(pool: &PgPool, after: Option<(String, uuid::Uuid)>, rows: i64) -> Result<(Vec<QueueRow>, i64)> {
    let (after_name, after_id) = after.unzip();
    let queues = sqlx::query_as!(
        Row,
        r#"SELECT q.id, q.broker_id, q.vhost, q.name, q.dead_letter_queue_id, d.name AS dead_letter_queue, q.headers,
             q.retry_policy, q.slo, q.approval_policy, q.default_probe, q.policy_version, q.redrive_generation,
             (SELECT count(*) FROM quarantine v WHERE v.queue_id = q.id AND v.disposition = 'held') AS "held!",
             q.created_at, q.version
           FROM queues q JOIN dead_letter_queues d ON d.id = q.dead_letter_queue_id
           WHERE $1::text IS NULL OR (q.name, q.id) > ($1, $2::uuid) ORDER BY q.name, q.id LIMIT $3"#,
        after_name,
        after_id,
        rows
    )
    .fetch_all(pool)
    .await?;
    let count = sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM queues"#).fetch_one(pool).await?;
    Ok((queues.into_iter().map(Row::read).collect::<Result<_>>()?, count))
}

/// The dead-letter queue of this name, registered with custody `off` if it is new.
///
/// # Errors
/// The database's.
pub async fn dead_letter_queue(tx: &mut Tx, broker: BrokerId, vhost: &str, name: &str) -> Result<DeadLetterQueueId> {
    sqlx::query!(
        "INSERT INTO dead_letter_queues (id, broker_id, vhost, name) VALUES ($1, $2, $3, $4)
         ON CONFLICT ON CONSTRAINT dead_letter_queues_name_unique DO NOTHING",
        crate::clock::new_id(),
        broker.0,
        vhost,
        name
    )
    .execute(&mut **tx)
    .await?;
    let id = sqlx::query_scalar!(
        "SELECT id FROM dead_letter_queues WHERE broker_id = $1 AND vhost = $2 AND name = $3",
        broker.0,
        vhost,
        name
    )
    .fetch_one(&mut **tx)
    .await?;
    Ok(DeadLetterQueueId(id))
}

/// A queue to put under watch.
#[derive(Debug)]
pub struct NewRow<'a> {
    /// Identity.
    pub id: QueueId,
    /// Its cluster.
    pub broker_id: BrokerId,
    /// Virtual host.
    pub vhost: &'a str,
    /// Name.
    pub name: &'a str,
    /// Where its dead letters go.
    pub dead_letter_queue: DeadLetterQueueId,
}

/// Puts a queue under watch, with its freeze switch (off) and the first version of its policy.
///
/// # Errors
/// 409 `queue_exists`; the database's.
pub async fn insert(tx: &mut Tx, row: &NewRow<'_>, settings: &Settings) -> Result<()> {
    sqlx::query!(
        "INSERT INTO queues (id, broker_id, vhost, name, dead_letter_queue_id, headers, retry_policy, slo, approval_policy,
           default_probe) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        row.id.0,
        row.broker_id.0,
        row.vhost,
        row.name,
        row.dead_letter_queue.0,
        json(&settings.headers)?,
        json(&settings.retry_policy)?,
        json(&settings.slo)?,
        json(&settings.approval_policy)?,
        settings.default_probe
    )
    .execute(&mut **tx)
    .await
    .map_err(|error| match broken_constraint(&error) {
        Some("queues_name_unique") => Error::refused("queue_exists", "this queue is under watch already"),
        _ => error.into(),
    })?;
    sqlx::query!("INSERT INTO freezes (scope, queue_id) VALUES ($1, $1)", row.id.0).execute(&mut **tx).await?;
    insert_policy(tx, row.id, 1, &settings.retry_policy).await
}

/// Keeps a version of the retry policy: evidence says which one judged it.
///
/// # Errors
/// The database's.
pub async fn insert_policy(tx: &mut Tx, queue: QueueId, version: i64, policy: &RetryPolicy) -> Result<()> {
    sqlx::query!(
        "INSERT INTO queue_policies (queue_id, policy_version, retry_policy) VALUES ($1, $2, $3)",
        queue.0,
        version,
        json(policy)?
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Writes the settings; the version rises.
///
/// # Errors
/// The database's.
pub async fn change(tx: &mut Tx, queue: QueueId, policy_version: i64, settings: &Settings) -> Result<()> {
    sqlx::query!(
        "UPDATE queues SET headers = $2, retry_policy = $3, slo = $4, approval_policy = $5, default_probe = $6,
           policy_version = $7, version = version + 1 WHERE id = $1",
        queue.0,
        json(&settings.headers)?,
        json(&settings.retry_policy)?,
        json(&settings.slo)?,
        json(&settings.approval_policy)?,
        settings.default_probe,
        policy_version
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Whether the vault holds, or ever held, a message of the queue.
///
/// # Errors
/// The database's.
pub async fn has_evidence(tx: &mut Tx, queue: QueueId) -> Result<bool> {
    Ok(sqlx::query_scalar!(r#"SELECT EXISTS (SELECT FROM quarantine WHERE queue_id = $1) AS "evidence!""#, queue.0)
        .fetch_one(&mut **tx)
        .await?)
}

fn json(value: &impl serde::Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(value).map_err(|error| Error::Internal(error.into()))
}
