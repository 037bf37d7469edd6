//! Items by the redrive id that their message carries.

use super::Tx;
use crate::error::Result;
use domain::ids::{ItemId, QuarantineId, RedriveId};

/// The item that published a redrive.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// Identity.
    pub id: ItemId,
    /// The dead letter that went back.
    pub quarantine_id: QuarantineId,
}

/// The item that published this redrive; `None`: no cohort owns it.
///
/// # Errors
/// The database's.
pub async fn item_of(tx: &mut Tx, redrive: RedriveId) -> Result<Option<Item>> {
    let item = sqlx::query!("SELECT id, quarantine_id FROM cohort_items WHERE redrive_id = $1", redrive.0)
        .fetch_optional(&mut **tx)
        .await?;
    Ok(item.map(|item| Item { id: ItemId(item.id), quarantine_id: QuarantineId(item.quarantine_id) }))
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
