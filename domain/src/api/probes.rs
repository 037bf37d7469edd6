//! Probes: admin-configured queries for the durable effect of a job.

use super::{Timestamp, wire};

wire! {
    /// A probe.
    pub struct Probe {
        /// Unique, `a-z0-9-`.
        pub name: String,
        /// How it asks.
        pub definition: ProbeDefinition,
        /// When it was last changed.
        pub changed_at: Timestamp,
        /// The ETag; absent probes have none.
        pub version: i64,
    }

    /// How a probe asks.
    #[serde(tag = "kind", rename_all = "snake_case")]
    pub enum ProbeDefinition {
        /// One read-only SQL statement with one bound parameter, the job id as text. 2 s, at most 10 rows.
        Sql {
            /// Where the database URL is kept: `env:NAME` or `file:PATH`.
            database: String,
            /// The statement; `$1` is the job id.
            statement: String,
            /// The column that carries the redrive id, for attribution.
            redrive_id_column: Option<String>,
        },
    }

    /// `PUT /probes/{name}`.
    pub struct PutProbe {
        /// How it asks.
        pub definition: ProbeDefinition,
        /// Why; goes into the audit entry.
        pub reason: String,
    }

    /// `POST /probes/{name}/try`.
    pub struct TryProbe {
        /// The job to ask about.
        pub job_id: crate::ids::AppName,
    }

    /// What a probe answered.
    pub struct ProbeSample {
        /// When the database said so: its own clock.
        pub as_of: Option<Timestamp>,
        /// When we asked.
        pub at: Timestamp,
        /// The rows as JSON objects; `None` when it didn't answer.
        pub rows: Option<Vec<serde_json::Value>>,
        /// Why there is no answer: `timeout`, `error`, `too_many_rows`.
        pub reason: Option<String>,
        /// What the database said of it.
        pub detail: Option<String>,
    }
}
