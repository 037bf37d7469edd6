//! How each word of the vocabulary looks: colour, glyph and word, in one place.

use crate::components::{Badge, Icon};
use domain::vocabulary::{Binding, CohortCommand, CohortState, CustodyState, ItemState, QuarantineState, Verdict};

const fn badge(tone: &'static str, icon: Icon, word: &'static str) -> Badge {
    Badge { tone, icon, word }
}

/// A quarantined message's state.
pub(crate) const fn quarantine(state: QuarantineState) -> Badge {
    match state {
        QuarantineState::Held => badge("held", Icon::Flag, "held"),
        QuarantineState::Claimed => badge("running", Icon::Cohort, "claimed"),
        QuarantineState::InDoubt => badge("doubt", Icon::Doubt, "in doubt"),
        QuarantineState::ReturnedToQueue => badge("running", Icon::Redrive, "returned to queue"),
        QuarantineState::Verified => badge("well", Icon::Check, "verified"),
        QuarantineState::Requarantined => badge("poison", Icon::Stop, "requarantined"),
        QuarantineState::Closed => badge("plain", Icon::Close, "closed"),
        QuarantineState::Erased => badge("unknown", Icon::Unknown, "erased"),
    }
}

/// A cohort's state.
pub(crate) const fn cohort(state: CohortState) -> Badge {
    match state {
        CohortState::Draft => badge("plain", Icon::Audit, "draft"),
        CohortState::InReview => badge("plain", Icon::Person, "in review"),
        CohortState::Approved => badge("well", Icon::Seal, "approved"),
        CohortState::CanaryRunning => badge("running", Icon::Run, "canary running"),
        CohortState::CanaryVerifying => badge("running", Icon::Clock, "canary verifying"),
        CohortState::CanaryPassed => badge("well", Icon::Check, "canary passed"),
        CohortState::CanaryFailed => badge("poison", Icon::Stop, "canary failed"),
        CohortState::Expanding => badge("running", Icon::Run, "expanding"),
        CohortState::Paused => badge("held", Icon::Pause, "paused"),
        CohortState::Aborting => badge("poison", Icon::Stop, "aborting"),
        CohortState::Aborted => badge("plain", Icon::Reject, "aborted"),
        CohortState::Settling => badge("doubt", Icon::Doubt, "settling"),
        CohortState::Completed => badge("well", Icon::Check, "completed"),
        CohortState::Rejected => badge("plain", Icon::Reject, "rejected"),
        CohortState::Withdrawn => badge("plain", Icon::Close, "withdrawn"),
        CohortState::Expired => badge("plain", Icon::Clock, "expired"),
    }
}

/// An item's state in a cohort.
pub(crate) const fn item(state: ItemState) -> Badge {
    match state {
        ItemState::Held => badge("held", Icon::Flag, "held"),
        ItemState::Scheduled => badge("held", Icon::Clock, "scheduled"),
        ItemState::Publishing => badge("running", Icon::Run, "publishing"),
        ItemState::Confirmed => badge("running", Icon::Ack, "confirmed"),
        ItemState::Verified => badge("well", Icon::Check, "verified"),
        ItemState::Unverified => badge("unknown", Icon::Unknown, "unverified"),
        ItemState::VerificationFailed => badge("poison", Icon::Stop, "verification failed"),
        ItemState::Requarantined => badge("poison", Icon::Stop, "requarantined"),
        ItemState::Returned => badge("plain", Icon::Dot, "returned"),
        ItemState::Refused => badge("plain", Icon::Dot, "refused"),
        ItemState::Nacked => badge("plain", Icon::Dot, "nacked"),
        ItemState::InDoubt => badge("doubt", Icon::Doubt, "in doubt"),
        ItemState::ResolvedArrived => badge("plain", Icon::Person, "resolved: arrived"),
        ItemState::ResolvedNotPublished => badge("plain", Icon::Person, "resolved: not published"),
    }
}

/// The colour of an item's state on a bar.
pub(crate) const fn item_fill(state: ItemState) -> &'static str {
    match state {
        ItemState::Publishing => "soft",
        ItemState::Unverified => "plain",
        other => item(other).tone,
    }
}

/// How custody of a dead-letter queue is.
pub(crate) const fn custody(state: CustodyState) -> Badge {
    match state {
        CustodyState::Off => badge("unknown", Icon::Off, "custody off"),
        CustodyState::Waiting => badge("unknown", Icon::Clock, "custody waits"),
        CustodyState::Draining => badge("well", Icon::Check, "custody drains"),
        CustodyState::Stopped => badge("poison", Icon::Stop, "custody stopped"),
    }
}

/// A canary's verdict; `None` while it is awaited.
pub(crate) const fn verdict(verdict: Option<Verdict>) -> Badge {
    match verdict {
        Some(Verdict::Pass) => badge("well", Icon::Check, "passed"),
        Some(Verdict::Fail) => badge("poison", Icon::Stop, "failed"),
        Some(Verdict::Inconclusive) => badge("unknown", Icon::Unknown, "inconclusive"),
        None => badge("running", Icon::Clock, "awaited"),
    }
}

/// What binds the governor, in words.
pub(crate) const fn binding(binding: Binding) -> &'static str {
    match binding {
        Binding::Plan => "the plan’s own limit",
        Binding::Headroom => "free capacity",
        Binding::InFlight => "the in-flight cap",
        Binding::Step => "the step: not raised yet",
        Binding::BrokerBlocked => "the broker, which blocks publishing",
    }
}

/// A review's decision.
pub(crate) const fn decision(command: CohortCommand) -> Badge {
    match command {
        CohortCommand::Approve => badge("well", Icon::Seal, "approved"),
        CohortCommand::RequestChanges => badge("plain", Icon::Audit, "requested changes"),
        CohortCommand::Reject => badge("plain", Icon::Reject, "rejected"),
        CohortCommand::Revoke => badge("plain", Icon::Close, "revoked"),
        _ => badge("plain", Icon::Dot, "acted"),
    }
}
