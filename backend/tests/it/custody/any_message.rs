//! Any message that the client library can carry goes through the broker into the vault unchanged.

use super::Fixture;
use domain::amqp::Properties;
use lapin::{
    BasicProperties,
    types::{AMQPValue, ByteArray, DecimalValue, FieldArray, FieldTable, LongString, ShortString},
};
use lazaret::broker::wire;
use proptest::{collection::vec, option, prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

/// Properties, headers and body, as the vault keeps them.
type StoredBytes = (Vec<u8>, Option<Vec<u8>>, Vec<u8>);

fn short() -> impl Strategy<Value = ShortString> {
    "[\\PC\0]{0,20}".prop_map(|text| ShortString::try_new(text).unwrap_or_default())
}

fn value() -> impl Strategy<Value = AMQPValue> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(AMQPValue::Boolean),
        any::<i8>().prop_map(AMQPValue::ShortShortInt),
        any::<u8>().prop_map(AMQPValue::ShortShortUInt),
        any::<i16>().prop_map(AMQPValue::ShortInt),
        any::<u16>().prop_map(AMQPValue::ShortUInt),
        any::<i32>().prop_map(AMQPValue::LongInt),
        any::<u32>().prop_map(AMQPValue::LongUInt),
        any::<i64>().prop_map(AMQPValue::LongLongInt),
        // the broker reads a float as a number: NaN and infinities can't pass it
        any::<f32>().prop_filter("finite", |n| n.is_finite()).prop_map(AMQPValue::Float),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(AMQPValue::Double),
        (any::<u8>(), any::<u32>()).prop_map(|(scale, value)| AMQPValue::DecimalValue(DecimalValue { scale, value })),
        vec(any::<u8>(), 0..24).prop_map(|bytes| AMQPValue::LongString(LongString::from(bytes))),
        vec(any::<u8>(), 0..24).prop_map(|bytes| AMQPValue::ByteArray(ByteArray::from(bytes))),
        any::<u64>().prop_map(AMQPValue::Timestamp),
        Just(AMQPValue::Void),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(|items| AMQPValue::FieldArray(FieldArray::from(items))),
            fields(inner).prop_map(AMQPValue::FieldTable),
        ]
    })
}

fn fields(value: impl Strategy<Value = AMQPValue>) -> impl Strategy<Value = FieldTable> {
    vec((short(), value), 0..6).prop_map(|fields| {
        let mut table = FieldTable::default();
        for (key, value) in fields {
            // keys that the broker reads itself, and acts upon
            if !["CC", "BCC"].contains(&key.as_str()) && !key.as_str().starts_with("x-") {
                table.insert(key, value);
            }
        }
        table
    })
}

fn message() -> impl Strategy<Value = (BasicProperties, Vec<u8>)> {
    let shorts = vec(option::of(short()), 8..=8);
    (shorts, option::of(fields(value())), any::<(Option<u8>, Option<u64>, bool)>(), vec(any::<u8>(), 0..200)).prop_map(
        |(shorts, headers, (priority, timestamp, persistent), body)| {
            let mut properties = BasicProperties::default().with_delivery_mode(if persistent { 2 } else { 1 });
            let mut shorts = shorts.into_iter();
            macro_rules! set {
                ($($with:ident),*) => {$( if let Some(Some(text)) = shorts.next() { properties = properties.$with(text); } )*};
            }
            set!(
                with_content_type, with_content_encoding, with_correlation_id, with_reply_to, with_message_id, with_type,
                with_app_id, with_cluster_id
            );
            if let Some(headers) = headers {
                properties = properties.with_headers(headers);
            }
            if let Some(priority) = priority {
                properties = properties.with_priority(priority);
            }
            if let Some(timestamp) = timestamp {
                properties = properties.with_timestamp(timestamp);
            }
            (properties, body)
        },
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn any_message_reaches_the_vault_unchanged() {
    let fixture = Fixture::draining().await;
    let mut runner = TestRunner::deterministic();
    let mut messages: Vec<_> = (0..120).map(|_| message().new_tree(&mut runner).unwrap().current()).collect();
    for (i, (properties, body)) in messages.iter_mut().enumerate() {
        // a number to know it by: a resubscription may change the order of arrival
        body.push(u8::try_from(i).unwrap());
        fixture.publish(&fixture.dlq_name, properties.clone(), body).await;
    }
    fixture.stored(120).await;
    let mut stored: Vec<StoredBytes> =
        sqlx::query_as("SELECT properties, headers, body FROM payloads").fetch_all(fixture.app.owner()).await.unwrap();
    stored.sort_by_key(|(_, _, body)| body.last().copied());
    for ((sent, body), (list, headers, stored_body)) in messages.iter().zip(&stored) {
        let kept = without_counter(Properties::decode(list, headers.as_deref()).unwrap());
        assert_eq!(kept, without_counter(wire::properties(sent)));
        assert_eq!(stored_body, body);
    }
}

/// RabbitMQ counts the deliveries of a quorum queue in a header, and makes the table for it.
fn without_counter(mut properties: Properties) -> Properties {
    properties.headers = properties.headers.map(|headers| {
        headers.into_iter().filter(|(key, _)| key.as_bytes() != b"x-delivery-count").collect::<domain::amqp::Table>()
    });
    properties.headers = properties.headers.filter(|headers| !headers.is_empty());
    properties
}
