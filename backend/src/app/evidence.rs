//! What a new dead letter or a worker's event proves about earlier redrives, at once and in the transaction that brings
//! it. The replay's owner sweeps the same facts; this reaches items whose cohort has no owner any more too.

use crate::{
    error::Result,
    store::{
        self, Tx,
        cohorts::items::{self, Step},
        replays,
    },
};
use domain::{
    api::Event,
    ids::{QuarantineId, RedriveId},
    vocabulary::{EventKind, ItemState},
};
use serde_json::json;

/// A dead letter that carries a redrive id came into custody: the item that published it died again (RULES 5). One that
/// carries the id of an earlier dead letter, and may not be that one once more, is `redrive_id_reused` (RULES 3).
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
    if !items::move_item(tx, item.id, &from, ItemState::Requarantined, step).await? {
        contradicts(tx, item).await?;
    }
    if let Some(earlier) = store::evidence::other_dead_letter(tx, item, redrive, dead_letter).await? {
        let both = json!({ "redrive_id": redrive, "dead_letters": [earlier, dead_letter] });
        store::evidence::redrive_id_reused(tx, item, both).await?;
    }
    Ok(())
}

/// A worker reported something about a redriven message: it arrived; some reports say that its job ended there. A redrive
/// keeps the message id, so a report of another one is of another message with this redrive id.
///
/// # Errors
/// The database's.
pub async fn worker_event(tx: &mut Tx, event: &Event) -> Result<()> {
    let Some(redrive) = event.redrive_id else { return Ok(()) };
    let Some(item) = store::evidence::item_of(tx, redrive).await? else { return Ok(()) };
    let step = Step::new("event", "a worker reported its redrive id");
    if !items::move_item(tx, item.id, &[ItemState::InDoubt], ItemState::Confirmed, step).await? {
        contradicts(tx, item).await?;
    }
    if let Some(message) = &event.message_id
        && store::evidence::is_anothers(tx, item, redrive, message, event.event_id).await?
    {
        let both = json!({ "redrive_id": redrive, "message_id": message });
        store::evidence::redrive_id_reused(tx, item, both).await?;
    }
    if matches!(event.kind, EventKind::Acked | EventKind::AttemptSucceeded | EventKind::EffectRecorded) {
        store::evidence::set_finished(tx, item.id).await?;
    }
    Ok(())
}

/// What was said not to have reached a queue turned up: said at once, also after the cohort's end.
async fn contradicts(tx: &mut Tx, item: store::evidence::Item) -> Result<()> {
    if item.said_unsent {
        replays::evidence::published_twice(tx, item.cohort, item.id).await?;
    }
    Ok(())
}
