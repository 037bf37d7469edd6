//! Gathers what the pre-flight judges (RULES 6), and asks the rule.

use super::topology::Topology;
use crate::{
    broker::parcel::{Limits, Parcel},
    error::Result,
    store::{
        Tx,
        cohorts::{self, Cohort, facts},
    },
};
use domain::{
    amqp::{Message, Properties},
    api::{self, Draft},
    ids::QuarantineId,
    kind,
    preflight::{self, CanaryFacts, Findings, ItemFacts},
    strip,
};
use std::collections::BTreeMap;
use uuid::Uuid;

/// How many messages' headers are read at once.
const BATCH: usize = 500;

/// Runs the pre-flight of a plan against the vault and the target as they are now.
///
/// # Errors
/// The database's.
pub async fn run(
    tx: &mut Tx,
    cohort: &Cohort,
    source: &facts::SourceQueue,
    topology: &Topology,
    target: &(String, String),
) -> Result<Findings> {
    let items = items(tx, cohort, source, target).await?;
    let canaries = canaries(tx, cohort, &items).await?;
    let target = topology.facts(&target.0, &target.1, &source.name);
    Ok(preflight::judge(&cohort.draft, &items, &canaries, &target))
}

/// Findings as they are shown and kept.
#[must_use]
pub fn shown(findings: &Findings, at: time::OffsetDateTime) -> api::Preflight {
    api::Preflight {
        at: Some(api::Timestamp(at)),
        refusals: findings.refusals.clone(),
        warnings: findings.warnings.clone(),
    }
}

/// Whether some message is permanent by the stricter of then and now, without a fixed condition: a fact of the re-check.
///
/// # Errors
/// The database's.
pub async fn permanent_without_fix(tx: &mut Tx, cohort: &Cohort, source: &facts::SourceQueue) -> Result<bool> {
    if cohort.draft.condition_fixed.is_some() {
        return Ok(false);
    }
    let kinds = facts::kinds(tx, cohort.id).await?;
    Ok(kinds.iter().any(|(then, class)| {
        kind::stricter(*then, kind::judge(&source.retry_policy, class.as_deref()))
            == domain::vocabulary::Kind::Permanent
    }))
}

async fn items(
    tx: &mut Tx,
    cohort: &Cohort,
    source: &facts::SourceQueue,
    target: &(String, String),
) -> Result<Vec<ItemFacts>> {
    let known = facts::item_facts(tx, cohort.id).await?;
    let mut holders: BTreeMap<QuarantineId, (bool, String)> = BTreeMap::new();
    for conflict in cohorts::claims::conflicts(tx, cohort.id).await? {
        holders.entry(conflict.message).or_insert((conflict.by_job, conflict.holder_title));
    }
    let mut items = Vec::with_capacity(known.len());
    for batch in known.chunks(BATCH) {
        let ids: Vec<QuarantineId> = batch.iter().map(|item| item.id).collect();
        let mut properties: BTreeMap<QuarantineId, Properties> =
            facts::properties(tx, &ids).await?.into_iter().collect();
        for item in batch {
            let properties = properties.remove(&item.id);
            let holder = holders.get(&item.id);
            let held_by = |by_job: bool| holder.filter(|(job, _)| *job == by_job).map(|(_, title)| title.clone());
            items.push(ItemFacts {
                id: item.id,
                job_id: item.job_id.clone(),
                attributed: item.queue_id == Some(cohort.queue_id),
                kind_then: item.kind,
                kind_now: kind::judge(&source.retry_policy, item.error_class.as_deref()),
                state: item.state,
                claimed_by: held_by(false),
                job_claimed_by: held_by(true),
                in_doubt_elsewhere: item.in_doubt_elsewhere,
                possible_duplicate_of: item.possible_duplicate_of,
                pair_used_before: item.pair_used_before,
                job_has_live_message: item.job_has_live_message,
                expires: properties
                    .as_ref()
                    .is_some_and(|p| p.expiration.is_some() || strip::original_expiration(p).is_some()),
                unpublishable: unpublishable(&cohort.draft, item, properties, target),
            });
        }
    }
    Ok(items)
}

/// Makes the message ready as a replay would, without its body, and says what stands in the way.
fn unpublishable(
    draft: &Draft,
    item: &facts::ItemFacts,
    properties: Option<Properties>,
    target: &(String, String),
) -> Option<(&'static str, String)> {
    let Some(properties) = properties else {
        return Some(("erased", "the payload was erased".to_owned()));
    };
    let limits = Limits::DEFAULT;
    if usize::try_from(item.size_bytes).map_or(true, |size| size > limits.body_max) {
        let detail = format!("a body of {} bytes is over the limit of {}", item.size_bytes, limits.body_max);
        return Some(("body_too_large", detail));
    }
    let choices = strip::Choices { restore_expiration: draft.restore_expiration };
    // ids are all of one length, and so is a generation's encoding: these stand for the ones to come
    let marks = strip::Marks { generation: u64::MAX >> 1, redrive_id: Uuid::nil() };
    let properties = strip::redrive(&properties, choices, marks).properties;
    let message = Message { body: Vec::new(), properties };
    let parcel = Parcel::new(Uuid::nil(), target.0.as_bytes(), target.1.as_bytes(), message, limits);
    parcel.err().map(|why| (why.code(), why.to_string()))
}

/// Every canary that the plan names; for a stratum without, one that names no item.
async fn canaries(tx: &mut Tx, cohort: &Cohort, items: &[ItemFacts]) -> Result<Vec<CanaryFacts>> {
    let planned = facts::planned_items(tx, cohort.id).await?;
    let named = named_canaries(&cohort.draft, &planned);
    let all: Vec<QuarantineId> = named.values().flatten().copied().collect();
    let inspected = facts::inspected(tx, &all).await?;
    let facts_of = |stratum: i64, item: Option<QuarantineId>| CanaryFacts {
        stratum,
        item,
        inspected: item.is_some_and(|item| inspected.contains(&item)),
        has_job: item.is_none_or(|id| items.iter().any(|item| item.id == id && item.job_id.is_some())),
    };
    let of_stratum = |(stratum, canaries): (i64, Vec<QuarantineId>)| match canaries.as_slice() {
        [] => vec![facts_of(stratum, None)],
        canaries => canaries.iter().map(|canary| facts_of(stratum, Some(*canary))).collect(),
    };
    Ok(named.into_iter().flat_map(of_stratum).collect())
}

/// The canaries that the plan names for each of its strata, in its order; none for a stratum that it forgot.
#[must_use]
pub fn named_canaries(draft: &Draft, planned: &[facts::PlannedItem]) -> BTreeMap<i64, Vec<QuarantineId>> {
    let strata: BTreeMap<QuarantineId, i64> = planned.iter().map(|item| (item.quarantine_id, item.stratum)).collect();
    let mut named: BTreeMap<i64, Vec<QuarantineId>> = strata.values().map(|stratum| (*stratum, Vec::new())).collect();
    for id in draft.canary.iter().flat_map(|canary| &canary.items) {
        if let Some(canaries) = strata.get(id).and_then(|stratum| named.get_mut(stratum)) {
            canaries.push(*id);
        }
    }
    named
}
