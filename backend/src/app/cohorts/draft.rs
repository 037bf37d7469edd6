//! Drafting: the list is frozen when the draft is made; each edit is a new revision.

use super::{Acted, acted, ensure_legal, invalid_if_any, plan, step, topology};
use crate::{
    actor::Actor,
    clock::new_id,
    error::{Error, Result},
    store::{
        Tx, audit,
        cohorts::{self, Cohort, facts, reviews, selection, write},
    },
};
use domain::{
    api::{Draft, NewCohort, Selection},
    cohort::Facts,
    draft,
    ids::{CohortId, QueueId},
    vocabulary::{Action, CohortCommand, CohortState},
};
use std::collections::BTreeMap;

/// The queue that a new draft names.
///
/// # Errors
/// 422 where there is none.
pub async fn source(tx: &mut Tx, queue: QueueId) -> Result<facts::SourceQueue> {
    facts::source_queue(tx, queue).await.map_err(|error| match error {
        Error::NotFound { .. } => Error::invalid("/queue_id", "there is no such queue"),
        other => other,
    })
}

/// `POST /cohorts`: a draft with its frozen list, in one transaction.
///
/// # Errors
/// Bad fields; the database's.
pub async fn create(tx: &mut Tx, actor: &Actor, new: NewCohort, reading: &topology::Reading) -> Result<Acted> {
    ensure_fields(&new.draft)?;
    let source = source(tx, new.queue_id).await?;
    let author = actor.user()?.id;
    let id = CohortId(new_id());
    let limit = i64::try_from(draft::MAX_ITEMS).unwrap_or(i64::MAX) + 1;
    if let Selection::Ids { ids } = &new.selection
        && ids.len() > draft::MAX_ITEMS
    {
        return Err(Error::invalid("/selection/ids", "at most 10 000 messages in a cohort"));
    }
    let candidates = selection::candidates(tx, source.id, &new.selection, limit).await?;
    ensure_selection(&new.selection, &candidates, source.id)?;
    write::insert(tx, id, source.id, &new.draft, candidates.len(), author).await?;
    selection::freeze(tx, id, &candidates, &strata(&candidates)).await?;
    let cohort = cohorts::load(&mut **tx, id).await?;
    save_revision(tx, actor, &cohort, &source, reading).await?;
    cohorts::add_stage(tx, id, CohortState::Draft, Some(author), None).await?;
    reviews::touch(tx, id, author, 1, "drafted").await?;
    let drafted = audit::Entry::new(Action::CohortCreated, "cohort", id)
        .named(&new.draft.title)
        .after(serde_json::json!({ "queue_id": source.id, "size": cohort.size, "draft": new.draft }))
        .because(&new.draft.reason);
    audit::done(tx, actor, drafted).await?;
    crate::store::notify(tx, "cohorts", Some(id.0)).await?;
    acted(tx, actor, id, reading).await
}

/// `PATCH /cohorts/{id}`: a new revision of a draft; approvals never cover it.
///
/// # Errors
/// Bad fields, another state, a stale version; the database's.
pub async fn edit(
    tx: &mut Tx,
    actor: &Actor,
    id: CohortId,
    seen: i64,
    draft: Draft,
    reading: &topology::Reading,
) -> Result<Acted> {
    let before = cohorts::load_for_update(tx, id).await?;
    ensure_legal(&before, CohortCommand::Edit)?;
    step(&before, CohortCommand::Edit, &Facts { version_matches: seen == before.version, ..Facts::UNKNOWN })?;
    ensure_fields(&draft)?;
    let editor = actor.user()?.id;
    write::edit(tx, id, &draft).await?;
    describe_items(tx, id).await?;
    let cohort = cohorts::load(&mut **tx, id).await?;
    let source = facts::source_queue(tx, cohort.queue_id).await?;
    save_revision(tx, actor, &cohort, &source, reading).await?;
    reviews::touch(tx, id, editor, cohort.revision, "edited").await?;
    let edited = audit::Entry::new(Action::CohortEdited, "cohort", id)
        .named(&cohort.draft.title)
        .before(serde_json::json!({ "revision": before.revision, "draft": before.draft }))
        .after(serde_json::json!({ "revision": cohort.revision, "draft": cohort.draft }));
    audit::done(tx, actor, edited).await?;
    acted(tx, actor, id, reading).await
}

/// A draft's plan isn't binding before it is submitted; it is saved so that its digest and differences can be seen.
async fn save_revision(
    tx: &mut Tx,
    actor: &Actor,
    cohort: &Cohort,
    source: &facts::SourceQueue,
    reading: &topology::Reading,
) -> Result<()> {
    let original = facts::common_original(tx, cohort.id).await?;
    let target = topology::resolve(reading, &cohort.draft, source, original);
    let target = (target.exchange, target.routing_key);
    let queue = lane_queue(reading, &target, source);
    let made = plan::build(tx, cohort, &plan::lane(source, &queue), &target).await?;
    write::save_plan(tx, cohort.id, cohort.revision, &made.canonical, &made.digest.0, None, actor.user()?.id).await
}

/// The queue whose lane this target takes, as far as it can be told.
pub(super) fn lane_queue(
    reading: &topology::Reading,
    target: &(String, String),
    source: &facts::SourceQueue,
) -> String {
    match reading.topology() {
        Ok(topology) => topology.lane_queue(&target.0, &target.1, &source.name),
        Err(_) => source.name.clone(),
    }
}

/// Bad fields of a draft.
///
/// # Errors
/// 422, `guards_unavailable` where guards are asked for.
pub(super) fn ensure_fields(draft: &Draft) -> Result<()> {
    if !draft.guards.is_empty() {
        return Err(Error::Invalid {
            code: "guards_unavailable",
            detail: "There are no guards yet: `guards` must be {}.".to_owned(),
            fields: vec![domain::api::FieldError { pointer: "/guards".to_owned(), detail: "must be {}".to_owned() }],
        });
    }
    invalid_if_any(domain::draft::check(draft))
}

fn ensure_selection(selection: &Selection, found: &[selection::Candidate], queue: QueueId) -> Result<()> {
    if found.len() > draft::MAX_ITEMS {
        return Err(Error::invalid("/selection", "more than 10 000 messages match: narrow the filter"));
    }
    let Selection::Ids { ids } = selection else {
        return if found.is_empty() {
            Err(Error::invalid("/selection/filter", "nothing that is held matches"))
        } else {
            Ok(())
        };
    };
    if ids.is_empty() {
        return Err(Error::invalid("/selection/ids", "at least one message"));
    }
    let known: BTreeMap<_, _> = found.iter().map(|candidate| (candidate.id, candidate.queue_id)).collect();
    for (index, id) in ids.iter().enumerate() {
        let pointer = format!("/selection/ids/{index}");
        match known.get(id) {
            None => return Err(Error::invalid(pointer, "there is no such message")),
            Some(Some(other)) if *other != queue => return Err(Error::invalid(pointer, "it belongs to another queue")),
            Some(_) => {}
        }
    }
    Ok(())
}

/// Brings what a draft's items say of their messages up to now: one may have been assigned, or classified, since the list
/// was frozen. Claims and canaries follow it.
///
/// # Errors
/// The database's.
pub(super) async fn describe_items(tx: &mut Tx, id: CohortId) -> Result<()> {
    let candidates = selection::frozen(tx, id).await?;
    selection::describe(tx, id, &candidates, &strata(&candidates)).await
}

/// Items with one fingerprint are one stratum, numbered by first appearance: the target is the same for all.
fn strata(candidates: &[selection::Candidate]) -> Vec<i32> {
    let mut numbers: BTreeMap<&str, i32> = BTreeMap::new();
    candidates
        .iter()
        .map(|candidate| {
            let next = i32::try_from(numbers.len()).unwrap_or(i32::MAX);
            *numbers.entry(&candidate.fingerprint).or_insert(next)
        })
        .collect()
}
