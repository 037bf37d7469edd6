//! A message made ready for the wire before anything is recorded: what can't be sent is refused here, with its reason,
//! since the broker's own refusal closes the channel on all its neighbours (BROKER.md, "Publishing").

use domain::amqp::{DEFAULT_FRAME_MAX, Message, Properties, ShortString, Table, Value};
use lapin::{
    BasicProperties,
    types::{AMQPValue, ByteArray, DecimalValue, FieldArray, FieldTable, LongString, ShortString as WireString},
};
use uuid::Uuid;

/// One message to publish, in the client's own types.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// What `basic.return` and confirms are matched by.
    pub redrive_id: Uuid,
    pub(super) exchange: WireString,
    pub(super) routing_key: WireString,
    pub(super) properties: BasicProperties,
    pub(super) body: Vec<u8>,
}

/// What the connection can carry.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The negotiated frame size, bytes: properties and headers must fit one frame.
    pub frame_max: usize,
    /// The broker's `max_message_size`, bytes.
    pub body_max: usize,
}

impl Limits {
    /// Frames as negotiated by default, and the smaller of the two brokers' message limits (4.x: 16 MiB).
    pub const DEFAULT: Self = Self { frame_max: DEFAULT_FRAME_MAX, body_max: 16 * 1024 * 1024 };
}

/// Why a message can't be published as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unpublishable {
    /// The client carries short strings as UTF-8 only.
    #[error("{field} isn't UTF-8, which the client library can't carry")]
    NotUtf8 {
        /// The property, or `a header key`.
        field: &'static str,
    },
    /// The client keeps one value a key.
    #[error("a header key occurs twice, which the client library can't carry")]
    RepeatedKey,
    /// Properties and headers don't fit one frame.
    #[error("properties and headers take {size} bytes and a frame holds {limit}")]
    FrameTooLarge {
        /// Bytes with framing.
        size: usize,
        /// Bytes.
        limit: usize,
    },
    /// The body is over the broker's limit.
    #[error("the body is {size} bytes and the broker takes {limit}")]
    BodyTooLarge {
        /// Bytes.
        size: usize,
        /// Bytes.
        limit: usize,
    },
    /// The broker would close the channel: direct reply-to needs a consumer on the publishing channel.
    #[error("reply-to is the broker's direct reply-to, which needs its requester on the same channel")]
    DirectReplyTo,
    /// The broker would close the channel.
    #[error("expiration is no whole number of milliseconds")]
    BadExpiration,
}

impl Unpublishable {
    /// RULES 6's code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::FrameTooLarge { .. } => "headers_too_large",
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::NotUtf8 { .. } | Self::RepeatedKey | Self::DirectReplyTo | Self::BadExpiration => "unpublishable",
        }
    }
}

impl Parcel {
    /// Converts a message that already carries its redrive id; nothing is lost or the conversion is refused.
    ///
    /// # Errors
    /// What can't be sent.
    pub fn new(
        redrive_id: Uuid,
        exchange: &[u8],
        routing_key: &[u8],
        message: Message,
        limits: Limits,
    ) -> Result<Self, Unpublishable> {
        let Message { body, properties } = message;
        if body.len() > limits.body_max {
            return Err(Unpublishable::BodyTooLarge { size: body.len(), limit: limits.body_max });
        }
        let size = properties.frame_len();
        if size > limits.frame_max {
            return Err(Unpublishable::FrameTooLarge { size, limit: limits.frame_max });
        }
        Ok(Self {
            redrive_id,
            exchange: wire_string(exchange, "the exchange")?,
            routing_key: wire_string(routing_key, "the routing key")?,
            properties: wire_properties(properties)?,
            body,
        })
    }
}

fn wire_properties(from: Properties) -> Result<BasicProperties, Unpublishable> {
    if from.reply_to.as_ref().is_some_and(|to| to.as_bytes() == b"amq.rabbitmq.reply-to") {
        return Err(Unpublishable::DirectReplyTo);
    }
    if from.expiration.as_ref().and_then(ShortString::as_str).is_some_and(|ms| ms.parse::<u32>().is_err()) {
        return Err(Unpublishable::BadExpiration);
    }
    let mut to = BasicProperties::default();
    macro_rules! short {
        ($($field:ident, $name:literal, $set:ident;)*) => {$(
            if let Some(text) = from.$field {
                to = to.$set(wire_string(text.as_bytes(), $name)?);
            }
        )*};
    }
    short! {
        content_type, "content-type", with_content_type;
        content_encoding, "content-encoding", with_content_encoding;
        correlation_id, "correlation-id", with_correlation_id;
        reply_to, "reply-to", with_reply_to;
        expiration, "expiration", with_expiration;
        message_id, "message-id", with_message_id;
        kind, "type", with_type;
        user_id, "user-id", with_user_id;
        app_id, "app-id", with_app_id;
        cluster_id, "cluster-id", with_cluster_id;
    }
    if let Some(headers) = from.headers {
        to = to.with_headers(wire_table(headers)?);
    }
    if let Some(mode) = from.delivery_mode {
        to = to.with_delivery_mode(mode);
    }
    if let Some(priority) = from.priority {
        to = to.with_priority(priority);
    }
    if let Some(seconds) = from.timestamp {
        to = to.with_timestamp(seconds);
    }
    Ok(to)
}

fn wire_string(bytes: &[u8], field: &'static str) -> Result<WireString, Unpublishable> {
    let text = std::str::from_utf8(bytes).map_err(|_| Unpublishable::NotUtf8 { field })?;
    WireString::try_new(text).map_err(|_| Unpublishable::NotUtf8 { field })
}

fn wire_table(table: Table) -> Result<FieldTable, Unpublishable> {
    let mut wire = FieldTable::default();
    for (key, value) in table {
        let key = wire_string(key.as_bytes(), "a header key")?;
        if wire.contains_key(key.as_str()) {
            return Err(Unpublishable::RepeatedKey);
        }
        wire.insert(key, wire_value(value)?);
    }
    Ok(wire)
}

fn wire_value(value: Value) -> Result<AMQPValue, Unpublishable> {
    Ok(match value {
        Value::Bool(v) => AMQPValue::Boolean(v),
        Value::I8(v) => AMQPValue::ShortShortInt(v),
        Value::U8(v) => AMQPValue::ShortShortUInt(v),
        Value::I16(v) => AMQPValue::ShortInt(v),
        Value::U16(v) => AMQPValue::ShortUInt(v),
        Value::I32(v) => AMQPValue::LongInt(v),
        Value::U32(v) => AMQPValue::LongUInt(v),
        Value::I64(v) => AMQPValue::LongLongInt(v),
        Value::F32(v) => AMQPValue::Float(v.get()),
        Value::F64(v) => AMQPValue::Double(v.get()),
        Value::Decimal { scale, value } => AMQPValue::DecimalValue(DecimalValue { scale, value }),
        Value::LongString(bytes) => AMQPValue::LongString(LongString::from(bytes)),
        Value::Bytes(bytes) => AMQPValue::ByteArray(ByteArray::from(bytes)),
        Value::Array(values) => {
            AMQPValue::FieldArray(FieldArray::from(values.into_iter().map(wire_value).collect::<Result<Vec<_>, _>>()?))
        }
        Value::Timestamp(seconds) => AMQPValue::Timestamp(seconds),
        Value::Table(table) => AMQPValue::FieldTable(wire_table(table)?),
        Value::Void => AMQPValue::Void,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(bytes: &[u8]) -> ShortString {
        ShortString::new(bytes).unwrap()
    }

    fn parcel(properties: Properties, body: usize) -> Result<Parcel, Unpublishable> {
        let message = Message { body: vec![0; body], properties };
        Parcel::new(Uuid::nil(), b"", b"orders", message, Limits { frame_max: 1_000, body_max: 100 })
    }

    #[test]
    fn what_would_close_the_channel_is_refused_before() {
        let headers = |fields: Vec<(&[u8], Value)>| Properties {
            headers: Some(fields.into_iter().map(|(key, value)| (short(key), value)).collect()),
            ..Properties::default()
        };
        let cases = [
            (Properties { message_id: Some(short(b"caf\xe9")), ..Properties::default() }, 0, "unpublishable"),
            (Properties { expiration: Some(short(b"soon")), ..Properties::default() }, 0, "unpublishable"),
            (Properties { expiration: Some(short(b"99999999999")), ..Properties::default() }, 0, "unpublishable"),
            (
                Properties { reply_to: Some(short(b"amq.rabbitmq.reply-to")), ..Properties::default() },
                0,
                "unpublishable",
            ),
            (headers(vec![(b"caf\xe9", Value::Void)]), 0, "unpublishable"),
            (headers(vec![(b"a", Value::Void), (b"a", Value::U8(1))]), 0, "unpublishable"),
            (headers(vec![(b"a", Value::Bytes(vec![0; 2_000]))]), 0, "headers_too_large"),
            (Properties::default(), 101, "body_too_large"),
        ];
        for (properties, body, code) in cases {
            assert_eq!(parcel(properties.clone(), body).unwrap_err().code(), code, "{properties:?}");
        }
        assert!(parcel(headers(vec![(b"a", Value::text(b"caf\xe9".as_slice()))]), 100).is_ok());
    }

    #[test]
    fn absent_stays_absent() {
        let sent = parcel(Properties { priority: Some(0), ..Properties::default() }, 0).unwrap();
        assert_eq!(sent.properties, BasicProperties::default().with_priority(0));
    }
}
