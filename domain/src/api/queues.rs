//! Watched queues, their dead-letter queues, and the freeze switch.

use super::{Reading, Thousandths, Timestamp, UserRef, wire};
use crate::{
    ids::{BrokerId, DeadLetterQueueId, QueueId},
    vocabulary::{CustodyMode, CustodyState},
};

wire! {
    /// A watched source queue.
    pub struct Queue {
        /// Identity.
        pub id: QueueId,
        /// Its cluster.
        pub broker_id: BrokerId,
        /// Virtual host.
        pub vhost: String,
        /// Name.
        pub name: String,
        /// Where its dead letters go.
        pub dead_letter_queue: DeadLetterQueueRef,
        /// What applications call their headers.
        pub headers: HeaderMapping,
        /// Which classes may be retried, and how often.
        pub retry_policy: RetryPolicy,
        /// The version of the policy; frozen on evidence at custody.
        pub policy_version: i64,
        /// Service-level objectives.
        pub slo: Slo,
        /// Who must agree.
        pub approval_policy: ApprovalPolicy,
        /// The probe that a new draft starts with.
        pub default_probe: Option<String>,
        /// The highest generation that was allocated here.
        pub redrive_generation: i64,
        /// Whether replay into it is stopped, by its own switch or the one for all.
        pub frozen: Option<Freeze>,
        /// Live readings.
        pub readings: QueueReadings,
        /// How many of its messages are held in the vault.
        pub held: i64,
        /// When it was put under watch.
        pub created_at: Timestamp,
        /// The ETag.
        pub version: i64,
    }

    /// A DLQ, named.
    pub struct DeadLetterQueueRef {
        /// Identity.
        pub id: DeadLetterQueueId,
        /// Name, in the queue's virtual host.
        pub name: String,
    }

    /// Header names by meaning; `None` where applications send no such header.
    #[derive(Default)]
    pub struct HeaderMapping {
        /// Where the message id isn't the `message_id` property.
        #[serde(default)] pub message_id: Option<String>,
        /// The logical operation.
        #[serde(default)] pub job_id: Option<String>,
        /// The application's own count, from 1.
        #[serde(default)] pub attempt: Option<String>,
        /// The budget.
        #[serde(default)] pub max_attempts: Option<String>,
        /// What makes the effect happen once.
        #[serde(default)] pub idempotency_key: Option<String>,
        /// The worker's name for the failure.
        #[serde(default)] pub error_class: Option<String>,
        /// The worker's words for the failure.
        #[serde(default)] pub error_text: Option<String>,
        /// Which worker revision failed.
        #[serde(default)] pub worker_version: Option<String>,
        /// When a producer published it.
        #[serde(default)] pub enqueued_at: Option<String>,
        /// The message that this one replaces.
        #[serde(default)] pub parent_message_id: Option<String>,
    }

    /// Which error classes are permanent; the rest of the named ones transient; others unknown (counted as permanent).
    #[derive(Default)]
    pub struct RetryPolicy {
        /// The budget where the message says none.
        #[serde(default)] pub max_attempts: Option<i64>,
        /// Fail the same way until something is corrected.
        #[serde(default)] pub permanent_classes: Vec<String>,
        /// May succeed later, unchanged.
        #[serde(default)] pub transient_classes: Vec<String>,
    }

    /// Service-level objectives; absent ones aren't judged.
    #[derive(Default)]
    pub struct Slo {
        /// From accepted to effect, seconds.
        #[serde(default)] pub completion_s: Option<i64>,
        /// Oldest healthy message, seconds.
        #[serde(default)] pub oldest_age_s: Option<i64>,
        /// Unfinished deliveries.
        #[serde(default)] pub in_flight: Option<i64>,
    }

    /// How many people must agree.
    pub struct ApprovalPolicy {
        /// At least 1.
        pub approvals: i64,
    }

    /// `POST /queues`.
    pub struct NewQueue {
        /// Its cluster.
        pub broker_id: BrokerId,
        /// Virtual host.
        pub vhost: String,
        /// Name; it must exist at the broker.
        pub name: String,
        /// The DLQ's name, in the same virtual host; registered with custody `off` if it is new.
        pub dead_letter_queue: String,
        /// Header names.
        #[serde(default)] pub headers: HeaderMapping,
        /// Classes.
        #[serde(default)] pub retry_policy: RetryPolicy,
        /// Objectives.
        #[serde(default)] pub slo: Slo,
        /// One approval where absent.
        #[serde(default)] pub approval_policy: Option<ApprovalPolicy>,
        /// The probe that a new draft starts with.
        #[serde(default)] pub default_probe: Option<String>,
    }

    /// `PATCH /queues/{id}`; absent fields stay.
    pub struct ChangeQueue {
        /// Header names.
        pub headers: Option<HeaderMapping>,
        /// Classes; loosening needs no second person only while the queue holds no evidence.
        pub retry_policy: Option<RetryPolicy>,
        /// Objectives.
        pub slo: Option<Slo>,
        /// Who must agree.
        pub approval_policy: Option<ApprovalPolicy>,
        /// The probe that a new draft starts with.
        pub default_probe: Option<String>,
    }

    /// What the queue looks like now; each with source and age.
    pub struct QueueReadings {
        /// Ready messages.
        pub ready: Reading,
        /// Delivered, unacknowledged.
        pub unacknowledged: Reading,
        /// Age of the oldest unfinished job without a redrive id that has not failed, seconds.
        pub healthy_age_s: Reading,
        /// Attempts begun and not ended, by events.
        pub in_flight: Reading,
        /// Arrivals per second.
        pub arrival_per_s: Reading,
        /// Failed attempts per second, by error class.
        pub retries_by_class: Vec<ClassRate>,
        /// Why `retries_by_class` is unknown, where it is: without it, none is known to have failed.
        pub retries_by_class_reason: Option<String>,
        /// Worker versions that began an attempt in the last minute.
        pub consuming_versions: Vec<String>,
        /// Why `consuming_versions` is unknown, where it is.
        pub consuming_versions_reason: Option<String>,
    }

    /// Failed attempts of one class.
    pub struct ClassRate {
        /// The class.
        pub error_class: String,
        /// Per second, over the last minute.
        pub per_s: Thousandths,
    }

    /// A dead-letter queue and its custody.
    pub struct DeadLetterQueue {
        /// Identity.
        pub id: DeadLetterQueueId,
        /// Its cluster.
        pub broker_id: BrokerId,
        /// Virtual host.
        pub vhost: String,
        /// Name.
        pub name: String,
        /// The queues whose dead letters it takes.
        pub queues: Vec<String>,
        /// What Lazaret does with it.
        pub custody: CustodyMode,
        /// How that goes.
        pub state: CustodyState,
        /// Why it isn't draining.
        pub state_reason: Option<String>,
        /// Since when.
        pub state_since: Timestamp,
        /// The owner's epoch; rises at each takeover.
        pub lease_epoch: i64,
        /// The process that holds the lease.
        pub lease_owner: Option<String>,
        /// Messages still on the DLQ at the broker.
        pub backlog: Reading,
        /// Rows in the vault.
        pub stored: i64,
        /// The ETag.
        pub version: i64,
    }

    /// `PATCH /dead-letter-queues/{id}`.
    pub struct ChangeDeadLetterQueue {
        /// What Lazaret does with it.
        pub custody: CustodyMode,
        /// Why; goes into the audit entry.
        pub reason: String,
    }

    /// Why replay is stopped.
    pub struct Freeze {
        /// `all`, or one queue.
        pub scope: FreezeScope,
        /// Who did it.
        pub by: UserRef,
        /// Why.
        pub reason: String,
        /// When.
        pub at: Timestamp,
    }

    /// What a freeze covers.
    #[derive(Copy, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum FreezeScope {
        /// Every replay.
        All,
        /// One queue's.
        Queue,
    }

    /// The answer to a freeze or unfreeze.
    pub struct FreezeResult {
        /// Whether it is frozen now.
        pub frozen: bool,
        /// Consumers on the DLQ that aren't Lazaret's: what the freeze doesn't contain.
        pub not_contained: Vec<String>,
        /// Why that isn't known, where it isn't.
        pub not_contained_reason: Option<String>,
        /// Items that were handed to the broker and are unanswered; a freeze doesn't recall them.
        pub publishing: Vec<crate::ids::ItemId>,
    }

    /// `GET /freeze`: every switch that is on.
    pub struct Freezes {
        /// Whether every replay is stopped.
        pub all: Option<Freeze>,
        /// Queues that are stopped by their own switch.
        pub queues: Vec<QueueFreeze>,
    }

    /// One frozen queue.
    pub struct QueueFreeze {
        /// Which.
        pub queue_id: QueueId,
        /// Its name.
        pub queue: String,
        /// Why.
        pub freeze: Freeze,
    }
}
