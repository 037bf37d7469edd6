//! A running replay.

use super::{ProbeSample, StateCount, Thousandths, Timestamp, wire};
use crate::{
    ids::{ItemId, QuarantineId, RedriveId},
    vocabulary::{Binding, CohortState, Verdict},
};

wire! {
    /// `GET /cohorts/{id}/replay`.
    pub struct Replay {
        /// Where the cohort is.
        pub state: CohortState,
        /// Why it is paused or aborting.
        pub state_reason: Option<String>,
        /// Where it resumes to.
        pub resumes_to: Option<CohortState>,
        /// Items by state; adds up to the size.
        pub counts: Vec<StateCount>,
        /// Handed over in the last 10 s, per second.
        pub rate_now_per_s: Thousandths,
        /// What the governor enforces now.
        pub allowed_per_s: Thousandths,
        /// The cap.
        pub cap_per_s: Thousandths,
        /// Which limit binds.
        pub binding: Option<Binding>,
        /// Confirmed and unfinished; `None` is unknown.
        pub in_flight: super::Reading,
        /// The in-flight cap.
        pub max_in_flight: i64,
        /// `None`: no capacity is configured yet.
        pub headroom_per_s: super::Reading,
        /// Publishes without an answer.
        pub unanswered: i64,
        /// The owner's epoch; 0 before any.
        pub epoch: i64,
        /// The owning process.
        pub owner: Option<String>,
        /// Epochs that aren't fenced: what may still go out.
        pub unfenced: Vec<EpochFacts>,
        /// Latest first, at most 50.
        pub decisions: Vec<Decision>,
        /// By rate and what is left, seconds.
        pub eta_s: Option<i64>,
        /// Why the replay hands over nothing, though it runs: `no_management_api`, `in_flight_unknown`, …
        pub halted: Option<String>,
    }

    /// One epoch of the replay's owner.
    pub struct EpochFacts {
        /// Its number.
        pub epoch: i64,
        /// The process.
        pub owner: String,
        /// Its connection's name at the broker.
        pub connection: Option<String>,
        /// `running`, `stopped`, `closed`.
        pub standing: String,
        /// Items it handed over without an answer.
        pub publishing: Vec<ItemId>,
    }

    /// What the governor decided, with what it read.
    pub struct Decision {
        /// When.
        pub at: Timestamp,
        /// In words: `rate 2/s, bound by plan`.
        pub decision: String,
        /// The readings it used.
        pub readings: serde_json::Value,
    }

    /// The canary of one stratum.
    pub struct Canary {
        /// The stratum.
        pub stratum: i64,
        /// The message.
        pub quarantine_id: QuarantineId,
        /// The item.
        pub item_id: ItemId,
        /// Its redrive id.
        pub redrive_id: Option<RedriveId>,
        /// Started.
        pub started_at: Timestamp,
        /// Confirmed by the broker.
        pub confirmed_at: Option<Timestamp>,
        /// Until when the effect is awaited.
        pub deadline_at: Option<Timestamp>,
        /// The probe before the publish: the effect must be absent.
        pub before: Option<ProbeSample>,
        /// The latest sample after.
        pub after: Option<ProbeSample>,
        /// Each expectation with what was found.
        pub expectations: Vec<ExpectationResult>,
        /// What ties the effect to this redrive: `effect_recorded event`, `probe row`, `by exclusion`.
        pub attributed_by: Option<String>,
        /// Which worker version executed it.
        pub worker_version: Option<String>,
        /// The verdict; `None` while it is awaited.
        pub verdict: Option<Verdict>,
        /// `no_data`, `deadline`, `unattributed`, `worker_version`, `already_effective`, `returned`, `nacked`, `requarantined`, `permanent_failure`, `contradicted`.
        pub verdict_reason: Option<String>,
        /// When it was judged.
        pub judged_at: Option<Timestamp>,
    }

    /// One expectation, judged.
    pub struct ExpectationResult {
        /// What was expected, in words.
        pub expected: String,
        /// What was found there.
        pub found: Option<serde_json::Value>,
        /// Whether it holds; `None` without data.
        pub holds: Option<bool>,
    }
}
