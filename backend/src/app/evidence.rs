//! What a new dead letter or a worker's event proves about earlier redrives, at once and in the transaction that brings
//! it. The replay's owner sweeps the same facts; this reaches items whose cohort has no owner any more too.

use crate::{
    error::Result,
    store::{
        self, Tx,
        cohorts::items::{self, Step},
    },
};
use domain::{
    api::Event,
    ids::{QuarantineId, RedriveId},
    vocabulary::{EventKind, ItemState},
};

/// A dead letter that carries a redrive id came into custody: the item that published it died again (RULES 5).
///
/// # Errors
/// The database's.
pub async fn dead_letter_arrived(tx: &mut Tx, dead_letter: QuarantineId, redrive: RedriveId) -> Result<()> {
    let Some(item) = store::evidence::item_of(tx, redrive).await? else { return Ok(()) };
    if item.quarantine_id == dead_letter {
        return Ok(());
    }
    let from = [ItemState::Confirmed, ItemState::InDoubt, ItemState::Unverified, ItemState::VerificationFailed];
    let step = Step::new("dead_letter", "a new dead letter carries its redrive id");
    items::move_item(tx, item.id, &from, ItemState::Requarantined, step).await?;
    Ok(())
}

/// A worker reported something about a redriven message: it arrived; some reports say that its job ended there.
///
/// # Errors
/// The database's.
pub async fn worker_event(tx: &mut Tx, event: &Event) -> Result<()> {
    let Some(redrive) = event.redrive_id else { return Ok(()) };
    let Some(item) = store::evidence::item_of(tx, redrive).await? else { return Ok(()) };
    let step = Step::new("event", "a worker reported its redrive id");
    items::move_item(tx, item.id, &[ItemState::InDoubt], ItemState::Confirmed, step).await?;
    if matches!(event.kind, EventKind::Acked | EventKind::AttemptSucceeded | EventKind::EffectRecorded) {
        store::evidence::set_finished(tx, item.id).await?;
    }
    Ok(())
}
