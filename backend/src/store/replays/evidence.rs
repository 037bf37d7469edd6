//! What became of handed-over messages, as worker events and new dead letters tell it (RULES 5). Idempotent: it is swept by
//! whoever owns the replay, so that an event that came before the broker's answer was recorded counts too.

use crate::{
    actor::Actor,
    error::Result,
    store::{
        Tx, audit,
        cohorts::{
            self,
            items::{self, Step},
        },
    },
};
use domain::{
    ids::{CohortId, ItemId},
    vocabulary::{Action, ItemState},
};
use sqlx::PgPool;
use time::OffsetDateTime;

/// States that a new dead letter with the item's redrive id ends.
const DIES_FROM: [ItemState; 6] = [
    ItemState::Publishing,
    ItemState::InDoubt,
    ItemState::Confirmed,
    ItemState::Unverified,
    ItemState::VerificationFailed,
    ItemState::ResolvedArrived,
];

/// Items whose redrive id a newer dead letter carries, and that don't say so yet.
///
/// # Errors
/// The database's.
pub async fn died_again(pool: &PgPool, cohort: CohortId) -> Result<Vec<ItemId>> {
    let states: Vec<String> = DIES_FROM.iter().map(ToString::to_string).collect();
    Ok(sqlx::query_scalar!(
        "SELECT i.id FROM cohort_items i
         WHERE i.cohort_id = $1 AND i.state = ANY($2) AND i.redrive_id IS NOT NULL
           AND EXISTS (SELECT FROM quarantine q WHERE q.redrive_id = i.redrive_id AND q.id <> i.quarantine_id)",
        cohort.0,
        &states
    )
    .fetch_all(pool)
    .await?
    .into_iter()
    .map(ItemId)
    .collect())
}

/// Writes that they died again.
///
/// # Errors
/// The database's.
pub async fn requarantine(tx: &mut Tx, dead: &[ItemId], epoch: i64) -> Result<usize> {
    let step = Step::new("dead_letter", "a new dead letter carries its redrive id").under(epoch);
    items::move_items(tx, dead, &DIES_FROM, ItemState::Requarantined, step).await
}

/// Items in doubt whose redrive id a worker reported: the message arrived.
///
/// # Errors
/// The database's.
pub async fn seen_by_workers(pool: &PgPool, cohort: CohortId) -> Result<Vec<ItemId>> {
    Ok(sqlx::query_scalar!(
        "SELECT i.id FROM cohort_items i
         WHERE i.cohort_id = $1 AND i.state = 'in_doubt'
           AND EXISTS (SELECT FROM events e WHERE e.redrive_id = i.redrive_id)",
        cohort.0,
    )
    .fetch_all(pool)
    .await?
    .into_iter()
    .map(ItemId)
    .collect())
}

/// Writes that items in doubt arrived, and by what that is known.
///
/// # Errors
/// The database's.
pub async fn arrived(tx: &mut Tx, seen: &[ItemId], source: &str, cause: &str) -> Result<usize> {
    items::move_items(tx, seen, &[ItemState::InDoubt], ItemState::Confirmed, Step::new(source, cause)).await
}

/// Writes when a worker's events say that an item's job ended; how many.
///
/// # Errors
/// The database's.
pub async fn finish(pool: &PgPool, cohort: CohortId) -> Result<u64> {
    Ok(sqlx::query!(
        "UPDATE cohort_items i SET finished_at = e.at
         FROM (SELECT redrive_id, min(received_at) AS at FROM events
               WHERE redrive_id = ANY(SELECT redrive_id FROM cohort_items
                                      WHERE cohort_id = $1 AND redrive_id IS NOT NULL AND finished_at IS NULL)
                 AND kind IN ('acked', 'attempt_succeeded', 'effect_recorded') GROUP BY redrive_id) e
         WHERE i.cohort_id = $1 AND i.redrive_id = e.redrive_id AND i.finished_at IS NULL",
        cohort.0
    )
    .execute(pool)
    .await?
    .rows_affected())
}

/// What worker events say of one redrive.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// The effect was recorded.
    pub effect: bool,
    /// Classes of reported failures.
    pub failed_classes: Vec<Option<String>>,
    /// Which version executed it, as last told.
    pub worker_version: Option<String>,
}

/// What worker events say of one redrive.
///
/// # Errors
/// The database's.
pub async fn told(pool: &PgPool, redrive: domain::ids::RedriveId) -> Result<Told> {
    let mut told = Told::default();
    for event in sqlx::query!(
        "SELECT kind, error_class, worker_version FROM events WHERE redrive_id = $1 ORDER BY received_at",
        redrive.0
    )
    .fetch_all(pool)
    .await?
    {
        match event.kind.as_str() {
            "effect_recorded" => told.effect = true,
            "attempt_failed" => told.failed_classes.push(event.error_class),
            _ => {}
        }
        told.worker_version = event.worker_version.or(told.worker_version);
    }
    Ok(told)
}

/// A confirmed item whose effect is still to be looked for, or that only waits to be let go.
#[derive(Debug, Clone)]
pub struct Open {
    /// The item.
    pub item: ItemId,
    /// Its dead letter.
    pub quarantine_id: domain::ids::QuarantineId,
    /// The job.
    pub job_id: Option<domain::ids::AppName>,
    /// Where it is: confirmed or in doubt.
    pub state: ItemState,
    /// What its message carries.
    pub redrive_id: domain::ids::RedriveId,
    /// When the broker took it.
    pub confirmed_at: Option<OffsetDateTime>,
    /// Workers say that its job ended.
    pub finished: bool,
    /// The time for its effect is over, by the database's clock.
    pub deadline_passed: bool,
    /// It is in the verification sample, or was a canary.
    pub verify: bool,
}

/// Items that aren't settled after their hand-over, oldest first, at most so many.
///
/// # Errors
/// The database's.
pub async fn open(pool: &PgPool, cohort: CohortId, wait_s: i64, limit: i64) -> Result<Vec<Open>> {
    #[expect(clippy::cast_precision_loss, reason = "a wait is at most an hour")]
    let wait = wait_s as f64;
    sqlx::query!(
        r#"SELECT id, quarantine_id, job_id, state, redrive_id AS "redrive_id!", confirmed_at, verify OR canary AS "verify!",
             finished_at IS NOT NULL AS "finished!",
             coalesce(confirmed_at + make_interval(secs => $2) <= clock_timestamp(), false) AS "passed!"
           FROM cohort_items
           WHERE cohort_id = $1 AND state IN ('confirmed', 'in_doubt') AND redrive_id IS NOT NULL
           ORDER BY published_at LIMIT $3"#,
        cohort.0,
        wait,
        limit,
    )
    .fetch_all(pool)
    .await?
    .into_iter()
    .map(|row| {
        Ok(Open {
            item: ItemId(row.id),
            quarantine_id: domain::ids::QuarantineId(row.quarantine_id),
            job_id: row.job_id.map(domain::ids::AppName),
            state: row.state.parse().map_err(anyhow::Error::from)?,
            redrive_id: domain::ids::RedriveId(row.redrive_id),
            confirmed_at: row.confirmed_at,
            finished: row.finished,
            deadline_passed: row.passed,
            verify: row.verify,
        })
    })
    .collect()
}

/// Items that were said not to have reached a queue, by the broker or by people, and whose redrive ids turned up all the
/// same.
///
/// # Errors
/// The database's.
pub async fn contradicted(pool: &PgPool, cohort: CohortId) -> Result<Vec<ItemId>> {
    Ok(sqlx::query_scalar!(
        "SELECT i.id FROM cohort_items i
         WHERE i.cohort_id = $1 AND i.state IN ('resolved_not_published', 'returned', 'nacked') AND i.state_reason IS DISTINCT FROM 'published_twice'
           AND (EXISTS (SELECT FROM events e WHERE e.redrive_id = i.redrive_id)
             OR EXISTS (SELECT FROM quarantine q WHERE q.redrive_id = i.redrive_id AND q.id <> i.quarantine_id))",
        cohort.0
    )
    .fetch_all(pool)
    .await?
    .into_iter()
    .map(ItemId)
    .collect())
}

/// Raises `published_twice`: loud on cohort and log, the message ineligible, its scheduled item elsewhere refused.
///
/// # Errors
/// The database's.
pub async fn published_twice(tx: &mut Tx, cohort: CohortId, item: ItemId) -> Result<()> {
    let entry = audit::Entry::new(Action::PublishedTwice, "item", item)
        .because("its redrive id turned up, though it was said not to have reached a queue");
    audit::done(tx, &Actor::system(), entry).await?;
    cohorts::flag_published_twice(tx, cohort).await?;
    let quarantine: uuid::Uuid = sqlx::query_scalar!(
        "UPDATE cohort_items SET state_reason = 'published_twice' WHERE id = $1 RETURNING quarantine_id",
        item.0
    )
    .fetch_one(&mut **tx)
    .await?;
    let elsewhere: Vec<ItemId> = sqlx::query_scalar!(
        "SELECT id FROM cohort_items WHERE quarantine_id = $1 AND id <> $2 AND state = 'scheduled'",
        quarantine,
        item.0
    )
    .fetch_all(&mut **tx)
    .await?
    .into_iter()
    .map(ItemId)
    .collect();
    let step =
        Step::new("event", "an earlier redrive that was called not published arrived").because("published_twice");
    items::move_items(tx, &elsewhere, &[ItemState::Scheduled], ItemState::Refused, step).await?;
    items::project_items(tx, &[item]).await
}
