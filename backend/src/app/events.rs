//! Worker events: taken once each by their id, whatever order they come in; they decide nothing by themselves.

use crate::{
    actor::Actor,
    app::{custody, evidence},
    error::{Error, Result},
    state::App,
    store::{
        self, Tx,
        custody::Watched,
        events::{Accepted, Classified, JobNews, Unclassified},
    },
};
use domain::{
    amqp::visible,
    api::{Event, EventReceipt, HeaderMapping, RejectedEvent},
    ids::{QueueId, UserId},
    keyed::InstallationKey,
    vocabulary::EventKind,
};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The most that one call takes.
pub const MOST: usize = 1_000;
/// The largest event, bytes of JSON.
const EVENT_BYTES: usize = 65_536;
/// The longest name that an application may choose, bytes.
const NAME_BYTES: usize = 1_024;

/// Takes events: new ones in, known ones counted, bad ones rejected by their place.
///
/// # Errors
/// 422 for more than [`MOST`]; the database's.
pub async fn take(app: &App, actor: &Actor, events: Vec<Value>) -> Result<EventReceipt> {
    if events.len() > MOST {
        return Err(Error::invalid("/events", format!("at most {MOST}")));
    }
    let sent_by = actor.user()?.id;
    let mut rejected = Vec::new();
    let mut read = Vec::new();
    for (index, value) in events.into_iter().enumerate() {
        match parse(value) {
            Ok(event) => read.push((index, event)),
            Err((code, detail)) => rejected.push(reject(index, code, detail)),
        }
    }
    let key = InstallationKey(*app.installation_key);
    app.store.tx(move |tx| Box::pin(async move { take_read(tx, &key, sent_by, read, rejected).await })).await
}

fn reject(index: usize, code: &str, detail: String) -> RejectedEvent {
    RejectedEvent { index: i64::try_from(index).unwrap_or(i64::MAX), code: code.to_owned(), detail }
}

fn parse(mut value: Value) -> std::result::Result<(Event, Value), (&'static str, String)> {
    if value.to_string().len() > EVENT_BYTES {
        return Err(("too_large", format!("an event is at most {EVENT_BYTES} bytes")));
    }
    if let Some(kind) = value.get("kind").and_then(Value::as_str)
        && kind.parse::<EventKind>().is_err()
    {
        return Err(("unknown_kind", format!("`{}` is no kind of event", visible(kind))));
    }
    // names stay as they are in the event's own columns; what is kept as text can't hold NUL
    let mut event: Event =
        serde_json::from_value(value.clone()).map_err(|error| ("invalid_event", error.to_string()))?;
    for (name, id) in [("job_id", Some(&event.job_id)), ("message_id", event.message_id.as_ref())] {
        match id {
            Some(id) if id.0.len() > NAME_BYTES => {
                return Err(("invalid_event", format!("{name} is at most {NAME_BYTES} bytes")));
            }
            _ => {}
        }
    }
    if event.job_id.0.is_empty() {
        return Err(("invalid_event", "job_id is empty".to_owned()));
    }
    event.message_id = event.message_id.filter(|id| !id.0.is_empty());
    event.error_class =
        event.error_class.filter(|class| !class.is_empty()).map(|class| custody::class_of(class.as_bytes()));
    event.error_text = event.error_text.map(|text| custody::text_of(text.as_bytes()));
    event.worker_version = event.worker_version.map(|version| custody::class_of(version.as_bytes()));
    show_controls(&mut value);
    Ok((event, value))
}

fn show_controls(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('\0') => *text = visible(text),
        Value::Array(items) => items.iter_mut().for_each(show_controls),
        Value::Object(fields) if fields.keys().any(|key| key.contains('\0')) => {
            *fields = std::mem::take(fields).into_iter().map(|(key, value)| (visible(&key), value)).collect();
            fields.values_mut().for_each(show_controls);
        }
        Value::Object(fields) => fields.values_mut().for_each(show_controls),
        _ => {}
    }
}

async fn take_read(
    tx: &mut Tx,
    key: &InstallationKey,
    sent_by: UserId,
    read: Vec<(usize, (Event, Value))>,
    mut rejected: Vec<RejectedEvent>,
) -> Result<EventReceipt> {
    let mut names: Vec<String> =
        read.iter().map(|(_, (event, _))| event.queue.clone()).filter(|q| !q.contains('\0')).collect();
    names.sort_unstable();
    names.dedup();
    let mut queues: HashMap<String, Vec<QueueId>> = HashMap::new();
    for (name, id) in store::events::queues_named(tx, &names).await? {
        queues.entry(name).or_default().push(id);
    }
    let mut accepted = Vec::new();
    for (index, (event, json)) in read {
        match queues.get(&event.queue).map(Vec::as_slice) {
            Some([queue_id]) => accepted.push(Accepted { queue_id: *queue_id, event, json }),
            Some(_) => {
                rejected.push(reject(index, "unknown_queue", "several watched queues have this name".to_owned()))
            }
            None => {
                let detail = format!("`{}` is no watched queue", visible(&event.queue));
                rejected.push(reject(index, "unknown_queue", detail));
            }
        }
    }
    rejected.sort_by_key(|rejected| rejected.index);
    let sent = accepted.len();
    let failures = |accepted: &[Accepted]| -> Vec<QueueId> {
        let told =
            accepted.iter().filter(|a| a.event.kind == EventKind::AttemptFailed && a.event.error_class.is_some());
        told.map(|a| a.queue_id).collect()
    };
    store::events::line_up(tx, failures(&accepted)).await?;
    let mut new = store::events::insert(tx, sent_by, &accepted).await?;
    // the same id twice in one call is one event: the first
    accepted.retain(|accepted| new.remove(&accepted.event.event_id.0));
    store::events::merge_jobs(tx, &news(&accepted)).await?;
    classify(tx, key, &accepted).await?;
    for event in &accepted {
        evidence::worker_event(tx, &event.event).await?;
    }
    if !accepted.is_empty() {
        store::notify(tx, "queues", None).await?;
    }
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    Ok(EventReceipt { accepted: count(accepted.len()), duplicates: count(sent - accepted.len()), rejected })
}

/// What the events say of each job, in an order that any two calls share.
fn news(accepted: &[Accepted]) -> Vec<JobNews> {
    let mut jobs: BTreeMap<(QueueId, Vec<u8>), JobNews> = BTreeMap::new();
    for Accepted { event, queue_id, .. } in accepted {
        let at = event.at.0;
        let job = jobs.entry((*queue_id, event.job_id.0.clone())).or_insert_with(|| JobNews {
            queue_id: *queue_id,
            job_id: event.job_id.0.clone(),
            accepted_at: None,
            enqueued_at: None,
            first_started_at: None,
            last_event_at: at,
            last_kind: event.kind.to_string(),
            last_attempt: None,
            failed_at: None,
            effect_at: None,
            redriven_at: None,
        });
        if at >= job.last_event_at {
            job.last_event_at = at;
            job.last_kind = event.kind.to_string();
        }
        job.last_attempt = job.last_attempt.max(event.attempt);
        let earliest = |slot: &mut Option<time::OffsetDateTime>| *slot = Some(slot.map_or(at, |was| was.min(at)));
        if event.redrive_id.is_some() {
            earliest(&mut job.redriven_at);
        }
        match event.kind {
            EventKind::Accepted => earliest(&mut job.accepted_at),
            EventKind::Enqueued => earliest(&mut job.enqueued_at),
            EventKind::AttemptStarted => earliest(&mut job.first_started_at),
            EventKind::AttemptFailed => job.failed_at = job.failed_at.max(Some(at)),
            EventKind::EffectRecorded => earliest(&mut job.effect_at),
            EventKind::AttemptSucceeded | EventKind::Acked => {}
        }
    }
    jobs.into_values().collect()
}

/// Gives dead letters that came without a class the class of their latest reported failure, once.
async fn classify(tx: &mut Tx, key: &InstallationKey, accepted: &[Accepted]) -> Result<()> {
    let mut failures: Vec<&Accepted> =
        accepted.iter().filter(|a| a.event.kind == EventKind::AttemptFailed && a.event.error_class.is_some()).collect();
    if failures.is_empty() {
        return Ok(());
    }
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.event.at));
    let jobs: Vec<Vec<u8>> = failures.iter().map(|failure| failure.event.job_id.0.clone()).collect();
    let messages: Vec<Vec<u8>> =
        failures.iter().filter_map(|f| f.event.message_id.as_ref().map(|id| id.0.clone())).collect();
    let mut classified = false;
    for dead in store::events::unclassified(tx, &jobs, &messages).await? {
        let Some(failure) = failures.iter().find(|failure| is_of(&dead, failure)) else { continue };
        let event = &failure.event;
        let Some(class) = event.error_class.as_deref() else { continue };
        let text = dead.error_text.as_deref().or(event.error_text.as_deref());
        let queue = Watched {
            id: dead.queue_id,
            name: String::new(),
            headers: HeaderMapping::default(),
            retry_policy: serde_json::from_value(dead.retry_policy.clone()).map_err(anyhow::Error::from)?,
            policy_version: 0,
        };
        let reason = dead.death_reason.as_deref().map(str::as_bytes);
        let judged = custody::judge(key, Some(&queue), Some(class), text.map(str::as_bytes), reason);
        let judged = Classified {
            error_class: class,
            error_text: text,
            worker_version: dead.worker_version.as_deref().or(event.worker_version.as_deref()),
            kind: judged.kind,
            fingerprint: judged.fingerprint.hash.to_string(),
            normalised_text: judged.normalised_text(),
        };
        store::events::classify(tx, dead.id, judged).await?;
        classified = true;
    }
    if classified {
        store::notify(tx, "quarantine", None).await?;
    }
    Ok(())
}

/// Whether a failure was that of this very message, in this generation of it.
fn is_of(dead: &Unclassified, failure: &Accepted) -> bool {
    let event = &failure.event;
    failure.queue_id == dead.queue_id
        && event.redrive_id.map(|id| id.0) == dead.redrive_id
        && match (&dead.message_id, &event.message_id) {
            (Some(mine), Some(theirs)) => *mine == theirs.0,
            _ => dead.job_id.as_ref() == Some(&event.job_id.0),
        }
}
