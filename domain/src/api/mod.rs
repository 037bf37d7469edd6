//! Request and response types of `/api/v1`: the one set for server, browser, command line and tests.

mod audit;
mod brokers;
mod cohorts;
mod events;
mod probes;
mod quarantine;
mod queues;
mod replay;
mod scalars;
mod session;
mod users;

pub use audit::*;
pub use brokers::*;
pub use cohorts::*;
pub use events::*;
pub use probes::*;
pub use quarantine::*;
pub use queues::*;
pub use replay::*;
pub use scalars::*;
pub use session::*;
pub use users::*;

/// Derives for a wire type: JSON both ways, comparable, in OpenAPI with feature `openapi`.
macro_rules! wire {
    ($($item:item)*) => {$(
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        $item
    )*};
}
pub(crate) use wire;

wire! {
    /// RFC 9457 `application/problem+json`.
    pub struct Problem {
        /// `/problems/<code>`.
        #[serde(rename = "type")]
        pub type_uri: String,
        /// Short, the same for every occurrence of the code.
        pub title: String,
        /// The HTTP status.
        pub status: u16,
        /// What happened this time, for the reader.
        pub detail: String,
        /// Stable, `snake_case`.
        pub code: String,
        /// Names this request in the logs.
        pub request_id: String,
        /// Bad fields, by JSON pointer.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub errors: Vec<FieldError>,
        /// Facts that the refusal rests on (per-item refusals, legal commands, who is missing); by code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub facts: Option<serde_json::Value>,
    }

    /// One bad field.
    pub struct FieldError {
        /// JSON pointer into the request body, or the query parameter's name.
        pub pointer: String,
        /// What is wrong with it.
        pub detail: String,
    }

    /// How many there are.
    pub struct Total {
        /// The count.
        pub value: i64,
        /// `eq`: exact; `gte`: at least.
        pub relation: TotalRelation,
    }

    /// Whether a total is exact.
    #[derive(Copy, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum TotalRelation {
        /// Exact.
        Eq,
        /// A lower bound.
        Gte,
    }

    /// An acting request that says only why.
    pub struct Reason {
        /// Why; goes into the audit entry. 1–2 000 characters.
        pub reason: String,
    }

    /// A small note on `GET /stream`: something changed; re-read it.
    pub struct Changed {
        /// The topic: `queues`, `quarantine`, `cohorts`, `audit`, `freeze`.
        pub topic: String,
        /// Which one, where one is meant.
        pub id: Option<uuid::Uuid>,
    }
}

/// One page of a list, by keyset: nothing is skipped or repeated while rows arrive.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Give it as `cursor` to go on; absent at the end.
    pub next_cursor: Option<String>,
    /// How many match in all.
    pub total: Total,
}
