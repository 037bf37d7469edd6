//! People's word on an item in doubt.

use crate::{
    clock::new_id,
    error::{Error, Result},
    store::Tx,
};
use domain::ids::{CohortId, ItemId, UserId};
use uuid::Uuid;

/// An item of a cohort, locked.
#[derive(Debug, Clone)]
pub struct Doubtful {
    /// Its state's word.
    pub state: String,
    /// The epoch that handed it over.
    pub epoch: Option<i64>,
    /// That epoch can't publish any more.
    pub fenced: bool,
}

/// Reads and locks an item of the cohort.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn item_for_update(tx: &mut Tx, cohort: CohortId, item: ItemId) -> Result<Doubtful> {
    sqlx::query_as!(
        Doubtful,
        r#"SELECT state, epoch, EXISTS (SELECT FROM cohort_epochs e WHERE e.cohort_id = i.cohort_id AND e.epoch = i.epoch
             AND (e.stopped_at IS NOT NULL OR e.closed_at IS NOT NULL)) AS "fenced!"
           FROM cohort_items i WHERE id = $1 AND cohort_id = $2 FOR UPDATE OF i"#,
        item.0,
        cohort.0
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(Error::NotFound { what: "item of this cohort" })
}

/// A resolution that waits for its second person.
#[derive(Debug, Clone)]
pub struct Pending {
    /// Its row.
    pub id: Uuid,
    /// By whom.
    pub by: UserId,
    /// Why.
    pub reason: String,
}

/// The open resolution of an item.
///
/// # Errors
/// The database's.
pub async fn pending(tx: &mut Tx, item: ItemId) -> Result<Option<Pending>> {
    Ok(sqlx::query!(
        "SELECT id, by_id, reason FROM item_resolutions
         WHERE item_id = $1 AND superseded_at IS NULL AND confirmed_at IS NULL AND outcome = 'not_published' FOR UPDATE",
        item.0
    )
    .fetch_optional(&mut **tx)
    .await?
    .map(|row| Pending { id: row.id, by: UserId(row.by_id), reason: row.reason }))
}

/// Writes a person's word in place of an earlier one that still waited.
///
/// # Errors
/// The database's.
pub async fn propose(tx: &mut Tx, item: ItemId, outcome: &str, by: UserId, reason: &str) -> Result<()> {
    sqlx::query!(
        "UPDATE item_resolutions SET superseded_at = clock_timestamp() WHERE item_id = $1 AND superseded_at IS NULL",
        item.0
    )
    .execute(&mut **tx)
    .await?;
    sqlx::query!(
        "INSERT INTO item_resolutions (id, item_id, outcome, by_id, reason) VALUES ($1, $2, $3, $4, $5)",
        new_id(),
        item.0,
        outcome,
        by.0,
        reason
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// A second person agrees.
///
/// # Errors
/// The database's.
pub async fn confirm(tx: &mut Tx, resolution: Uuid, by: UserId) -> Result<()> {
    sqlx::query!(
        "UPDATE item_resolutions SET confirmed_by = $2, confirmed_at = clock_timestamp() WHERE id = $1",
        resolution,
        by.0
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}
