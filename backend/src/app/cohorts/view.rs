//! A cohort as its page shows it, for one reader.

use super::{acts, preflight, review, topology};
use crate::{
    actor::Actor,
    error::{Error, Result},
    store::{
        Tx,
        cohorts::{self, Cohort, facts, list, read, reviews, write},
    },
};
use domain::{
    api::{self, Approvals, ResolvedTarget, Reviewer, Stratum},
    eligibility,
    ids::CohortId,
    refusal::{Check, Code},
    vocabulary::CohortState,
};
use time::OffsetDateTime;

/// `GET /cohorts/{id}`.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn of(tx: &mut Tx, actor: &Actor, id: CohortId, reading: &topology::Reading) -> Result<api::Cohort> {
    let cohort = cohorts::load(&mut **tx, id).await?;
    let now = cohorts::database_now(tx).await?;
    let filter = list::Filter { only: Some(id), ..list::Filter::default() };
    let row = list::rows(tx, &filter, 1).await?.pop().ok_or(Error::NotFound { what: "cohort" })?;
    let source = facts::source_queue(tx, cohort.queue_id).await?;
    let target = target(tx, &cohort, &source, reading).await?;
    let (_, digest) = write::saved_plan(tx, id, cohort.revision).await?.unwrap_or_default();
    let found = findings(tx, &cohort, &source, &target, reading, now).await?;
    let needed = source.approval_policy.approvals.max(1);
    let given = match <[u8; 32]>::try_from(digest.clone()) {
        Ok(digest) => review::valid_approvals(tx, &cohort, &digest, now).await?.len(),
        Err(_) => 0,
    };
    Ok(api::Cohort {
        acts: acts::of(tx, actor, &cohort, found.submittable, reading, now).await?,
        draft: cohort.draft.clone(),
        target,
        plan_digest: hex::encode(digest),
        strata: strata(tx, &cohort).await?,
        preflight: found.shown,
        reviews: said(tx, id).await?,
        approvals: Approvals { needed, given: i64::try_from(given).unwrap_or(i64::MAX) },
        reviewers: reviewers(tx, actor, &cohort, now).await?,
        stages: read::stages(tx, id).await?,
        canaries: read::canaries(tx, id).await?,
        row,
    })
}

async fn target(
    tx: &mut Tx,
    cohort: &Cohort,
    source: &facts::SourceQueue,
    reading: &topology::Reading,
) -> Result<ResolvedTarget> {
    // what was submitted stays; a draft's default follows the broker
    let Some((exchange, routing_key)) = cohort.target.clone().filter(|_| cohort.state != CohortState::Draft) else {
        let original = facts::common_original(tx, cohort.id).await?;
        return Ok(topology::resolve(reading, &cohort.draft, source, original));
    };
    let fixed = api::Draft { target: Some(api::Target { exchange, routing_key }), ..cohort.draft.clone() };
    Ok(ResolvedTarget { is_default: cohort.draft.target.is_none(), ..topology::resolve(reading, &fixed, source, None) })
}

struct Found {
    shown: api::Preflight,
    submittable: Check,
}

/// A draft's pre-flight is run now, so that its author sees what would stop it; later it is the one of the submit.
async fn findings(
    tx: &mut Tx,
    cohort: &Cohort,
    source: &facts::SourceQueue,
    target: &ResolvedTarget,
    reading: &topology::Reading,
    now: OffsetDateTime,
) -> Result<Found> {
    if cohort.state != CohortState::Draft {
        let shown = read::preflight(tx, cohort.id, cohort.revision).await?;
        return Ok(Found { shown, submittable: Err(Code::IllegalTransition) });
    }
    let Ok(topology) = reading.topology() else {
        let shown = api::Preflight { at: None, refusals: vec![], warnings: vec![] };
        return Ok(Found { shown, submittable: Err(Code::NoManagementApi) });
    };
    let target = (target.exchange.clone(), target.routing_key.clone());
    let found = preflight::run(tx, cohort, source, topology, &target).await?;
    let submittable = match found.submittable() {
        Err(_) if found.refusals.is_empty() => Err(Code::WarningNotAccepted),
        Err(_) => Err(Code::PreflightRefused),
        Ok(()) if cohort.draft.expires_at.is_none() || cohort.draft.run_by.is_none() => Err(Code::DeadlinesMissing),
        Ok(()) => Ok(()),
    };
    Ok(Found { shown: preflight::shown(&found, now), submittable })
}

async fn strata(tx: &mut Tx, cohort: &Cohort) -> Result<Vec<Stratum>> {
    let planned = facts::planned_items(tx, cohort.id).await?;
    let named = preflight::named_canaries(&cohort.draft, &planned);
    let all: Vec<_> = named.values().flatten().copied().collect();
    let inspected = facts::inspected(tx, &all).await?;
    Ok(read::strata(tx, cohort.id)
        .await?
        .into_iter()
        .map(|stratum| {
            let canaries = named.get(&stratum.index).map_or(&[][..], Vec::as_slice);
            let canary = canaries.first().copied();
            Stratum {
                canary_inspected: canary.is_some() && canaries.iter().all(|canary| inspected.contains(canary)),
                index: stratum.index,
                fingerprint: stratum.fingerprint,
                error_class: stratum.error_class,
                size: stratum.size,
                canary,
            }
        })
        .collect())
}

async fn said(tx: &mut Tx, id: CohortId) -> Result<Vec<api::Review>> {
    let all = reviews::all(tx, id).await?;
    Ok(all
        .into_iter()
        .map(|review| api::Review {
            by: review.by,
            at: review.at.into(),
            revision: review.revision,
            decision: review.decision,
            plan_digest: hex::encode(review.digest),
            comment: Some(review.comment).filter(|comment| !comment.is_empty()),
            valid: review.valid,
        })
        .collect())
}

/// Everyone with the approver role, and the reader: who may approve, and why the rest may not.
async fn reviewers(tx: &mut Tx, actor: &Actor, cohort: &Cohort, now: OffsetDateTime) -> Result<Vec<Reviewer>> {
    let touched = reviews::touched_by(tx, cohort.id).await?;
    let approved: Vec<_> =
        reviews::approvals(tx, cohort.id, cohort.revision).await?.into_iter().map(|(user, _)| user).collect();
    let named: Vec<_> = actor.user.iter().map(|user| user.id).collect();
    Ok(review::people(tx, &named)
        .await?
        .into_iter()
        .map(|person| {
            let check = eligibility::eligible(&person.as_person(), &touched, now)
                .and_then(|()| if approved.contains(&person.user.id) { Err(Code::AlreadyApproved) } else { Ok(()) });
            Reviewer {
                user: person.user,
                eligible: check.is_ok(),
                reason: check.err().map(|code| code.as_str().to_owned()),
                detail: check.err().map_or("may approve", Code::sentence).to_owned(),
            }
        })
        .collect())
}
