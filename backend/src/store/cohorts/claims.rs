//! Claims (RULES 3): one cohort per message and per job, from submit until the cohort is terminal.

use super::super::Tx;
use crate::error::Result;
use domain::ids::{CohortId, QuarantineId};

/// A message that can't be claimed, and which cohort is in the way.
#[derive(Debug, Clone)]
pub struct Conflict {
    /// The message of ours.
    pub message: QuarantineId,
    /// The cohort that holds it, or its job.
    pub holder: CohortId,
    /// Its title.
    pub holder_title: String,
    /// Whether the job is what is claimed, by another message of it.
    pub by_job: bool,
}

/// Takes a claim on every message and every job of the cohort, or none: what stands in the way is given back, and the
/// caller refuses. A submit that runs at the same time is waited for.
///
/// # Errors
/// The database's.
pub async fn take(tx: &mut Tx, cohort: CohortId) -> Result<Vec<Conflict>> {
    // in one order everywhere, so that two overlapping submits wait for each other instead of deadlocking
    sqlx::query!(
        "INSERT INTO message_claims (quarantine_id, cohort_id)
         SELECT quarantine_id, cohort_id FROM cohort_items WHERE cohort_id = $1 ORDER BY quarantine_id
         ON CONFLICT ON CONSTRAINT message_claims_once DO NOTHING",
        cohort.0
    )
    .execute(&mut **tx)
    .await?;
    sqlx::query!(
        "INSERT INTO job_claims (queue_id, job_id, cohort_id)
         SELECT DISTINCT cohort.queue_id, item.job_id, cohort.id
           FROM cohort_items AS item JOIN cohorts AS cohort ON cohort.id = item.cohort_id
           WHERE item.cohort_id = $1 AND item.job_id IS NOT NULL ORDER BY item.job_id
         ON CONFLICT ON CONSTRAINT job_claims_once DO NOTHING",
        cohort.0
    )
    .execute(&mut **tx)
    .await?;
    conflicts(tx, cohort).await
}

/// Items of the cohort whose message or job another cohort has claimed.
///
/// # Errors
/// The database's.
pub async fn conflicts(tx: &mut Tx, cohort: CohortId) -> Result<Vec<Conflict>> {
    let rows = sqlx::query!(
        r#"SELECT item.quarantine_id, coalesce(message.cohort_id, job.cohort_id) AS "holder!", holder.title,
             message.cohort_id IS NULL AS "by_job!"
           FROM cohort_items AS item JOIN cohorts AS ours ON ours.id = item.cohort_id
           LEFT JOIN message_claims AS message ON message.quarantine_id = item.quarantine_id AND message.cohort_id <> item.cohort_id
           LEFT JOIN job_claims AS job ON job.queue_id = ours.queue_id AND job.job_id = item.job_id AND job.cohort_id <> item.cohort_id
           JOIN cohorts AS holder ON holder.id = coalesce(message.cohort_id, job.cohort_id)
           WHERE item.cohort_id = $1 ORDER BY item.position"#,
        cohort.0
    )
    .fetch_all(&mut **tx)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Conflict {
            message: QuarantineId(row.quarantine_id),
            holder: CohortId(row.holder),
            holder_title: row.title,
            by_job: row.by_job,
        })
        .collect())
}
