//! Worker events as they were taken, and the one row per job that is kept by them.

use super::Tx;
use crate::error::Result;
use domain::{
    api::Event,
    ids::{QuarantineId, QueueId, UserId},
};
use serde::{Serialize, Serializer};
use std::collections::HashSet;
use time::OffsetDateTime;
use uuid::Uuid;

/// An event that was read, with the queue that it names.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The event; its texts free of NUL.
    pub event: Event,
    /// The watched queue.
    pub queue_id: QueueId,
    /// The whole event as it is kept.
    pub json: serde_json::Value,
}

/// Watched queues by name; two brokers may each have one of the same name.
///
/// # Errors
/// The database's.
pub async fn queues_named(tx: &mut Tx, names: &[String]) -> Result<Vec<(String, QueueId)>> {
    Ok(sqlx::query!("SELECT name, id FROM queues WHERE name = ANY($1)", names)
        .fetch_all(&mut **tx)
        .await?
        .into_iter()
        .map(|row| (row.name, QueueId(row.id)))
        .collect())
}

#[derive(Serialize)]
struct EventRow<'a> {
    event_id: Uuid,
    sent_by: Uuid,
    kind: &'static str,
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    queue_id: Uuid,
    #[serde(serialize_with = "hex")]
    job_id: &'a [u8],
    #[serde(serialize_with = "hex_or_null")]
    message_id: Option<&'a [u8]>,
    attempt: Option<i64>,
    redrive_generation: Option<i64>,
    redrive_id: Option<Uuid>,
    error_class: Option<&'a str>,
    error_text: Option<&'a str>,
    worker_version: Option<&'a str>,
    #[serde(with = "time::serde::rfc3339::option")]
    enqueued_at: Option<OffsetDateTime>,
    event: &'a serde_json::Value,
}

fn hex<S: Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&format!("\\x{}", hex::encode(bytes)))
}

fn hex_or_null<S: Serializer>(bytes: &Option<&[u8]>, s: S) -> Result<S::Ok, S::Error> {
    match bytes {
        Some(bytes) => hex(bytes, s),
        None => s.serialize_none(),
    }
}

/// Writes the events that are new by their ids, and says which those are.
///
/// # Errors
/// The database's.
pub async fn insert(tx: &mut Tx, sent_by: UserId, events: &[Accepted]) -> Result<HashSet<Uuid>> {
    let rows: Vec<EventRow<'_>> = events
        .iter()
        .map(|Accepted { event, queue_id, json }| EventRow {
            event_id: event.event_id.0,
            sent_by: sent_by.0,
            kind: event.kind.as_str(),
            at: event.at.0,
            queue_id: queue_id.0,
            job_id: &event.job_id.0,
            message_id: event.message_id.as_ref().map(|id| &id.0[..]),
            attempt: event.attempt,
            redrive_generation: event.redrive_generation,
            redrive_id: event.redrive_id.map(|id| id.0),
            error_class: event.error_class.as_deref(),
            error_text: event.error_text.as_deref(),
            worker_version: event.worker_version.as_deref(),
            enqueued_at: event.enqueued_at.map(|at| at.0),
            event: json,
        })
        .collect();
    let rows = serde_json::to_value(rows).map_err(anyhow::Error::from)?;
    let new = sqlx::query_scalar!(
        "INSERT INTO events (event_id, sent_by, kind, at, queue_id, job_id, message_id, attempt, redrive_generation,
           redrive_id, error_class, error_text, worker_version, enqueued_at, event)
         SELECT event_id, sent_by, kind, at, queue_id, job_id, message_id, attempt, redrive_generation,
           redrive_id, error_class, error_text, worker_version, enqueued_at, event
         FROM jsonb_populate_recordset(NULL::events, $1) ORDER BY event_id
         ON CONFLICT (event_id) DO NOTHING RETURNING event_id",
        rows
    )
    .fetch_all(&mut **tx)
    .await?;
    Ok(new.into_iter().collect())
}

/// What some events say of one job.
#[derive(Debug, Clone)]
pub struct JobNews {
    /// The queue.
    pub queue_id: QueueId,
    /// The job.
    pub job_id: Vec<u8>,
    /// A producer took it on.
    pub accepted_at: Option<OffsetDateTime>,
    /// It was published.
    pub enqueued_at: Option<OffsetDateTime>,
    /// Its first execution began.
    pub first_started_at: Option<OffsetDateTime>,
    /// The newest event.
    pub last_event_at: OffsetDateTime,
    /// What that says.
    pub last_kind: String,
    /// The highest attempt.
    pub last_attempt: Option<i64>,
    /// Its latest failure.
    pub failed_at: Option<OffsetDateTime>,
    /// Its durable effect.
    pub effect_at: Option<OffsetDateTime>,
    /// It was seen with a redrive id.
    pub redriven_at: Option<OffsetDateTime>,
}

/// Merges news into the jobs' rows: first times only fall, last times only rise, whatever order events come in.
///
/// # Errors
/// The database's.
pub async fn merge_jobs(tx: &mut Tx, news: &[JobNews]) -> Result<()> {
    macro_rules! column {
        ($field:ident) => {
            &news.iter().map(|job| job.$field.clone()).collect::<Vec<_>>()
        };
    }
    let queues: Vec<Uuid> = news.iter().map(|job| job.queue_id.0).collect();
    sqlx::query!(
        r#"INSERT INTO jobs AS job (queue_id, job_id, accepted_at, enqueued_at, first_started_at, last_event_at, last_kind,
             last_attempt, failed_at, effect_at, redriven_at)
           SELECT * FROM unnest($1::uuid[], $2::bytea[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[],
             $6::timestamptz[], $7::text[], $8::bigint[], $9::timestamptz[], $10::timestamptz[], $11::timestamptz[])
           ON CONFLICT (queue_id, job_id) DO UPDATE SET
             accepted_at = least(job.accepted_at, excluded.accepted_at),
             enqueued_at = least(job.enqueued_at, excluded.enqueued_at),
             first_started_at = least(job.first_started_at, excluded.first_started_at),
             last_kind = CASE WHEN excluded.last_event_at >= job.last_event_at THEN excluded.last_kind ELSE job.last_kind END,
             last_event_at = greatest(job.last_event_at, excluded.last_event_at),
             last_attempt = greatest(job.last_attempt, excluded.last_attempt),
             failed_at = greatest(job.failed_at, excluded.failed_at),
             effect_at = least(job.effect_at, excluded.effect_at),
             redriven_at = least(job.redriven_at, excluded.redriven_at)"#,
        &queues,
        column!(job_id),
        column!(accepted_at) as &[Option<OffsetDateTime>],
        column!(enqueued_at) as &[Option<OffsetDateTime>],
        column!(first_started_at) as &[Option<OffsetDateTime>],
        column!(last_event_at),
        column!(last_kind),
        column!(last_attempt) as &[Option<i64>],
        column!(failed_at) as &[Option<OffsetDateTime>],
        column!(effect_at) as &[Option<OffsetDateTime>],
        column!(redriven_at) as &[Option<OffsetDateTime>],
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Puts custody and event intake of these queues one after the other until the transaction ends, so that of a dead
/// letter and its failure's event, whichever comes second sees the first.
///
/// # Errors
/// The database's.
pub async fn line_up(tx: &mut Tx, queues: impl IntoIterator<Item = QueueId>) -> Result<()> {
    let mut queues: Vec<Uuid> = queues.into_iter().map(|id| id.0).collect();
    // always in one order: two that want the same queues can't wait for each other
    queues.sort_unstable();
    queues.dedup();
    for queue in queues {
        sqlx::query!(
            "SELECT pg_advisory_xact_lock(hashtextextended('failures of ' || $1::text, 0))",
            queue.to_string()
        )
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// A held dead letter without a class.
#[derive(Debug, Clone)]
pub struct Unclassified {
    /// Which.
    pub id: QuarantineId,
    /// Whose.
    pub queue_id: QueueId,
    /// The job.
    pub job_id: Option<Vec<u8>>,
    /// The physical message.
    pub message_id: Option<Vec<u8>>,
    /// Which redrive of it.
    pub redrive_id: Option<Uuid>,
    /// The text, where the message itself told one.
    pub error_text: Option<String>,
    /// The revision, likewise.
    pub worker_version: Option<String>,
    /// The reason of its death.
    pub death_reason: Option<String>,
    /// The policy that was frozen on it.
    pub retry_policy: serde_json::Value,
}

/// Dead letters of such jobs or messages that have no class yet.
///
/// # Errors
/// The database's.
pub async fn unclassified(tx: &mut Tx, jobs: &[Vec<u8>], messages: &[Vec<u8>]) -> Result<Vec<Unclassified>> {
    Ok(sqlx::query!(
        r#"SELECT dead.id, dead.queue_id AS "queue_id!", dead.job_id, dead.message_id, dead.redrive_id, dead.error_text,
             dead.worker_version, dead.death_reason, coalesce(policy.retry_policy, queue.retry_policy) AS "retry_policy!"
           FROM quarantine AS dead JOIN queues AS queue ON queue.id = dead.queue_id
           LEFT JOIN queue_policies AS policy ON policy.queue_id = dead.queue_id AND policy.policy_version = dead.policy_version
           WHERE dead.error_class IS NULL AND (dead.job_id = ANY($1) OR dead.message_id = ANY($2))
           ORDER BY dead.id FOR UPDATE OF dead"#,
        jobs,
        messages
    )
    .fetch_all(&mut **tx)
    .await?
    .into_iter()
    .map(|row| Unclassified {
        id: QuarantineId(row.id),
        queue_id: QueueId(row.queue_id),
        job_id: row.job_id,
        message_id: row.message_id,
        redrive_id: row.redrive_id,
        error_text: row.error_text,
        worker_version: row.worker_version,
        death_reason: row.death_reason,
        retry_policy: row.retry_policy,
    })
    .collect())
}

/// What an event told of a dead letter, judged.
#[derive(Debug, Clone)]
pub struct Classified<'a> {
    /// The class.
    pub error_class: &'a str,
    /// The text.
    pub error_text: Option<&'a str>,
    /// The revision.
    pub worker_version: Option<&'a str>,
    /// By the policy frozen on it.
    pub kind: domain::vocabulary::Kind,
    /// The group.
    pub fingerprint: String,
    /// What the group is made of.
    pub normalised_text: Option<String>,
}

/// Sets the class of a dead letter, once.
///
/// # Errors
/// The database's.
pub async fn classify(tx: &mut Tx, dead_letter: QuarantineId, as_: Classified<'_>) -> Result<()> {
    sqlx::query!(
        "UPDATE quarantine SET error_class = $2, error_text = $3, error_source = 'event', worker_version = $4, kind = $5,
           fingerprint = $6, normalised_text = $7 WHERE id = $1 AND error_class IS NULL",
        dead_letter.0,
        as_.error_class,
        as_.error_text,
        as_.worker_version,
        as_.kind.as_str(),
        as_.fingerprint,
        as_.normalised_text
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}
