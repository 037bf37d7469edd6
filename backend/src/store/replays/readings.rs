//! What a replay reads of itself, and what it decided.

use crate::{clock::new_id, error::Result};
use domain::ids::{CohortId, QueueId};
use serde_json::Value;
use sqlx::PgPool;
use time::OffsetDateTime;

/// Counts of a running cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Handed over without an answer.
    pub publishing: i64,
    /// Not handed over yet.
    pub scheduled: i64,
    /// In doubt.
    pub in_doubt: i64,
    /// Confirmed, not settled.
    pub confirmed: i64,
    /// Confirmed and neither finished nor dead-lettered by events (RULES 7).
    pub unfinished: i64,
    /// Handed over in the last 10 s.
    pub lately: i64,
}

/// Counts of a running cohort.
///
/// # Errors
/// The database's.
pub async fn counts(pool: &PgPool, cohort: CohortId) -> Result<Counts> {
    Ok(sqlx::query_as!(
        Counts,
        r#"SELECT count(*) FILTER (WHERE state = 'publishing') AS "publishing!",
             count(*) FILTER (WHERE state = 'scheduled') AS "scheduled!",
             count(*) FILTER (WHERE state = 'in_doubt') AS "in_doubt!",
             count(*) FILTER (WHERE state = 'confirmed') AS "confirmed!",
             count(*) FILTER (WHERE state IN ('confirmed', 'unverified', 'verification_failed', 'resolved_arrived')
               AND finished_at IS NULL) AS "unfinished!",
             count(*) FILTER (WHERE published_at > clock_timestamp() - interval '10 seconds') AS "lately!"
           FROM cohort_items WHERE cohort_id = $1"#,
        cohort.0
    )
    .fetch_one(pool)
    .await?)
}

/// When a worker of the queue last reported; `None`: no event feed.
///
/// # Errors
/// The database's.
pub async fn event_feed(pool: &PgPool, queue: QueueId) -> Result<Option<OffsetDateTime>> {
    Ok(sqlx::query_scalar!(
        "SELECT max(received_at) FROM events WHERE queue_id = $1
           AND kind IN ('attempt_started', 'attempt_failed', 'attempt_succeeded', 'acked', 'effect_recorded')
           AND received_at > clock_timestamp() - interval '10 minutes'",
        queue.0
    )
    .fetch_one(pool)
    .await?)
}

/// Keeps a decision with what it read.
///
/// # Errors
/// The database's.
pub async fn decided(pool: &PgPool, cohort: CohortId, epoch: i64, decision: &str, readings: &Value) -> Result<()> {
    sqlx::query!(
        "INSERT INTO replay_decisions (id, cohort_id, epoch, decision, readings) VALUES ($1, $2, $3, $4, $5)",
        new_id(),
        cohort.0,
        epoch,
        decision,
        readings
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// A decision as it was kept.
#[derive(Debug, Clone)]
pub struct DecisionRow {
    /// When.
    pub at: OffsetDateTime,
    /// In words.
    pub decision: String,
    /// What it read.
    pub readings: Value,
}

/// The latest decisions, newest first.
///
/// # Errors
/// The database's.
pub async fn decisions(pool: &PgPool, cohort: CohortId, limit: i64) -> Result<Vec<DecisionRow>> {
    Ok(sqlx::query_as!(
        DecisionRow,
        "SELECT at, decision, readings FROM replay_decisions WHERE cohort_id = $1 ORDER BY at DESC LIMIT $2",
        cohort.0,
        limit
    )
    .fetch_all(pool)
    .await?)
}

/// How many items are in each state; adds up to the cohort's size.
///
/// # Errors
/// The database's.
pub async fn by_state(pool: &PgPool, cohort: CohortId) -> Result<Vec<domain::api::StateCount>> {
    sqlx::query!(
        r#"SELECT state, count(*) AS "count!" FROM cohort_items WHERE cohort_id = $1 GROUP BY state ORDER BY state"#,
        cohort.0
    )
    .fetch_all(pool)
    .await?
    .into_iter()
    .map(|row| {
        let state = row.state.parse().map_err(anyhow::Error::from)?;
        Ok(domain::api::StateCount { state, count: row.count })
    })
    .collect()
}
