use std::collections::{HashMap, HashSet, VecDeque};

use super::*;
use CohortState::*;

/// Everything is so that the table can say yes.
const GOOD: Facts = Facts {
    version_matches: true,
    by_author: true,
    by_approver_of_this: true,
    submittable: Ok(()),
    approvable: Ok(()),
    policy_met: true,
    recheck: Ok(()),
    guards: Ok(()),
    verdict: Some(Verdict::Inconclusive),
    extended: false,
    strata_left: false,
    next_canary: Ok(()),
    canary_valid: true,
    canary_left_in_each: true,
    resumes_to: Some(Expanding),
    cause_gone: true,
    fenced: true,
    handed_over: true,
    settled: true,
};
const STALE_CANARY: Facts = Facts { canary_valid: false, ..GOOD };

fn command(command: CohortCommand) -> Trigger {
    Trigger::Command(command)
}

fn triggers() -> Vec<Trigger> {
    let mut all: Vec<_> = CohortCommand::ALL.iter().map(|c| command(*c)).collect();
    all.extend(Verdict::ALL.iter().map(|v| Trigger::Judged(*v)));
    all.extend([
        Trigger::StartTimePassed,
        Trigger::RunByPassed,
        Trigger::CanaryAnswered,
        Trigger::Halted,
        Trigger::Frozen,
        Trigger::HandedOver,
        Trigger::Settled,
        Trigger::Fenced,
    ]);
    all
}

/// The table of RULES 3, read off once more: every (state, trigger) that isn't here is illegal.
#[test]
fn the_table_is_that_of_the_rules() {
    use CohortCommand as Do;
    use Trigger::*;
    let mut rows: HashMap<(CohortState, Trigger), CohortState> = HashMap::new();
    let mut row = |from: &[CohortState], trigger: Trigger, to: CohortState| {
        for state in from {
            assert!(rows.insert((*state, trigger), to).is_none());
        }
    };
    row(&[Draft], command(Do::Edit), Draft);
    row(&[Draft], command(Do::Discard), Withdrawn);
    row(&[Draft], command(Do::Submit), InReview);
    row(&[InReview], command(Do::Approve), Approved);
    row(&[InReview], command(Do::RequestChanges), Draft);
    row(&[InReview], command(Do::Reject), Rejected);
    row(&[InReview, Approved], command(Do::Withdraw), Withdrawn);
    row(&[InReview, Approved], StartTimePassed, Expired);
    row(&[Approved], command(Do::Revoke), InReview);
    row(&[Approved], command(Do::StartCanary), CanaryRunning);
    row(&[CanaryRunning], CanaryAnswered, CanaryVerifying);
    row(&[CanaryVerifying], Judged(Verdict::Pass), CanaryPassed);
    row(&[CanaryVerifying], Judged(Verdict::Fail), CanaryFailed);
    row(&[CanaryVerifying], Judged(Verdict::Inconclusive), CanaryVerifying);
    row(&[CanaryVerifying], command(Do::VerifyAgain), CanaryVerifying);
    row(&[CanaryVerifying], command(Do::NextCanary), CanaryRunning);
    row(&[CanaryVerifying], command(Do::Fail), CanaryFailed);
    row(&[CanaryPassed], command(Do::Expand), Expanding);
    row(&[CanaryPassed, Paused], command(Do::CanaryAgain), CanaryRunning);
    row(&[Expanding], Halted, Paused);
    row(&[CanaryRunning, CanaryVerifying, Expanding], command(Do::Pause), Paused);
    row(&[CanaryRunning, CanaryVerifying, Expanding], Frozen, Paused);
    row(&[Paused], command(Do::Resume), Expanding);
    row(&[CanaryRunning, CanaryVerifying, CanaryPassed, Expanding, Paused], command(Do::Abort), Aborting);
    row(&[CanaryRunning, CanaryVerifying, CanaryPassed, Expanding, Paused], RunByPassed, Aborting);
    row(&[Aborting], Fenced, Aborted);
    row(&[Settling], command(Do::Abort), Aborted);
    row(&[Expanding], HandedOver, Completed);
    row(&[Expanding, Settling], Settled, Completed);

    for state in CohortState::ALL {
        for trigger in triggers() {
            let facts = if trigger == command(Do::CanaryAgain) { &STALE_CANARY } else { &GOOD };
            let got = next(*state, trigger, facts).map(|t| t.to);
            match rows.get(&(*state, trigger)) {
                Some(to) => assert_eq!(got, Ok(*to), "{state} {trigger:?}"),
                None => assert_eq!(got.unwrap_err().code, Code::IllegalTransition, "{state} {trigger:?}"),
            }
        }
    }
}

#[test]
fn each_need_refuses_by_its_code() {
    use CohortCommand as Do;
    let frozen = Err(Code::Frozen);
    let pass = Trigger::Judged(Verdict::Pass);
    let fail = Trigger::Judged(Verdict::Fail);
    let cases = [
        (Draft, command(Do::Edit), Facts { version_matches: false, ..GOOD }, Code::StaleVersion),
        (Draft, command(Do::Discard), Facts { by_author: false, ..GOOD }, Code::NotTheAuthor),
        (Draft, command(Do::Submit), Facts { submittable: Err(Code::EmptyCohort), ..GOOD }, Code::EmptyCohort),
        (InReview, command(Do::Approve), Facts { approvable: Err(Code::SelfApproval), ..GOOD }, Code::SelfApproval),
        (Approved, command(Do::Withdraw), Facts { by_author: false, ..GOOD }, Code::NotTheAuthor),
        (Approved, command(Do::Revoke), Facts { by_approver_of_this: false, ..GOOD }, Code::NotAnApproverOfThis),
        (Approved, command(Do::StartCanary), Facts { recheck: frozen, ..GOOD }, Code::Frozen),
        (CanaryVerifying, fail, Facts { fenced: false, ..GOOD }, Code::NotFenced),
        (CanaryVerifying, command(Do::VerifyAgain), Facts { verdict: None, ..GOOD }, Code::NotInconclusive),
        (CanaryVerifying, command(Do::VerifyAgain), Facts { extended: true, ..GOOD }, Code::AlreadyExtended),
        (
            CanaryVerifying,
            command(Do::NextCanary),
            Facts { verdict: Some(Verdict::Fail), ..GOOD },
            Code::NotInconclusive,
        ),
        (
            CanaryVerifying,
            command(Do::NextCanary),
            Facts { next_canary: Err(Code::MaxCanariesReached), ..GOOD },
            Code::MaxCanariesReached,
        ),
        (CanaryVerifying, command(Do::Fail), Facts { fenced: false, ..GOOD }, Code::NotFenced),
        (CanaryPassed, command(Do::CanaryAgain), GOOD, Code::CanaryStillValid),
        (Paused, command(Do::CanaryAgain), Facts { canary_left_in_each: false, ..STALE_CANARY }, Code::NoCanaryLeft),
        (Paused, command(Do::CanaryAgain), Facts { recheck: frozen, ..STALE_CANARY }, Code::Frozen),
        (CanaryPassed, command(Do::Expand), Facts { recheck: frozen, ..GOOD }, Code::Frozen),
        (CanaryPassed, command(Do::Expand), STALE_CANARY, Code::CanaryTooOld),
        (CanaryPassed, command(Do::Expand), Facts { guards: Err(Code::GuardNotGreen), ..GOOD }, Code::GuardNotGreen),
        (Paused, command(Do::Resume), Facts { cause_gone: false, ..GOOD }, Code::CausePersists),
        (Paused, command(Do::Resume), Facts { recheck: frozen, ..GOOD }, Code::Frozen),
        (Paused, command(Do::Resume), STALE_CANARY, Code::CanaryTooOld),
        (Paused, command(Do::Resume), Facts { resumes_to: None, ..GOOD }, Code::UnknownFact),
        (Paused, command(Do::Resume), Facts { resumes_to: Some(Completed), ..GOOD }, Code::UnknownFact),
        (Expanding, Trigger::HandedOver, Facts { handed_over: false, ..GOOD }, Code::NotHandedOver),
        (Expanding, Trigger::HandedOver, Facts { fenced: false, ..GOOD }, Code::NotFenced),
        (Settling, Trigger::Settled, Facts { settled: false, ..GOOD }, Code::NotSettled),
        (Settling, Trigger::Settled, Facts { fenced: false, ..GOOD }, Code::NotFenced),
        (Aborting, Trigger::Fenced, Facts { fenced: false, ..GOOD }, Code::NotFenced),
        (Approved, pass, GOOD, Code::IllegalTransition),
    ];
    for (state, trigger, facts, code) in cases {
        assert_eq!(next(state, trigger, &facts).unwrap_err().code, code, "{state} {trigger:?}");
    }
}

#[test]
fn facts_choose_where_it_goes() {
    use CohortCommand as Do;
    let to = |state, trigger, facts| next(state, trigger, &facts).unwrap().to;
    let approve = command(Do::Approve);
    assert_eq!(to(InReview, approve, Facts { policy_met: false, ..GOOD }), InReview);
    let pass = Trigger::Judged(Verdict::Pass);
    assert_eq!(to(CanaryVerifying, pass, Facts { strata_left: true, ..GOOD }), CanaryRunning);
    assert_eq!(to(Expanding, Trigger::HandedOver, Facts { settled: false, ..GOOD }), Settling);
    for paused in [CanaryRunning, CanaryVerifying, Expanding] {
        assert_eq!(to(Paused, command(Do::Resume), Facts { resumes_to: Some(paused), ..GOOD }), paused);
    }
}

#[test]
fn nothing_known_moves_nothing_towards_the_broker() {
    for state in CohortState::ALL {
        for trigger in triggers() {
            if let Ok(transition) = next(*state, trigger, &Facts::UNKNOWN) {
                // a canary that passed goes on to the next stratum, which its start covers
                let next_stratum = transition.effects == [Effect::NextStratum];
                assert!(!hands_over(transition.to) || hands_over(*state) || next_stratum, "{state} {trigger:?}");
            }
        }
    }
}

#[test]
fn refusals_name_the_legal_commands() {
    use CohortCommand as Do;
    let refusal = next(Draft, command(Do::Approve), &GOOD).unwrap_err();
    assert_eq!(refusal, Refusal { code: Code::IllegalTransition, legal: vec![Do::Edit, Do::Discard, Do::Submit] });
    assert_eq!(legal(Paused), [Do::CanaryAgain, Do::Resume, Do::Abort]);
    assert_eq!(legal(Aborting), []);
}

#[test]
fn terminal_states_are_left_by_nothing_and_hold_no_claim() {
    for state in CohortState::ALL.iter().filter(|s| s.is_terminal()) {
        assert_eq!(legal(*state), []);
        for trigger in triggers() {
            assert!(next(*state, trigger, &GOOD).is_err());
        }
    }
    for state in CohortState::ALL {
        for trigger in triggers() {
            for facts in [&GOOD, &STALE_CANARY] {
                let Ok(transition) = next(*state, trigger, facts) else { continue };
                let gives_up = transition.effects.contains(&Effect::ReleaseClaims);
                let had_claims = *state != Draft;
                assert_eq!(
                    gives_up,
                    had_claims && (transition.to.is_terminal() || transition.to == Draft),
                    "{state} {trigger:?}"
                );
            }
        }
    }
}

#[test]
fn every_state_can_reach_an_end() {
    for state in CohortState::ALL {
        let mut seen = HashSet::from([*state]);
        let mut queue = VecDeque::from([*state]);
        let mut ends = false;
        while let Some(at) = queue.pop_front() {
            ends |= at.is_terminal();
            for trigger in triggers() {
                for facts in [&GOOD, &STALE_CANARY, &Facts { settled: false, ..GOOD }] {
                    if let Ok(t) = next(at, trigger, facts)
                        && seen.insert(t.to)
                    {
                        queue.push_back(t.to);
                    }
                }
            }
        }
        assert!(ends, "{state}");
    }
}

#[test]
fn after_a_start_every_end_is_fenced() {
    for state in CohortState::ALL.iter().filter(|s| s.holds_lane() || **s == Settling) {
        for trigger in triggers() {
            // settling was entered fenced and publishes nothing
            if (*state, trigger) == (Settling, command(CohortCommand::Abort)) {
                continue;
            }
            let unfenced = next(*state, trigger, &Facts { fenced: false, ..GOOD });
            assert!(unfenced.is_err() || !unfenced.unwrap().to.is_terminal(), "{state} {trigger:?}");
        }
    }
}

#[test]
fn there_is_no_way_from_inconclusive_to_passed_but_a_verdict() {
    let facts = Facts { strata_left: false, ..GOOD };
    for trigger in triggers() {
        if trigger != Trigger::Judged(Verdict::Pass) {
            assert!(next(CanaryVerifying, trigger, &facts).map_or(true, |t| t.to != CanaryPassed), "{trigger:?}");
        }
    }
}
