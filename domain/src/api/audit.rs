//! The audit trail.

use super::{Timestamp, wire};
use crate::{
    ids::{AuditId, UserId},
    vocabulary::{Action, Role},
};

wire! {
    /// One recorded decision.
    pub struct AuditEntry {
        /// Identity.
        pub id: AuditId,
        /// Its number in the log; `None` until sealed.
        pub seq: Option<i64>,
        /// The database's clock.
        pub at: Timestamp,
        /// Who.
        pub actor: AuditActor,
        /// What: `noun.verb`.
        pub action: Action,
        /// On what.
        pub subject: AuditSubject,
        /// The subject before, where it changed; commitments in place of payloads.
        pub before: Option<serde_json::Value>,
        /// The subject after.
        pub after: Option<serde_json::Value>,
        /// Why, in the actor's words.
        pub reason: Option<String>,
        /// Names the request in the logs.
        pub request_id: Option<String>,
        /// The address it came from.
        pub ip: Option<String>,
        /// `done` or `refused`.
        pub result: AuditResult,
        /// The refusal's code.
        pub code: Option<String>,
        /// How often, for refusals that were folded to one a minute.
        pub count: i64,
    }

    /// Who did it.
    pub struct AuditActor {
        /// `person`, `machine` or `system`.
        pub kind: String,
        /// `None` for `system`.
        pub id: Option<UserId>,
        /// The name then.
        pub name: String,
        /// The roles then.
        pub roles: Vec<Role>,
        /// Which session or credential.
        pub credential_id: Option<String>,
    }

    /// On what it was done.
    pub struct AuditSubject {
        /// `cohort`, `item`, `queue`, `dead_letter_queue`, `broker`, `probe`, `user`, `session`, `quarantine`, `freeze`.
        pub kind: String,
        /// Its id or name.
        pub id: String,
        /// What a person calls it.
        pub name: Option<String>,
    }

    /// How it ended.
    #[derive(Copy, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum AuditResult {
        /// It was done.
        Done,
        /// A rule or a missing right said no.
        Refused,
    }
}
