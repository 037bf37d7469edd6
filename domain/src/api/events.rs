//! Worker events.

use super::{Timestamp, wire};
use crate::{
    ids::{AppName, EventId, RedriveId},
    vocabulary::EventKind,
};

wire! {
    /// `POST /events`; at most 1 000.
    pub struct EventBatch {
        /// Each is read alone: a bad one is rejected by index, the rest go in.
        pub events: Vec<serde_json::Value>,
    }

    /// 202.
    pub struct EventReceipt {
        /// New ones.
        pub accepted: i64,
        /// Seen before, by `event_id`.
        pub duplicates: i64,
        /// Not taken.
        pub rejected: Vec<RejectedEvent>,
    }

    /// One event that wasn't taken.
    pub struct RejectedEvent {
        /// Its place in the batch, from 0.
        pub index: i64,
        /// `invalid_event`, `unknown_kind`, `unknown_queue`, `too_large`.
        pub code: String,
        /// What is wrong.
        pub detail: String,
    }

    /// One worker event.
    pub struct Event {
        /// Its sender's name for it; the same again is a duplicate.
        pub event_id: EventId,
        /// What happened.
        pub kind: EventKind,
        /// By the sender's clock.
        pub at: Timestamp,
        /// The watched queue's name.
        pub queue: String,
        /// The logical operation.
        pub job_id: AppName,
        /// The physical message.
        #[serde(default)] pub message_id: Option<AppName>,
        /// The application's own count, from 1.
        #[serde(default)] pub attempt: Option<i64>,
        /// The budget.
        #[serde(default)] pub max_attempts: Option<i64>,
        /// The broker's count for this physical message.
        #[serde(default)] pub delivery_count: Option<i64>,
        /// As the message carries it.
        #[serde(default)] pub redrive_generation: Option<i64>,
        /// As the message carries it.
        #[serde(default)] pub redrive_id: Option<RedriveId>,
        /// The worker's name for the failure.
        #[serde(default)] pub error_class: Option<String>,
        /// The worker's words for it.
        #[serde(default)] pub error_text: Option<String>,
        /// The worker's revision.
        #[serde(default)] pub worker_version: Option<String>,
        /// Its slice.
        #[serde(default)] pub slice: Option<String>,
        /// Who published it.
        #[serde(default)] pub producer: Option<String>,
        /// The message that this one replaces.
        #[serde(default)] pub parent_message_id: Option<AppName>,
        /// When a producer published it.
        #[serde(default)] pub enqueued_at: Option<Timestamp>,
        /// How the worker answered the broker: `ack`, `nack_requeue`, `reject`.
        #[serde(default)] pub ack_outcome: Option<String>,
        /// How long it took.
        #[serde(default)] pub duration_ms: Option<i64>,
        /// What makes the effect happen once.
        #[serde(default)] pub idempotency_key: Option<AppName>,
        /// The application's own.
        #[serde(default)] pub correlation_id: Option<AppName>,
        /// The application's own.
        #[serde(default)] pub trace_id: Option<String>,
    }
}
