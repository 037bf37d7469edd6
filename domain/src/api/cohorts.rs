//! Cohorts: draft, plan, review.

use super::{Thousandths, Timestamp, UserRef, quarantine::QueueRef, wire};
use crate::{
    ids::{AppName, CohortId, ItemId, QuarantineId, QueueId, RedriveId},
    vocabulary::{CohortCommand, CohortState, ItemState},
};

wire! {
    /// `POST /cohorts`. `PATCH /cohorts/{id}` takes a whole [`Draft`].
    pub struct NewCohort {
        /// The watched queue whose messages these are.
        pub queue_id: QueueId,
        /// Which messages; frozen as a list now.
        pub selection: Selection,
        /// The rest of the plan.
        #[serde(flatten)]
        pub draft: Draft,
    }

    /// Which messages.
    #[serde(untagged)]
    pub enum Selection {
        /// These rows, at most 10 000.
        Ids {
            /// Rows.
            ids: Vec<QuarantineId>,
        },
        /// Everything held that matches now.
        Filter {
            /// As `GET /quarantine`.
            filter: SelectionFilter,
        },
    }

    /// As the query parameters of `GET /quarantine`.
    #[derive(Default)]
    pub struct SelectionFilter {
        /// Any of these classes; `""` is unclassified.
        #[serde(default)] pub error_class: Vec<String>,
        /// Any of these fingerprints.
        #[serde(default)] pub fingerprint: Vec<String>,
        /// Any of these revisions.
        #[serde(default)] pub worker_version: Vec<String>,
        /// Literal text in job id, message id or error text.
        #[serde(default)] pub q: Option<String>,
        /// Died at or after.
        #[serde(default)] pub dead_lettered_from: Option<Timestamp>,
        /// Died before.
        #[serde(default)] pub dead_lettered_to: Option<Timestamp>,
    }

    /// What a person writes of a plan.
    pub struct Draft {
        /// 1–200 characters; not in the digest.
        pub title: String,
        /// Why; 1–2 000 characters; not in the digest.
        pub reason: String,
        /// What changed, for permanent kinds.
        #[serde(default)] pub condition_fixed: Option<ConditionFixed>,
        /// Where to; absent is the default target of RULES 6.
        #[serde(default)] pub target: Option<Target>,
        /// Warnings by code, accepted by name.
        #[serde(default)] pub accept_warnings: Vec<String>,
        /// How the effect is proved.
        #[serde(default)] pub canary: Option<CanaryPlan>,
        /// How fast the rest goes.
        #[serde(default)] pub expansion: Option<Expansion>,
        /// Must be `{}` until guards exist: 422 `guards_unavailable`.
        #[serde(default)] pub guards: serde_json::Map<String, serde_json::Value>,
        /// Put `expiration` back as it was before the death.
        #[serde(default)] pub restore_expiration: bool,
        /// Until when it may be started; needed to submit.
        #[serde(default)] pub expires_at: Option<Timestamp>,
        /// When it aborts by itself; needed to submit.
        #[serde(default)] pub run_by: Option<Timestamp>,
    }

    /// What makes a permanent failure worth another execution.
    pub struct ConditionFixed {
        /// `worker_version`, `downstream`, `configuration` or `data`.
        pub kind: ConditionKind,
        /// What exactly: a version, a change number, a link.
        pub reference: String,
        /// The canary counts only by this worker version or a later one that consumes now.
        #[serde(default)] pub min_worker_version: Option<String>,
    }

    /// Where a condition was mended.
    #[derive(Copy, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum ConditionKind {
        /// The workers' code.
        WorkerVersion,
        /// What they call.
        Downstream,
        /// Their settings.
        Configuration,
        /// What they read.
        Data,
    }

    /// An exchange and a key.
    pub struct Target {
        /// `""` is the default exchange.
        pub exchange: String,
        /// The key.
        pub routing_key: String,
    }

    /// How the canary's effect is proved.
    pub struct CanaryPlan {
        /// One item per stratum, then more if `max_canaries` lets.
        pub items: Vec<QuarantineId>,
        /// The probe's name.
        pub probe: String,
        /// What must hold over its rows.
        pub expect: Vec<Expectation>,
        /// How long to wait for the effect, seconds: 1–3 600.
        pub wait_s: i64,
        /// Canaries per stratum at most: 1–10.
        pub max_canaries: i64,
        /// How long a pass lets the expansion start, seconds.
        pub valid_s: i64,
        /// How the effect is tied to this redrive.
        pub attribution: Attribution,
    }

    /// How an effect is tied to a redrive (RULES 8).
    #[derive(Copy, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Attribution {
        /// An `effect_recorded` event or a probe row carries the redrive id.
        RedriveId,
        /// No other live message of the job is known; a warning to accept by name.
        ByExclusion,
    }

    /// One thing that must hold over the probe's rows.
    pub struct Expectation {
        /// JSON pointer into the array of rows, like `/0/status`.
        pub pointer: String,
        /// How to compare.
        pub op: ExpectOp,
        /// With what …
        #[serde(default)] pub value: Option<serde_json::Value>,
        /// … or with what the message's JSON payload has at this pointer.
        #[serde(default)] pub from_evidence: Option<String>,
    }

    /// How to compare.
    #[derive(Copy, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum ExpectOp {
        /// Equal as JSON; numbers by value.
        Eq,
        /// A number at least as large.
        Gte,
        /// There is something other than null.
        Exists,
    }

    /// How fast the rest goes.
    pub struct Expansion {
        /// The rate at the start.
        pub start_per_s: Thousandths,
        /// Never above.
        pub max_per_s: Thousandths,
        /// What a step multiplies by; at least 1.
        pub step_factor: Thousandths,
        /// How long a step is, seconds.
        pub step_s: i64,
        /// Confirmed and unfinished at most.
        pub max_in_flight: i64,
        /// `keep` or `pause`.
        pub on_red: OnRed,
        /// How many of the rest are verified by the probe; 0–100 %, in percent.
        pub verify_sample_percent: i64,
    }

    /// What a red guard does.
    #[derive(Copy, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum OnRed {
        /// Halve once, then pause.
        Halve,
        /// Pause at once.
        Pause,
    }

    /// A cohort, as a row of the list.
    pub struct CohortRow {
        /// Identity.
        pub id: CohortId,
        /// Its queue.
        pub queue: QueueRef,
        /// Title.
        pub title: String,
        /// Where it is.
        pub state: CohortState,
        /// Why it is there: in the words of `state_by`, or Lazaret's own where that is null (then it may begin with a code).
        pub state_reason: Option<String>,
        /// Since when it is there.
        pub state_since: Timestamp,
        /// Who put it there; `None` is Lazaret itself.
        pub state_by: Option<UserRef>,
        /// Rises with each edit of the plan.
        pub revision: i64,
        /// Rises with every write; the ETag.
        pub version: i64,
        /// How many messages.
        pub size: i64,
        /// Items by state; adds up to `size`.
        pub counts: Vec<StateCount>,
        /// The author.
        pub created_by: UserRef,
        /// When.
        pub created_at: Timestamp,
        /// Allocated at approval.
        pub generation: Option<i64>,
        /// Whether a redrive id was seen on two messages, or evidence contradicts a resolution.
        pub published_twice: bool,
    }

    /// Items in one state.
    pub struct StateCount {
        /// The state.
        pub state: ItemState,
        /// How many.
        pub count: i64,
    }

    /// `GET /cohorts/{id}`.
    pub struct Cohort {
        /// All that the list shows.
        #[serde(flatten)]
        pub row: CohortRow,
        /// What people wrote.
        pub draft: Draft,
        /// Where the messages would go, and who else would get them.
        pub target: ResolvedTarget,
        /// SHA-256 of the plan's canonical bytes, hex.
        pub plan_digest: String,
        /// Strata, in the order in which their canaries run.
        pub strata: Vec<Stratum>,
        /// The pre-flight as last run.
        pub preflight: Preflight,
        /// Reviews of every revision, oldest first.
        pub reviews: Vec<Review>,
        /// How many approvals are needed and given on this revision.
        pub approvals: Approvals,
        /// Who may approve, and why the rest may not.
        pub reviewers: Vec<Reviewer>,
        /// What the reader may do now, and why not.
        pub acts: Vec<Act>,
        /// When each stage was entered, oldest first.
        pub stages: Vec<StageEntry>,
        /// The canary of each stratum that was run.
        pub canaries: Vec<super::Canary>,
    }

    /// Where the messages go.
    pub struct ResolvedTarget {
        /// `""` is the default exchange.
        pub exchange: String,
        /// The key.
        pub routing_key: String,
        /// Queues that get it, by the management API; `None` when it can't be asked.
        pub receivers: Option<Vec<String>>,
        /// Whether it is the default of RULES 6.
        pub is_default: bool,
    }

    /// Items that are alike: fingerprint × correction × target.
    pub struct Stratum {
        /// From 0.
        pub index: i64,
        /// The group key.
        pub fingerprint: String,
        /// The class.
        pub error_class: Option<String>,
        /// How many.
        pub size: i64,
        /// Its first canary.
        pub canary: Option<QuarantineId>,
        /// Whether a person opened the payload of each canary that the plan names here, since custody.
        pub canary_inspected: bool,
    }

    /// What the pre-flight found.
    pub struct Preflight {
        /// When; `None` before the first.
        pub at: Option<Timestamp>,
        /// Each stops the submit.
        pub refusals: Vec<Finding>,
        /// Each must be accepted by name.
        pub warnings: Vec<Finding>,
    }

    /// One finding of a pre-flight.
    pub struct Finding {
        /// RULES 6's code.
        pub code: String,
        /// In words.
        pub detail: String,
        /// Which messages; empty is the whole cohort. At most 100 are listed.
        pub items: Vec<QuarantineId>,
        /// How many messages in all.
        pub count: i64,
        /// For a warning: whether the draft accepts it.
        pub accepted: bool,
    }

    /// One review.
    pub struct Review {
        /// Who.
        pub by: UserRef,
        /// When.
        pub at: Timestamp,
        /// Of which revision.
        pub revision: i64,
        /// `approve`, `request_changes`, `reject`, `revoke`.
        pub decision: CohortCommand,
        /// Of which digest, hex.
        pub plan_digest: String,
        /// In the reviewer's words.
        pub comment: Option<String>,
        /// Whether it still counts.
        pub valid: bool,
    }

    /// Approvals on this revision.
    pub struct Approvals {
        /// By the queue's policy.
        pub needed: i64,
        /// Valid ones.
        pub given: i64,
    }

    /// A person with the approver role, or the reader.
    pub struct Reviewer {
        /// Who.
        pub user: UserRef,
        /// Whether they may approve now.
        pub eligible: bool,
        /// `self_approval`, `tainted_approver`, `machine`, `missing_role`, `already_approved`.
        pub reason: Option<String>,
        /// In words.
        pub detail: String,
    }

    /// One act, for the reader, now.
    pub struct Act {
        /// Which.
        pub command: CohortCommand,
        /// Whether the server would take it now.
        pub allowed: bool,
        /// The code it would refuse with.
        pub reason: Option<String>,
        /// In words: `needs approver`, `frozen by mara: …`.
        pub detail: Option<String>,
        /// What it must be confirmed with, where more than one message moves.
        pub confirm_count: Option<i64>,
    }

    /// A stage that was entered.
    pub struct StageEntry {
        /// The state.
        pub state: CohortState,
        /// When.
        pub at: Timestamp,
        /// By whom; `None` is the system.
        pub by: Option<UserRef>,
        /// Why: in the words of `by`, or Lazaret's own where that is null.
        pub reason: Option<String>,
    }

    /// One item.
    pub struct CohortItem {
        /// Identity.
        pub id: ItemId,
        /// The dead letter.
        pub quarantine_id: QuarantineId,
        /// Its order in the plan, from 0.
        pub position: i64,
        /// Its stratum.
        pub stratum: i64,
        /// The job.
        pub job_id: Option<AppName>,
        /// Whether it was a canary.
        pub canary: bool,
        /// Where it is.
        pub state: ItemState,
        /// Why, where a state has a reason.
        pub state_reason: Option<String>,
        /// Given at hand-over.
        pub redrive_id: Option<RedriveId>,
        /// The owner's epoch at hand-over.
        pub epoch: Option<i64>,
        /// When it was handed to the broker.
        pub published_at: Option<Timestamp>,
        /// When the broker took it.
        pub confirmed_at: Option<Timestamp>,
        /// For an item in doubt: what is known.
        pub evidence: Vec<ItemEvidence>,
        /// A person's word that waits for a second person.
        pub pending_resolution: Option<PendingResolution>,
        /// Every step, oldest first (only in the single item and for items in doubt).
        pub steps: Vec<ItemStep>,
    }

    /// What is known of an item.
    pub struct ItemEvidence {
        /// `event`, `dead_letter`, `probe`, `late_confirm`, `epoch`.
        pub source: String,
        /// In words.
        pub detail: String,
        /// When.
        pub at: Timestamp,
    }

    /// A resolution that waits for a second person.
    pub struct PendingResolution {
        /// By whom.
        pub by: UserRef,
        /// When.
        pub at: Timestamp,
        /// Why.
        pub reason: String,
    }

    /// One step of an item.
    pub struct ItemStep {
        /// From.
        pub from: Option<ItemState>,
        /// To.
        pub to: ItemState,
        /// When.
        pub at: Timestamp,
        /// Under which epoch.
        pub epoch: Option<i64>,
        /// Why.
        pub cause: String,
    }

    /// `GET /cohorts/{id}/plan`.
    pub struct PlanView {
        /// The canonical bytes, as text (they are UTF-8 JSON).
        pub canonical: String,
        /// SHA-256 with the domain prefix, hex.
        pub plan_digest: String,
        /// The prefix that is hashed before the bytes.
        pub digest_prefix: String,
        /// What differs from the last reviewed revision.
        pub changes: Vec<PlanChange>,
        /// Which revision that was.
        pub changes_since_revision: Option<i64>,
    }

    /// One difference.
    pub struct PlanChange {
        /// JSON pointer.
        pub pointer: String,
        /// Before.
        pub before: Option<serde_json::Value>,
        /// After.
        pub after: Option<serde_json::Value>,
    }

    /// `…/approve`.
    pub struct Approve {
        /// The digest that the reviewer saw, hex.
        pub plan_digest: String,
        /// In the reviewer's words; 1–2 000 characters.
        pub comment: String,
    }

    /// `…/request-changes`, `…/reject`, `…/withdraw`, `…/discard`, `…/revoke`.
    pub struct Comment {
        /// In the person's words; 1–2 000 characters.
        pub comment: String,
    }

    /// `…/canary`, `…/verify-again`, `…/next-canary`, `…/fail`, `…/canary-again`, `…/expand`, `…/pause`, `…/resume`, `…/abort`.
    pub struct ReplayAct {
        /// Why.
        pub reason: String,
        /// The number of messages that may move by it; needed for more than one.
        #[serde(default)] pub confirm_count: Option<i64>,
    }

    /// `…/items/{item_id}/resolve`.
    pub struct Resolve {
        /// What became of it.
        pub outcome: ResolveOutcome,
        /// How the person knows.
        pub reason: String,
    }

    /// What became of an item in doubt.
    #[derive(Copy, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum ResolveOutcome {
        /// It is or was on the queue.
        Arrived,
        /// It never got there; needs a second person.
        NotPublished,
    }
}
