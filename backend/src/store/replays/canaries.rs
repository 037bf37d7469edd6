//! The canary of each stratum: its samples and its verdict.

use crate::{error::Result, store::Tx};
use anyhow::Context as _;
use domain::{
    api::{ExpectationResult, ProbeSample},
    ids::{AppName, CohortId, ItemId, QuarantineId, RedriveId},
    vocabulary::{ItemState, Verdict},
};
use sqlx::PgPool;
use time::OffsetDateTime;

/// The canary in hand, with its item.
#[derive(Debug, Clone)]
pub struct InHand {
    /// The item.
    pub item: ItemId,
    /// Its dead letter.
    pub quarantine_id: QuarantineId,
    /// The job to ask about.
    pub job_id: Option<AppName>,
    /// Where the item is.
    pub state: ItemState,
    /// Why it is there, where the state has a reason.
    pub state_reason: Option<String>,
    /// What its message carries.
    pub redrive_id: Option<RedriveId>,
    /// When the broker took it.
    pub confirmed_at: Option<OffsetDateTime>,
    /// The rows before the publish.
    pub before: Option<serde_json::Value>,
    /// Until when the effect is awaited.
    pub deadline_at: Option<OffsetDateTime>,
    /// By the database's clock.
    pub deadline_passed: bool,
    /// Its verdict, once there is one.
    pub verdict: Option<String>,
}

/// The latest canary of a stratum.
///
/// # Errors
/// The database's.
pub async fn in_hand(pool: &PgPool, cohort: CohortId, stratum: i32) -> Result<Option<InHand>> {
    sqlx::query!(
        r#"SELECT c.item_id, i.quarantine_id, i.job_id, i.state, i.state_reason, i.redrive_id, i.confirmed_at, c.before, c.deadline_at, c.verdict,
             coalesce(c.deadline_at <= clock_timestamp(), false) AS "passed!"
           FROM canaries c JOIN cohort_items i ON i.id = c.item_id
           WHERE c.cohort_id = $1 AND c.stratum = $2 ORDER BY c.started_at DESC LIMIT 1"#,
        cohort.0,
        stratum
    )
    .fetch_optional(pool)
    .await?
    .map(|row| {
        Ok(InHand {
            item: ItemId(row.item_id),
            quarantine_id: QuarantineId(row.quarantine_id),
            job_id: row.job_id.map(AppName),
            state: row.state.parse().map_err(anyhow::Error::from)?,
            state_reason: row.state_reason,
            redrive_id: row.redrive_id.map(RedriveId),
            confirmed_at: row.confirmed_at,
            before: row.before,
            deadline_at: row.deadline_at,
            deadline_passed: row.passed,
            verdict: row.verdict,
        })
    })
    .transpose()
}

/// Opens a canary: the probe's answer before the publish is kept with it.
///
/// # Errors
/// The database's.
pub async fn open(tx: &mut Tx, cohort: CohortId, stratum: i32, item: ItemId, before: &ProbeSample) -> Result<()> {
    sqlx::query!(
        "INSERT INTO canaries (item_id, cohort_id, stratum, before) VALUES ($1, $2, $3, $4)
         ON CONFLICT (item_id) DO UPDATE SET before = EXCLUDED.before, started_at = clock_timestamp()",
        item.0,
        cohort.0,
        stratum,
        serde_json::to_value(before).map_err(anyhow::Error::from)?,
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Starts the wait: from the broker's confirm, or from now where there is none.
///
/// # Errors
/// The database's.
pub async fn start_waiting(tx: &mut Tx, item: ItemId, wait_s: i64) -> Result<()> {
    #[expect(clippy::cast_precision_loss, reason = "a wait is at most an hour")]
    let wait = wait_s as f64;
    sqlx::query!(
        "UPDATE canaries SET confirmed_at = i.confirmed_at,
           deadline_at = coalesce(i.confirmed_at, clock_timestamp()) + make_interval(secs => $2)
         FROM cohort_items i WHERE i.id = canaries.item_id AND canaries.item_id = $1",
        item.0,
        wait
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The item to take as a stratum's next canary, of those that the plan names, in its order. `None` when none is left.
///
/// # Errors
/// The database's.
pub async fn pick(pool: &PgPool, cohort: CohortId, stratum: i32, planned: &[QuarantineId]) -> Result<Option<ItemId>> {
    let planned: Vec<uuid::Uuid> = planned.iter().map(|id| id.0).collect();
    Ok(sqlx::query_scalar!(
        "SELECT id FROM cohort_items WHERE cohort_id = $1 AND stratum = $2 AND state = 'scheduled' AND quarantine_id = ANY($3)
         ORDER BY array_position($3, quarantine_id) LIMIT 1",
        cohort.0,
        stratum,
        &planned
    )
    .fetch_optional(pool)
    .await?
    .map(ItemId))
}

/// Whether another message of an item's job is known alive: a held dead letter, or a report of it without this redrive id since
/// the item's turn began.
///
/// # Errors
/// The database's.
pub async fn other_message_alive(pool: &PgPool, item: ItemId) -> Result<bool> {
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM quarantine q WHERE q.job_id = i.job_id AND q.id <> i.quarantine_id AND q.disposition = 'held')
             OR EXISTS (SELECT FROM events e WHERE e.job_id = i.job_id AND e.redrive_id IS DISTINCT FROM i.redrive_id
                  AND e.received_at > coalesce(c.started_at, i.published_at)) AS "alive!"
           FROM cohort_items i LEFT JOIN canaries c ON c.item_id = i.id WHERE i.id = $1"#,
        item.0,
    )
    .fetch_one(pool)
    .await?)
}

/// A probe's definition, as it is now.
///
/// # Errors
/// The database's.
pub async fn probe(pool: &PgPool, name: &str) -> Result<Option<domain::api::ProbeDefinition>> {
    let definition =
        sqlx::query_scalar!("SELECT definition FROM probes WHERE name = $1", name).fetch_optional(pool).await?;
    Ok(definition.map(serde_json::from_value).transpose().map_err(anyhow::Error::from)?)
}

/// The queue's retry policy, as it is now.
///
/// # Errors
/// The database's, or a stored policy that can't be read.
pub async fn retry_policy(pool: &PgPool, queue: domain::ids::QueueId) -> Result<domain::api::RetryPolicy> {
    let policy = sqlx::query_scalar!("SELECT retry_policy FROM queues WHERE id = $1", queue.0).fetch_one(pool).await?;
    Ok(serde_json::from_value(policy).context("a stored retry policy")?)
}

/// Keeps the latest answer of the probe.
///
/// # Errors
/// The database's.
pub async fn sampled(
    pool: &PgPool,
    item: ItemId,
    after: &ProbeSample,
    expectations: &[ExpectationResult],
) -> Result<()> {
    sqlx::query!(
        "UPDATE canaries SET after = $2, expectations = $3 WHERE item_id = $1 AND verdict IS NULL",
        item.0,
        serde_json::to_value(after).map_err(anyhow::Error::from)?,
        serde_json::to_value(expectations).map_err(anyhow::Error::from)?,
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Writes the verdict; `false` when there is one already.
///
/// # Errors
/// The database's.
pub async fn judged(
    tx: &mut Tx,
    item: ItemId,
    verdict: Verdict,
    reason: Option<&str>,
    attributed_by: Option<&str>,
    worker_version: Option<&str>,
) -> Result<bool> {
    let written = sqlx::query!(
        "UPDATE canaries SET verdict = $2, verdict_reason = $3, attributed_by = $4, worker_version = $5,
           judged_at = clock_timestamp() WHERE item_id = $1 AND verdict IS NULL",
        item.0,
        verdict.as_str(),
        reason,
        attributed_by,
        worker_version
    )
    .execute(&mut **tx)
    .await?;
    Ok(written.rows_affected() == 1)
}

/// The payload of a message as JSON, where it is JSON.
///
/// # Errors
/// The database's.
pub async fn evidence(pool: &PgPool, quarantine: QuarantineId) -> Result<Option<serde_json::Value>> {
    let body = sqlx::query_scalar!("SELECT body FROM payloads WHERE quarantine_id = $1", quarantine.0)
        .fetch_optional(pool)
        .await?;
    Ok(body.and_then(|body| serde_json::from_slice(&body).ok()))
}
