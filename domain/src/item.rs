//! The item's state machine (RULES 5): one `match`, which can be read against the table there.

use crate::refusal::{Check, Code};
use crate::vocabulary::{CohortState, ItemState, QuarantineState};

/// At most so many items of a cohort are `publishing` at once.
pub const MAX_UNANSWERED: u32 = 64;

/// What happens to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// Its cohort starts.
    Scheduled,
    /// It is about to be handed over; the check is [`may_hand_over`], made in the statement that writes.
    HandOver(Check),
    /// The pre-flight at the last moment says no.
    Refused,
    /// The broker's answer to the publish.
    Answer(Answer),
    /// No answer is to be had: time-out, lost channel, process, lease or connection.
    Lost,
    /// Something carries its redrive id.
    Evidence(Evidence),
    /// The plan's verification sample leaves it out.
    NotSampled,
    /// The probe at its deadline, or before it when the effect is proved.
    Probed {
        /// The effect is as expected.
        proved: bool,
    },
    /// People's word, with a reason: it arrived.
    ResolveArrived,
    /// People's word, with a reason: it was not published.
    ResolveNotPublished {
        /// A second, eligible person confirmed it.
        second_person: bool,
        /// The item's epoch is fenced.
        fenced: bool,
    },
    /// Its cohort ended, or a takeover sweeps the old epoch.
    Sweep,
}

/// The broker's answer to a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Confirmed, nothing returned.
    Confirmed,
    /// Returned as unroutable. The confirm that follows proves nothing.
    Returned,
    /// Refused.
    Nacked {
        /// One queue was the target, and its overflow isn't `reject-publish-dlx`: refused means not stored.
        not_stored: bool,
    },
}

/// What carries an item's redrive id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// A worker event: the message was delivered.
    Event,
    /// A row of the probe: the effect is there.
    ProbeRow,
    /// A new dead letter: the message was delivered and died again.
    DeadLetter,
    /// A confirm that came after the item was given up.
    LateConfirm,
    /// A return that came after the item was given up. It proves nothing about another delivery of that id.
    LateReturn,
}

/// What a trigger does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The item moves.
    To(ItemState),
    /// The evidence is kept; the item stays.
    Recorded,
    /// The evidence is kept and contradicts what was said of the item: `published_twice` on cohort, Watch and log; the
    /// message is ineligible at once, and its scheduled item elsewhere is refused.
    Contradiction,
}

/// What a trigger does to an item, or why it can't.
pub fn next(state: ItemState, trigger: Trigger) -> Result<Step, Code> {
    use ItemState::*;
    use Trigger::{HandOver, Lost, NotSampled, Probed, ResolveArrived, ResolveNotPublished, Sweep};

    Ok(Step::To(match (state, trigger) {
        (Held, Trigger::Scheduled) => ItemState::Scheduled,
        (ItemState::Scheduled, HandOver(check)) => check.map(|()| Publishing)?,
        (ItemState::Scheduled, Trigger::Refused) => ItemState::Refused,
        (ItemState::Scheduled, Sweep) => Held,

        (Publishing, Trigger::Answer(Answer::Confirmed)) => Confirmed,
        (Publishing, Trigger::Answer(Answer::Returned)) => Returned,
        (Publishing, Trigger::Answer(Answer::Nacked { not_stored: true })) => Nacked,
        (Publishing, Trigger::Answer(Answer::Nacked { not_stored: false })) => InDoubt,
        (Publishing, Lost | Sweep) => InDoubt,

        (InDoubt, Trigger::Evidence(Evidence::Event | Evidence::ProbeRow | Evidence::LateConfirm)) => Confirmed,
        (InDoubt, ResolveArrived) => ResolvedArrived,
        (InDoubt, ResolveNotPublished { second_person: false, .. }) => return Err(Code::SecondPersonNeeded),
        (InDoubt, ResolveNotPublished { fenced: false, .. }) => return Err(Code::NotFenced),
        (InDoubt, ResolveNotPublished { .. }) => ResolvedNotPublished,

        (Confirmed, NotSampled) => Unverified,
        (Confirmed, Probed { proved: true }) => Verified,
        (Confirmed, Probed { proved: false }) => VerificationFailed,

        // A dead letter with its redrive id is the head of the lineage from then on, unless the effect is proved.
        (
            Publishing | InDoubt | Confirmed | Unverified | VerificationFailed | ResolvedArrived,
            Trigger::Evidence(Evidence::DeadLetter),
        ) => Requarantined,

        // What was never sent, or was said not to have arrived, and yet is somewhere.
        (
            Held | ItemState::Scheduled | ItemState::Refused | Returned | Nacked | ResolvedNotPublished,
            Trigger::Evidence(Evidence::Event | Evidence::ProbeRow | Evidence::DeadLetter | Evidence::LateConfirm),
        ) => return Ok(Step::Contradiction),
        (_, Trigger::Evidence(_)) => return Ok(Step::Recorded),

        // The answer to a publish that was given up meanwhile: evidence, never a step back.
        (InDoubt, Trigger::Answer(Answer::Confirmed)) => Confirmed,
        (ResolvedNotPublished, Trigger::Answer(Answer::Confirmed)) => return Ok(Step::Contradiction),
        (
            InDoubt | Requarantined | ResolvedArrived | ResolvedNotPublished | Confirmed | Verified | Unverified
            | VerificationFailed,
            Trigger::Answer(_),
        ) => return Ok(Step::Recorded),

        // A cohort that ends sweeps all its items; only those two kinds change.
        (Confirmed | InDoubt | Held, Sweep) => return Ok(Step::Recorded),
        (settled, Sweep) if settled.is_settled() => return Ok(Step::Recorded),

        _ => return Err(Code::IllegalTransition),
    }))
}

/// What must hold in the statement that writes `publishing`, with the cohort, lease and freeze rows share-locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandOverFacts {
    /// The cohort's state now.
    pub cohort: CohortState,
    /// The item is the canary of the running stratum.
    pub is_running_canary: bool,
    /// [`crate::lease::may_publish`] for the owner's epoch.
    pub epoch_may_publish: bool,
    /// A freeze covers the queue.
    pub frozen: bool,
    /// Items of the cohort that are `publishing`.
    pub unanswered: u32,
}

/// Whether an item may be handed over now.
pub fn may_hand_over(facts: &HandOverFacts) -> Check {
    let in_turn = match facts.cohort {
        CohortState::CanaryRunning => facts.is_running_canary,
        CohortState::Expanding => true,
        _ => false,
    };
    if !in_turn {
        return Err(Code::CohortNotPublishing);
    }
    if facts.frozen {
        return Err(Code::Frozen);
    }
    if !facts.epoch_may_publish {
        return Err(Code::StaleEpoch);
    }
    if facts.unanswered >= MAX_UNANSWERED {
        return Err(Code::TooManyUnanswered);
    }
    Ok(())
}

/// Whether a message may go into another cohort after having been an item in this state, its cohort being over.
/// "Publish again" doesn't exist: only what surely never left may be taken anew.
pub fn may_be_taken_anew(state: ItemState) -> bool {
    use ItemState::*;
    matches!(state, Held | Returned | Refused | Nacked | ResolvedNotPublished)
}

/// One appearance of a message in a cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appearance {
    /// The item's state.
    pub item: ItemState,
    /// The cohort's state.
    pub cohort: CohortState,
    /// Evidence contradicts what was said of it (`published_twice`): its message may be anywhere.
    pub contradicted: bool,
}

/// A quarantined message's own state (RULES 5), derived from its appearances (oldest first), its closing and its
/// erasure. A draft is no appearance that counts: it claims nothing.
pub fn quarantine_state(appearances: &[Appearance], closed: bool, erased: bool) -> QuarantineState {
    if erased {
        return QuarantineState::Erased;
    }
    if closed {
        return QuarantineState::Closed;
    }
    // Unsettled doubt outlives its cohort, and no later appearance hides it.
    let over = |a: &Appearance| a.cohort.is_terminal() || a.cohort == CohortState::Draft;
    if appearances.iter().any(|a| over(a) && a.item == ItemState::InDoubt) {
        return QuarantineState::InDoubt;
    }
    if appearances.iter().any(|a| !over(a)) {
        return QuarantineState::Claimed;
    }
    match appearances.iter().rev().find(|a| a.contradicted || !may_be_taken_anew(a.item)).map(|a| a.item) {
        None => QuarantineState::Held,
        Some(ItemState::Verified) => QuarantineState::Verified,
        Some(ItemState::Requarantined) => QuarantineState::Requarantined,
        Some(_) => QuarantineState::ReturnedToQueue,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use ItemState::*;

    fn triggers() -> Vec<Trigger> {
        let mut all = vec![
            Trigger::Scheduled,
            Trigger::HandOver(Ok(())),
            Trigger::Refused,
            Trigger::Lost,
            Trigger::NotSampled,
            Trigger::Probed { proved: true },
            Trigger::Probed { proved: false },
            Trigger::ResolveArrived,
            Trigger::ResolveNotPublished { second_person: true, fenced: true },
            Trigger::Sweep,
            Trigger::Answer(Answer::Confirmed),
            Trigger::Answer(Answer::Returned),
            Trigger::Answer(Answer::Nacked { not_stored: true }),
            Trigger::Answer(Answer::Nacked { not_stored: false }),
        ];
        let evidence =
            [Evidence::Event, Evidence::ProbeRow, Evidence::DeadLetter, Evidence::LateConfirm, Evidence::LateReturn];
        all.extend(evidence.map(Trigger::Evidence));
        all
    }

    /// Every step of RULES 5 that changes a state; no other does.
    #[test]
    fn the_table_is_that_of_the_rules() {
        let nack = |not_stored| Trigger::Answer(Answer::Nacked { not_stored });
        let evidence = Trigger::Evidence;
        let mut rows: HashMap<(ItemState, Trigger), ItemState> = HashMap::from([
            ((Held, Trigger::Scheduled), Scheduled),
            ((Scheduled, Trigger::HandOver(Ok(()))), Publishing),
            ((Scheduled, Trigger::Refused), Refused),
            ((Scheduled, Trigger::Sweep), Held),
            ((Publishing, Trigger::Answer(Answer::Confirmed)), Confirmed),
            ((Publishing, Trigger::Answer(Answer::Returned)), Returned),
            ((Publishing, nack(true)), Nacked),
            ((Publishing, nack(false)), InDoubt),
            ((Publishing, Trigger::Lost), InDoubt),
            ((Publishing, Trigger::Sweep), InDoubt),
            ((InDoubt, evidence(Evidence::Event)), Confirmed),
            ((InDoubt, evidence(Evidence::ProbeRow)), Confirmed),
            ((InDoubt, evidence(Evidence::LateConfirm)), Confirmed),
            ((InDoubt, Trigger::Answer(Answer::Confirmed)), Confirmed),
            ((InDoubt, Trigger::ResolveArrived), ResolvedArrived),
            ((InDoubt, Trigger::ResolveNotPublished { second_person: true, fenced: true }), ResolvedNotPublished),
            ((Confirmed, Trigger::NotSampled), Unverified),
            ((Confirmed, Trigger::Probed { proved: true }), Verified),
            ((Confirmed, Trigger::Probed { proved: false }), VerificationFailed),
        ]);
        for state in [Publishing, InDoubt, Confirmed, Unverified, VerificationFailed, ResolvedArrived] {
            rows.insert((state, evidence(Evidence::DeadLetter)), Requarantined);
        }
        for state in ItemState::ALL {
            for trigger in triggers() {
                let moved = match next(*state, trigger) {
                    Ok(Step::To(to)) => Some(to),
                    _ => None,
                };
                assert_eq!(moved, rows.get(&(*state, trigger)).copied(), "{state} {trigger:?}");
            }
        }
    }

    #[test]
    fn evidence_against_what_was_said_is_loud() {
        for state in [Held, Scheduled, Refused, Returned, Nacked, ResolvedNotPublished] {
            for evidence in [Evidence::Event, Evidence::ProbeRow, Evidence::DeadLetter, Evidence::LateConfirm] {
                assert_eq!(next(state, Trigger::Evidence(evidence)), Ok(Step::Contradiction), "{state} {evidence:?}");
            }
            assert_eq!(next(state, Trigger::Evidence(Evidence::LateReturn)), Ok(Step::Recorded));
        }
        assert_eq!(next(ResolvedNotPublished, Trigger::Answer(Answer::Confirmed)), Ok(Step::Contradiction));
        assert_eq!(next(Verified, Trigger::Evidence(Evidence::DeadLetter)), Ok(Step::Recorded));
    }

    #[test]
    fn not_published_needs_two_people_and_a_fence() {
        let resolve = |second_person, fenced| next(InDoubt, Trigger::ResolveNotPublished { second_person, fenced });
        assert_eq!(resolve(false, true), Err(Code::SecondPersonNeeded));
        assert_eq!(resolve(true, false), Err(Code::NotFenced));
        assert_eq!(resolve(true, true), Ok(Step::To(ResolvedNotPublished)));
    }

    #[test]
    fn publishing_is_entered_from_scheduled_alone() {
        for state in ItemState::ALL {
            for trigger in triggers() {
                if next(*state, trigger) == Ok(Step::To(Publishing)) {
                    assert_eq!(*state, Scheduled);
                }
            }
        }
        let refused = Trigger::HandOver(Err(Code::StaleEpoch));
        assert_eq!(next(Scheduled, refused), Err(Code::StaleEpoch));
    }

    #[test]
    fn hand_over() {
        let good = HandOverFacts {
            cohort: CohortState::Expanding,
            is_running_canary: false,
            epoch_may_publish: true,
            frozen: false,
            unanswered: 63,
        };
        let canary = HandOverFacts { cohort: CohortState::CanaryRunning, ..good };
        let cases = [
            (good, Ok(())),
            (canary, Err(Code::CohortNotPublishing)),
            (HandOverFacts { is_running_canary: true, ..canary }, Ok(())),
            (HandOverFacts { frozen: true, ..good }, Err(Code::Frozen)),
            (HandOverFacts { epoch_may_publish: false, ..good }, Err(Code::StaleEpoch)),
            (HandOverFacts { unanswered: 64, ..good }, Err(Code::TooManyUnanswered)),
        ];
        for (facts, want) in cases {
            assert_eq!(may_hand_over(&facts), want, "{facts:?}");
        }
        for state in CohortState::ALL {
            let facts = HandOverFacts { cohort: *state, is_running_canary: true, ..good };
            assert_eq!(may_hand_over(&facts).is_ok(), crate::cohort::hands_over(*state), "{state}");
        }
    }

    #[test]
    fn a_messages_own_state_is_derived() {
        use QuarantineState as Q;
        let at = |item, cohort| Appearance { item, cohort, contradicted: false };
        let (done, running) = (CohortState::Completed, CohortState::Expanding);
        let cases = [
            (vec![], Q::Held),
            (vec![at(Held, CohortState::Draft)], Q::Held),
            (vec![at(Held, CohortState::InReview)], Q::Claimed),
            (vec![at(Held, CohortState::Withdrawn)], Q::Held),
            (vec![at(Publishing, running)], Q::Claimed),
            (vec![at(Returned, running)], Q::Claimed),
            (vec![at(Returned, done)], Q::Held),
            (vec![at(ResolvedNotPublished, done)], Q::Held),
            (vec![at(InDoubt, CohortState::Aborted)], Q::InDoubt),
            (vec![at(InDoubt, CohortState::Aborted), at(Scheduled, running)], Q::InDoubt),
            (vec![at(Confirmed, CohortState::Aborted)], Q::ReturnedToQueue),
            (vec![at(Unverified, done)], Q::ReturnedToQueue),
            (vec![at(VerificationFailed, done)], Q::ReturnedToQueue),
            (vec![at(ResolvedArrived, done)], Q::ReturnedToQueue),
            (vec![at(Verified, done)], Q::Verified),
            (vec![at(Requarantined, done)], Q::Requarantined),
            (vec![at(Nacked, done), at(Verified, done)], Q::Verified),
            (vec![at(Verified, done), at(Held, CohortState::Rejected)], Q::Verified),
            (vec![at(Held, CohortState::Withdrawn), at(Verified, done)], Q::Verified),
            (vec![at(Verified, done), at(Held, CohortState::Draft)], Q::Verified),
            (vec![Appearance { contradicted: true, ..at(ResolvedNotPublished, done) }], Q::ReturnedToQueue),
        ];
        for (appearances, want) in cases {
            assert_eq!(quarantine_state(&appearances, false, false), want, "{appearances:?}");
        }
        assert_eq!(quarantine_state(&[at(Held, done)], true, false), Q::Closed);
        assert_eq!(quarantine_state(&[at(Held, done)], true, true), Q::Erased);
    }

    #[test]
    fn what_surely_never_left_may_be_taken_anew() {
        let anew: Vec<_> = ItemState::ALL.iter().copied().filter(|s| may_be_taken_anew(*s)).collect();
        assert_eq!(anew, [Held, Returned, Refused, Nacked, ResolvedNotPublished]);
    }
}
