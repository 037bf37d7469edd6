//! Writes on a cohort's own row and its revisions; states are written by [`super::set_state`].

use super::super::Tx;
use crate::error::Result;
use anyhow::Context as _;
use domain::{
    api::{Draft, Preflight},
    ids::{CohortId, QueueId, UserId},
};
use time::OffsetDateTime;

/// A new draft with no items yet.
///
/// # Errors
/// The database's.
pub async fn insert(
    tx: &mut Tx,
    id: CohortId,
    queue: QueueId,
    draft: &Draft,
    size: usize,
    author: UserId,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO cohorts (id, queue_id, title, reason, draft, size, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        id.0,
        queue.0,
        draft.title,
        draft.reason,
        serde_json::to_value(draft).context("a draft is JSON")?,
        i32::try_from(size).context("a bounded size")?,
        author.0,
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The draft as edited, as a new revision; gives the new version.
///
/// # Errors
/// The database's.
pub async fn edit(tx: &mut Tx, id: CohortId, draft: &Draft) -> Result<i64> {
    let version = sqlx::query_scalar!(
        "UPDATE cohorts SET draft = $2, title = $3, reason = $4, revision = revision + 1, version = version + 1 WHERE id = $1
         RETURNING version",
        id.0,
        serde_json::to_value(draft).context("a draft is JSON")?,
        draft.title,
        draft.reason,
    )
    .fetch_one(&mut **tx)
    .await?;
    super::super::notify(tx, "cohorts", Some(id.0)).await?;
    Ok(version)
}

/// The next revision of an unchanged draft, which a reviewer sent back.
///
/// # Errors
/// The database's.
pub async fn next_revision(tx: &mut Tx, id: CohortId) -> Result<i64> {
    Ok(sqlx::query_scalar!("UPDATE cohorts SET revision = revision + 1 WHERE id = $1 RETURNING revision", id.0)
        .fetch_one(&mut **tx)
        .await?)
}

/// A plan's canonical bytes and their digest, as that revision's.
///
/// # Errors
/// The database's.
pub async fn save_plan(
    tx: &mut Tx,
    id: CohortId,
    revision: i64,
    plan: &[u8],
    digest: &[u8; 32],
    preflight: Option<&Preflight>,
    by: UserId,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO cohort_revisions (cohort_id, revision, plan, digest, preflight, preflight_at, saved_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (cohort_id, revision) DO UPDATE SET plan = $3, digest = $4, preflight = $5, preflight_at = $6",
        id.0,
        revision,
        plan,
        &digest[..],
        preflight.map(serde_json::to_value).transpose().context("findings are JSON")?,
        preflight.and_then(|preflight| preflight.at).map(|at| at.0),
        by.0,
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// What a submit fixes, beside the plan itself.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// Where the messages go: exchange and key.
    pub target: (String, String),
    /// Broker, vhost and name of the queue that the lane is for.
    pub lane: String,
    /// Until when it may be started.
    pub expires_at: OffsetDateTime,
    /// When it aborts by itself.
    pub run_by: OffsetDateTime,
    /// The queue's policy version.
    pub policy_version: i64,
}

/// Writes what a submit fixes, before the state changes.
///
/// # Errors
/// The database's.
pub async fn submit(tx: &mut Tx, id: CohortId, submitted: &Submitted) -> Result<()> {
    sqlx::query!(
        "UPDATE cohorts SET target_exchange = $2, target_routing_key = $3, lane = $4, expires_at = $5, run_by = $6,
           policy_version = $7, submitted_at = clock_timestamp(), generation = NULL WHERE id = $1",
        id.0,
        submitted.target.0,
        submitted.target.1,
        submitted.lane,
        submitted.expires_at,
        submitted.run_by,
        submitted.policy_version,
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The start consumes the approval; the first stratum's canary is in hand.
///
/// # Errors
/// The database's.
pub async fn consume_approval(tx: &mut Tx, id: CohortId) -> Result<()> {
    sqlx::query!("UPDATE cohorts SET approval_consumed_at = clock_timestamp(), stratum = 0 WHERE id = $1", id.0)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The revoked approval's generation is spent: the next one takes another.
///
/// # Errors
/// The database's.
pub async fn forget_generation(tx: &mut Tx, id: CohortId) -> Result<()> {
    sqlx::query!("UPDATE cohorts SET generation = NULL WHERE id = $1", id.0).execute(&mut **tx).await?;
    Ok(())
}

/// One item goes out before the rest.
///
/// # Errors
/// The database's.
pub async fn set_probation(tx: &mut Tx, id: CohortId) -> Result<()> {
    sqlx::query!("UPDATE cohorts SET probation = true WHERE id = $1", id.0).execute(&mut **tx).await?;
    Ok(())
}

/// Which items of the rest the probe verifies.
///
/// # Errors
/// The database's.
pub async fn mark_sample(tx: &mut Tx, id: CohortId, positions: &[i32]) -> Result<()> {
    sqlx::query!(
        "UPDATE cohort_items SET verify = position = ANY($2) WHERE cohort_id = $1 AND NOT canary",
        id.0,
        positions
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// What the last reviewed revision before `revision` was: its number, bytes and digest.
///
/// # Errors
/// The database's.
pub async fn last_reviewed(tx: &mut Tx, id: CohortId, revision: i64) -> Result<Option<(i64, Vec<u8>)>> {
    let row = sqlx::query!(
        "SELECT saved.revision, saved.plan FROM cohort_revisions AS saved
         WHERE saved.cohort_id = $1 AND saved.revision < $2
           AND EXISTS (SELECT FROM cohort_reviews AS review WHERE review.cohort_id = $1 AND review.revision = saved.revision)
         ORDER BY saved.revision DESC LIMIT 1",
        id.0,
        revision
    )
    .fetch_optional(&mut **tx)
    .await?;
    Ok(row.map(|row| (row.revision, row.plan)))
}

/// A revision's plan as saved: bytes and digest.
///
/// # Errors
/// The database's.
pub async fn saved_plan(tx: &mut Tx, id: CohortId, revision: i64) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let row = sqlx::query!(
        "SELECT plan, digest FROM cohort_revisions WHERE cohort_id = $1 AND revision = $2",
        id.0,
        revision
    )
    .fetch_optional(&mut **tx)
    .await?;
    Ok(row.map(|row| (row.plan, row.digest)))
}
