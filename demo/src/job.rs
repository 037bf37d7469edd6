//! The headers that every message of the shop carries.

use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable},
};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

/// The logical operation.
pub const JOB_ID: &str = "job-id";
/// The application's own count, from 1.
pub const ATTEMPT: &str = "attempt";
/// The budget.
pub const MAX_ATTEMPTS: &str = "max-attempts";
/// What makes the effect happen once.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// When the producer published the job, RFC 3339.
pub const ENQUEUED_AT: &str = "enqueued-at";
/// The message that this one replaces.
pub const PARENT_MESSAGE_ID: &str = "parent-message-id";
/// Written by Lazaret on a redrive.
pub const REDRIVE_ID: &str = "lazaret-redrive-id";
/// Written by Lazaret on a redrive.
pub const REDRIVE_GENERATION: &str = "redrive-generation";

/// What a message says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The logical operation.
    pub job_id: String,
    /// The physical message (the AMQP property).
    pub message_id: String,
    /// The message that this one replaces.
    pub parent_message_id: Option<String>,
    /// From 1; rises by one per executed attempt, across messages.
    pub attempt: i64,
    /// The budget.
    pub max_attempts: i64,
    /// What makes the effect happen once.
    pub idempotency_key: String,
    /// When the producer published the job.
    pub enqueued_at: Option<OffsetDateTime>,
    /// Set on a redrive.
    pub redrive_id: Option<Uuid>,
    /// Set on a redrive.
    pub redrive_generation: Option<i64>,
}

impl Job {
    /// Reads the headers; `None` when there is no job id, without which nothing can be said.
    #[must_use]
    pub fn read(properties: &BasicProperties) -> Option<Self> {
        let none = FieldTable::default();
        let headers = properties.headers().as_ref().unwrap_or(&none);
        let text = |name: &str| headers.inner().get(name).and_then(as_text);
        let integer = |name: &str| headers.inner().get(name).and_then(as_integer);
        let job_id = text(JOB_ID)?;
        Some(Self {
            message_id: properties.message_id().as_ref().map(ToString::to_string).unwrap_or_default(),
            parent_message_id: text(PARENT_MESSAGE_ID),
            attempt: integer(ATTEMPT).unwrap_or(1),
            max_attempts: integer(MAX_ATTEMPTS).unwrap_or(1),
            idempotency_key: text(IDEMPOTENCY_KEY).unwrap_or_else(|| job_id.clone()),
            enqueued_at: text(ENQUEUED_AT).and_then(|at| OffsetDateTime::parse(&at, &Rfc3339).ok()),
            redrive_id: text(REDRIVE_ID).and_then(|id| id.parse().ok()),
            redrive_generation: integer(REDRIVE_GENERATION),
            job_id,
        })
    }

    /// The number of the execution that this delivery is. A redrive carries the header as it was when the message
    /// died, and is one execution more.
    #[must_use]
    pub fn executed_attempt(&self) -> i64 {
        self.attempt + i64::from(self.redrive_id.is_some())
    }

    /// The message that revision 2026.12.1 publishes in place of this one. It is another physical message, so it
    /// carries no redrive id; the generation is the job's and stays.
    #[must_use]
    pub fn replacement(&self) -> Self {
        Self {
            message_id: Uuid::now_v7().to_string(),
            parent_message_id: Some(self.message_id.clone()),
            attempt: self.executed_attempt() + 1,
            redrive_id: None,
            ..self.clone()
        }
    }

    /// Persistent, with all headers.
    ///
    /// # Errors
    /// When the instant can't be written as RFC 3339.
    pub fn properties(&self) -> anyhow::Result<BasicProperties> {
        let mut headers = FieldTable::default();
        let mut text = |name: &str, value: &str| {
            headers.insert(name.into(), AMQPValue::LongString(value.into()));
        };
        text(JOB_ID, &self.job_id);
        text(IDEMPOTENCY_KEY, &self.idempotency_key);
        if let Some(at) = self.enqueued_at {
            text(ENQUEUED_AT, &at.format(&Rfc3339)?);
        }
        if let Some(parent) = &self.parent_message_id {
            text(PARENT_MESSAGE_ID, parent);
        }
        if let Some(id) = self.redrive_id {
            text(REDRIVE_ID, &id.to_string());
        }
        let mut integer = |name: &str, value| {
            headers.insert(name.into(), AMQPValue::LongLongInt(value));
        };
        integer(ATTEMPT, self.attempt);
        integer(MAX_ATTEMPTS, self.max_attempts);
        if let Some(generation) = self.redrive_generation {
            integer(REDRIVE_GENERATION, generation);
        }
        Ok(BasicProperties::default()
            .with_message_id(self.message_id.as_str().into())
            .with_content_type("application/json".into())
            .with_delivery_mode(2)
            .with_headers(headers))
    }
}

fn as_text(value: &AMQPValue) -> Option<String> {
    match value {
        AMQPValue::LongString(text) => Some(String::from_utf8_lossy(text.as_bytes()).into_owned()),
        _ => None,
    }
}

/// Any integer that AMQP has.
pub(crate) fn as_integer(value: &AMQPValue) -> Option<i64> {
    match *value {
        AMQPValue::ShortShortInt(n) => Some(n.into()),
        AMQPValue::ShortShortUInt(n) => Some(n.into()),
        AMQPValue::ShortInt(n) => Some(n.into()),
        AMQPValue::ShortUInt(n) => Some(n.into()),
        AMQPValue::LongInt(n) => Some(n.into()),
        AMQPValue::LongUInt(n) => Some(n.into()),
        AMQPValue::LongLongInt(n) => Some(n),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        Job {
            job_id: "ord-000001.invoice".to_owned(),
            message_id: "m-1".to_owned(),
            parent_message_id: None,
            attempt: 2,
            max_attempts: 5,
            idempotency_key: "invoice:ord-000001".to_owned(),
            enqueued_at: Some(time::macros::datetime!(2026-12-02 03:14:20.5 UTC)),
            redrive_id: Some(Uuid::from_u128(7)),
            redrive_generation: Some(1),
        }
    }

    #[test]
    fn headers_are_read_as_they_are_written() {
        assert_eq!(Job::read(&job().properties().unwrap()), Some(job()));
        assert_eq!(Job::read(&BasicProperties::default()), None);
    }

    #[test]
    fn a_redrive_is_one_execution_more() {
        assert_eq!(job().executed_attempt(), 3);
        assert_eq!(Job { redrive_id: None, ..job() }.executed_attempt(), 2);
    }

    #[test]
    fn a_replacement_is_another_message_of_the_same_job() {
        let replaced = job().replacement();
        assert_eq!((&replaced.job_id, &replaced.idempotency_key), (&job().job_id, &job().idempotency_key));
        assert_eq!((replaced.attempt, replaced.parent_message_id.as_deref()), (4, Some("m-1")));
        assert_eq!((replaced.redrive_id, replaced.redrive_generation), (None, Some(1)));
        assert_ne!(replaced.message_id, "m-1");
    }
}
