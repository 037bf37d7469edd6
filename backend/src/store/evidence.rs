//! Items by the redrive id that their message carries.

use super::{Tx, audit, cohorts};
use crate::{actor::Actor, error::Result};
use domain::{
    ids::{AppName, CohortId, EventId, ItemId, QuarantineId, RedriveId},
    vocabulary::Action,
};

/// The item that published a redrive.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// Identity.
    pub id: ItemId,
    /// Its cohort.
    pub cohort: CohortId,
    /// The dead letter that went back.
    pub quarantine_id: QuarantineId,
    /// The broker or people said that it reached no queue, and no evidence against that was seen yet.
    pub said_unsent: bool,
}

/// The item that published this redrive; `None`: no cohort owns it.
///
/// # Errors
/// The database's.
pub async fn item_of(tx: &mut Tx, redrive: RedriveId) -> Result<Option<Item>> {
    let item = sqlx::query!(
        r#"SELECT id, cohort_id, quarantine_id, state IN ('resolved_not_published', 'returned', 'nacked')
             AND state_reason IS DISTINCT FROM 'published_twice' AS "said_unsent!"
           FROM cohort_items WHERE redrive_id = $1"#,
        redrive.0
    )
    .fetch_optional(&mut **tx)
    .await?;
    Ok(item.map(|item| Item {
        id: ItemId(item.id),
        cohort: CohortId(item.cohort_id),
        quarantine_id: QuarantineId(item.quarantine_id),
        said_unsent: item.said_unsent,
    }))
}

/// An earlier dead letter with this redrive id that is surely another message than this one: this one isn't suspected to
/// be a message that custody has already (RULES 2).
///
/// # Errors
/// The database's.
pub async fn other_dead_letter(
    tx: &mut Tx,
    item: Item,
    redrive: RedriveId,
    dead_letter: QuarantineId,
) -> Result<Option<QuarantineId>> {
    let earlier = sqlx::query_scalar!(
        "SELECT earlier.id FROM quarantine AS earlier JOIN quarantine AS now ON now.id = $3
         WHERE earlier.redrive_id = $2 AND earlier.id NOT IN ($1, $3) AND now.possible_duplicate_of IS NULL
         ORDER BY earlier.id LIMIT 1",
        item.quarantine_id.0,
        redrive.0,
        dead_letter.0
    )
    .fetch_optional(&mut **tx)
    .await?;
    Ok(earlier.map(QuarantineId))
}

/// Whether this is the first report of this redrive id under a message id that isn't its message's.
///
/// # Errors
/// The database's.
pub async fn is_anothers(
    tx: &mut Tx,
    item: Item,
    redrive: RedriveId,
    message: &AppName,
    event: EventId,
) -> Result<bool> {
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM quarantine WHERE id = $1 AND message_id <> $2)
             AND NOT EXISTS (SELECT FROM events WHERE redrive_id = $3 AND message_id = $2 AND event_id <> $4) AS "anothers!""#,
        item.quarantine_id.0,
        message.0,
        redrive.0,
        event.0
    )
    .fetch_one(&mut **tx)
    .await?)
}

/// Raises `redrive_id_reused`, loud on cohort, Watch and log: somebody published a copy of a redriven message.
///
/// # Errors
/// The database's.
pub async fn redrive_id_reused(tx: &mut Tx, item: Item, seen: serde_json::Value) -> Result<()> {
    let entry = audit::Entry::new(Action::RedriveIdReused, "item", item.id)
        .after(seen)
        .because("one redrive id is on two messages");
    audit::done(tx, &Actor::system(), entry).await?;
    cohorts::flag_published_twice(tx, item.cohort).await
}

/// Writes when a worker first said that an item's job ended.
///
/// # Errors
/// The database's.
pub async fn set_finished(tx: &mut Tx, item: ItemId) -> Result<()> {
    sqlx::query!(
        "UPDATE cohort_items SET finished_at = clock_timestamp() WHERE id = $1 AND finished_at IS NULL",
        item.0
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}
