//! The words of RULES.md, spelled as there: one enumeration each, in JSON, in the database and on the page.

use serde::{Deserialize, Serialize};

/// An enumeration whose variants have one `snake_case` spelling everywhere.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] $variant),*
        }

        impl $name {
            /// Every word of the enumeration, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its one spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnknownWord;
            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
                    .ok_or_else(|| UnknownWord { enumeration: stringify!($name), word: text.to_owned() })
            }
        }
    )*};
}

pub(crate) use words;

/// A word that its enumeration doesn't have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is no {enumeration}")]
pub struct UnknownWord {
    /// The enumeration that was asked.
    pub enumeration: &'static str,
    /// The word that was given.
    pub word: String,
}

words! {
    /// What a person may do, by RULES 4. Roles combine.
    Role {
        /// Reads everything but payloads.
        Viewer = "viewer",
        /// The on-call engineer: drafts, starts, pauses.
        Responder = "responder",
        /// Agrees, or doesn't.
        Approver = "approver",
        /// Reads payloads and the log, exports.
        Auditor = "auditor",
        /// Brokers, queues, people; neither drafts nor approves.
        Admin = "admin",
        /// A machine that sends worker events and does nothing else.
        Emitter = "emitter",
    }

    /// One line of the permission table (RULES 4).
    Permission {
        /// Read everything but payloads.
        Read = "read",
        /// Reveal a payload, with a reason.
        Reveal = "reveal",
        /// Draft, edit, submit, withdraw, start, expand, resume, unfreeze one queue, assign.
        Respond = "respond",
        /// Approve, request changes, reject, revoke, confirm `not_published`.
        Approve = "approve",
        /// Pause, abort, freeze.
        Stop = "stop",
        /// Brokers, queues, probes, policies, users, unfreeze all.
        Administer = "administer",
        /// Export the log; checkpoints; legal hold.
        ExportLog = "export_log",
        /// Send worker events.
        SendEvents = "send_events",
        /// Own sessions: sign in again, sign out.
        Own = "own",
    }

    /// Whether a failure class can succeed unchanged.
    Kind {
        /// Fails the same way again unless something is corrected.
        Permanent = "permanent",
        /// May succeed later, unchanged.
        Transient = "transient",
    }

    /// What Lazaret does with a dead-letter queue.
    CustodyMode {
        /// Nothing.
        Off = "off",
        /// The vault holds the messages: consume, store, commit, acknowledge.
        Drain = "drain",
    }

    /// How a dead-letter queue's custody is now.
    CustodyState {
        /// Custody is off.
        Off = "off",
        /// No process has claimed it yet, or it connects.
        Waiting = "waiting",
        /// Consuming.
        Draining = "draining",
        /// Not consuming; the reason says why, and it is tried again.
        Stopped = "stopped",
    }

    /// A quarantined message's own state, derived (RULES 5).
    QuarantineState {
        /// In the vault, in no unfinished cohort.
        Held = "held",
        /// In an unfinished cohort.
        Claimed = "claimed",
        /// A publish whose outcome is unknown.
        InDoubt = "in_doubt",
        /// Confirmed, unverified or resolved as arrived.
        ReturnedToQueue = "returned_to_queue",
        /// Its durable effect was proved.
        Verified = "verified",
        /// It died again: its new dead letter is the head of the lineage.
        Requarantined = "requarantined",
        /// Ended by review, without replay.
        Closed = "closed",
        /// Payload erased.
        Erased = "erased",
    }

    /// A cohort's state (RULES 3).
    CohortState {
        /// Being written.
        Draft = "draft",
        /// Waits for its reviewers.
        InReview = "in_review",
        /// Agreed; nothing has moved.
        Approved = "approved",
        /// A canary is going out.
        CanaryRunning = "canary_running",
        /// A canary is out; its effect is awaited.
        CanaryVerifying = "canary_verifying",
        /// Every stratum's canary passed.
        CanaryPassed = "canary_passed",
        /// A canary failed. Terminal.
        CanaryFailed = "canary_failed",
        /// The rest goes out under the governor.
        Expanding = "expanding",
        /// Stopped by a person or a rule; may resume.
        Paused = "paused",
        /// Ends; old owners are being fenced.
        Aborting = "aborting",
        /// Ended by abort. Terminal.
        Aborted = "aborted",
        /// All handed over, some in doubt.
        Settling = "settling",
        /// All settled. Terminal.
        Completed = "completed",
        /// A reviewer said no. Terminal.
        Rejected = "rejected",
        /// Taken back. Terminal.
        Withdrawn = "withdrawn",
        /// Not started in time. Terminal.
        Expired = "expired",
    }

    /// What may be done to a cohort (RULES 3).
    CohortCommand {
        /// Change the plan.
        Edit = "edit",
        /// Drop the draft.
        Discard = "discard",
        /// Ask for review.
        Submit = "submit",
        /// Agree to the plan.
        Approve = "approve",
        /// Send back to draft.
        RequestChanges = "request_changes",
        /// Say no.
        Reject = "reject",
        /// The author takes it back.
        Withdraw = "withdraw",
        /// An approver takes the approval back.
        Revoke = "revoke",
        /// Publish the first canary.
        StartCanary = "canary",
        /// Extend an inconclusive canary once.
        VerifyAgain = "verify_again",
        /// Another approved canary item.
        NextCanary = "next_canary",
        /// Call an inconclusive canary failed.
        Fail = "fail",
        /// Repeat the canary stage.
        CanaryAgain = "canary_again",
        /// Publish the rest under the governor.
        Expand = "expand",
        /// Hand over nothing more for now.
        Pause = "pause",
        /// Go on.
        Resume = "resume",
        /// End it.
        Abort = "abort",
    }

    /// One message's state in one cohort (RULES 5).
    ItemState {
        /// In a draft or a plan under review; nothing scheduled.
        Held = "held",
        /// Not handed over.
        Scheduled = "scheduled",
        /// Written before the publish.
        Publishing = "publishing",
        /// The broker took it (confirm, no return).
        Confirmed = "confirmed",
        /// Effect proved.
        Verified = "verified",
        /// Not in the plan's verification sample.
        Unverified = "unverified",
        /// The probe answered; effect absent or other at its deadline.
        VerificationFailed = "verification_failed",
        /// A new dead letter carries its redrive id.
        Requarantined = "requarantined",
        /// Unroutable.
        Returned = "returned",
        /// Pre-flight at the last moment said no.
        Refused = "refused",
        /// Refused by a single-queue target.
        Nacked = "nacked",
        /// Outcome unknown.
        InDoubt = "in_doubt",
        /// People's word: it arrived.
        ResolvedArrived = "resolved_arrived",
        /// People's word: it was not published.
        ResolvedNotPublished = "resolved_not_published",
    }

    /// What a canary showed (RULES 8).
    Verdict {
        /// The effect was absent before, is as expected after, and is this redrive's.
        Pass = "pass",
        /// Returned, nacked, died again, or the effect contradicts the expectation.
        Fail = "fail",
        /// No data, a deadline, or an effect that nothing attributes.
        Inconclusive = "inconclusive",
    }

    /// What a worker event says (API.md, Events in).
    EventKind {
        /// A producer took the operation on.
        Accepted = "accepted",
        /// Published to the queue.
        Enqueued = "enqueued",
        /// Application code began an execution.
        AttemptStarted = "attempt_started",
        /// The handler returned success; no word about the effect.
        AttemptSucceeded = "attempt_succeeded",
        /// The handler failed.
        AttemptFailed = "attempt_failed",
        /// The worker answered the broker.
        Acked = "acked",
        /// The durable effect was written.
        EffectRecorded = "effect_recorded",
    }

    /// Which limit binds the governor now (RULES 7); always named.
    Binding {
        /// The plan's own `max_per_s`.
        Plan = "plan",
        /// Free capacity.
        Headroom = "headroom",
        /// The in-flight cap.
        InFlight = "in_flight",
        /// The rate step not yet raised.
        Step = "step",
        /// The broker blocks publishing.
        BrokerBlocked = "broker_blocked",
    }

    /// What an audit entry tells of: `noun.verb`.
    Action {
        /// Someone signed in.
        SessionOpened = "session.open",
        /// Someone signed out.
        SessionClosed = "session.close",
        /// Someone signed in again, for an approval.
        SessionConfirmed = "session.confirm",
        /// A person or machine was made.
        UserCreated = "user.create",
        /// Roles, name or standing changed.
        UserChanged = "user.change",
        /// A password was set by someone.
        UserPasswordSet = "user.set_password",
        /// A broker was registered.
        BrokerCreated = "broker.create",
        /// A broker's addresses changed.
        BrokerChanged = "broker.change",
        /// A queue was put under watch.
        QueueCreated = "queue.create",
        /// A queue's mapping or policy changed.
        QueueChanged = "queue.change",
        /// Custody of a DLQ was switched.
        CustodyChanged = "custody.change",
        /// A probe was defined or changed.
        ProbeChanged = "probe.change",
        /// A probe was tried.
        ProbeTried = "probe.try",
        /// Replay was frozen.
        Frozen = "replay.freeze",
        /// Replay was unfrozen.
        Unfrozen = "replay.unfreeze",
        /// A payload was revealed: the person inspected it.
        PayloadRevealed = "quarantine.reveal",
        /// An unattributed message was given to a queue.
        MessageAssigned = "quarantine.assign",
        /// A cohort was drafted.
        CohortCreated = "cohort.create",
        /// A draft was edited.
        CohortEdited = "cohort.edit",
        /// A draft was dropped.
        CohortDiscarded = "cohort.discard",
        /// A plan was submitted.
        CohortSubmitted = "cohort.submit",
        /// A plan was approved by one person.
        CohortApproved = "cohort.approve",
        /// A reviewer asked for changes.
        CohortChangesRequested = "cohort.request_changes",
        /// A reviewer said no.
        CohortRejected = "cohort.reject",
        /// The author took it back.
        CohortWithdrawn = "cohort.withdraw",
        /// An approval was taken back.
        CohortRevoked = "cohort.revoke",
        /// An approval ran out.
        CohortExpired = "cohort.expire",
        /// The canary was started.
        CanaryStarted = "cohort.start_canary",
        /// An inconclusive canary was extended.
        CanaryVerifiedAgain = "cohort.verify_again",
        /// The next canary item was taken.
        CanaryNext = "cohort.next_canary",
        /// The canary was called failed.
        CanaryFailedByPerson = "cohort.fail",
        /// The canary stage was repeated.
        CanaryAgain = "cohort.canary_again",
        /// A canary verdict was reached.
        CanaryJudged = "cohort.judge_canary",
        /// The rest was started.
        CohortExpanded = "cohort.expand",
        /// Replay was paused.
        CohortPaused = "cohort.pause",
        /// Replay was resumed.
        CohortResumed = "cohort.resume",
        /// Replay was aborted.
        CohortAborted = "cohort.abort",
        /// A terminal or settling state was entered by the replay itself.
        CohortEnded = "cohort.end",
        /// Another process took the replay over.
        CohortTakenOver = "cohort.take_over",
        /// A person said what became of an item in doubt.
        ItemResolved = "item.resolve",
        /// A second person confirmed it.
        ItemResolutionConfirmed = "item.confirm_resolution",
        /// Evidence contradicts what was said of an item.
        PublishedTwice = "item.published_twice",
        /// One redrive id is on two messages.
        RedriveIdReused = "item.redrive_id_reused",
    }
}

impl CohortState {
    /// Nothing publishes from a terminal state, and there is no way out of it.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Rejected | Self::Withdrawn | Self::Expired | Self::CanaryFailed | Self::Aborted | Self::Completed
        )
    }

    /// Submitted, and not over: people or a replay have something to do with it.
    #[must_use]
    pub const fn is_open(self) -> bool {
        !self.is_terminal() && !matches!(self, Self::Draft)
    }

    /// Whether a cohort in this state holds the lane of its target queue (RULES 7).
    #[must_use]
    pub const fn holds_lane(self) -> bool {
        matches!(
            self,
            Self::CanaryRunning
                | Self::CanaryVerifying
                | Self::CanaryPassed
                | Self::Expanding
                | Self::Paused
                | Self::Aborting
        )
    }
}

impl ItemState {
    /// Nothing is open about a settled item (RULES 5).
    #[must_use]
    pub const fn is_settled(self) -> bool {
        !matches!(self, Self::Held | Self::Scheduled | Self::Publishing | Self::Confirmed | Self::InDoubt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_one_spelling() {
        for state in CohortState::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        assert!("Draft".parse::<CohortState>().is_err());
    }
}
