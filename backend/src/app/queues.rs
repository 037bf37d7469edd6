//! Watched queues: putting them under watch, changing what they are judged by, showing how they are.

use super::{brokers, fields, readings};
use crate::{
    actor::Actor,
    broker::management,
    error::{Error, Result},
    state::App,
    store::{
        self, Tx, audit, freezes,
        queues::{NewRow, QueueRow, Settings},
        readings::from_events,
    },
};
use domain::{
    api::{ApprovalPolicy, ChangeQueue, Freezes, HeaderMapping, NewQueue, Queue, RetryPolicy, Slo},
    ids::{BrokerId, QueueId},
    vocabulary::Action,
};
use serde_json::json;
use std::collections::{HashMap, hash_map::Entry};

/// What one broker's management API lists, or why it doesn't.
type Listed = Result<Vec<management::Queue>, &'static str>;

/// Where the broker can be asked, the queue and its dead-letter queue must be there.
///
/// # Errors
/// 404 for an unknown broker; 422 for queues that the broker doesn't have.
pub async fn must_exist(app: &App, new: &NewQueue) -> Result<()> {
    let broker = store::brokers::get(app.store.pool(), new.broker_id).await?;
    let Ok(listed) = listed(app, new.broker_id, &broker).await else {
        // not known isn't absent: custody says "missing" when it gets there
        return Ok(());
    };
    for (pointer, name) in [("/name", &new.name), ("/dead_letter_queue", &new.dead_letter_queue)] {
        if !listed.iter().any(|queue| queue.vhost == new.vhost && queue.name == *name) {
            return Err(Error::invalid(pointer, "the broker has no such queue in this virtual host"));
        }
    }
    Ok(())
}

/// Puts a queue under watch.
///
/// # Errors
/// 404, 409 `queue_exists`, 422.
pub async fn create(tx: &mut Tx, actor: &Actor, new: NewQueue) -> Result<QueueId> {
    fields::broker_name("/vhost", &new.vhost)?;
    fields::broker_name("/name", &new.name)?;
    fields::broker_name("/dead_letter_queue", &new.dead_letter_queue)?;
    if new.name == new.dead_letter_queue {
        return Err(Error::invalid("/dead_letter_queue", "a queue isn't its own dead-letter queue"));
    }
    let settings = Settings {
        headers: new.headers,
        retry_policy: new.retry_policy,
        slo: new.slo,
        approval_policy: new.approval_policy.unwrap_or(ApprovalPolicy { approvals: 1 }),
        default_probe: new.default_probe,
    };
    check(tx, &settings).await?;
    store::brokers::get(&mut **tx, new.broker_id).await?;
    let dead_letter_queue =
        store::queues::dead_letter_queue(tx, new.broker_id, &new.vhost, &new.dead_letter_queue).await?;
    let id = QueueId(crate::clock::new_id());
    let row = NewRow { id, broker_id: new.broker_id, vhost: &new.vhost, name: &new.name, dead_letter_queue };
    store::queues::insert(tx, &row, &settings).await?;
    let entry = audit::Entry::new(Action::QueueCreated, "queue", id).named(&new.name).after(facts(&settings));
    audit::done(tx, actor, entry).await?;
    store::notify(tx, "queues", Some(id.0)).await?;
    Ok(id)
}

/// Changes what a queue is judged by. Loosening while the vault holds its evidence needs a second person, for whom
/// there is no door yet: refused.
///
/// # Errors
/// 404, 409 `loosening_needs_second_person`, 412, 422.
pub async fn change(tx: &mut Tx, actor: &Actor, id: QueueId, version: i64, change: ChangeQueue) -> Result<()> {
    let now = store::queues::lock(tx, id).await?;
    if now != version {
        return Err(Error::Stale { now });
    }
    let queue = store::queues::get(&mut **tx, id).await?;
    let before = queue.settings.clone();
    let after = Settings {
        headers: change.headers.unwrap_or_else(|| before.headers.clone()),
        retry_policy: change.retry_policy.unwrap_or_else(|| before.retry_policy.clone()),
        slo: change.slo.unwrap_or_else(|| before.slo.clone()),
        approval_policy: change.approval_policy.unwrap_or_else(|| before.approval_policy.clone()),
        default_probe: change.default_probe.or_else(|| before.default_probe.clone()),
    };
    check(tx, &after).await?;
    if loosens(&before, &after) && store::queues::has_evidence(tx, id).await? {
        return Err(Error::refused(
            "loosening_needs_second_person",
            "the vault holds evidence of this queue: header mapping and probe stay, retry policy and approvals can only become stricter",
        ));
    }
    let mut policy_version = queue.policy_version;
    if after.retry_policy != before.retry_policy {
        policy_version += 1;
        store::queues::insert_policy(tx, id, policy_version, &after.retry_policy).await?;
    }
    store::queues::change(tx, id, policy_version, &after).await?;
    let entry = audit::Entry::new(Action::QueueChanged, "queue", id)
        .named(&queue.name)
        .before(facts(&before))
        .after(facts(&after));
    audit::done(tx, actor, entry).await?;
    store::notify(tx, "queues", Some(id.0)).await?;
    Ok(())
}

/// RULES 4: permanent → transient (or unknown, no longer named), a larger budget, fewer approvals, another mapping,
/// another probe.
fn loosens(before: &Settings, after: &Settings) -> bool {
    let budget = |policy: &RetryPolicy| policy.max_attempts.unwrap_or(i64::MAX);
    let (old, new) = (&before.retry_policy, &after.retry_policy);
    let less_permanent = old.permanent_classes.iter().any(|class| !new.permanent_classes.contains(class));
    // an unnamed class counts as permanent until it is named transient
    let more_transient = new.transient_classes.iter().any(|class| !old.transient_classes.contains(class));
    less_permanent
        || more_transient
        || budget(new) > budget(old)
        || after.approval_policy.approvals < before.approval_policy.approvals
        || after.headers != before.headers
        || (before.default_probe.is_some() && after.default_probe != before.default_probe)
}

fn facts(settings: &Settings) -> serde_json::Value {
    json!({
        "headers": settings.headers, "retry_policy": settings.retry_policy, "slo": settings.slo,
        "approval_policy": settings.approval_policy, "default_probe": settings.default_probe,
    })
}

async fn check(tx: &mut Tx, settings: &Settings) -> Result<()> {
    header_names(&settings.headers)?;
    retry_policy(&settings.retry_policy)?;
    objectives(&settings.slo)?;
    if !(1..=10).contains(&settings.approval_policy.approvals) {
        return Err(Error::invalid("/approval_policy/approvals", "1 to 10"));
    }
    if let Some(name) = &settings.default_probe {
        match store::probes::get(&mut **tx, name).await {
            Err(Error::NotFound { .. }) => return Err(Error::invalid("/default_probe", "there is no such probe")),
            other => drop(other?),
        }
    }
    Ok(())
}

fn header_names(headers: &HeaderMapping) -> Result<()> {
    let value = serde_json::to_value(headers).map_err(|error| Error::Internal(error.into()))?;
    for (field, name) in value.as_object().into_iter().flatten() {
        if let Some(name) = name.as_str() {
            fields::broker_name(&format!("/headers/{field}"), name)?;
        }
    }
    Ok(())
}

fn retry_policy(policy: &RetryPolicy) -> Result<()> {
    if policy.max_attempts.is_some_and(|attempts| !(1..=1_000_000).contains(&attempts)) {
        return Err(Error::invalid("/retry_policy/max_attempts", "1 to 1 000 000"));
    }
    for (pointer, classes) in [
        ("/retry_policy/permanent_classes", &policy.permanent_classes),
        ("/retry_policy/transient_classes", &policy.transient_classes),
    ] {
        if classes.len() > 200 {
            return Err(Error::invalid(pointer, "at most 200 classes"));
        }
        for class in classes {
            fields::text(pointer, class, 200)?;
        }
    }
    if let Some(class) = policy.transient_classes.iter().find(|class| policy.permanent_classes.contains(class)) {
        return Err(Error::invalid("/retry_policy/transient_classes", format!("{class} is permanent too")));
    }
    Ok(())
}

fn objectives(slo: &Slo) -> Result<()> {
    for (field, value) in
        [("completion_s", slo.completion_s), ("oldest_age_s", slo.oldest_age_s), ("in_flight", slo.in_flight)]
    {
        if value.is_some_and(|value| !(1..=1_000_000_000).contains(&value)) {
            return Err(Error::invalid(format!("/slo/{field}"), "1 to 1 000 000 000"));
        }
    }
    Ok(())
}

/// Rows as pages show them: with switches and live readings; each broker is asked once, with little patience.
///
/// # Errors
/// The database's.
pub async fn show(app: &App, rows: Vec<QueueRow>) -> Result<Vec<Queue>> {
    let switches = freezes::list(app.store.pool()).await?;
    let mut by_broker: HashMap<BrokerId, Listed> = HashMap::new();
    for row in &rows {
        if let Entry::Vacant(unasked) = by_broker.entry(row.broker_id) {
            let broker = store::brokers::get(app.store.pool(), row.broker_id).await?;
            unasked.insert(listed(app, row.broker_id, &broker).await);
        }
    }
    let mut queues = Vec::with_capacity(rows.len());
    for row in rows {
        let events = from_events(app.store.pool(), row.id).await?;
        let there = match by_broker.get(&row.broker_id) {
            Some(Ok(listed)) => {
                listed.iter().find(|queue| queue.vhost == row.vhost && queue.name == row.name).ok_or("queue_missing")
            }
            Some(Err(why)) => Err(*why),
            None => Err("no_management_api"),
        };
        let now = events.now.unwrap_or_else(|| app.clock.now());
        let live = readings::of(there, &events, now);
        queues.push(put_together(row, &switches, live));
    }
    Ok(queues)
}

fn put_together(row: QueueRow, switches: &Freezes, readings: domain::api::QueueReadings) -> Queue {
    let own = || switches.queues.iter().find(|switch| switch.queue_id == row.id).map(|switch| switch.freeze.clone());
    Queue {
        frozen: switches.all.clone().or_else(own),
        id: row.id,
        broker_id: row.broker_id,
        vhost: row.vhost,
        name: row.name,
        dead_letter_queue: row.dead_letter_queue,
        headers: row.settings.headers,
        retry_policy: row.settings.retry_policy,
        policy_version: row.policy_version,
        slo: row.settings.slo,
        approval_policy: row.settings.approval_policy,
        default_probe: row.settings.default_probe,
        redrive_generation: row.redrive_generation,
        readings,
        held: row.held,
        created_at: row.created_at.into(),
        version: row.version,
    }
}

async fn listed(app: &App, id: BrokerId, broker: &domain::api::Broker) -> Listed {
    let asking = async { brokers::management(app, broker)?.queues(None).await };
    match tokio::time::timeout(brokers::PAGE_PATIENCE, asking).await {
        Ok(Ok(queues)) => Ok(queues),
        Ok(Err(error)) => {
            tracing::debug!(%error, broker = %id, "the management API gave no queues");
            Err("no_management_api")
        }
        Err(_) => Err("no_management_api"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(permanent: &[&str], transient: &[&str], max_attempts: Option<i64>) -> Settings {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Settings {
            headers: HeaderMapping::default(),
            retry_policy: RetryPolicy {
                max_attempts,
                permanent_classes: names(permanent),
                transient_classes: names(transient),
            },
            slo: Slo::default(),
            approval_policy: ApprovalPolicy { approvals: 2 },
            default_probe: None,
        }
    }

    #[test]
    fn loosening_is_seen_and_tightening_is_not() {
        let before = settings(&["schema"], &["timeout"], Some(5));
        for (after, loose) in [
            (settings(&["schema", "amount"], &["timeout"], Some(5)), false),
            (settings(&["schema"], &[], Some(5)), false),
            (settings(&["schema"], &["timeout"], Some(4)), false),
            (settings(&[], &["timeout"], Some(5)), true),
            (settings(&["schema"], &["timeout", "other"], Some(5)), true),
            (settings(&["schema"], &["timeout"], Some(6)), true),
            (settings(&["schema"], &["timeout"], None), true),
        ] {
            assert_eq!(loosens(&before, &after), loose, "{after:?}");
        }
    }
}
