//! Who owns a replay: its lease, its epochs, and which of them can't publish any more (RULES 3, *Fenced*).

use crate::{
    error::Result,
    store::{
        Tx,
        cohorts::items::{self, Step},
        leases::{self, Duty, Lease},
    },
};
use domain::{
    ids::{CohortId, ItemId},
    vocabulary::ItemState,
};
use sqlx::PgPool;

/// An epoch that was granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The lease, with the new epoch.
    pub lease: Lease,
    /// The owner of the epoch before, if it was another process that didn't stop.
    pub taken_from: Option<String>,
    /// Items of older epochs that were `publishing` and are in doubt now.
    pub swept: usize,
}

/// What a publish connection is called at the broker.
#[must_use]
pub fn connection_name(cohort: CohortId, epoch: i64) -> String {
    format!("lazaret replay {cohort} epoch {epoch}")
}

/// Takes the cohort's lease under a new epoch, if it is free or ran out: the older epochs' `publishing` goes into doubt in
/// this transaction. `None`: another process holds it.
///
/// # Errors
/// The database's.
pub async fn grant(tx: &mut Tx, cohort: CohortId, owner: &str) -> Result<Option<Grant>> {
    let Some(lease) = leases::grant(tx, Duty::Replay, cohort.0, owner).await? else { return Ok(None) };
    let taken_from = sqlx::query_scalar!(
        "SELECT owner FROM cohort_epochs WHERE cohort_id = $1 AND owner <> $2 AND stopped_at IS NULL AND closed_at IS NULL
         ORDER BY epoch DESC LIMIT 1",
        cohort.0,
        owner
    )
    .fetch_optional(&mut **tx)
    .await?;
    sqlx::query!(
        "INSERT INTO cohort_epochs (cohort_id, epoch, owner, connection) VALUES ($1, $2, $3, $4)",
        cohort.0,
        lease.epoch,
        owner,
        connection_name(cohort, lease.epoch),
    )
    .execute(&mut **tx)
    .await?;
    let step = Step::new("takeover", "its owner went before the broker's answer was recorded").under(lease.epoch);
    let swept = items::move_all(tx, cohort, &[ItemState::Publishing], ItemState::InDoubt, step).await?;
    Ok(Some(Grant { lease, taken_from, swept }))
}

/// Says *stopped*: nothing of this epoch is unsent or without an answer. It never writes `publishing` again. `false` when
/// something still is.
///
/// # Errors
/// The database's.
pub async fn stop(pool: &PgPool, cohort: CohortId, epoch: i64) -> Result<bool> {
    let stopped = sqlx::query!(
        "UPDATE cohort_epochs SET stopped_at = clock_timestamp()
         WHERE cohort_id = $1 AND epoch = $2 AND stopped_at IS NULL
           AND NOT EXISTS (SELECT FROM cohort_items WHERE cohort_id = $1 AND epoch = $2 AND state = 'publishing')",
        cohort.0,
        epoch
    )
    .execute(pool)
    .await?;
    Ok(stopped.rows_affected() == 1)
}

/// Records that an epoch's connection was closed at the broker and is seen gone.
///
/// # Errors
/// The database's.
pub async fn closed(pool: &PgPool, cohort: CohortId, epoch: i64) -> Result<()> {
    sqlx::query!(
        "UPDATE cohort_epochs SET closed_at = clock_timestamp() WHERE cohort_id = $1 AND epoch = $2 AND closed_at IS NULL",
        cohort.0,
        epoch
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Epochs that may still publish, with the names of their connections.
///
/// # Errors
/// The database's.
pub async fn unfenced(db: impl sqlx::PgExecutor<'_>, cohort: CohortId) -> Result<Vec<(i64, String)>> {
    Ok(sqlx::query!(
        "SELECT epoch, connection FROM cohort_epochs
         WHERE cohort_id = $1 AND stopped_at IS NULL AND closed_at IS NULL ORDER BY epoch",
        cohort.0
    )
    .fetch_all(db)
    .await?
    .into_iter()
    .map(|row| (row.epoch, row.connection.unwrap_or_else(|| connection_name(cohort, row.epoch))))
    .collect())
}

/// An epoch, for the page.
#[derive(Debug, Clone)]
pub struct EpochRow {
    /// Its number.
    pub epoch: i64,
    /// The process.
    pub owner: String,
    /// Its connection's name.
    pub connection: Option<String>,
    /// It said *stopped*.
    pub stopped: bool,
    /// Its connection is gone.
    pub closed: bool,
    /// Items that it handed over without an answer.
    pub publishing: Vec<ItemId>,
}

/// Every epoch of a cohort, newest first.
///
/// # Errors
/// The database's.
pub async fn all(pool: &PgPool, cohort: CohortId) -> Result<Vec<EpochRow>> {
    Ok(sqlx::query!(
        r#"SELECT e.epoch, e.owner, e.connection, e.stopped_at IS NOT NULL AS "stopped!", e.closed_at IS NOT NULL AS "closed!",
             array(SELECT i.id FROM cohort_items i WHERE i.cohort_id = e.cohort_id AND i.epoch = e.epoch
                     AND i.state = 'publishing' ORDER BY i.position) AS "publishing!"
           FROM cohort_epochs e WHERE e.cohort_id = $1 ORDER BY e.epoch DESC"#,
        cohort.0
    )
    .fetch_all(pool)
    .await?
    .into_iter()
    .map(|row| EpochRow {
        epoch: row.epoch,
        owner: row.owner,
        connection: row.connection,
        stopped: row.stopped,
        closed: row.closed,
        publishing: row.publishing.into_iter().map(ItemId).collect(),
    })
    .collect())
}
