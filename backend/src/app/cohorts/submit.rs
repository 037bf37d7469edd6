//! Submitting: the pre-flight without refusals, warnings accepted by name, enough people who could approve, claims.

use super::{Acted, acted, draft, ensure_legal, ensure_seen, entry, plan, preflight, review, said, step, topology};
use crate::{
    actor::Actor,
    error::{Error, Result},
    store::{
        Tx, audit,
        cohorts::{self, Cohort, Entering, claims, facts, reviews, write},
    },
};
use domain::{
    cohort::Facts,
    eligibility,
    ids::CohortId,
    preflight::Findings,
    refusal::Code,
    vocabulary::{Action, CohortCommand},
};
use serde_json::json;
use time::OffsetDateTime;

/// `POST /cohorts/{id}/submit`.
///
/// # Errors
/// What stands in the way; the database's.
pub async fn submit(
    tx: &mut Tx,
    actor: &Actor,
    id: CohortId,
    seen: Option<i64>,
    reading: &topology::Reading,
) -> Result<Acted> {
    let cohort = cohorts::load_for_update(tx, id).await?;
    ensure_legal(&cohort, CohortCommand::Submit)?;
    ensure_seen(&cohort, seen)?;
    let by = actor.user()?.id;
    let now = cohorts::database_now(tx).await?;
    let (expires_at, run_by) = ensure_complete(tx, &cohort, now).await?;
    let topology = reading.topology()?;
    let probe = cohort.draft.canary.as_ref().map(|canary| canary.probe.as_str());
    facts::lock_for_share(tx, cohort.queue_id, probe).await?;
    draft::describe_items(tx, id).await?;
    let source = facts::source_queue(tx, cohort.queue_id).await?;
    let original = facts::common_original(tx, id).await?;
    let target = topology::resolve(reading, &cohort.draft, &source, original);
    let target = (target.exchange, target.routing_key);
    let lane = plan::lane(&source, &draft::lane_queue(reading, &target, &source));

    let findings = preflight::run(tx, &cohort, &source, topology, &target).await?;
    ensure_found_sound(&findings, now)?;
    reviews::touch(tx, id, by, cohort.revision, "submitted").await?;
    ensure_approvable(tx, &cohort, &source, now).await?;
    ensure_claimed(tx, id).await?;
    let transition = step(&cohort, CohortCommand::Submit, &Facts { submittable: Ok(()), ..Facts::UNKNOWN })?;

    let submitted = write::Submitted {
        target: target.clone(),
        lane: lane.clone(),
        expires_at,
        run_by,
        policy_version: source.policy_version,
    };
    write::submit(tx, id, &submitted).await?;
    let made = plan::build(tx, &cohort, &lane, &target).await?;
    let shown = preflight::shown(&findings, now);
    write::save_plan(tx, id, cohort.revision, &made.canonical, &made.digest.0, Some(&shown), by).await?;
    cohorts::set_state(tx, id, Entering { state: transition.to, resumes_to: None, reason: None, by: Some(by) }).await?;
    let after = json!({
        "state": transition.to, "revision": cohort.revision, "plan_digest": made.digest, "size": cohort.size,
        "accepted_warnings": cohort.draft.accept_warnings,
    });
    audit::done(tx, actor, entry(Action::CohortSubmitted, &cohort).after(after)).await?;
    acted(tx, actor, id, reading).await
}

/// Everything that a plan must have before it can be judged.
async fn ensure_complete(
    tx: &mut Tx,
    cohort: &Cohort,
    now: OffsetDateTime,
) -> Result<(OffsetDateTime, OffsetDateTime)> {
    draft::ensure_fields(&cohort.draft)?;
    if cohort.size == 0 {
        return Err(said(Code::EmptyCohort));
    }
    let (Some(expires_at), Some(run_by)) = (cohort.draft.expires_at, cohort.draft.run_by) else {
        return Err(said(Code::DeadlinesMissing));
    };
    if expires_at.0 <= now || run_by.0 <= expires_at.0 {
        return Err(said(Code::DeadlinesMissing));
    }
    let Some(canary) = &cohort.draft.canary else {
        return Err(Error::refused(
            Code::CanaryMissing.as_str(),
            "The plan has no canary: which message first, and how is its effect proved?",
        ));
    };
    if facts::probe(tx, &canary.probe).await?.is_none() {
        return Err(Error::refused("probe_unknown", format!("There is no probe `{}`.", canary.probe)));
    }
    if cohort.draft.expansion.is_none() {
        return Err(Error::refused("expansion_missing", "The plan doesn't say how fast the rest goes."));
    }
    Ok((expires_at.0, run_by.0))
}

fn ensure_found_sound(findings: &Findings, now: OffsetDateTime) -> Result<()> {
    let Err(code) = findings.submittable() else { return Ok(()) };
    let problems: Vec<_> =
        if findings.refusals.is_empty() { findings.unaccepted().collect() } else { findings.refusals.iter().collect() };
    let detail = problems.iter().map(|finding| finding.detail.as_str()).collect::<Vec<_>>().join(" ");
    let detail = if findings.refusals.is_empty() { format!("To be accepted by name: {detail}") } else { detail };
    Err(Error::Refused { code, detail, facts: serde_json::to_value(preflight::shown(findings, now)).ok() })
}

/// Enough people in the installation could approve, or it says who is missing (RULES 4).
async fn ensure_approvable(
    tx: &mut Tx,
    cohort: &Cohort,
    source: &facts::SourceQueue,
    now: OffsetDateTime,
) -> Result<()> {
    let touched = reviews::touched_by(tx, cohort.id).await?;
    let people = review::people(tx, &[]).await?;
    let needed = u32::try_from(source.approval_policy.approvals).unwrap_or(u32::MAX);
    let enough = eligibility::enough_eligible(people.iter().map(review::Candidate::as_person), &touched, needed, now);
    let Err(few) = enough else { return Ok(()) };
    let why: Vec<_> = people
        .iter()
        .filter_map(|person| {
            let code = eligibility::eligible(&person.as_person(), &touched, now).err()?;
            Some(json!({ "user": person.user, "reason": code }))
        })
        .collect();
    let named: Vec<String> = people
        .iter()
        .filter_map(|person| {
            let code = eligibility::eligible(&person.as_person(), &touched, now).err()?;
            Some(format!("{}: {}", person.user.username, code.sentence()))
        })
        .collect();
    let approvers = few.needed - few.eligible;
    let whom = if named.is_empty() { "nobody has the role approver".to_owned() } else { named.join("; ") };
    Err(Error::Refused {
        code: Code::NoEligibleApprover.as_str(),
        detail: format!(
            "{} of {} approvals could be given; {approvers} more eligible approver(s) are missing ({whom}).",
            few.eligible, few.needed
        ),
        facts: Some(json!({ "needed": few.needed, "eligible": few.eligible, "people": why })),
    })
}

/// Takes the claims; one that another submit took a moment ago is refused as the pre-flight would.
async fn ensure_claimed(tx: &mut Tx, id: CohortId) -> Result<()> {
    let conflicts = claims::take(tx, id).await?;
    let Some(first) = conflicts.first() else { return Ok(()) };
    let code = if first.by_job { "duplicate_job" } else { Code::MessageClaimed.as_str() };
    Err(Error::Refused {
        code,
        detail: format!("The cohort \u{201c}{}\u{201d} has claimed {} of these.", first.holder_title, conflicts.len()),
        facts: Some(json!({
            "cohort": { "id": first.holder, "title": first.holder_title },
            "items": conflicts.iter().take(100).map(|conflict| conflict.message).collect::<Vec<_>>(),
        })),
    })
}
