//! The redrive generation's counters and what it has to rise above (RULES 3).

use super::super::Tx;
use crate::error::Result;
use domain::{
    ids::{CohortId, QueueId},
    lease::GenerationFacts,
};

/// Locks both counters' rows, in one order, and reads what the next generation has to rise above. `target` is the
/// watched queue that the lane is for, where it is watched.
///
/// # Errors
/// The database's.
pub async fn lock_facts(
    tx: &mut Tx,
    cohort: CohortId,
    source: QueueId,
    target: Option<QueueId>,
) -> Result<GenerationFacts> {
    let queues: Vec<_> = [Some(source), target].into_iter().flatten().map(|queue| queue.0).collect();
    let counters =
        sqlx::query!("SELECT id, redrive_generation FROM queues WHERE id = ANY($1) ORDER BY id FOR UPDATE", &queues)
            .fetch_all(&mut **tx)
            .await?;
    let counter = |queue: Option<QueueId>| {
        counters.iter().find(|row| Some(QueueId(row.id)) == queue).map_or(0, |row| row.redrive_generation)
    };
    let carried = sqlx::query!(
        r#"SELECT coalesce(max(sent.generation), 0) AS "on_items!", coalesce(max(earlier.generation), 0) AS "of_jobs!"
           FROM cohort_items AS item
           JOIN quarantine AS evidence ON evidence.id = item.quarantine_id
           LEFT JOIN cohort_items AS sent ON sent.redrive_id = evidence.redrive_id
           LEFT JOIN cohort_items AS earlier ON earlier.job_id = item.job_id
             AND EXISTS (SELECT FROM cohorts WHERE cohorts.id = earlier.cohort_id AND cohorts.queue_id = $2)
           WHERE item.cohort_id = $1"#,
        cohort.0,
        source.0
    )
    .fetch_one(&mut **tx)
    .await?;
    Ok(GenerationFacts {
        source: counter(Some(source)),
        target: counter(target),
        on_items: carried.on_items,
        of_jobs: carried.of_jobs,
    })
}

/// Writes an allocated generation to both counters and to the cohort.
///
/// # Errors
/// The database's.
pub async fn write(
    tx: &mut Tx,
    cohort: CohortId,
    source: QueueId,
    target: Option<QueueId>,
    generation: i64,
) -> Result<()> {
    let queues: Vec<_> = [Some(source), target].into_iter().flatten().map(|queue| queue.0).collect();
    sqlx::query!("UPDATE queues SET redrive_generation = $2 WHERE id = ANY($1)", &queues, generation)
        .execute(&mut **tx)
        .await?;
    sqlx::query!("UPDATE cohorts SET generation = $2 WHERE id = $1", cohort.0, generation).execute(&mut **tx).await?;
    Ok(())
}
