//! The vault's intake: a batch of deliveries becomes rows in one transaction (RULES 2).

use super::{Store, Tx};
use crate::error::{Error, Result};
use anyhow::Context as _;
use domain::{
    api::{HeaderMapping, RetryPolicy},
    ids::{BrokerId, DeadLetterQueueId, QuarantineId, QueueId},
    keyed::Hash32,
};
use serde::{Serialize, Serializer};
use time::OffsetDateTime;
use uuid::Uuid;

/// A dead-letter queue to drain, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Identity.
    pub id: DeadLetterQueueId,
    /// Its cluster.
    pub broker_id: BrokerId,
    /// Virtual host.
    pub vhost: String,
    /// Name.
    pub name: String,
}

/// Dead-letter queues whose custody is `drain`.
///
/// # Errors
/// The database's.
pub async fn to_drain(store: &Store) -> Result<Vec<Source>> {
    let rows =
        sqlx::query!("SELECT id, broker_id, vhost, name FROM dead_letter_queues WHERE custody = 'drain' ORDER BY id")
            .fetch_all(store.pool())
            .await?;
    Ok(rows
        .into_iter()
        .map(|row| Source {
            id: DeadLetterQueueId(row.id),
            broker_id: BrokerId(row.broker_id),
            vhost: row.vhost,
            name: row.name,
        })
        .collect())
}

/// Whether the queue is still to be drained.
///
/// # Errors
/// The database's.
pub async fn is_wanted(store: &Store, source: DeadLetterQueueId) -> Result<bool> {
    let wanted =
        sqlx::query_scalar!(r#"SELECT custody = 'drain' AS "wanted!" FROM dead_letter_queues WHERE id = $1"#, source.0)
            .fetch_optional(store.pool())
            .await?;
    Ok(wanted.unwrap_or(false))
}

/// A watched queue, as far as custody needs it.
#[derive(Debug, Clone)]
pub struct Watched {
    /// Identity.
    pub id: QueueId,
    /// Name.
    pub name: String,
    /// What its applications call their headers.
    pub headers: HeaderMapping,
    /// What judges a class.
    pub retry_policy: RetryPolicy,
    /// The version of that.
    pub policy_version: i64,
}

/// The watched queues of one virtual host.
///
/// # Errors
/// The database's.
pub async fn watched(tx: &mut Tx, broker: BrokerId, vhost: &str) -> Result<Vec<Watched>> {
    sqlx::query!(
        "SELECT id, name, headers, retry_policy, policy_version FROM queues WHERE broker_id = $1 AND vhost = $2",
        broker.0,
        vhost
    )
    .fetch_all(&mut **tx)
    .await?
    .into_iter()
    .map(|row| {
        Ok(Watched {
            id: QueueId(row.id),
            name: row.name,
            headers: serde_json::from_value(row.headers).context("a stored header mapping")?,
            retry_policy: serde_json::from_value(row.retry_policy).context("a stored retry policy")?,
            policy_version: row.policy_version,
        })
    })
    .collect()
}

/// A batch of deliveries of one channel.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Identity; the same for every try to store it.
    pub id: Uuid,
    /// From where.
    pub source: DeadLetterQueueId,
    /// Under which epoch.
    pub epoch: i64,
    /// One channel of one process.
    pub channel: Uuid,
    /// How many rows it makes.
    pub rows: i32,
}

/// Writes the batch's own row; `false`: it is there, so that an earlier try, whose answer was lost, was committed.
///
/// # Errors
/// The database's.
pub async fn insert_batch(tx: &mut Tx, batch: &Batch) -> Result<bool> {
    let inserted = sqlx::query!(
        "INSERT INTO custody_batches (id, dead_letter_queue_id, epoch, channel, rows_stored) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (id) DO NOTHING",
        batch.id,
        batch.source.0,
        batch.epoch,
        batch.channel,
        batch.rows
    )
    .execute(&mut **tx)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// A later synchronous answer on the batch's channel proved that its ack was processed. Nothing depends on this but
/// that its rows are no longer suspected as originals of duplicates.
///
/// # Errors
/// The database's.
pub async fn mark_acked(store: &Store, batch: Uuid) -> Result<()> {
    sqlx::query!("UPDATE custody_batches SET acked_at = clock_timestamp() WHERE id = $1 AND acked_at IS NULL", batch)
        .execute(store.pool())
        .await?;
    Ok(())
}

/// Rows that a delivery with such a match hash may be a second delivery of: of this dead-letter queue, not of this
/// channel (which would have to be gone first), and whose ack, or that of a delivery that they absorbed, isn't known to
/// be processed. Those that no other row points to come first. A row that may itself be a second delivery gives the one
/// that it points to: all deliveries of one message point to the first.
///
/// # Errors
/// The database's.
pub async fn suspects(
    tx: &mut Tx,
    source: DeadLetterQueueId,
    channel: Uuid,
    hashes: &[Vec<u8>],
) -> Result<Vec<(Hash32, QuarantineId)>> {
    sqlx::query!(
        r#"SELECT payload.match_hash, coalesce(original.possible_duplicate_of, original.id) AS "id!" FROM payloads AS payload
         JOIN quarantine AS original ON original.id = payload.quarantine_id
         JOIN custody_batches AS batch ON batch.id = original.batch_id
         WHERE payload.match_hash = ANY($3) AND original.dead_letter_queue_id = $1 AND batch.acked_at IS NULL AND batch.channel <> $2
           AND NOT EXISTS (SELECT FROM absorptions AS absorbed JOIN custody_batches AS later ON later.id = absorbed.batch_id
                           WHERE absorbed.quarantine_id = original.id AND later.acked_at IS NOT NULL)
         ORDER BY EXISTS (SELECT FROM quarantine AS other WHERE other.possible_duplicate_of = original.id), original.id"#,
        source.0,
        channel,
        hashes
    )
    .fetch_all(&mut **tx)
    .await?
    .into_iter()
    .map(|row| Ok((Hash32::try_from(&row.match_hash[..]).map_err(anyhow::Error::from)?, QuarantineId(row.id))))
    .collect()
}

/// A failure that a worker reported.
#[derive(Debug, Clone)]
pub struct ReportedFailure {
    /// Of which queue's message.
    pub queue_id: QueueId,
    /// The job.
    pub job_id: Vec<u8>,
    /// The physical message.
    pub message_id: Option<Vec<u8>>,
    /// Which redrive of it.
    pub redrive_id: Option<Uuid>,
    /// Which execution.
    pub attempt: Option<i64>,
    /// The class.
    pub error_class: Option<String>,
    /// The text.
    pub error_text: Option<String>,
    /// The revision.
    pub worker_version: Option<String>,
}

/// The failures that workers reported for such jobs or messages, latest first.
///
/// # Errors
/// The database's.
pub async fn reported_failures(tx: &mut Tx, jobs: &[Vec<u8>], messages: &[Vec<u8>]) -> Result<Vec<ReportedFailure>> {
    Ok(sqlx::query!(
        "SELECT queue_id, job_id, message_id, redrive_id, attempt, error_class, error_text, worker_version FROM events
         WHERE kind = 'attempt_failed' AND error_class IS NOT NULL AND (job_id = ANY($1) OR message_id = ANY($2))
         ORDER BY at DESC, received_at DESC",
        jobs,
        messages
    )
    .fetch_all(&mut **tx)
    .await?
    .into_iter()
    .map(|row| ReportedFailure {
        queue_id: QueueId(row.queue_id),
        job_id: row.job_id,
        message_id: row.message_id,
        redrive_id: row.redrive_id,
        attempt: row.attempt,
        error_class: row.error_class,
        error_text: row.error_text,
        worker_version: row.worker_version,
    })
    .collect())
}

/// A row of `quarantine`, by column. Bytes go over as hex, so that text fields alone must be free of NUL.
#[derive(Debug, Clone, Serialize)]
pub struct NewRow {
    pub(crate) id: Uuid,
    pub(crate) dead_letter_queue_id: Uuid,
    pub(crate) queue_id: Option<Uuid>,
    pub(crate) batch_id: Uuid,
    #[serde(serialize_with = "hex_or_null")]
    pub(crate) died_on: Option<Vec<u8>>,
    pub(crate) death_reason: Option<String>,
    #[serde(with = "time::serde::rfc3339::option")]
    pub(crate) dead_lettered_at: Option<OffsetDateTime>,
    #[serde(serialize_with = "hex_or_null")]
    pub(crate) original_exchange: Option<Vec<u8>>,
    #[serde(serialize_with = "hex_or_null")]
    pub(crate) original_routing_key: Option<Vec<u8>>,
    #[serde(serialize_with = "hex")]
    pub(crate) exchange: Vec<u8>,
    #[serde(serialize_with = "hex")]
    pub(crate) routing_key: Vec<u8>,
    pub(crate) redelivered: bool,
    pub(crate) delivery_count: Option<i64>,
    #[serde(serialize_with = "hex_or_null")]
    pub(crate) job_id: Option<Vec<u8>>,
    #[serde(serialize_with = "hex_or_null")]
    pub(crate) message_id: Option<Vec<u8>>,
    #[serde(serialize_with = "hex_or_null")]
    pub(crate) correlation_id: Option<Vec<u8>>,
    #[serde(serialize_with = "hex_or_null")]
    pub(crate) idempotency_key: Option<Vec<u8>>,
    #[serde(serialize_with = "hex_or_null")]
    pub(crate) parent_message_id: Option<Vec<u8>>,
    pub(crate) attempt: Option<i64>,
    pub(crate) max_attempts: Option<i64>,
    #[serde(with = "time::serde::rfc3339::option")]
    pub(crate) enqueued_at: Option<OffsetDateTime>,
    pub(crate) redrive_generation: Option<i64>,
    pub(crate) redrive_id: Option<Uuid>,
    pub(crate) error_class: Option<String>,
    pub(crate) error_text: Option<String>,
    pub(crate) error_source: Option<&'static str>,
    pub(crate) worker_version: Option<String>,
    pub(crate) kind: &'static str,
    pub(crate) policy_version: Option<i64>,
    pub(crate) fingerprint: String,
    pub(crate) fingerprint_version: i32,
    pub(crate) normalised_text: Option<String>,
    pub(crate) size_bytes: i64,
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
    #[serde(serialize_with = "hex")]
    pub(crate) commitment: Vec<u8>,
    pub(crate) possible_duplicate_of: Option<Uuid>,
}

fn hex<S: Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&format!("\\x{}", hex::encode(bytes)))
}

fn hex_or_null<S: Serializer>(bytes: &Option<Vec<u8>>, s: S) -> Result<S::Ok, S::Error> {
    match bytes {
        Some(bytes) => hex(bytes, s),
        None => s.serialize_none(),
    }
}

/// Writes rows of evidence.
///
/// # Errors
/// The database's.
pub async fn insert_rows(db: &mut sqlx::PgConnection, rows: &[&NewRow]) -> Result<(), sqlx::Error> {
    let rows = serde_json::to_value(rows).map_err(|error| sqlx::Error::Encode(error.into()))?;
    sqlx::query!(
        "INSERT INTO quarantine (id, dead_letter_queue_id, queue_id, batch_id, died_on, death_reason, dead_lettered_at,
           original_exchange, original_routing_key, exchange, routing_key, redelivered, delivery_count, job_id, message_id,
           correlation_id, idempotency_key, parent_message_id, attempt, max_attempts, enqueued_at, redrive_generation,
           redrive_id, error_class, error_text, error_source, worker_version, kind, policy_version, fingerprint,
           fingerprint_version, normalised_text, size_bytes, content_type, content_encoding, commitment, possible_duplicate_of)
         SELECT id, dead_letter_queue_id, queue_id, batch_id, died_on, death_reason, dead_lettered_at,
           original_exchange, original_routing_key, exchange, routing_key, redelivered, delivery_count, job_id, message_id,
           correlation_id, idempotency_key, parent_message_id, attempt, max_attempts, enqueued_at, redrive_generation,
           redrive_id, error_class, error_text, error_source, worker_version, kind, policy_version, fingerprint,
           fingerprint_version, normalised_text, size_bytes, content_type, content_encoding, commitment, possible_duplicate_of
         FROM jsonb_populate_recordset(NULL::quarantine, $1)",
        rows
    )
    .execute(db)
    .await?;
    Ok(())
}

/// A row of `payloads`.
#[derive(Debug, Clone)]
pub struct NewPayload {
    pub(crate) quarantine_id: Uuid,
    pub(crate) body: Vec<u8>,
    pub(crate) properties: Vec<u8>,
    pub(crate) headers: Option<Vec<u8>>,
    pub(crate) commitment_key: [u8; 32],
    pub(crate) sha256: [u8; 32],
    pub(crate) match_hash: Hash32,
}

/// Writes payloads with their keys and hashes.
///
/// # Errors
/// The database's.
pub async fn insert_payloads(tx: &mut Tx, payloads: &[&NewPayload]) -> Result<(), sqlx::Error> {
    for payload in payloads {
        sqlx::query!(
            "INSERT INTO payloads (quarantine_id, body, properties, headers, commitment_key, sha256, match_hash)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            payload.quarantine_id,
            payload.body,
            payload.properties,
            payload.headers,
            &payload.commitment_key[..],
            &payload.sha256[..],
            &payload.match_hash.as_bytes()[..]
        )
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// Writes that deliveries of this batch were absorbed into rows.
///
/// # Errors
/// The database's.
pub async fn insert_absorptions(tx: &mut Tx, batch: &Batch, rows: &[Uuid]) -> Result<()> {
    let ids: Vec<Uuid> = rows.iter().map(|_| crate::clock::new_id()).collect();
    sqlx::query!(
        "INSERT INTO absorptions (id, quarantine_id, batch_id, epoch)
         SELECT absorbed.id, absorbed.row_id, $3, $4 FROM unnest($1::uuid[], $2::uuid[]) AS absorbed (id, row_id)",
        &ids,
        rows,
        batch.id,
        batch.epoch
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Sets how a dead-letter queue's custody is, unless it was switched off meanwhile or another epoch owns it now; says
/// so to every page.
///
/// # Errors
/// The database's.
pub async fn set_state(
    store: &Store,
    source: DeadLetterQueueId,
    epoch: i64,
    state: domain::vocabulary::CustodyState,
    reason: Option<String>,
) -> Result<()> {
    store
        .tx(move |tx| {
            Box::pin(async move {
                let changed = sqlx::query!(
                    "UPDATE dead_letter_queues SET state = $2, state_reason = $3, state_since = clock_timestamp()
                     WHERE id = $1 AND custody <> 'off' AND (state <> $2 OR state_reason IS DISTINCT FROM $3)
                       AND (SELECT epoch FROM leases WHERE duty = 'custody' AND subject = $1) = $4",
                    source.0,
                    state.as_str(),
                    reason,
                    epoch
                )
                .execute(&mut **tx)
                .await?;
                if changed.rows_affected() > 0 {
                    super::notify(tx, "queues", Some(source.0)).await?;
                }
                Ok(())
            })
        })
        .await
}

/// Whether an error is about the values themselves, so that the same write can't succeed later.
#[must_use]
pub fn is_about_values(error: &Error) -> bool {
    let Error::Internal(cause) = error else { return false };
    cause
        .downcast_ref::<sqlx::Error>()
        .and_then(sqlx::Error::as_database_error)
        .and_then(|error| error.code().map(|code| code.starts_with("22") || code.starts_with("23") || code == "54000"))
        .unwrap_or(false)
}
