//! What a message says of itself, through its queue's header mapping.
//!
//! Applications write what they like: an attempt may be any integer type or a decimal string, and may lie. Nothing
//! here is trusted; it is read, kept beside the broker's own facts, and `None` where it isn't there.

use uuid::Uuid;

use crate::amqp::{Properties, Value};
use crate::api::HeaderMapping;

/// The header that a replay writes: the redrive generation, an integer.
pub const REDRIVE_GENERATION: &str = "redrive-generation";
/// The header that a replay writes: the redrive id, a UUID.
pub const REDRIVE_ID: &str = "lazaret-redrive-id";

/// What the message says of itself. Names are bytes, since nothing makes an application write UTF-8; an empty name
/// says nothing and is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SelfReport {
    /// The message id.
    pub message_id: Option<Vec<u8>>,
    /// The job id.
    pub job_id: Option<Vec<u8>>,
    /// The attempt, as claimed; may be less than 1.
    pub attempt: Option<i64>,
    /// The attempt budget, as claimed; may be less than 1.
    pub max_attempts: Option<i64>,
    /// The idempotency key.
    pub idempotency_key: Option<Vec<u8>>,
    /// The error class.
    pub error_class: Option<Vec<u8>>,
    /// The error text; counts as payload (RULES 1).
    pub error_text: Option<Vec<u8>>,
    /// The worker revision.
    pub worker_version: Option<Vec<u8>>,
    /// The enqueue time.
    pub enqueued_at: Option<EnqueuedAt>,
    /// The parent message.
    pub parent_message_id: Option<Vec<u8>>,
    /// The broker's `x-delivery-count`. On RabbitMQ 4 a copy that a client sent shows here too: a hint.
    pub delivery_count: Option<u64>,
    /// The redrive generation that it carries; counts only if a cohort owns it (RULES 3).
    pub redrive_generation: Option<u64>,
    /// The redrive id that it carries.
    pub redrive_id: Option<Uuid>,
}

/// An enqueue time as the sender wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnqueuedAt {
    /// Milliseconds since 1970, by the sender's clock.
    pub unix_ms: i64,
    /// False where the number can't be seconds of this or the last century, such as milliseconds sent by mistake;
    /// it is then shown and marked, not used.
    pub plausible: bool,
}

impl HeaderMapping {
    /// Reads what `properties` say under this mapping. A name that is `None` isn't looked for, except that the message
    /// id falls back to the property `message-id` and the enqueue time to the property `timestamp`.
    pub fn read(&self, properties: &Properties) -> SelfReport {
        let header = |name: &str| properties.headers.as_ref()?.get(name.as_bytes());
        let mapped = |name: &Option<String>| name.as_deref().and_then(header);
        let text = |name: &Option<String>| mapped(name).and_then(text);
        let int = |name: &Option<String>| mapped(name).and_then(int).and_then(|n| n.try_into().ok());
        let own_message_id = properties.message_id.as_ref().map(|id| id.as_bytes().to_vec());
        SelfReport {
            message_id: text(&self.message_id).or(own_message_id.filter(|id| !id.is_empty())),
            job_id: text(&self.job_id),
            attempt: int(&self.attempt),
            max_attempts: int(&self.max_attempts),
            idempotency_key: text(&self.idempotency_key),
            error_class: text(&self.error_class),
            error_text: text(&self.error_text),
            worker_version: text(&self.worker_version),
            enqueued_at: mapped(&self.enqueued_at)
                .and_then(EnqueuedAt::read)
                .or_else(|| properties.timestamp.and_then(|s| EnqueuedAt::from_seconds(s.into()))),
            parent_message_id: text(&self.parent_message_id),
            delivery_count: header("x-delivery-count").and_then(|v| v.as_int()?.try_into().ok()),
            redrive_generation: header(REDRIVE_GENERATION)
                .and_then(crate::headers::int)
                .and_then(|n| n.try_into().ok()),
            redrive_id: header(REDRIVE_ID).and_then(|v| Uuid::try_parse_ascii(v.as_bytes()?).ok()),
        }
    }
}

impl EnqueuedAt {
    /// The year 2100, in seconds; RabbitMQ's own timestamps are seconds.
    const LATEST_S: i128 = 4_102_444_800;

    fn read(value: &Value) -> Option<Self> {
        if let Some(seconds) = int(value) {
            return Self::from_seconds(seconds);
        }
        let text = std::str::from_utf8(value.as_bytes()?).ok()?;
        let at = time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).ok()?;
        let seconds: i128 = at.unix_timestamp().into();
        Some(Self { unix_ms: (at.unix_timestamp_nanos() / 1_000_000) as i64, plausible: Self::is_plausible(seconds) })
    }

    fn from_seconds(seconds: i128) -> Option<Self> {
        let unix_ms = seconds.checked_mul(1_000)?.try_into().ok()?;
        Some(Self { unix_ms, plausible: Self::is_plausible(seconds) })
    }

    fn is_plausible(seconds: i128) -> bool {
        (1..Self::LATEST_S).contains(&seconds)
    }
}

/// Text of a string, or of an integer that stands where a name should; empty is nothing.
fn text(value: &Value) -> Option<Vec<u8>> {
    let text = match value.as_bytes() {
        Some(bytes) => bytes.to_vec(),
        None => value.as_int()?.to_string().into_bytes(),
    };
    (!text.is_empty()).then_some(text)
}

/// A number of any integer type, or a decimal string of at most 20 characters.
fn int(value: &Value) -> Option<i128> {
    if let Some(n) = value.as_int() {
        return Some(n);
    }
    let digits = value.as_bytes().filter(|bytes| bytes.len() <= 20)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::amqp::{ShortString, Table, strategy};

    fn mapping() -> HeaderMapping {
        let name = |n: &str| Some(n.to_owned());
        HeaderMapping {
            message_id: None,
            job_id: name("job-id"),
            attempt: name("attempt"),
            max_attempts: name("max-attempts"),
            idempotency_key: name("idempotency-key"),
            error_class: name("error-class"),
            error_text: name("error-text"),
            worker_version: name("worker-version"),
            enqueued_at: name("enqueued-at"),
            parent_message_id: name("parent-message-id"),
        }
    }

    fn read(fields: &[(&str, Value)]) -> SelfReport {
        let headers: Table = fields.iter().map(|(k, v)| (ShortString::new(*k).unwrap(), v.clone())).collect();
        mapping().read(&Properties { headers: Some(headers), ..Properties::default() })
    }

    #[test]
    fn a_bare_message_says_nothing() {
        assert_eq!(mapping().read(&Properties::default()), SelfReport::default());
        assert_eq!(read(&[]), SelfReport::default());
    }

    #[test]
    fn attempts_of_any_type() {
        let cases = [
            (Value::I8(3), Some(3)),
            (Value::U8(3), Some(3)),
            (Value::I16(3), Some(3)),
            (Value::U16(3), Some(3)),
            (Value::I32(-1), Some(-1)),
            (Value::U32(u32::MAX), Some(4_294_967_295)),
            (Value::I64(i64::MAX), Some(i64::MAX)),
            (Value::text("3"), Some(3)),
            (Value::text("+3"), Some(3)),
            (Value::text("three"), None),
            (Value::text("9".repeat(20)), None),
            (Value::text("3.0"), None),
            (Value::text(""), None),
            (Value::F64(3.0.into()), None),
            (Value::Bool(true), None),
            (Value::Void, None),
        ];
        for (value, want) in cases {
            assert_eq!(read(&[("attempt", value.clone())]).attempt, want, "{value:?}");
        }
    }

    #[test]
    fn an_empty_name_says_nothing() {
        let report = read(&[("job-id", Value::text("")), ("error-class", Value::text(""))]);
        assert_eq!((report.job_id, report.error_class), (None, None));
        let properties = Properties { message_id: Some(ShortString::new("").unwrap()), ..Properties::default() };
        assert_eq!(mapping().read(&properties).message_id, None);
    }

    #[test]
    fn names_may_be_any_bytes_or_a_number() {
        let report = read(&[("job-id", Value::LongString(b"caf\xe9".to_vec())), ("error-class", Value::I32(17))]);
        assert_eq!(report.job_id.as_deref(), Some(&b"caf\xe9"[..]));
        assert_eq!(report.error_class.as_deref(), Some(&b"17"[..]));
    }

    #[test]
    fn enqueue_times() {
        let at = |v: Value| read(&[("enqueued-at", v)]).enqueued_at;
        let some = |unix_ms, plausible| Some(EnqueuedAt { unix_ms, plausible });
        assert_eq!(at(Value::Timestamp(1_764_656_700)), some(1_764_656_700_000, true));
        assert_eq!(at(Value::text("2025-12-02T06:25:00.5Z")), some(1_764_656_700_500, true));
        assert_eq!(at(Value::Timestamp(2_177_452_800)), some(2_177_452_800_000, true));
        assert_eq!(at(Value::I64(1_764_656_700_000)), some(1_764_656_700_000_000, false));
        assert_eq!(at(Value::Timestamp(u64::MAX)), None);
        assert_eq!(at(Value::text("yesterday")), None);
        let properties = Properties { timestamp: Some(7), ..Properties::default() };
        assert_eq!(mapping().read(&properties).enqueued_at, some(7_000, true));
    }

    #[test]
    fn our_own_marks() {
        let id = "0198c0de-0000-7000-8000-000000000001";
        let report = read(&[(REDRIVE_GENERATION, Value::I64(4)), (REDRIVE_ID, Value::text(id))]);
        assert_eq!((report.redrive_generation, report.redrive_id), (Some(4), Some(id.parse().unwrap())));
        let report = read(&[(REDRIVE_GENERATION, Value::text("-4")), (REDRIVE_ID, Value::text("mine"))]);
        assert_eq!((report.redrive_generation, report.redrive_id), (None, None));
    }

    #[test]
    fn of_equal_keys_the_first_counts() {
        assert_eq!(read(&[("attempt", Value::U8(1)), ("attempt", Value::U8(2))]).attempt, Some(1));
    }

    proptest! {
        #[test]
        fn any_properties_are_read(properties in strategy::properties(), value in strategy::value()) {
            let mut properties = properties;
            for name in ["attempt", "job-id", "enqueued-at", REDRIVE_ID, REDRIVE_GENERATION, "x-delivery-count"] {
                properties.headers.get_or_insert_default().push(ShortString::new(name).unwrap(), value.clone());
            }
            let _ = mapping().read(&properties);
        }
    }
}
