//! The one re-check (RULES 3): what must hold now for start, canary again, expand and resume. The one choke point.

use super::{
    plan, preflight, review,
    topology::{self, Reading},
};
use crate::{
    error::Result,
    store::{
        Tx,
        cohorts::{self, Cohort, facts, lane::Lane, reviews},
        freezes,
    },
};
use domain::{
    lease, preflight as rules,
    recheck::{self, StartFacts},
    refusal::{Check, Code},
    vocabulary::CohortCommand,
};
use time::OffsetDateTime;

/// Locks what the re-check reads, for share, until the transaction ends: a change elsewhere waits, or was before.
///
/// # Errors
/// The database's.
pub async fn lock(tx: &mut Tx, cohort: &Cohort) -> Result<()> {
    let probe = cohort.draft.canary.as_ref().map(|canary| canary.probe.as_str());
    facts::lock_for_share(tx, cohort.queue_id, probe).await?;
    let switches = covering_freezes(tx, cohort).await?;
    freezes::lock_for_share(tx, &switches).await?;
    let approvals = reviews::approvals_for_share(tx, cohort.id, cohort.revision).await?;
    let people: Vec<_> = approvals.iter().map(|(user, _)| *user).collect();
    reviews::lock_people_for_share(tx, &people).await
}

/// Judges the re-check for a command, by what is there now.
///
/// # Errors
/// The database's.
pub async fn judge(
    tx: &mut Tx,
    cohort: &Cohort,
    command: CohortCommand,
    reading: &topology::Reading,
    now: OffsetDateTime,
) -> Result<Check> {
    let source = facts::source_queue(tx, cohort.queue_id).await?;
    let made = plan::now(tx, cohort).await?;
    let approved = cohorts::write::saved_plan(tx, cohort.id, cohort.revision).await?;
    let approvals = review::valid_approvals(tx, cohort, &made.digest.0, now).await?;
    let holder = match cohort.lane.as_deref() {
        Some(lane) => cohorts::lane_holder(tx, cohort.id, lane).await?,
        None => None,
    };
    let start = (command == CohortCommand::StartCanary).then(|| StartFacts {
        before_expiry: cohort.expires_at.is_some_and(|expires_at| now < expires_at),
        consumed: cohort.approval_consumed_at.is_some(),
    });
    Ok(recheck::recheck(&recheck::Facts {
        start,
        digest_matches: approved.is_some_and(|(_, digest)| digest == made.digest.0),
        approvals: u32::try_from(approvals.len()).unwrap_or(u32::MAX),
        approvals_needed: u32::try_from(source.approval_policy.approvals).unwrap_or(u32::MAX),
        permanent_without_fix: preflight::permanent_without_fix(tx, cohort, &source).await?,
        frozen: covering_freezes(tx, cohort).await?.iter().any(|switch| switch.on.is_some()),
        target: target_now(cohort, &source, reading),
        lane: match holder {
            Some((holder, ..)) => lease::lane(Some(holder), cohort.id),
            None => lease::lane(None, cohort.id),
        },
    }))
}

async fn covering_freezes(tx: &mut Tx, cohort: &Cohort) -> Result<Vec<freezes::Covering>> {
    let lane = cohort.lane.as_deref().map(str::parse::<Lane>).transpose()?;
    freezes::covering(tx, cohort.queue_id, lane.as_ref()).await
}

/// The target as it is now: reachable, there, and with no receiver or trait that the plan didn't accept by name.
fn target_now(cohort: &Cohort, source: &facts::SourceQueue, reading: &topology::Reading) -> Check {
    let topology = match reading {
        Reading::Read(topology) => topology,
        Reading::Unreachable(_) => return Err(Code::NoManagementApi),
        Reading::NotAsked => return Err(Code::UnknownFact),
    };
    let (exchange, key) = cohort.target.as_ref().ok_or(Code::UnknownFact)?;
    let found = rules::judge_target_now(&cohort.draft, &topology.facts(exchange, key, &source.name));
    found.submittable().map_err(|_| Code::TargetChanged)
}

/// A refusal of the re-check with what a person needs to know: who has the lane, who froze, why the broker is silent.
///
/// # Errors
/// The database's.
pub async fn explain(
    tx: &mut Tx,
    cohort: &Cohort,
    code: Code,
    reading: &topology::Reading,
) -> Result<Option<crate::error::Error>> {
    Ok(match code {
        Code::LaneTaken => cohorts::lane_holder(tx, cohort.id, cohort.lane.as_deref().unwrap_or_default())
            .await?
            .map(|(id, title, state)| cohorts::held_by(id, &title, state)),
        Code::Frozen => covering_freezes(tx, cohort).await?.into_iter().find_map(|switch| {
            let on = switch.on?;
            let what = if switch.scope == freezes::ALL {
                "Every replay is"
            } else if switch.scope == cohort.queue_id.0 {
                "Replay of this queue is"
            } else {
                "Replay into the target queue is"
            };
            Some(crate::error::Error::refused(code.as_str(), format!("{what} frozen by {}: {}", on.by, on.reason)))
        }),
        Code::NoManagementApi => reading.topology().err(),
        _ => None,
    })
}
