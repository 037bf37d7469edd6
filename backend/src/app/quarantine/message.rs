//! One quarantined message with everything that is known of it.

use crate::{error::Result, state::App, store::quarantine};
use domain::{
    amqp::{Properties, Property, ReadableText, Table},
    api::{BrokerFacts, DeathEntry, LineageStep, PayloadFacts, QuarantinedMessage, TypedField},
    death::Deaths,
    ids::{AppName, QuarantineId, RedriveId},
    strip::{self, Action, Change, Choices, Field, Marks},
};
use serde_json::Value;
use std::collections::HashSet;
use time::OffsetDateTime;

/// How far back a lineage is followed.
const GENERATIONS: usize = 200;

/// One message.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn show(app: &App, id: QuarantineId) -> Result<QuarantinedMessage> {
    let pool = app.store.pool();
    let facts = quarantine::facts(pool, id).await?;
    let stored = quarantine::properties(pool, id).await?;
    let lineage = lineage(app, id, facts.redrive_id, facts.row.redrive_generation).await?;
    let (properties, sha256) =
        stored.map_or((None, None), |(properties, hash)| (Some(properties), Some(hex::encode(hash))));
    let changes = properties.as_ref().map(changes).unwrap_or_default();
    let headers = properties.as_ref().and_then(|properties| properties.headers.as_ref());
    Ok(QuarantinedMessage {
        broker: BrokerFacts {
            original_exchange: facts.original_exchange,
            original_routing_key: facts.original_routing_key,
            died_on: facts.died_on,
            reason: facts.death_reason,
            deaths: headers.map(deaths).unwrap_or_default(),
            redelivered: facts.redelivered,
        },
        headers: headers.map(|headers| header_fields(headers, &changes)).unwrap_or_default(),
        properties: properties.as_ref().map(|properties| property_fields(properties, &changes)).unwrap_or_default(),
        payload: PayloadFacts {
            size_bytes: facts.row.size_bytes,
            sha256,
            commitment: hex::encode(facts.commitment),
            content_type: facts.content_type,
            content_encoding: facts.content_encoding,
        },
        custody: facts.custody,
        lineage,
        inspected_by: quarantine::inspections(pool, id).await?,
        row: facts.row,
    })
}

/// What a redrive would change, whatever its marks will be.
fn changes(properties: &Properties) -> Vec<Change> {
    let marks = Marks { generation: 0, redrive_id: uuid::Uuid::nil() };
    strip::redrive(properties, Choices::default(), marks).changes
}

fn redrive_of(changes: &[Change], field: &Field) -> (String, Option<String>) {
    match changes.iter().find(|change| change.field == *field) {
        Some(Change { action: Action::Removed, reason, .. }) => {
            ("strip".to_owned(), Some(reason.sentence().to_owned()))
        }
        Some(Change { action: Action::Replaced, reason, .. }) => {
            ("replace".to_owned(), Some(reason.sentence().to_owned()))
        }
        Some(Change { action: Action::Added, .. }) | None => ("keep".to_owned(), None),
    }
}

fn header_fields(headers: &Table, changes: &[Change]) -> Vec<TypedField> {
    headers
        .iter()
        .map(|(key, value)| {
            let name = ReadableText::of(key.as_bytes());
            let (redrive, redrive_reason) = redrive_of(changes, &Field::Header(name.clone()));
            // `{"type": …, "value": …}`; a void has no value
            let mut readable = serde_json::to_value(value.readable()).unwrap_or_default();
            TypedField {
                name: name.to_string(),
                field_type: readable["type"].as_str().unwrap_or_default().to_owned(),
                value: readable["value"].take(),
                redrive,
                redrive_reason,
            }
        })
        .collect()
}

fn property_fields(properties: &Properties, changes: &[Change]) -> Vec<TypedField> {
    properties
        .present()
        .filter_map(|(_, name, property)| {
            let (field_type, value) = match property {
                Property::Headers(_) => return None,
                Property::Short(text) => ("short_string", readable_text(text.as_bytes())),
                Property::Byte(byte) => ("uint8", Value::from(byte)),
                Property::Time(seconds) => ("timestamp", Value::from(seconds.to_string())),
            };
            let (redrive, redrive_reason) = redrive_of(changes, &Field::Property(name));
            Some(TypedField {
                name: name.to_owned(),
                field_type: field_type.to_owned(),
                value,
                redrive,
                redrive_reason,
            })
        })
        .collect()
}

fn readable_text(bytes: &[u8]) -> Value {
    serde_json::to_value(ReadableText::of(bytes)).unwrap_or_default()
}

fn deaths(headers: &Table) -> Vec<DeathEntry> {
    Deaths::read(headers)
        .entries
        .into_iter()
        .map(|death| DeathEntry {
            queue: death.queue.map(AppName),
            reason: death.reason.map(|reason| ReadableText::of(&reason).to_string()),
            count: death.count.map(|count| i64::try_from(count).unwrap_or(i64::MAX)),
            at: death
                .time
                .and_then(|seconds| OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).ok()?).ok())
                .filter(|at| (1970..2100).contains(&at.year()))
                .map(Into::into),
        })
        .collect()
}

/// Every redrive of this message and of those it descends from, oldest first. A redrive id that no cohort owns is a step
/// without a cohort.
async fn lineage(
    app: &App,
    id: QuarantineId,
    redrive: Option<RedriveId>,
    generation: Option<i64>,
) -> Result<Vec<LineageStep>> {
    let pool = app.store.pool();
    let mut steps = vec![quarantine::redrives(pool, id).await?];
    let (mut seen, mut current, mut carried) = (HashSet::from([id]), id, redrive);
    while let Some(redrive) = carried.filter(|_| steps.len() < GENERATIONS) {
        match quarantine::parent(pool, redrive).await? {
            Some((parent, carries)) if seen.insert(parent) => {
                steps.push(quarantine::redrives(pool, parent).await?);
                (current, carried) = (parent, carries);
            }
            Some(_) => break,
            None => {
                steps.push(vec![LineageStep {
                    quarantine_id: current,
                    cohort: None,
                    item_id: None,
                    redrive_id: Some(redrive),
                    redrive_generation: generation.filter(|_| current == id),
                    state: None,
                    published_at: None,
                }]);
                break;
            }
        }
    }
    Ok(steps.into_iter().rev().flatten().collect())
}
