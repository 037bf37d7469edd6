//! The cohort's state machine (RULES 3): one `match`, which can be read against the table there.
//!
//! Facts are handed in. Checks that have rules of their own come in as their outcome ([`Check`]): the pre-flight
//! ([`crate::preflight`]), four eyes ([`crate::eligibility`]) and the re-check ([`crate::recheck`]).

use crate::refusal::{Check, Code};
use crate::vocabulary::{CohortCommand, CohortState, Verdict};

/// What moves a cohort: a person's command, or something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// A person commands.
    Command(CohortCommand),
    /// `expires_at` passed, by the database's clock.
    StartTimePassed,
    /// `run_by` passed, by the database's clock.
    RunByPassed,
    /// The canary's item was confirmed, or settled otherwise.
    CanaryAnswered,
    /// A verdict on the running stratum's canary.
    Judged(Verdict),
    /// A guard was red twice, or the broker blocked past its limit.
    Halted,
    /// Replay of this queue, or all, was frozen.
    Frozen,
    /// Nothing is left to hand over or to answer.
    HandedOver,
    /// The last open item was settled.
    Settled,
    /// Every epoch stopped, or its connection is seen gone.
    Fenced,
}

/// What the table's column "needs" asks. [`Facts::UNKNOWN`] refuses whatever it can; fill in what is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The `If-Match` version is the version now.
    pub version_matches: bool,
    /// The actor created the cohort.
    pub by_author: bool,
    /// The actor's approval of this revision counts.
    pub by_approver_of_this: bool,
    /// The pre-flight ([`crate::preflight`]) refuses nothing, and both claims are taken.
    pub submittable: Check,
    /// [`crate::eligibility::may_approve`] and the digest seen is the digest now.
    pub approvable: Check,
    /// With this approval, the queue's policy is met.
    pub policy_met: bool,
    /// [`crate::recheck::recheck`].
    pub recheck: Check,
    /// The guards allow an expansion (`Ok` while there are none).
    pub guards: Check,
    /// The verdict on the running stratum's canary.
    pub verdict: Option<Verdict>,
    /// The running stratum's canary was extended before.
    pub extended: bool,
    /// More strata follow the running one.
    pub strata_left: bool,
    /// Another approved item for the running stratum, within `max_canaries`.
    pub next_canary: Check,
    /// The canary is younger than `valid_s`, by the worker versions that consume now, with probe and policy unchanged.
    pub canary_valid: bool,
    /// Each stratum has an approved item left for a canary.
    pub canary_left_in_each: bool,
    /// Where a paused cohort resumes.
    pub resumes_to: Option<CohortState>,
    /// What paused it is gone.
    pub cause_gone: bool,
    /// Every epoch stopped, or its connection is seen gone.
    pub fenced: bool,
    /// Nothing is scheduled or publishing.
    pub handed_over: bool,
    /// No item is open.
    pub settled: bool,
}

impl Facts {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        version_matches: false,
        by_author: false,
        by_approver_of_this: false,
        submittable: Err(Code::UnknownFact),
        approvable: Err(Code::UnknownFact),
        policy_met: false,
        recheck: Err(Code::UnknownFact),
        guards: Err(Code::UnknownFact),
        verdict: None,
        extended: true,
        strata_left: true,
        next_canary: Err(Code::UnknownFact),
        canary_valid: false,
        canary_left_in_each: false,
        resumes_to: None,
        cause_gone: false,
        fenced: false,
        handed_over: false,
        settled: false,
    };
}

/// A transition that the table allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The next state; may be the same.
    pub to: CohortState,
    /// What belongs to it, to be done in the same transaction.
    pub effects: &'static [Effect],
}

/// What a transition does besides changing the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// `revision` rises; approvals of earlier ones are void.
    NewRevision,
    /// Each message and each job is claimed.
    Claim,
    /// All claims are given up.
    ReleaseClaims,
    /// The redrive generation is allocated and written to both queues' counters.
    AllocateGeneration,
    /// The revoked approval and the generation's use are void; the generation itself stays spent.
    VoidApproval,
    /// The approval is spent: no second start by it.
    ConsumeApproval,
    /// Held items become scheduled.
    Schedule,
    /// The next stratum's canary is the one to run.
    NextStratum,
    /// The canary's deadline is extended, once.
    ExtendCanary,
    /// The next approved item of the stratum is its canary now.
    NextCanaryItem,
    /// The next approved item of every stratum is its canary now, from the first stratum on.
    RestartCanaries,
    /// Where to resume is remembered.
    RememberWhere,
    /// Windows of guards that our own traffic feeds start again, and one probation item goes first.
    Probation,
    /// Scheduled items become held, publishing ones in doubt.
    Sweep,
}

/// A command or an event that the table refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub code: Code,
    /// The commands that the state has, whatever else they need.
    pub legal: Vec<CohortCommand>,
}

/// The next state, or why not.
pub fn next(state: CohortState, trigger: Trigger, facts: &Facts) -> Result<Transition, Refusal> {
    transition(state, trigger, facts).map_err(|code| Refusal { code, legal: legal(state) })
}

/// The commands that a state has, whatever else they need.
pub fn legal(state: CohortState) -> Vec<CohortCommand> {
    let has = |command: &CohortCommand| {
        transition(state, Trigger::Command(*command), &Facts::UNKNOWN) != Err(Code::IllegalTransition)
    };
    CohortCommand::ALL.iter().copied().filter(has).collect()
}

/// RULES 3, row by row.
fn transition(state: CohortState, trigger: Trigger, facts: &Facts) -> Result<Transition, Code> {
    use CohortCommand as Do;
    use CohortState::*;
    use Trigger::*;

    match (state, trigger) {
        // draft
        (Draft, Command(Do::Edit)) => {
            need(facts.version_matches, Code::StaleVersion)?;
            go(Draft, &[Effect::NewRevision])
        }
        (Draft, Command(Do::Discard)) => {
            need(facts.by_author, Code::NotTheAuthor)?;
            go(Withdrawn, &[])
        }
        (Draft, Command(Do::Submit)) => {
            facts.submittable?;
            go(InReview, &[Effect::Claim])
        }

        // review
        (InReview, Command(Do::Approve)) => {
            facts.approvable?;
            if facts.policy_met { go(Approved, &[Effect::AllocateGeneration]) } else { go(InReview, &[]) }
        }
        (InReview, Command(Do::RequestChanges)) => go(Draft, &[Effect::NewRevision, Effect::ReleaseClaims]),
        (InReview, Command(Do::Reject)) => go(Rejected, &[Effect::ReleaseClaims]),
        (InReview | Approved, Command(Do::Withdraw)) => {
            need(facts.by_author, Code::NotTheAuthor)?;
            go(Withdrawn, &[Effect::ReleaseClaims])
        }
        (InReview | Approved, StartTimePassed) => go(Expired, &[Effect::ReleaseClaims]),
        (Approved, Command(Do::Revoke)) => {
            need(facts.by_approver_of_this, Code::NotAnApproverOfThis)?;
            go(InReview, &[Effect::VoidApproval])
        }

        // canary
        (Approved, Command(Do::StartCanary)) => {
            facts.recheck?;
            go(CanaryRunning, &[Effect::ConsumeApproval, Effect::Schedule])
        }
        (CanaryRunning, CanaryAnswered) => go(CanaryVerifying, &[]),
        (CanaryVerifying, Judged(Verdict::Pass)) if facts.strata_left => go(CanaryRunning, &[Effect::NextStratum]),
        (CanaryVerifying, Judged(Verdict::Pass)) => go(CanaryPassed, &[]),
        (CanaryVerifying, Judged(Verdict::Fail)) => {
            need(facts.fenced, Code::NotFenced)?;
            go(CanaryFailed, &[Effect::Sweep, Effect::ReleaseClaims])
        }
        (CanaryVerifying, Judged(Verdict::Inconclusive)) => go(CanaryVerifying, &[]),
        (CanaryVerifying, Command(Do::VerifyAgain)) => {
            need(facts.verdict == Some(Verdict::Inconclusive), Code::NotInconclusive)?;
            need(!facts.extended, Code::AlreadyExtended)?;
            go(CanaryVerifying, &[Effect::ExtendCanary])
        }
        (CanaryVerifying, Command(Do::NextCanary)) => {
            need(facts.verdict == Some(Verdict::Inconclusive), Code::NotInconclusive)?;
            facts.next_canary?;
            go(CanaryRunning, &[Effect::NextCanaryItem])
        }
        (CanaryVerifying, Command(Do::Fail)) => {
            need(facts.verdict == Some(Verdict::Inconclusive), Code::NotInconclusive)?;
            need(facts.fenced, Code::NotFenced)?;
            go(CanaryFailed, &[Effect::Sweep, Effect::ReleaseClaims])
        }
        (CanaryPassed | Paused, Command(Do::CanaryAgain)) => {
            need(!facts.canary_valid, Code::CanaryStillValid)?;
            need(facts.canary_left_in_each, Code::NoCanaryLeft)?;
            facts.recheck?;
            go(CanaryRunning, &[Effect::RestartCanaries])
        }

        // expansion
        (CanaryPassed, Command(Do::Expand)) => {
            facts.recheck?;
            need(facts.canary_valid, Code::CanaryTooOld)?;
            facts.guards?;
            go(Expanding, &[])
        }
        (Expanding, Halted) => go(Paused, &[Effect::RememberWhere]),
        (CanaryRunning | CanaryVerifying | Expanding, Frozen | Command(Do::Pause)) => {
            go(Paused, &[Effect::RememberWhere])
        }
        (Paused, Command(Do::Resume)) => {
            let to = facts.resumes_to.ok_or(Code::UnknownFact)?;
            need(facts.cause_gone, Code::CausePersists)?;
            facts.recheck?;
            match to {
                Expanding => need(facts.canary_valid, Code::CanaryTooOld)?,
                CanaryRunning | CanaryVerifying => {}
                _ => return Err(Code::UnknownFact),
            }
            go(to, &[Effect::Probation])
        }
        (Expanding, HandedOver | Settled) => {
            need(facts.handed_over, Code::NotHandedOver)?;
            need(facts.fenced, Code::NotFenced)?;
            if facts.settled { go(Completed, &[Effect::ReleaseClaims]) } else { go(Settling, &[]) }
        }
        (Settling, Settled) => {
            need(facts.settled, Code::NotSettled)?;
            need(facts.fenced, Code::NotFenced)?;
            go(Completed, &[Effect::ReleaseClaims])
        }

        // abort
        (CanaryRunning | CanaryVerifying | CanaryPassed | Expanding | Paused, Command(Do::Abort) | RunByPassed) => {
            go(Aborting, &[])
        }
        (Aborting, Fenced) => {
            need(facts.fenced, Code::NotFenced)?;
            go(Aborted, &[Effect::Sweep, Effect::ReleaseClaims])
        }
        // It was fenced on the way into settling, and nothing publishes there.
        (Settling, Command(Do::Abort)) => go(Aborted, &[Effect::ReleaseClaims]),

        _ => Err(Code::IllegalTransition),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "each row of the table ends in it")]
const fn go(to: CohortState, effects: &'static [Effect]) -> Result<Transition, Code> {
    Ok(Transition { to, effects })
}

fn need(fact: bool, code: Code) -> Check {
    if fact { Ok(()) } else { Err(code) }
}

/// Whether the state lets an item be handed over. A canary stage hands over the running stratum's canary only; see
/// [`crate::item::may_hand_over`].
pub const fn hands_over(state: CohortState) -> bool {
    matches!(state, CohortState::CanaryRunning | CohortState::Expanding)
}

#[cfg(test)]
mod tests;
