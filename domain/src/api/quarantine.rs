//! Evidence: what the vault holds.

use super::{Timestamp, UserRef, wire};
use crate::{
    ids::{AppName, CohortId, DeadLetterQueueId, ItemId, QuarantineId, QueueId, RedriveId},
    vocabulary::{ItemState, Kind, QuarantineState},
};

wire! {
    /// A quarantined message, as a row of the list.
    pub struct QuarantineRow {
        /// Identity.
        pub id: QuarantineId,
        /// Whose it is; `None` is unattributed.
        pub queue: Option<QueueRef>,
        /// Derived.
        pub state: QuarantineState,
        /// The logical operation, if the message names one.
        pub job_id: Option<AppName>,
        /// The physical message's own id, if it has one.
        pub message_id: Option<AppName>,
        /// The application's own count.
        pub attempt: Option<i64>,
        /// The budget.
        pub max_attempts: Option<i64>,
        /// The broker's count, where it gives one.
        pub delivery_count: Option<i64>,
        /// The generation that the message carries.
        pub redrive_generation: Option<i64>,
        /// The worker's name for the failure; `None` is `unclassified`.
        pub error_class: Option<String>,
        /// The worker's words, sanitised, at most 300 characters here.
        pub error_text: Option<String>,
        /// Judged at custody, frozen.
        pub kind: Kind,
        /// The group key.
        pub fingerprint: String,
        /// Which revision failed it.
        pub worker_version: Option<String>,
        /// Body size.
        pub size_bytes: i64,
        /// By the broker's `x-death`, whole seconds.
        pub dead_lettered_at: Option<Timestamp>,
        /// When it was committed to the vault.
        pub arrived_at: Timestamp,
        /// The row that it may be a second delivery of.
        pub possible_duplicate_of: Option<QuarantineId>,
        /// The unfinished cohort that claims it.
        pub cohort: Option<CohortRef>,
    }

    /// A queue, named.
    pub struct QueueRef {
        /// Identity.
        pub id: QueueId,
        /// Name.
        pub name: String,
    }

    /// A cohort, named.
    pub struct CohortRef {
        /// Identity.
        pub id: CohortId,
        /// Title.
        pub title: String,
    }

    /// `GET /quarantine`: the list with its facets. Each facet counts rows under all other filters.
    pub struct QuarantinePage {
        /// Newest first.
        pub items: Vec<QuarantineRow>,
        /// See [`super::Page`].
        pub next_cursor: Option<String>,
        /// How many match.
        pub total: super::Total,
        /// By filter name: `queue`, `state`, `error_class`, `worker_version`, `kind`.
        pub facets: Vec<Facet>,
    }

    /// The values of one filter.
    pub struct Facet {
        /// The query parameter.
        pub name: String,
        /// Most frequent first, at most 20.
        pub values: Vec<FacetValue>,
    }

    /// One value of a filter.
    pub struct FacetValue {
        /// As the query parameter takes it; `""` is "none".
        pub value: String,
        /// What a person calls it.
        pub label: String,
        /// How many.
        pub count: i64,
    }

    /// `GET /quarantine/groups`: one fingerprint.
    pub struct QuarantineGroup {
        /// The group key.
        pub fingerprint: String,
        /// The class.
        pub error_class: Option<String>,
        /// The text with its variable parts replaced.
        pub normalised_text: Option<String>,
        /// Its queue.
        pub queue: Option<QueueRef>,
        /// How many rows.
        pub count: i64,
        /// How many of them are held.
        pub held: i64,
        /// Oldest arrival.
        pub first_seen: Timestamp,
        /// Newest arrival.
        pub last_seen: Timestamp,
        /// Revisions that failed them.
        pub worker_versions: Vec<String>,
        /// One of them.
        pub sample_id: QuarantineId,
    }

    /// `GET /quarantine/{id}`.
    pub struct QuarantinedMessage {
        /// All that the list shows.
        #[serde(flatten)]
        pub row: QuarantineRow,
        /// Where it died and was published first.
        pub broker: BrokerFacts,
        /// Properties, in AMQP order, readable.
        pub properties: Vec<TypedField>,
        /// Headers as they arrived, readable, with what a redrive does to each.
        pub headers: Vec<TypedField>,
        /// About the body.
        pub payload: PayloadFacts,
        /// How it came into the vault.
        pub custody: CustodyFacts,
        /// Every redrive of this message and of those it descends from, oldest first.
        pub lineage: Vec<LineageStep>,
        /// Who opened its payload since custody.
        pub inspected_by: Vec<Inspection>,
    }

    /// What the broker said.
    pub struct BrokerFacts {
        /// The exchange it was published to; `""` is the default exchange. `None` is unknown.
        pub original_exchange: Option<AppName>,
        /// The key it was published with.
        pub original_routing_key: Option<AppName>,
        /// The queue it died on last.
        pub died_on: Option<AppName>,
        /// `rejected`, `expired`, `maxlen`, `delivery_limit`.
        pub reason: Option<String>,
        /// `x-death` entries, newest first as the broker has them.
        pub deaths: Vec<DeathEntry>,
        /// A hint, never proof.
        pub redelivered: bool,
    }

    /// One (queue, reason) of `x-death`.
    pub struct DeathEntry {
        /// Queue.
        pub queue: Option<AppName>,
        /// Reason.
        pub reason: Option<String>,
        /// How often, merged by the broker.
        pub count: Option<i64>,
        /// The first death of the pair, whole seconds.
        pub at: Option<Timestamp>,
    }

    /// One property or header.
    pub struct TypedField {
        /// Its name, readable.
        pub name: String,
        /// The AMQP type: `longstr`, `int`, `table`, `array`, `timestamp`, …
        pub field_type: String,
        /// Readable projection; controls visible, bytes that aren't UTF-8 as `{"b64": …}`.
        pub value: serde_json::Value,
        /// What a redrive does with it: `keep`, `strip`, `replace`.
        pub redrive: String,
        /// Why, where it isn't kept.
        pub redrive_reason: Option<String>,
    }

    /// About a body; the body itself needs a reveal.
    pub struct PayloadFacts {
        /// Size.
        pub size_bytes: i64,
        /// Hex; `None` once erased.
        pub sha256: Option<String>,
        /// HMAC-SHA256 under a key beside the payload, hex; stays after erasure.
        pub commitment: String,
        /// As the property says.
        pub content_type: Option<String>,
        /// As the property says.
        pub content_encoding: Option<String>,
    }

    /// How it came into the vault.
    pub struct CustodyFacts {
        /// From which DLQ.
        pub dead_letter_queue: DeadLetterQueueId,
        /// Its name.
        pub dead_letter_queue_name: String,
        /// The batch that stored it.
        pub batch_id: uuid::Uuid,
        /// The lease's epoch then.
        pub epoch: i64,
        /// When the batch's acknowledgement is known to have been processed.
        pub acked_at: Option<Timestamp>,
        /// Deliveries that were absorbed into this row.
        pub absorbed: i64,
        /// The policy version that judged its kind.
        pub policy_version: Option<i64>,
        /// Who gave it to its queue, if a person did.
        pub assigned_by: Option<UserRef>,
    }

    /// One redrive.
    pub struct LineageStep {
        /// The dead letter that went back.
        pub quarantine_id: QuarantineId,
        /// By which cohort; `None` for a header that no cohort owns.
        pub cohort: Option<CohortRef>,
        /// The item.
        pub item_id: Option<ItemId>,
        /// Its redrive id.
        pub redrive_id: Option<RedriveId>,
        /// Its generation.
        pub redrive_generation: Option<i64>,
        /// How it ended.
        pub state: Option<ItemState>,
        /// When it was handed over.
        pub published_at: Option<Timestamp>,
    }

    /// A reveal.
    pub struct Inspection {
        /// Who.
        pub by: UserRef,
        /// When.
        pub at: Timestamp,
    }

    /// `POST /quarantine/{id}/reveal` → the payload.
    pub struct RevealedPayload {
        /// Whole size.
        pub size_bytes: i64,
        /// At most 256 KiB of it: as text where it is UTF-8 …
        pub text: Option<String>,
        /// … else base64.
        pub b64: Option<String>,
        /// Whether the preview is cut.
        pub truncated: bool,
        /// Parsed, when it is JSON of at most 256 KiB.
        pub json: Option<serde_json::Value>,
    }

    /// `POST /quarantine/{id}/assign`.
    pub struct Assign {
        /// Whose it is.
        pub queue_id: QueueId,
        /// Why.
        pub reason: String,
    }
}
