//! The one error of `app` and `store`: free of transport; the reader's text apart from the internal cause.

use domain::api::FieldError;
use serde_json::Value;

/// Shorthand.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something wasn't done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Bad fields: 422 `invalid_request`, or a code of its own.
    #[error("{code}: {detail}")]
    Invalid {
        /// Stable code.
        code: &'static str,
        /// For the reader.
        detail: String,
        /// By JSON pointer.
        fields: Vec<FieldError>,
    },
    /// A rule said no: 409 with the rule's code; written to the audit trail as a refusal.
    #[error("{code}: {detail}")]
    Refused {
        /// The rule's code.
        code: &'static str,
        /// For the reader.
        detail: String,
        /// What it rests on.
        facts: Option<Value>,
    },
    /// Nobody is signed in: 401.
    #[error("no session")]
    Unauthenticated,
    /// The name or the password is wrong, or the account may not sign in: 401.
    #[error("wrong credentials")]
    WrongCredentials,
    /// Signed in, not allowed: 403, `missing_permission` or `reauthentication_required`.
    #[error("{code}: {detail}")]
    Forbidden {
        /// Stable code.
        code: &'static str,
        /// For the reader.
        detail: String,
    },
    /// There is no such thing: 404.
    #[error("no such {what}")]
    NotFound {
        /// The noun.
        what: &'static str,
    },
    /// 428: the change names no version.
    #[error("If-Match is missing")]
    PreconditionRequired,
    /// 412: the version named isn't the one now.
    #[error("stale version: now {now}")]
    Stale {
        /// The version now.
        now: i64,
    },
    /// 429.
    #[error("too many requests")]
    TooMany {
        /// When to come back, seconds.
        retry_after_s: u64,
    },
    /// 413.
    #[error("{detail}")]
    TooLarge {
        /// The limit, in words.
        detail: String,
    },
    /// 400: the request isn't of the form (`idempotency_key_required`, `bad_cursor` …).
    #[error("{code}: {detail}")]
    BadRequest {
        /// Stable code.
        code: &'static str,
        /// For the reader.
        detail: String,
    },
    /// 503: something that Lazaret needs can't be reached (`database_unavailable`, `no_management_api` …).
    #[error("{code}: {detail}")]
    Unavailable {
        /// Stable code.
        code: &'static str,
        /// For the reader.
        detail: String,
    },
    /// 500: a defect, or a failure that nobody named. The cause goes to the log, not to the reader.
    #[error("internal error")]
    Internal(#[source] anyhow::Error),
}

impl Error {
    /// A rule said no.
    pub fn refused(code: &'static str, detail: impl Into<String>) -> Self {
        Self::Refused { code, detail: detail.into(), facts: None }
    }

    /// One bad field.
    pub fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self::Invalid {
            code: "invalid_request",
            detail: "the request has bad fields".to_owned(),
            fields: vec![FieldError { pointer: pointer.into(), detail }],
        }
    }

    /// The code of a refusal that belongs into the audit trail.
    #[must_use]
    pub fn refusal_code(&self) -> Option<&'static str> {
        match self {
            Self::Refused { code, .. } | Self::Forbidden { code, .. } => Some(code),
            _ => None,
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) => {
                Self::Unavailable { code: "database_unavailable", detail: "the database can't be reached".to_owned() }
            }
            sqlx::Error::Database(error) if error.code().is_some_and(|code| is_an_outage(&code)) => {
                Self::Unavailable { code: "database_unavailable", detail: "the database takes no calls now".to_owned() }
            }
            other => Self::Internal(other.into()),
        }
    }
}

/// SQLSTATEs of a server that stops, starts, recovers or has no connection left: class 08, 53300, 57P01 to 57P03.
#[must_use]
pub fn is_an_outage(sqlstate: &str) -> bool {
    sqlstate.starts_with("08") || matches!(sqlstate, "53300" | "57P01" | "57P02" | "57P03")
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        Self::Internal(error)
    }
}

/// The name of the constraint that a statement broke, if that is what went wrong.
#[must_use]
pub fn broken_constraint(error: &sqlx::Error) -> Option<&str> {
    error.as_database_error().and_then(|e| e.constraint())
}
