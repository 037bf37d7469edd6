//! The doors of a replay: each a separate, deliberate act that changes the cohort's rows; a worker goes on from there.

use super::{Acted, acted, ensure_legal, ensure_seen, ensure_words, entry, plan, recheck, refusal, step, topology};
use crate::{
    actor::Actor,
    error::{Error, Result},
    store::{
        Tx, audit,
        cohorts::{self, Cohort, Entering, canaries, items, read, write},
    },
};
use domain::{
    api::ReplayAct,
    canary::still_count,
    cohort::{Effect, Facts, Transition},
    ids::{CohortId, QuarantineId},
    refusal::{Check, Code},
    vocabulary::{Action, CohortCommand, CohortState, ItemState, Verdict},
};
use serde_json::json;
use time::{Duration, OffsetDateTime};

/// Does one act of a replay.
///
/// # Errors
/// RULES 3's refusals, a wrong count; the database's.
pub async fn act(
    tx: &mut Tx,
    actor: &Actor,
    id: CohortId,
    command: CohortCommand,
    seen: Option<i64>,
    body: ReplayAct,
    reading: &topology::Reading,
) -> Result<Acted> {
    let cohort = cohorts::load_for_update(tx, id).await?;
    ensure_legal(&cohort, command)?;
    ensure_seen(&cohort, seen)?;
    ensure_words("/reason", &body.reason)?;
    ensure_count(tx, &cohort, command, body.confirm_count).await?;
    if needs_recheck(command) {
        recheck::lock(tx, &cohort).await?;
    }
    let now = cohorts::database_now(tx).await?;
    let facts = facts_of(tx, &cohort, command, reading, now).await?;
    let transition = match step(&cohort, command, &facts) {
        // the replay fences and ends it: the verdict is the person's, from now on
        Err(_) if command == CohortCommand::Fail && !facts.fenced && facts.verdict == Some(Verdict::Inconclusive) => {
            Transition { to: cohort.state, effects: &[] }
        }
        Err(error) => {
            let code = facts.recheck.err().filter(|_| needs_recheck(command));
            return match code {
                Some(code) => Err(recheck::explain(tx, &cohort, code, reading).await?.unwrap_or(error)),
                None => Err(error),
            };
        }
        Ok(transition) => transition,
    };
    carry_out(tx, &cohort, command, transition).await?;
    let by = actor.user()?.id;
    let resumes_to = (transition.to == CohortState::Paused).then_some(cohort.state);
    let entering = Entering { state: transition.to, resumes_to, reason: Some(&body.reason), by: Some(by) };
    cohorts::set_state(tx, id, entering).await?;
    let after = json!({ "state": transition.to, "confirm_count": body.confirm_count, "generation": cohort.generation });
    audit::done(tx, actor, entry(action_of(command), &cohort).after(after).because(body.reason)).await?;
    acted(tx, actor, id, reading).await
}

/// Whether the re-check is asked (RULES 3).
#[must_use]
pub const fn needs_recheck(command: CohortCommand) -> bool {
    matches!(
        command,
        CohortCommand::StartCanary | CohortCommand::CanaryAgain | CohortCommand::Expand | CohortCommand::Resume
    )
}

const fn action_of(command: CohortCommand) -> Action {
    match command {
        CohortCommand::VerifyAgain => Action::CanaryVerifiedAgain,
        CohortCommand::NextCanary => Action::CanaryNext,
        CohortCommand::Fail => Action::CanaryFailedByPerson,
        CohortCommand::CanaryAgain => Action::CanaryAgain,
        CohortCommand::Expand => Action::CohortExpanded,
        CohortCommand::Pause => Action::CohortPaused,
        CohortCommand::Resume => Action::CohortResumed,
        CohortCommand::Abort => Action::CohortAborted,
        _ => Action::CanaryStarted,
    }
}

/// How many messages may move by an act; `None` where none does.
///
/// # Errors
/// The database's.
pub async fn moves(tx: &mut Tx, cohort: &Cohort, command: CohortCommand) -> Result<Option<i64>> {
    Ok(match command {
        CohortCommand::StartCanary | CohortCommand::CanaryAgain => {
            Some(i64::try_from(read::strata(tx, cohort.id).await?.len()).unwrap_or(i64::MAX))
        }
        CohortCommand::NextCanary => Some(1),
        CohortCommand::Resume if cohort.resumes_to != Some(CohortState::Expanding) => Some(1),
        CohortCommand::Expand | CohortCommand::Resume => {
            Some(read::count_items(tx, cohort.id, &read::ItemFilter::in_state(ItemState::Scheduled)).await?)
        }
        _ => None,
    })
}

async fn ensure_count(tx: &mut Tx, cohort: &Cohort, command: CohortCommand, confirmed: Option<i64>) -> Result<()> {
    let Some(count) = moves(tx, cohort, command).await? else { return Ok(()) };
    let right = match confirmed {
        Some(confirmed) => confirmed == count,
        None => count <= 1,
    };
    if right {
        return Ok(());
    }
    Err(Error::Refused {
        code: Code::CountMismatch.as_str(),
        detail: format!("{count} messages may move by this; confirm_count must say so."),
        facts: Some(json!({ "count": count })),
    })
}

/// The facts of the table's column "needs", for one command, read now.
///
/// # Errors
/// The database's.
pub async fn facts_of(
    tx: &mut Tx,
    cohort: &Cohort,
    command: CohortCommand,
    reading: &topology::Reading,
    now: OffsetDateTime,
) -> Result<Facts> {
    let mut known = Facts { guards: Ok(()), resumes_to: cohort.resumes_to, cause_gone: true, ..Facts::UNKNOWN };
    if needs_recheck(command) {
        known.recheck = recheck::judge(tx, cohort, command, reading, now).await?;
        known.canary_valid = is_canary_valid(tx, cohort, now).await?;
        known.canary_left_in_each = is_canary_left_in_each(tx, cohort).await?;
        return Ok(known);
    }
    if matches!(command, CohortCommand::VerifyAgain | CohortCommand::NextCanary | CohortCommand::Fail) {
        let latest = canaries::latest_verdict(tx, cohort.id, cohort.stratum).await?;
        known.verdict = latest.and_then(|(_, verdict)| verdict).and_then(|verdict| verdict.parse().ok());
        known.extended = cohort.verify_extended;
        known.next_canary = next_canary(tx, cohort).await?;
        known.fenced = cohorts::is_fenced(tx, cohort.id).await?;
    }
    Ok(known)
}

/// Whether the canaries' passes still count, each stratum's; without one they don't.
async fn is_canary_valid(tx: &mut Tx, cohort: &Cohort, now: OffsetDateTime) -> Result<bool> {
    let Some(canary) = &cohort.draft.canary else { return Ok(false) };
    let passes = canaries::passes(tx, cohort.id, now).await?;
    let consuming = canaries::consuming_versions(tx, cohort.queue_id).await?;
    Ok(still_count(&passes, Duration::seconds(canary.valid_s), &consuming))
}

fn planned_canaries(cohort: &Cohort) -> &[QuarantineId] {
    cohort.draft.canary.as_ref().map_or(&[], |canary| &canary.items)
}

async fn next_canary(tx: &mut Tx, cohort: &Cohort) -> Result<Check> {
    let allowed = cohort.draft.canary.as_ref().map_or(0, |canary| canary.max_canaries);
    if canaries::run_in(tx, cohort.id, cohort.stratum).await? >= allowed {
        return Ok(Err(Code::MaxCanariesReached));
    }
    let next = canaries::next_item(tx, cohort.id, cohort.stratum, planned_canaries(cohort)).await?;
    Ok(next.map(|_| ()).ok_or(Code::NoCanaryLeft))
}

async fn is_canary_left_in_each(tx: &mut Tx, cohort: &Cohort) -> Result<bool> {
    for stratum in read::strata(tx, cohort.id).await? {
        if canaries::next_item(tx, cohort.id, stratum.index, planned_canaries(cohort)).await?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What belongs to the act, beside the state.
async fn carry_out(tx: &mut Tx, cohort: &Cohort, command: CohortCommand, transition: Transition) -> Result<()> {
    if command == CohortCommand::Fail && transition.effects.is_empty() {
        let latest = canaries::latest_verdict(tx, cohort.id, cohort.stratum).await?;
        let (item, _) = latest.ok_or_else(|| refusal(cohort, command, Code::NotInconclusive))?;
        return canaries::call_failed(tx, item).await;
    }
    if command == CohortCommand::Expand {
        write::mark_sample(tx, cohort.id, &plan::sample(cohort)).await?;
    }
    for effect in transition.effects {
        match effect {
            Effect::ConsumeApproval => write::consume_approval(tx, cohort.id).await?,
            Effect::Schedule => {
                let cause = items::Step::new("person", "its cohort was started");
                items::move_all(tx, cohort.id, &[ItemState::Held], ItemState::Scheduled, cause).await?;
                begin_canary(tx, cohort, 0).await?;
            }
            Effect::RestartCanaries => begin_canary(tx, cohort, 0).await?,
            Effect::NextCanaryItem => begin_canary(tx, cohort, cohort.stratum).await?,
            Effect::ExtendCanary => {
                let latest = canaries::latest_verdict(tx, cohort.id, cohort.stratum).await?;
                let wait_s = cohort.draft.canary.as_ref().map_or(1, |canary| canary.wait_s);
                if let Some((item, _)) = latest {
                    canaries::extend(tx, cohort.id, item, wait_s).await?;
                }
            }
            Effect::Probation => write::set_probation(tx, cohort.id).await?,
            Effect::Sweep => {
                let ends = items::Step::new("rule", "its cohort ended");
                items::move_all(tx, cohort.id, &[ItemState::Publishing], ItemState::InDoubt, ends).await?;
                items::move_all(tx, cohort.id, &[ItemState::Scheduled], ItemState::Held, ends).await?;
            }
            // states, claims and where to resume are `set_state`'s; the rest belongs to review or to the replay
            _ => {}
        }
    }
    Ok(())
}

async fn begin_canary(tx: &mut Tx, cohort: &Cohort, stratum: i64) -> Result<()> {
    let item = canaries::next_item(tx, cohort.id, stratum, planned_canaries(cohort)).await?;
    let item = item.ok_or_else(|| super::said(Code::NoCanaryLeft))?;
    canaries::begin(tx, cohort.id, stratum, item).await
}
