//! Dead-letter queues: how custody goes, and its switch.

use crate::{
    actor::Actor,
    broker::Management,
    error::Result,
    state::App,
    store::{self, Tx, audit, dead_letter_queues::Row},
};
use domain::{
    api::{ChangeDeadLetterQueue, DeadLetterQueue, Reading},
    ids::DeadLetterQueueId,
    vocabulary::Action,
};
use serde_json::json;

/// All of them, with what the broker says of each now.
///
/// # Errors
/// The database's.
pub async fn list(app: &App) -> Result<Vec<DeadLetterQueue>> {
    let rows = store::dead_letter_queues::list(app.store.pool(), None).await?;
    Ok(futures::future::join_all(rows.into_iter().map(|row| shown(app, row))).await)
}

/// One of them.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn show(app: &App, id: DeadLetterQueueId) -> Result<DeadLetterQueue> {
    Ok(shown(app, store::dead_letter_queues::load(app.store.pool(), id).await?).await)
}

async fn shown(app: &App, row: Row) -> DeadLetterQueue {
    let backlog = backlog(app, &row).await;
    with_backlog(row, backlog)
}

fn with_backlog(row: Row, backlog: Reading) -> DeadLetterQueue {
    DeadLetterQueue {
        id: row.id,
        broker_id: row.broker_id,
        vhost: row.vhost,
        name: row.name,
        queues: row.queues,
        custody: row.custody,
        state: row.state,
        state_reason: row.state_reason,
        state_since: row.state_since.into(),
        lease_epoch: row.lease_epoch,
        lease_owner: row.lease_owner,
        backlog,
        stored: row.stored,
        version: row.version,
    }
}

/// Messages at the broker, by its last sample; custody itself doesn't need the management API.
async fn backlog(app: &App, row: &Row) -> Reading {
    let unknown = |reason: &str| Reading {
        value: None,
        source: "management".to_owned(),
        as_of: None,
        reason: Some(reason.to_owned()),
    };
    let Ok(address) = store::broker_addresses::of(app.store.pool(), row.broker_id).await else {
        return unknown("no_management_api");
    };
    let Ok(management) = Management::for_broker(&app.http, &address) else { return unknown("no_management_api") };
    match management.queue(&row.vhost, &row.name).await {
        Err(_) => unknown("no_management_api"),
        Ok(None) => unknown("queue_missing"),
        Ok(Some(queue)) => match queue.messages {
            None => unknown("no_samples"),
            Some(messages) => Reading {
                #[expect(clippy::cast_precision_loss, reason = "no queue holds 2^53 messages")]
                value: Some(messages as f64),
                source: "management".to_owned(),
                as_of: Some(app.clock.now().into()),
                reason: None,
            },
        },
    }
}

/// Switches custody on or off.
///
/// # Errors
/// `NotFound`, `Stale`, a bad reason; the database's.
pub async fn change(
    tx: &mut Tx,
    actor: &Actor,
    id: DeadLetterQueueId,
    seen: i64,
    change: ChangeDeadLetterQueue,
) -> Result<(DeadLetterQueue, Option<i64>)> {
    let reason = super::reasons::given(&change.reason, "/reason")?;
    let (was, name) = store::dead_letter_queues::custody_for_update(tx, id, seen).await?;
    store::dead_letter_queues::set_custody(tx, id, change.custody).await?;
    let entry = audit::Entry::new(Action::CustodyChanged, "dead_letter_queue", id)
        .named(name)
        .before(json!({ "custody": was }))
        .after(json!({ "custody": change.custody }))
        .because(reason);
    audit::done(tx, actor, entry).await?;
    let row = store::dead_letter_queues::load(&mut **tx, id).await?;
    let version = row.version;
    let backlog =
        Reading { value: None, source: "management".to_owned(), as_of: None, reason: Some("not_asked".to_owned()) };
    Ok((with_backlog(row, backlog), Some(version)))
}
