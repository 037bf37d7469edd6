//! Deliveries from the client library's types to `domain::amqp`'s; the other way is in `parcel`.
//!
//! The library reads short strings as UTF-8 only and a header table as a sorted map: a message that it can read comes
//! over value for value and type for type, its top-level keys sorted; of equal keys the last one stays.

use domain::amqp::{F32, F64, Message, Properties, ShortString, Table, Value};
use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable},
};

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

#[cfg(test)]
mod tests {
    use super::*;
    use lapin::types::{ByteArray, DecimalValue, FieldArray, LongString};

    #[test]
    fn every_type_and_property_comes_over() {
        let short = |text: &str| ShortString::new(text).unwrap();
        let pairs = [
            (AMQPValue::Boolean(true), Value::Bool(true)),
            (AMQPValue::ShortShortInt(-1), Value::I8(-1)),
            (AMQPValue::ShortShortUInt(255), Value::U8(255)),
            (AMQPValue::ShortInt(-2), Value::I16(-2)),
            (AMQPValue::ShortUInt(65_535), Value::U16(65_535)),
            (AMQPValue::LongInt(i32::MIN), Value::I32(i32::MIN)),
            (AMQPValue::LongUInt(u32::MAX), Value::U32(u32::MAX)),
            (AMQPValue::LongLongInt((1 << 53) + 1), Value::I64((1 << 53) + 1)),
            (AMQPValue::Float(f32::from_bits(0x7fc0_0001)), Value::F32(F32(0x7fc0_0001))),
            (AMQPValue::Double(-0.0), Value::F64(F64(0x8000_0000_0000_0000))),
            (
                AMQPValue::DecimalValue(DecimalValue { scale: 3, value: u32::MAX }),
                Value::Decimal { scale: 3, value: u32::MAX },
            ),
            (AMQPValue::LongString(LongString::from(vec![0, 255])), Value::LongString(vec![0, 255])),
            (AMQPValue::ByteArray(ByteArray::from(vec![128])), Value::Bytes(vec![128])),
            (
                AMQPValue::FieldArray(FieldArray::from(vec![AMQPValue::FieldArray(FieldArray::from(vec![
                    AMQPValue::Void,
                ]))])),
                Value::Array(vec![Value::Array(vec![Value::Void])]),
            ),
            (AMQPValue::Timestamp(u64::MAX), Value::Timestamp(u64::MAX)),
            (AMQPValue::FieldTable(FieldTable::default()), Value::Table(Table::new())),
            (AMQPValue::Void, Value::Void),
        ];
        let (mut from_headers, mut to_headers) = (FieldTable::default(), Table::new());
        for (i, (from, to)) in pairs.into_iter().enumerate() {
            from_headers.insert(format!("h{i:02}").into(), from);
            to_headers.push(short(&format!("h{i:02}")), to);
        }
        let from = BasicProperties::default()
            .with_content_type("a".into())
            .with_content_encoding("b".into())
            .with_headers(from_headers)
            .with_delivery_mode(2)
            .with_priority(0)
            .with_correlation_id("c".into())
            .with_reply_to("d".into())
            .with_expiration("1".into())
            .with_message_id("".into())
            .with_timestamp(u64::MAX)
            .with_type("e".into())
            .with_user_id("f".into())
            .with_app_id("g".into())
            .with_cluster_id("h".into());
        let to = Properties {
            content_type: Some(short("a")),
            content_encoding: Some(short("b")),
            headers: Some(to_headers),
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
        assert_eq!(properties(&from), to);
        assert_eq!(properties(&BasicProperties::default()), Properties::default());
    }
}
