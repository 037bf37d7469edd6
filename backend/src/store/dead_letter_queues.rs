//! Dead-letter queues and the switch of their custody.

use super::Tx;
use crate::error::{Error, Result};
use anyhow::Context as _;
use domain::{
    ids::{BrokerId, DeadLetterQueueId},
    vocabulary::{CustodyMode, CustodyState},
};
use time::OffsetDateTime;

/// A dead-letter queue with what custody knows of it.
#[derive(Debug, Clone)]
pub struct Row {
    /// Identity.
    pub id: DeadLetterQueueId,
    /// Its cluster.
    pub broker_id: BrokerId,
    /// Virtual host.
    pub vhost: String,
    /// Name.
    pub name: String,
    /// The watched queues whose dead letters it takes.
    pub queues: Vec<String>,
    /// What Lazaret does with it.
    pub custody: CustodyMode,
    /// How that goes.
    pub state: CustodyState,
    /// Why.
    pub state_reason: Option<String>,
    /// Since when.
    pub state_since: OffsetDateTime,
    /// The lease's epoch; 0 before the first grant.
    pub lease_epoch: i64,
    /// Who holds it, if its time hasn't run out.
    pub lease_owner: Option<String>,
    /// Rows in the vault.
    pub stored: i64,
    /// The ETag.
    pub version: i64,
}

/// All, or one; by name.
///
/// # Errors
/// The database's.
pub async fn list(db: impl sqlx::PgExecutor<'_>, only: Option<DeadLetterQueueId>) -> Result<Vec<Row>> {
    sqlx::query!(
        r#"SELECT dlq.id, dlq.broker_id, dlq.vhost, dlq.name, dlq.custody, dlq.state, dlq.state_reason, dlq.state_since, dlq.version,
             coalesce((SELECT array_agg(queue.name ORDER BY queue.name) FROM queues AS queue
                       WHERE queue.dead_letter_queue_id = dlq.id), '{}') AS "queues!",
             coalesce(lease.epoch, 0) AS "lease_epoch!",
             CASE WHEN lease.expires_at > clock_timestamp() THEN lease.owner END AS lease_owner,
             (SELECT count(*) FROM quarantine WHERE dead_letter_queue_id = dlq.id) AS "stored!"
           FROM dead_letter_queues AS dlq LEFT JOIN leases AS lease ON lease.duty = 'custody' AND lease.subject = dlq.id
           WHERE $1::uuid IS NULL OR dlq.id = $1 ORDER BY dlq.name, dlq.id"#,
        only.map(|id| id.0)
    )
    .fetch_all(db)
    .await?
    .into_iter()
    .map(|row| {
        Ok(Row {
            id: DeadLetterQueueId(row.id),
            broker_id: BrokerId(row.broker_id),
            vhost: row.vhost,
            name: row.name,
            queues: row.queues,
            custody: row.custody.parse().context("a stored custody")?,
            state: row.state.parse().context("a stored custody state")?,
            state_reason: row.state_reason,
            state_since: row.state_since,
            lease_epoch: row.lease_epoch,
            lease_owner: row.lease_owner,
            stored: row.stored,
            version: row.version,
        })
    })
    .collect()
}

/// One.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn load(db: impl sqlx::PgExecutor<'_>, id: DeadLetterQueueId) -> Result<Row> {
    list(db, Some(id)).await?.pop().ok_or(Error::NotFound { what: "dead-letter queue" })
}

/// What custody was, with the row locked.
///
/// # Errors
/// `NotFound`, `Stale`; the database's.
pub async fn custody_for_update(tx: &mut Tx, id: DeadLetterQueueId, seen: i64) -> Result<(CustodyMode, String)> {
    let row = sqlx::query!("SELECT custody, name, version FROM dead_letter_queues WHERE id = $1 FOR UPDATE", id.0)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Error::NotFound { what: "dead-letter queue" })?;
    if row.version != seen {
        return Err(Error::Stale { now: row.version });
    }
    Ok((row.custody.parse().context("a stored custody")?, row.name))
}

/// Switches custody. Whoever owns the lease sees it within a renewal.
///
/// # Errors
/// The database's.
pub async fn set_custody(tx: &mut Tx, id: DeadLetterQueueId, custody: CustodyMode) -> Result<()> {
    let state = match custody {
        CustodyMode::Off => CustodyState::Off,
        CustodyMode::Drain => CustodyState::Waiting,
    };
    sqlx::query!(
        "UPDATE dead_letter_queues SET custody = $2, state = $3, state_reason = NULL, state_since = clock_timestamp(),
           version = version + 1 WHERE id = $1",
        id.0,
        custody.as_str(),
        state.as_str()
    )
    .execute(&mut **tx)
    .await?;
    super::notify(tx, "queues", Some(id.0)).await?;
    Ok(())
}
