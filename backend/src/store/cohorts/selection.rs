//! Which dead letters a draft takes: read once, frozen as the cohort's items.

use super::super::Tx;
use crate::{clock::new_id, error::Result};
use domain::{
    api::{Selection, SelectionFilter},
    ids::{CohortId, QuarantineId, QueueId},
    vocabulary::QuarantineState,
};
use uuid::Uuid;

/// A dead letter that a draft may take.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Which.
    pub id: QuarantineId,
    /// Whose; `None` is unattributed.
    pub queue_id: Option<QueueId>,
    /// The group key.
    pub fingerprint: String,
    /// The job that it is a message of.
    pub job_id: Option<Vec<u8>>,
}

impl Candidate {
    fn new(id: Uuid, queue_id: Option<Uuid>, fingerprint: String, job_id: Option<Vec<u8>>) -> Self {
        Self { id: QuarantineId(id), queue_id: queue_id.map(QueueId), fingerprint, job_id }
    }
}

/// The dead letters that `selection` names, oldest first, at most `limit`: by ids those that exist, by filter those of
/// `queue` that are held and match now.
///
/// # Errors
/// The database's.
pub async fn candidates(tx: &mut Tx, queue: QueueId, selection: &Selection, limit: i64) -> Result<Vec<Candidate>> {
    match selection {
        Selection::Ids { ids } => by_ids(tx, ids, limit).await,
        Selection::Filter { filter } => by_filter(tx, queue, filter, limit).await,
    }
}

async fn by_ids(tx: &mut Tx, ids: &[QuarantineId], limit: i64) -> Result<Vec<Candidate>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        "SELECT id, queue_id, fingerprint, job_id FROM quarantine WHERE id = ANY($1) ORDER BY arrived_at, id LIMIT $2",
        &ids,
        limit
    )
    .fetch_all(&mut **tx)
    .await?;
    Ok(rows.into_iter().map(|row| Candidate::new(row.id, row.queue_id, row.fingerprint, row.job_id)).collect())
}

async fn by_filter(tx: &mut Tx, queue: QueueId, filter: &SelectionFilter, limit: i64) -> Result<Vec<Candidate>> {
    let rows = sqlx::query!(
        "SELECT id, queue_id, fingerprint, job_id FROM quarantine
         WHERE queue_id = $1 AND disposition = $2
           AND (cardinality($3::text[]) = 0 OR coalesce(error_class, '') = ANY($3))
           AND (cardinality($4::text[]) = 0 OR fingerprint = ANY($4))
           AND (cardinality($5::text[]) = 0 OR coalesce(worker_version, '') = ANY($5))
           AND ($6::text IS NULL OR position(lower($6) in lower(coalesce(error_text, ''))) > 0
             OR position(convert_to($6, 'UTF8') in coalesce(job_id, '')) > 0
             OR position(convert_to($6, 'UTF8') in coalesce(message_id, '')) > 0)
           AND ($7::timestamptz IS NULL OR dead_lettered_at >= $7)
           AND ($8::timestamptz IS NULL OR dead_lettered_at < $8)
         ORDER BY arrived_at, id LIMIT $9",
        queue.0,
        QuarantineState::Held.as_str(),
        &filter.error_class,
        &filter.fingerprint,
        &filter.worker_version,
        filter.q.as_deref().filter(|text| !text.is_empty()),
        filter.dead_lettered_from.map(|at| at.0),
        filter.dead_lettered_to.map(|at| at.0),
        limit,
    )
    .fetch_all(&mut **tx)
    .await?;
    Ok(rows.into_iter().map(|row| Candidate::new(row.id, row.queue_id, row.fingerprint, row.job_id)).collect())
}

/// The frozen list of a cohort as the vault has it now: attribution and classification may have come since.
///
/// # Errors
/// The database's.
pub async fn frozen(tx: &mut Tx, cohort: CohortId) -> Result<Vec<Candidate>> {
    let rows = sqlx::query!(
        "SELECT evidence.id, evidence.queue_id, evidence.fingerprint, evidence.job_id
         FROM cohort_items AS item JOIN quarantine AS evidence ON evidence.id = item.quarantine_id
         WHERE item.cohort_id = $1 ORDER BY item.position",
        cohort.0
    )
    .fetch_all(&mut **tx)
    .await?;
    Ok(rows.into_iter().map(|row| Candidate::new(row.id, row.queue_id, row.fingerprint, row.job_id)).collect())
}

/// Writes each frozen item's job and stratum anew; the list and its order stay.
///
/// # Errors
/// The database's.
pub async fn describe(tx: &mut Tx, cohort: CohortId, candidates: &[Candidate], strata: &[i32]) -> Result<()> {
    let (evidence, jobs) = columns(candidates);
    sqlx::query!(
        "UPDATE cohort_items AS item SET stratum = now.stratum, job_id = now.job_id
         FROM unnest($2::uuid[], $3::integer[], $4::bytea[]) AS now (quarantine_id, stratum, job_id)
         WHERE item.cohort_id = $1 AND item.quarantine_id = now.quarantine_id
           AND (item.stratum, item.job_id) IS DISTINCT FROM (now.stratum, now.job_id)",
        cohort.0,
        &evidence,
        strata,
        &jobs as &[Option<Vec<u8>>],
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Writes the frozen list, in its order; `strata` has each candidate's stratum.
///
/// # Errors
/// The database's.
pub async fn freeze(tx: &mut Tx, cohort: CohortId, candidates: &[Candidate], strata: &[i32]) -> Result<()> {
    let item_ids: Vec<Uuid> = candidates.iter().map(|_| new_id()).collect();
    let (evidence, jobs) = columns(candidates);
    sqlx::query!(
        r#"INSERT INTO cohort_items (id, cohort_id, quarantine_id, position, stratum, job_id)
         SELECT item.id, $1, item.quarantine_id, (item.place - 1)::integer, item.stratum, item.job_id
         FROM unnest($2::uuid[], $3::uuid[], $4::integer[], $5::bytea[])
           WITH ORDINALITY AS item (id, quarantine_id, stratum, job_id, place)"#,
        cohort.0,
        &item_ids,
        &evidence,
        strata,
        &jobs as &[Option<Vec<u8>>],
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Each candidate's id and job, as two columns.
fn columns(candidates: &[Candidate]) -> (Vec<Uuid>, Vec<Option<Vec<u8>>>) {
    candidates.iter().map(|candidate| (candidate.id.0, candidate.job_id.clone())).unzip()
}
