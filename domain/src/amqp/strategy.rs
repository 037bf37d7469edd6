//! Generators of AMQP values for property tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{F32, F64, Message, Properties, ShortString, Table, Value};

pub(crate) fn short_string() -> impl Strategy<Value = ShortString> {
    let text = prop_oneof![vec(any::<u8>(), 0..12), "[a-z-]{0,12}".prop_map(String::into_bytes)];
    text.prop_map(|bytes| ShortString::new(bytes).expect("at most 12 bytes"))
}

pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::I8),
        any::<u8>().prop_map(Value::U8),
        any::<i16>().prop_map(Value::I16),
        any::<u16>().prop_map(Value::U16),
        any::<i32>().prop_map(Value::I32),
        any::<u32>().prop_map(Value::U32),
        any::<i64>().prop_map(Value::I64),
        any::<u32>().prop_map(|bits| Value::F32(F32(bits))),
        any::<u64>().prop_map(|bits| Value::F64(F64(bits))),
        (any::<u8>(), any::<u32>()).prop_map(|(scale, value)| Value::Decimal { scale, value }),
        vec(any::<u8>(), 0..16).prop_map(Value::LongString),
        "\\PC{0,8}".prop_map(Value::text),
        vec(any::<u8>(), 0..16).prop_map(Value::Bytes),
        any::<u64>().prop_map(Value::Timestamp),
        Just(Value::Void),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            vec((short_string(), inner), 0..6).prop_map(|fields| Value::Table(fields.into_iter().collect())),
        ]
    })
}

pub(crate) fn table() -> impl Strategy<Value = Table> {
    vec((short_string(), value()), 0..8).prop_map(|fields| fields.into_iter().collect())
}

pub(crate) fn properties() -> impl Strategy<Value = Properties> {
    let short = || option::of(short_string());
    (
        (short(), short(), option::of(table()), any::<Option<u8>>(), any::<Option<u8>>()),
        (short(), short(), short(), short(), any::<Option<u64>>()),
        (short(), short(), short(), short()),
    )
        .prop_map(|(a, b, c)| Properties {
            content_type: a.0,
            content_encoding: a.1,
            headers: a.2,
            delivery_mode: a.3,
            priority: a.4,
            correlation_id: b.0,
            reply_to: b.1,
            expiration: b.2,
            message_id: b.3,
            timestamp: b.4,
            kind: c.0,
            user_id: c.1,
            app_id: c.2,
            cluster_id: c.3,
        })
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    (vec(any::<u8>(), 0..64), properties()).prop_map(|(body, properties)| Message { body, properties })
}
