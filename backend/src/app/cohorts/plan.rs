//! The plan of a cohort as its rows are now, and as it was saved.

use crate::{
    error::{Error, Result},
    store::{
        Tx,
        cohorts::{self, Cohort, facts, lane::Lane},
    },
};
use domain::{
    api::PlanView,
    ids::CohortId,
    keyed::Hash32,
    plan::{self, Plan},
};

/// Builds the plan from what the database holds now: items and commitments, the draft, the probe's definition.
///
/// # Errors
/// The database's.
pub async fn build(tx: &mut Tx, cohort: &Cohort, lane: &str, target: &(String, String)) -> Result<Plan> {
    let items: Vec<_> = facts::planned_items(tx, cohort.id)
        .await?
        .into_iter()
        .map(|item| (item.quarantine_id, Hash32(item.commitment), item.stratum))
        .collect();
    let probe = match &cohort.draft.canary {
        Some(canary) => facts::probe(tx, &canary.probe).await?,
        None => None,
    };
    let sample = sample(cohort);
    let facts = plan::Facts {
        cohort: cohort.id,
        queue: cohort.queue_id,
        lane,
        target: (&target.0, &target.1),
        draft: &cohort.draft,
        items: &items,
        probe: probe.as_ref(),
        verification_sample: &sample,
    };
    plan::build(&facts).map_err(|error| Error::Internal(error.into()))
}

/// The plan that a review or a start is about: of what was submitted, as it is now.
///
/// # Errors
/// The database's.
pub async fn now(tx: &mut Tx, cohort: &Cohort) -> Result<Plan> {
    let nowhere = (String::new(), String::new());
    build(tx, cohort, cohort.lane.as_deref().unwrap_or_default(), cohort.target.as_ref().unwrap_or(&nowhere)).await
}

/// Positions that the probe verifies after the expansion.
#[must_use]
pub fn sample(cohort: &Cohort) -> Vec<i32> {
    let percent = cohort.draft.expansion.as_ref().map_or(0, |expansion| expansion.verify_sample_percent);
    plan::verification_sample(i32::try_from(cohort.size).unwrap_or(i32::MAX), percent)
}

/// What names the lane of a queue.
#[must_use]
pub fn lane(source: &facts::SourceQueue, queue: &str) -> String {
    Lane { broker: source.broker_id, vhost: source.vhost.clone(), queue: queue.to_owned() }.to_string()
}

/// `GET /cohorts/{id}/plan`: the saved bytes of this revision and what differs from the last reviewed one.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn view(tx: &mut Tx, id: CohortId) -> Result<PlanView> {
    let cohort = cohorts::load(&mut **tx, id).await?;
    let (canonical, digest) =
        cohorts::write::saved_plan(tx, id, cohort.revision).await?.ok_or(Error::NotFound { what: "plan" })?;
    let reviewed = cohorts::write::last_reviewed(tx, id, cohort.revision).await?;
    let changes = match &reviewed {
        Some((_, before)) => plan::changes(before, &canonical).map_err(|error| Error::Internal(error.into()))?,
        None => vec![],
    };
    Ok(PlanView {
        canonical: String::from_utf8(canonical).map_err(|error| Error::Internal(error.into()))?,
        plan_digest: hex::encode(digest),
        digest_prefix: plan::DIGEST_PREFIX.to_owned(),
        changes,
        changes_since_revision: reviewed.map(|(revision, _)| revision),
    })
}
