//! One quarantined message: its facts, its bytes, where it comes from and who opened it.

use super::list::ListRow;
use crate::{
    error::{Error, Result},
    store::{Tx, custody::Watched, events::Classified},
};
use anyhow::Context as _;
use domain::{
    amqp::Properties,
    api::{CohortRef, CustodyFacts, Inspection, LineageStep, QuarantineRow, UserRef},
    headers::SelfReport,
    ids::{AppName, CohortId, DeadLetterQueueId, ItemId, QuarantineId, QueueId, RedriveId, UserId},
};
use sqlx::PgPool;
use time::OffsetDateTime;

/// Everything about a row but its bytes.
#[derive(Debug)]
pub struct Facts {
    /// As the list shows it, with the whole error text.
    pub row: QuarantineRow,
    /// How it came into the vault.
    pub custody: CustodyFacts,
    /// The exchange that it was published to first.
    pub original_exchange: Option<AppName>,
    /// The key.
    pub original_routing_key: Option<AppName>,
    /// The queue it died on last.
    pub died_on: Option<AppName>,
    /// Why.
    pub death_reason: Option<String>,
    /// The broker's hint.
    pub redelivered: bool,
    /// The redrive that it carries.
    pub redrive_id: Option<RedriveId>,
    /// As the property says.
    pub content_type: Option<String>,
    /// As the property says.
    pub content_encoding: Option<String>,
    /// Stays after erasure.
    pub commitment: Vec<u8>,
}

/// The facts of one row.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn facts(pool: &PgPool, id: QuarantineId) -> Result<Facts> {
    let row = sqlx::query!(
        r#"SELECT dead.id, dead.queue_id, queue.name AS "queue_name?", dead.disposition, dead.job_id, dead.message_id, dead.attempt,
             dead.max_attempts, dead.delivery_count, dead.redrive_generation, dead.error_class, dead.error_text, dead.kind,
             dead.fingerprint, dead.worker_version, dead.size_bytes, dead.dead_lettered_at, dead.arrived_at,
             dead.possible_duplicate_of, cohort.id AS "cohort_id?", cohort.title AS "cohort_title?",
             dead.original_exchange, dead.original_routing_key, dead.died_on, dead.death_reason, dead.redelivered,
             dead.redrive_id, dead.content_type, dead.content_encoding, dead.commitment, dead.policy_version,
             dead.dead_letter_queue_id, dlq.name AS dlq_name, dead.batch_id, batch.epoch, batch.acked_at,
             (SELECT count(*) FROM absorptions WHERE quarantine_id = dead.id) AS "absorbed!",
             assigner.id AS "assigner_id?", assigner.username AS "assigner_name?"
           FROM quarantine AS dead JOIN dead_letter_queues AS dlq ON dlq.id = dead.dead_letter_queue_id
           JOIN custody_batches AS batch ON batch.id = dead.batch_id
           LEFT JOIN queues AS queue ON queue.id = dead.queue_id
           LEFT JOIN message_claims AS claim ON claim.quarantine_id = dead.id LEFT JOIN cohorts AS cohort ON cohort.id = claim.cohort_id
           LEFT JOIN users AS assigner ON assigner.id = dead.assigned_by
           WHERE dead.id = $1"#,
        id.0
    )
    .fetch_optional(pool)
    .await?
    .ok_or(Error::NotFound { what: "quarantined message" })?;
    Ok(Facts {
        custody: CustodyFacts {
            dead_letter_queue: DeadLetterQueueId(row.dead_letter_queue_id),
            dead_letter_queue_name: row.dlq_name,
            batch_id: row.batch_id,
            epoch: row.epoch,
            acked_at: row.acked_at.map(Into::into),
            absorbed: row.absorbed,
            policy_version: row.policy_version,
            assigned_by: row
                .assigner_id
                .zip(row.assigner_name)
                .map(|(id, username)| UserRef { id: UserId(id), username }),
        },
        original_exchange: row.original_exchange.map(AppName),
        original_routing_key: row.original_routing_key.map(AppName),
        died_on: row.died_on.map(AppName),
        death_reason: row.death_reason,
        redelivered: row.redelivered,
        redrive_id: row.redrive_id.map(RedriveId),
        content_type: row.content_type,
        content_encoding: row.content_encoding,
        commitment: row.commitment,
        row: ListRow {
            id: row.id,
            queue_id: row.queue_id,
            queue_name: row.queue_name,
            disposition: row.disposition,
            job_id: row.job_id,
            message_id: row.message_id,
            attempt: row.attempt,
            max_attempts: row.max_attempts,
            delivery_count: row.delivery_count,
            redrive_generation: row.redrive_generation,
            error_class: row.error_class,
            error_text: row.error_text,
            kind: row.kind,
            fingerprint: row.fingerprint,
            worker_version: row.worker_version,
            size_bytes: row.size_bytes,
            dead_lettered_at: row.dead_lettered_at,
            arrived_at: row.arrived_at,
            possible_duplicate_of: row.possible_duplicate_of,
            cohort_id: row.cohort_id,
            cohort_title: row.cohort_title,
        }
        .try_into()?,
    })
}

/// Properties and headers as they arrived, and the body's hash; `None` once erased.
///
/// # Errors
/// The database's, or stored bytes that can't be decoded.
pub async fn properties(db: impl sqlx::PgExecutor<'_>, id: QuarantineId) -> Result<Option<(Properties, Vec<u8>)>> {
    let row = sqlx::query!("SELECT properties, headers, sha256 FROM payloads WHERE quarantine_id = $1", id.0)
        .fetch_optional(db)
        .await?;
    row.map(|row| {
        let properties = Properties::decode(&row.properties, row.headers.as_deref()).context("stored properties")?;
        Ok((properties, row.sha256))
    })
    .transpose()
}

/// The body; `None` once erased.
///
/// # Errors
/// The database's.
pub async fn body(db: impl sqlx::PgExecutor<'_>, id: QuarantineId) -> Result<Option<Vec<u8>>> {
    Ok(sqlx::query_scalar!("SELECT body FROM payloads WHERE quarantine_id = $1", id.0).fetch_optional(db).await?)
}

/// Who opened the payload, oldest first.
///
/// # Errors
/// The database's.
pub async fn inspections(db: impl sqlx::PgExecutor<'_>, id: QuarantineId) -> Result<Vec<Inspection>> {
    Ok(sqlx::query!(
        r#"SELECT actor_id AS "id!", actor_name, at FROM audit_entries
           WHERE subject_kind = 'quarantine' AND subject_id = $1 AND action = 'quarantine.reveal' AND result = 'done'
             AND actor_id IS NOT NULL ORDER BY at"#,
        id.to_string()
    )
    .fetch_all(db)
    .await?
    .into_iter()
    .map(|row| Inspection { by: UserRef { id: UserId(row.id), username: row.actor_name }, at: row.at.into() })
    .collect())
}

/// The redrives of one row, oldest first.
///
/// # Errors
/// The database's.
pub async fn redrives(pool: &PgPool, id: QuarantineId) -> Result<Vec<LineageStep>> {
    sqlx::query!(
        "SELECT item.id, item.state, item.redrive_id, item.generation, item.published_at, cohort.id AS cohort_id, cohort.title
         FROM cohort_items AS item JOIN cohorts AS cohort ON cohort.id = item.cohort_id
         WHERE item.quarantine_id = $1 AND item.redrive_id IS NOT NULL ORDER BY item.published_at, item.id",
        id.0
    )
    .fetch_all(pool)
    .await?
    .into_iter()
    .map(|row| {
        Ok(LineageStep {
            quarantine_id: id,
            cohort: Some(CohortRef { id: CohortId(row.cohort_id), title: row.title }),
            item_id: Some(ItemId(row.id)),
            redrive_id: row.redrive_id.map(RedriveId),
            redrive_generation: row.generation,
            state: Some(row.state.parse().context("a stored item state")?),
            published_at: row.published_at.map(Into::into),
        })
    })
    .collect()
}

/// The dead letter that a redrive sent back, and the redrive that it carried itself.
///
/// # Errors
/// The database's.
pub async fn parent(pool: &PgPool, redrive: RedriveId) -> Result<Option<(QuarantineId, Option<RedriveId>)>> {
    let row = sqlx::query!(
        "SELECT dead.id, dead.redrive_id FROM cohort_items AS item JOIN quarantine AS dead ON dead.id = item.quarantine_id
         WHERE item.redrive_id = $1",
        redrive.0
    )
    .fetch_optional(pool)
    .await?;
    Ok(row.map(|row| (QuarantineId(row.id), row.redrive_id.map(RedriveId))))
}

/// An unattributed row, locked.
#[derive(Debug)]
pub struct Unattributed {
    /// Whose it is already, if it is.
    pub queue_id: Option<QueueId>,
    /// Why it died.
    pub death_reason: Option<String>,
}

/// Reads a row to give it to a queue.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn to_assign(tx: &mut Tx, id: QuarantineId) -> Result<Unattributed> {
    let row = sqlx::query!("SELECT queue_id, death_reason FROM quarantine WHERE id = $1 FOR UPDATE", id.0)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Error::NotFound { what: "quarantined message" })?;
    Ok(Unattributed { queue_id: row.queue_id.map(QueueId), death_reason: row.death_reason })
}

/// A watched queue on the broker and virtual host that a row came from; `None`: it is elsewhere, or isn't.
///
/// # Errors
/// The database's.
pub async fn queue_beside(tx: &mut Tx, id: QuarantineId, queue: QueueId) -> Result<Option<Watched>> {
    let row = sqlx::query!(
        "SELECT queue.id, queue.name, queue.headers, queue.retry_policy, queue.policy_version
         FROM quarantine AS dead JOIN dead_letter_queues AS dlq ON dlq.id = dead.dead_letter_queue_id
         JOIN queues AS queue ON queue.broker_id = dlq.broker_id AND queue.vhost = dlq.vhost
         WHERE dead.id = $1 AND queue.id = $2",
        id.0,
        queue.0
    )
    .fetch_optional(&mut **tx)
    .await?;
    row.map(|row| {
        Ok(Watched {
            id: QueueId(row.id),
            name: row.name,
            headers: serde_json::from_value(row.headers).context("a stored header mapping")?,
            retry_policy: serde_json::from_value(row.retry_policy).context("a stored retry policy")?,
            policy_version: row.policy_version,
        })
    })
    .transpose()
}

/// Gives a row to a queue, read anew by that queue's mapping and judged by its policy now.
///
/// # Errors
/// The database's.
pub async fn assign(
    tx: &mut Tx,
    id: QuarantineId,
    queue: &Watched,
    by: UserId,
    report: &SelfReport,
    enqueued_at: Option<OffsetDateTime>,
    judged: &Classified<'_>,
) -> Result<()> {
    let class: Option<&str> = Some(judged.error_class).filter(|class| !class.is_empty());
    sqlx::query!(
        "UPDATE quarantine SET queue_id = $2, assigned_by = $3, assigned_at = clock_timestamp(), job_id = $4, message_id = $5,
           idempotency_key = $6, parent_message_id = $7, attempt = $8, max_attempts = $9, enqueued_at = $10,
           error_class = $11, error_text = $12, error_source = CASE WHEN $11::text IS NULL THEN NULL ELSE 'header' END,
           worker_version = $13, kind = $14, policy_version = $15, fingerprint = $16, normalised_text = $17
         WHERE id = $1",
        id.0,
        queue.id.0,
        by.0,
        report.job_id,
        report.message_id,
        report.idempotency_key,
        report.parent_message_id,
        report.attempt,
        report.max_attempts.or(queue.retry_policy.max_attempts),
        enqueued_at,
        class,
        judged.error_text,
        judged.worker_version,
        judged.kind.as_str(),
        queue.policy_version,
        judged.fingerprint,
        judged.normalised_text
    )
    .execute(&mut **tx)
    .await?;
    crate::store::notify(tx, "quarantine", Some(id.0)).await?;
    Ok(())
}
