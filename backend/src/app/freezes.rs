//! The freeze switch: stops every replay, of one queue or of all.

use super::{brokers, fields};
use crate::{
    actor::Actor,
    broker::Management,
    error::{Error, Result},
    state::App,
    store::{self, Tx, audit, freezes},
};
use domain::{api::FreezeResult, vocabulary::Action};
use serde_json::json;
use uuid::Uuid;

/// Consumers that Lazaret starts bear tags that begin so.
const OWN_TAG: &str = "lazaret-";

/// What a freeze doesn't contain: others' consumers on the dead-letter queues, as far as the broker says in time.
#[derive(Debug, Clone)]
pub struct NotContained {
    consumers: Vec<String>,
    unknown: Option<String>,
}

/// Asks the broker, with little patience: a freeze doesn't wait for it.
pub async fn not_contained(app: &App, scope: Uuid) -> NotContained {
    let asked = tokio::time::timeout(brokers::PAGE_PATIENCE, foreign_consumers(app, scope)).await;
    match asked {
        Ok(Ok(consumers)) => NotContained { consumers, unknown: None },
        Ok(Err(error)) => NotContained { consumers: Vec::new(), unknown: Some(error.to_string()) },
        Err(_) => NotContained { consumers: Vec::new(), unknown: Some("the management API is slow".to_owned()) },
    }
}

async fn foreign_consumers(app: &App, scope: Uuid) -> Result<Vec<String>> {
    let mut consumers = Vec::new();
    for queue in freezes::dead_letter_queues(app.store.pool(), scope).await? {
        let address = store::broker_addresses::of(app.store.pool(), queue.broker_id).await?;
        let there = Management::for_broker(&app.http, &address)?.queue(&queue.vhost, &queue.name).await?;
        let foreign = there.into_iter().flat_map(|there| there.consumer_details);
        consumers.extend(foreign.filter(|consumer| !consumer.consumer_tag.starts_with(OWN_TAG)).map(|consumer| {
            format!("{}: {} from {}", queue.name, consumer.consumer_tag, consumer.channel_details.connection_name)
        }));
    }
    Ok(consumers)
}

/// Stops replay; again is no error, and gives the newer reason.
///
/// # Errors
/// 404, 422.
pub async fn freeze(
    tx: &mut Tx,
    actor: &Actor,
    scope: Uuid,
    reason: &str,
    not_contained: NotContained,
) -> Result<FreezeResult> {
    let reason = fields::reason(reason)?;
    let before = freezes::lock(tx, scope).await?;
    freezes::freeze(tx, scope, actor.user()?.id, &reason).await?;
    record(tx, actor, Action::Frozen, scope, before, &reason).await?;
    result(tx, scope, true, not_contained).await
}

/// Lets replay go on: paused cohorts stay paused until a person resumes each.
///
/// # Errors
/// 409 `not_frozen`, 404, 422.
pub async fn unfreeze(
    tx: &mut Tx,
    actor: &Actor,
    scope: Uuid,
    reason: &str,
    not_contained: NotContained,
) -> Result<FreezeResult> {
    let reason = fields::reason(reason)?;
    let before = freezes::lock(tx, scope).await?;
    if before.is_none() {
        return Err(Error::refused("not_frozen", "this switch isn't on"));
    }
    freezes::unfreeze(tx, scope).await?;
    record(tx, actor, Action::Unfrozen, scope, before, &reason).await?;
    result(tx, scope, false, not_contained).await
}

async fn record(
    tx: &mut Tx,
    actor: &Actor,
    action: Action,
    scope: Uuid,
    before: Option<String>,
    reason: &str,
) -> Result<()> {
    let subject = if scope == freezes::ALL { "all".to_owned() } else { scope.to_string() };
    let entry = audit::Entry::new(action, "freeze", subject)
        .before(json!({ "frozen": before.is_some(), "reason": before }))
        .after(json!({ "frozen": action == Action::Frozen }))
        .because(reason);
    audit::done(tx, actor, entry).await?;
    store::notify(tx, "freeze", (scope != freezes::ALL).then_some(scope)).await?;
    Ok(())
}

async fn result(tx: &mut Tx, scope: Uuid, frozen: bool, not_contained: NotContained) -> Result<FreezeResult> {
    Ok(FreezeResult {
        frozen,
        not_contained: not_contained.consumers,
        not_contained_reason: not_contained.unknown,
        publishing: freezes::publishing(tx, scope).await?,
    })
}
