//! Canaries: which approved item is a stratum's next, and that its turn began.

use super::super::Tx;
use crate::error::Result;
use domain::{
    canary::Pass,
    ids::{CohortId, ItemId, QuarantineId},
};
use time::OffsetDateTime;

/// The plan's next canary of a stratum: the first of `planned` that is still scheduled and wasn't a canary yet.
///
/// # Errors
/// The database's.
pub async fn next_item(
    tx: &mut Tx,
    cohort: CohortId,
    stratum: i64,
    planned: &[QuarantineId],
) -> Result<Option<ItemId>> {
    let planned: Vec<uuid::Uuid> = planned.iter().map(|id| id.0).collect();
    let item = sqlx::query_scalar!(
        "SELECT id FROM cohort_items
         WHERE cohort_id = $1 AND stratum = $2 AND quarantine_id = ANY($3) AND state IN ('held', 'scheduled') AND NOT canary
         ORDER BY array_position($3, quarantine_id) LIMIT 1",
        cohort.0,
        i32::try_from(stratum).unwrap_or(i32::MAX),
        &planned
    )
    .fetch_optional(&mut **tx)
    .await?;
    Ok(item.map(ItemId))
}

/// The item is its stratum's canary from now on, and that stratum is the one in hand.
///
/// # Errors
/// The database's.
pub async fn begin(tx: &mut Tx, cohort: CohortId, stratum: i64, item: ItemId) -> Result<()> {
    let stratum = i32::try_from(stratum).unwrap_or(i32::MAX);
    sqlx::query!("INSERT INTO canaries (item_id, cohort_id, stratum) VALUES ($1, $2, $3)", item.0, cohort.0, stratum)
        .execute(&mut **tx)
        .await?;
    sqlx::query!("UPDATE cohort_items SET canary = true WHERE id = $1", item.0).execute(&mut **tx).await?;
    sqlx::query!("UPDATE cohorts SET stratum = $2, verify_extended = false WHERE id = $1", cohort.0, stratum)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// How many canaries a stratum had.
///
/// # Errors
/// The database's.
pub async fn run_in(tx: &mut Tx, cohort: CohortId, stratum: i64) -> Result<i64> {
    Ok(sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM canaries WHERE cohort_id = $1 AND stratum = $2"#,
        cohort.0,
        i32::try_from(stratum).unwrap_or(i32::MAX)
    )
    .fetch_one(&mut **tx)
    .await?)
}

/// The verdict on the latest canary of a stratum.
///
/// # Errors
/// The database's.
pub async fn latest_verdict(tx: &mut Tx, cohort: CohortId, stratum: i64) -> Result<Option<(ItemId, Option<String>)>> {
    let row = sqlx::query!(
        "SELECT item_id, verdict FROM canaries WHERE cohort_id = $1 AND stratum = $2 ORDER BY started_at DESC LIMIT 1",
        cohort.0,
        i32::try_from(stratum).unwrap_or(i32::MAX)
    )
    .fetch_optional(&mut **tx)
    .await?;
    Ok(row.map(|row| (ItemId(row.item_id), row.verdict)))
}

/// What the latest canary of each stratum showed at `now`, by stratum; `None` where it didn't pass or none began.
///
/// # Errors
/// The database's.
pub async fn passes(tx: &mut Tx, cohort: CohortId, now: OffsetDateTime) -> Result<Vec<Option<Pass>>> {
    let rows = sqlx::query!(
        r#"SELECT latest.worker_version, latest.judged_at AS "judged_at?"
           FROM (SELECT DISTINCT stratum FROM cohort_items WHERE cohort_id = $1) AS strata
           LEFT JOIN LATERAL (SELECT worker_version, judged_at, verdict FROM canaries
             WHERE cohort_id = $1 AND canaries.stratum = strata.stratum ORDER BY started_at DESC LIMIT 1) AS latest
             ON latest.verdict = 'pass'
           ORDER BY strata.stratum"#,
        cohort.0
    )
    .fetch_all(&mut **tx)
    .await?;
    let pass = |judged_at: OffsetDateTime, worker_version| Pass { age: now - judged_at, worker_version };
    Ok(rows.into_iter().map(|row| row.judged_at.map(|at| pass(at, row.worker_version))).collect())
}

/// The wait begins anew, once: the verdict is taken back and the deadline is `wait_s` from now.
///
/// # Errors
/// The database's.
pub async fn extend(tx: &mut Tx, cohort: CohortId, item: ItemId, wait_s: i64) -> Result<()> {
    sqlx::query!(
        "UPDATE canaries SET verdict = NULL, verdict_reason = NULL, judged_at = NULL,
           deadline_at = clock_timestamp() + make_interval(secs => $2) WHERE item_id = $1",
        item.0,
        wait_s as f64
    )
    .execute(&mut **tx)
    .await?;
    sqlx::query!("UPDATE cohorts SET verify_extended = true WHERE id = $1", cohort.0).execute(&mut **tx).await?;
    Ok(())
}

/// A person calls it failed: the verdict is theirs; the replay fences and ends the cohort.
///
/// # Errors
/// The database's.
pub async fn call_failed(tx: &mut Tx, item: ItemId) -> Result<()> {
    sqlx::query!(
        "UPDATE canaries SET verdict = 'fail', verdict_reason = 'called_by_person', judged_at = clock_timestamp() WHERE item_id = $1",
        item.0
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Worker versions that began an attempt on this queue in the last minute, by events.
///
/// # Errors
/// The database's.
pub async fn consuming_versions(tx: &mut Tx, queue: domain::ids::QueueId) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar!(
        r#"SELECT DISTINCT worker_version AS "version!" FROM events
           WHERE queue_id = $1 AND kind = 'attempt_started' AND received_at > clock_timestamp() - interval '1 minute'
             AND worker_version IS NOT NULL ORDER BY 1"#,
        queue.0
    )
    .fetch_all(&mut **tx)
    .await?)
}
