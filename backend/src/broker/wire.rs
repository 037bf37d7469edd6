//! AMQP messages between the client library's types and `domain::amqp`'s.
//!
//! The library reads short strings as UTF-8 only and a header table as a sorted map: a message that it can read comes
//! over value for value and type for type, its top-level keys sorted; of equal keys the last one stays.

use domain::amqp::{F32, F64, Message, Properties, ShortString, Table, Value};
use lapin::{
    BasicProperties,
    types::{AMQPValue, ByteArray, DecimalValue, FieldArray, FieldTable, LongString},
};

/// Why a message can't be handed to the client library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unpublishable {
    /// A property, header key or routing key that isn't UTF-8.
    #[error("{0} isn't UTF-8, which the client library can't write")]
    NotUtf8(&'static str),
    /// Two headers of one key.
    #[error("a header key occurs twice, which the client library can't write")]
    EqualKeys,
}

/// The message of a delivery.
#[must_use]
pub fn message(properties: &BasicProperties, body: Vec<u8>) -> Message {
    Message { body, properties: self::properties(properties) }
}

/// The properties of a delivery.
#[must_use]
pub fn properties(from: &BasicProperties) -> Properties {
    let short = |text: &Option<lapin::types::ShortString>| text.as_ref().map(short_string);
    Properties {
        content_type: short(from.content_type()),
        content_encoding: short(from.content_encoding()),
        headers: from.headers().as_ref().map(table),
        delivery_mode: *from.delivery_mode(),
        priority: *from.priority(),
        correlation_id: short(from.correlation_id()),
        reply_to: short(from.reply_to()),
        expiration: short(from.expiration()),
        message_id: short(from.message_id()),
        timestamp: *from.timestamp(),
        kind: short(from.kind()),
        user_id: short(from.user_id()),
        app_id: short(from.app_id()),
        cluster_id: short(from.cluster_id()),
    }
}

/// The properties for a publish.
///
/// # Errors
/// See [`Unpublishable`].
pub fn to_lapin(from: &Properties) -> Result<BasicProperties, Unpublishable> {
    let mut to = BasicProperties::default();
    macro_rules! set {
        ($($field:ident, $with:ident, $name:literal;)*) => {$(
            if let Some(value) = &from.$field {
                to = to.$with(short_to_lapin(value, $name)?);
            }
        )*};
    }
    set! {
        content_type, with_content_type, "content-type";
        content_encoding, with_content_encoding, "content-encoding";
        correlation_id, with_correlation_id, "correlation-id";
        reply_to, with_reply_to, "reply-to";
        expiration, with_expiration, "expiration";
        message_id, with_message_id, "message-id";
        kind, with_type, "type";
        user_id, with_user_id, "user-id";
        app_id, with_app_id, "app-id";
        cluster_id, with_cluster_id, "cluster-id";
    }
    if let Some(headers) = &from.headers {
        to = to.with_headers(table_to_lapin(headers)?);
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

/// A short string for the client library: an exchange, a routing key, a property.
///
/// # Errors
/// It isn't UTF-8; `what` names it.
pub fn short_to_lapin(from: &ShortString, what: &'static str) -> Result<lapin::types::ShortString, Unpublishable> {
    let text = from.as_str().ok_or(Unpublishable::NotUtf8(what))?;
    // ours are at most 255 bytes as well, so that only the text could be at fault
    lapin::types::ShortString::try_new(text).map_err(|_| Unpublishable::NotUtf8(what))
}

/// A short string of a delivery.
#[must_use]
pub fn short_string(from: &lapin::types::ShortString) -> ShortString {
    // the library holds at most 255 bytes; a longer one can't have come from the wire
    ShortString::new(from.as_str()).unwrap_or_default()
}

fn table(from: &FieldTable) -> Table {
    from.into_iter().map(|(key, value)| (short_string(key), self::value(value))).collect()
}

fn value(from: &AMQPValue) -> Value {
    match from {
        AMQPValue::Boolean(b) => Value::Bool(*b),
        AMQPValue::ShortShortInt(n) => Value::I8(*n),
        AMQPValue::ShortShortUInt(n) => Value::U8(*n),
        AMQPValue::ShortInt(n) => Value::I16(*n),
        AMQPValue::ShortUInt(n) => Value::U16(*n),
        AMQPValue::LongInt(n) => Value::I32(*n),
        AMQPValue::LongUInt(n) => Value::U32(*n),
        AMQPValue::LongLongInt(n) => Value::I64(*n),
        AMQPValue::Float(n) => Value::F32(F32(n.to_bits())),
        AMQPValue::Double(n) => Value::F64(F64(n.to_bits())),
        AMQPValue::DecimalValue(n) => Value::Decimal { scale: n.scale, value: n.value },
        AMQPValue::ShortString(text) => Value::LongString(text.as_str().as_bytes().to_vec()),
        AMQPValue::LongString(bytes) => Value::LongString(bytes.as_bytes().to_vec()),
        AMQPValue::FieldArray(items) => Value::Array(items.as_slice().iter().map(value).collect()),
        AMQPValue::Timestamp(seconds) => Value::Timestamp(*seconds),
        AMQPValue::FieldTable(fields) => Value::Table(table(fields)),
        AMQPValue::ByteArray(bytes) => Value::Bytes(bytes.as_slice().to_vec()),
        AMQPValue::Void => Value::Void,
    }
}

fn table_to_lapin(from: &Table) -> Result<FieldTable, Unpublishable> {
    let mut to = FieldTable::default();
    for (key, value) in from.iter() {
        let key = short_to_lapin(key, "a header key")?;
        if to.contains_key(key.as_str()) {
            return Err(Unpublishable::EqualKeys);
        }
        to.insert(key, value_to_lapin(value)?);
    }
    Ok(to)
}

fn value_to_lapin(from: &Value) -> Result<AMQPValue, Unpublishable> {
    Ok(match from {
        Value::Bool(b) => AMQPValue::Boolean(*b),
        Value::I8(n) => AMQPValue::ShortShortInt(*n),
        Value::U8(n) => AMQPValue::ShortShortUInt(*n),
        Value::I16(n) => AMQPValue::ShortInt(*n),
        Value::U16(n) => AMQPValue::ShortUInt(*n),
        Value::I32(n) => AMQPValue::LongInt(*n),
        Value::U32(n) => AMQPValue::LongUInt(*n),
        Value::I64(n) => AMQPValue::LongLongInt(*n),
        Value::F32(n) => AMQPValue::Float(n.get()),
        Value::F64(n) => AMQPValue::Double(n.get()),
        Value::Decimal { scale, value } => AMQPValue::DecimalValue(DecimalValue { scale: *scale, value: *value }),
        Value::LongString(bytes) => AMQPValue::LongString(LongString::from(bytes.clone())),
        Value::Bytes(bytes) => AMQPValue::ByteArray(ByteArray::from(bytes.clone())),
        Value::Array(items) => {
            AMQPValue::FieldArray(FieldArray::from(items.iter().map(value_to_lapin).collect::<Result<Vec<_>, _>>()?))
        }
        Value::Timestamp(seconds) => AMQPValue::Timestamp(*seconds),
        Value::Table(fields) => AMQPValue::FieldTable(table_to_lapin(fields)?),
        Value::Void => AMQPValue::Void,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(text: &str) -> ShortString {
        ShortString::new(text).unwrap()
    }

    #[test]
    fn every_type_and_property_survives_both_ways() {
        let values = [
            Value::Bool(true),
            Value::I8(-1),
            Value::U8(255),
            Value::I16(-2),
            Value::U16(65_535),
            Value::I32(i32::MIN),
            Value::U32(u32::MAX),
            Value::I64((1 << 53) + 1),
            Value::F32(F32(0x7fc0_0001)),
            Value::F64(F64(0x8000_0000_0000_0000)),
            Value::Decimal { scale: 3, value: u32::MAX },
            Value::LongString(vec![0, 255]),
            Value::Bytes(vec![128]),
            Value::Array(vec![Value::Array(vec![Value::Array(vec![Value::Void, Value::Bool(false)])])]),
            Value::Timestamp(u64::MAX),
            Value::Table(Table::new()),
            Value::Void,
        ];
        let headers = values.into_iter().enumerate().map(|(i, value)| (short(&format!("h{i:02}")), value)).collect();
        let from = Properties {
            content_type: Some(short("a")),
            content_encoding: Some(short("b")),
            headers: Some(headers),
            delivery_mode: Some(2),
            priority: Some(0),
            correlation_id: Some(short("c")),
            reply_to: Some(short("d")),
            expiration: Some(short("1")),
            message_id: Some(short("")),
            timestamp: Some(u64::MAX),
            kind: Some(short("e")),
            user_id: Some(short("f")),
            app_id: Some(short("g")),
            cluster_id: Some(short("h")),
        };
        assert_eq!(properties(&to_lapin(&from).unwrap()), from);
        assert_eq!(properties(&to_lapin(&Properties::default()).unwrap()), Properties::default());
    }

    #[test]
    fn what_the_library_would_change_is_refused() {
        let latin =
            Properties { message_id: Some(ShortString::new(b"caf\xe9".to_vec()).unwrap()), ..Properties::default() };
        assert_eq!(to_lapin(&latin).unwrap_err(), Unpublishable::NotUtf8("message-id"));
        let twice = Table::from_iter([(short("k"), Value::Void), (short("k"), Value::U8(1))]);
        let twice = Properties { headers: Some(twice), ..Properties::default() };
        assert_eq!(to_lapin(&twice).unwrap_err(), Unpublishable::EqualKeys);
    }
}
