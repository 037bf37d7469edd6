//! Why a rule says no: one stable code each, the `code` of a 409 problem.

use serde::{Deserialize, Serialize};

use crate::vocabulary::{UnknownWord, words};

words! {
    /// The code of a refusal by a rule.
    Code {
        // the tables of RULES 3 and 5
        /// The state has no such command, or the item no such step.
        IllegalTransition = "illegal_transition",
        /// A fact that the rule needs isn't known; unknown never moves a message.
        UnknownFact = "unknown_fact",
        /// Someone wrote in between.
        StaleVersion = "stale_version",
        /// Only the author may.
        NotTheAuthor = "not_the_author",
        /// Only one who approved this revision may.
        NotAnApproverOfThis = "not_an_approver_of_this",
        /// An epoch may still publish: it neither stopped nor is its connection seen gone.
        NotFenced = "not_fenced",
        /// Items are still open.
        NotSettled = "not_settled",
        /// Items are still to hand over, or unanswered.
        NotHandedOver = "not_handed_over",
        /// The canary's verdict isn't inconclusive.
        NotInconclusive = "not_inconclusive",
        /// The canary was extended once already.
        AlreadyExtended = "already_extended",
        /// The stratum had as many canaries as the plan allows.
        MaxCanariesReached = "max_canaries_reached",
        /// No approved item is left for another canary: a clone starts anew.
        NoCanaryLeft = "no_canary_left",
        /// The canary's pass still stands.
        CanaryStillValid = "canary_still_valid",
        /// The canary's pass is too old, or other worker versions consume now.
        CanaryTooOld = "canary_too_old",
        /// What paused the cohort is still so.
        CausePersists = "cause_persists",

        // submit
        /// No message is selected.
        EmptyCohort = "empty_cohort",
        /// `expires_at` or `run_by` is missing, in the past, or the wrong way round.
        DeadlinesMissing = "deadlines_missing",
        /// The pre-flight refuses messages or the cohort.
        PreflightRefused = "preflight_refused",
        /// A warning isn't accepted by name.
        WarningNotAccepted = "warning_not_accepted",
        /// A stratum has no canary, or two, or one that isn't its own.
        CanaryMissing = "canary_missing",
        /// No person opened the canary's payload since custody.
        CanaryNotInspected = "canary_not_inspected",
        /// There are no guards yet: `guards` must be `{}`.
        GuardsUnavailable = "guards_unavailable",
        /// A message is in another unfinished cohort.
        MessageClaimed = "message_claimed",
        /// A job is in another unfinished cohort.
        JobClaimed = "job_claimed",
        /// Fewer people could approve than the policy needs.
        NoEligibleApprover = "no_eligible_approver",

        // four eyes
        /// The person touched the plan.
        SelfApproval = "self_approval",
        /// Someone who touched the plan changed this person's account within seven days.
        TaintedApprover = "tainted_approver",
        /// A machine never approves.
        MachineApprover = "machine_approver",
        /// The person isn't an approver now.
        MissingRole = "missing_role",
        /// One person counts once.
        AlreadyApproved = "already_approved",
        /// The person must have signed in within five minutes.
        ReauthenticationRequired = "reauthentication_required",
        /// The plan isn't the one that was seen.
        PlanDigestMismatch = "plan_digest_mismatch",

        // the re-check
        /// `expires_at` has passed, by the database's clock.
        ApprovalExpired = "approval_expired",
        /// An approval no longer counts, or the policy asks for more now.
        ApprovalsInsufficient = "approvals_insufficient",
        /// The approval was for another start.
        ApprovalConsumed = "approval_consumed",
        /// By the policy now, a message needs what the plan doesn't have.
        PolicyTightened = "policy_tightened",
        /// Replay is frozen.
        Frozen = "frozen",
        /// Another cohort replays into this queue.
        LaneTaken = "lane_taken",
        /// The management API can't be reached: topology and fencing come from it.
        NoManagementApi = "no_management_api",
        /// The target is gone, or others would get the messages now.
        TargetChanged = "target_changed",
        /// The number confirmed isn't the number that would move.
        CountMismatch = "count_mismatch",
        /// A guard isn't green.
        GuardNotGreen = "guard_not_green",

        // publishing
        /// The owner's epoch isn't the newest, or its lease ran out.
        StaleEpoch = "stale_epoch",
        /// The cohort's state lets nothing be published.
        CohortNotPublishing = "cohort_not_publishing",
        /// As many publishes are unanswered as may be.
        TooManyUnanswered = "too_many_unanswered",
        /// `not_published` needs a second, eligible person.
        SecondPersonNeeded = "second_person_needed",
    }
}

/// The outcome of a rule that either lets something pass or says why not.
pub type Check = Result<(), Code>;

impl Code {
    /// What the code says, as a sentence without its facts.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::IllegalTransition => "this can't be done in the present state",
            Self::UnknownFact => "something that this rests on isn't known",
            Self::StaleVersion => "someone changed it in the meantime",
            Self::NotTheAuthor => "only its author may do this",
            Self::NotAnApproverOfThis => "only a person who approved this revision may do this",
            Self::NotFenced => "an earlier owner of the replay may still publish",
            Self::NotSettled => "some items are still open",
            Self::NotHandedOver => "some items are still to be handed over or answered",
            Self::NotInconclusive => "the canary's verdict isn't inconclusive",
            Self::AlreadyExtended => "the canary was extended once already",
            Self::MaxCanariesReached => "the plan allows no further canary in this stratum",
            Self::NoCanaryLeft => "no approved message is left for another canary",
            Self::CanaryStillValid => "the canary's pass still stands",
            Self::CanaryTooOld => "the canary's pass is too old, or other worker versions consume now",
            Self::CausePersists => "what paused it is still so",
            Self::EmptyCohort => "no message is selected",
            Self::DeadlinesMissing => "the plan needs a time to start by and a later time to end by",
            Self::PreflightRefused => "the pre-flight refuses some of it",
            Self::WarningNotAccepted => "a warning isn't accepted by name",
            Self::CanaryMissing => "each stratum needs a canary of its own",
            Self::CanaryNotInspected => "nobody has opened the canary's payload yet",
            Self::GuardsUnavailable => "there are no guards yet; leave them empty",
            Self::MessageClaimed => "a message is in another unfinished cohort",
            Self::JobClaimed => "a job is in another unfinished cohort",
            Self::NoEligibleApprover => "too few people could approve this",
            Self::SelfApproval => "whoever worked on a plan doesn't approve it",
            Self::TaintedApprover => "someone who worked on the plan changed this account within seven days",
            Self::MachineApprover => "a machine never approves",
            Self::MissingRole => "the person isn't an approver now",
            Self::AlreadyApproved => "this person approved already",
            Self::ReauthenticationRequired => "sign in again: an approval needs it within five minutes",
            Self::PlanDigestMismatch => "the plan isn't the one that was seen",
            Self::ApprovalExpired => "the time to start by has passed",
            Self::ApprovalsInsufficient => "the approvals no longer suffice",
            Self::ApprovalConsumed => "the approval was used for a start already",
            Self::PolicyTightened => "by the policy now, a message needs what the plan doesn't have",
            Self::Frozen => "replay is frozen",
            Self::LaneTaken => "another cohort replays into this queue",
            Self::NoManagementApi => "the broker's management API can't be reached",
            Self::TargetChanged => "the target is gone, or others would get the messages now",
            Self::CountMismatch => "the number confirmed isn't the number that would move",
            Self::GuardNotGreen => "a guard isn't green",
            Self::StaleEpoch => "another owner has taken the replay over",
            Self::CohortNotPublishing => "the cohort's state lets nothing be published",
            Self::TooManyUnanswered => "too many publishes are unanswered",
            Self::SecondPersonNeeded => "a second, eligible person must confirm this",
        }
    }
}
