//! What applications may put into a message never stops the drain, and nothing of it changes.

use super::{Fixture, header, job, table};
use crate::harness::TestApp;
use domain::{
    api::{Page, QuarantineGroup, QuarantinePage},
    ids::AppName,
    vocabulary::Kind,
};
use lapin::{
    BasicProperties,
    types::{AMQPValue, ByteArray, DecimalValue, FieldArray, FieldTable, LongString},
};
use serde_json::json;
use sha2::{Digest as _, Sha256};

#[tokio::test(flavor = "multi_thread")]
async fn bare_messages_are_stored_as_unclassified_and_the_drain_lives() {
    let fixture = Fixture::draining().await;
    for _ in 0..60 {
        fixture.publish(&fixture.dlq_name, BasicProperties::default(), b"bare").await;
    }
    for i in 0..10 {
        let mut properties = job(&format!("j{i}"));
        let headers = table([
            header("job-id", &format!("j{i}")),
            header("error-class", "timeout"),
            header("error-text", "no answer in 30 s"),
        ]);
        properties = properties.with_headers(headers);
        fixture.die(properties, b"{}").await;
    }
    fixture.stored(70).await;
    assert_eq!(fixture.total("?error_class=").await, 60, "unclassified");
    assert_eq!(fixture.total("?queue=").await, 60, "unattributed");
    assert_eq!(fixture.total(&format!("?queue={}&error_class=timeout&kind=transient", fixture.queue)).await, 10);
    assert_eq!(fixture.is("draining").await.stored, 70);
    assert_eq!(fixture.ready().await, 0);
    let groups: Page<QuarantineGroup> = fixture.viewer.get("/quarantine/groups").await.ok();
    assert_eq!(groups.items.iter().map(|group| group.count).collect::<Vec<_>>(), [60, 10]);
    assert_eq!(groups.items[1].normalised_text.as_deref(), Some("no answer in <n> s"));
    let page: QuarantinePage = fixture.viewer.get("/quarantine?error_class=timeout&limit=1").await.ok();
    let classes = page.facets.iter().find(|facet| facet.name == "error_class").unwrap();
    assert_eq!(
        classes.values.iter().map(|v| (v.value.as_str(), v.count)).collect::<Vec<_>>(),
        [("", 60), ("timeout", 10)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nul_and_surrogates_are_kept_byte_for_byte_beside_unharmed_neighbours() {
    let fixture = Fixture::draining().await;
    let bodies: [&[u8]; 4] = [b"a\0b", br#"{"a":"x\u0000y"}"#, b"\xed\xa0\x80 lone", b"neighbour"];
    for (i, body) in bodies.iter().enumerate() {
        let headers = table([
            header("job-id", &format!("j{i}\0")),
            ("nul\0key".to_owned(), AMQPValue::LongString(LongString::from(&b"\0\xed\xa0\x80"[..]))),
            header("error-class", "bad\0class"),
            header("error-text", "bad\0text"),
        ]);
        let properties = BasicProperties::default().with_content_type("application/json".into()).with_headers(headers);
        fixture.die(properties, body).await;
    }
    let rows = fixture.stored(4).await;
    for (i, (row, body)) in rows.iter().zip(bodies).enumerate() {
        assert_eq!(fixture.body(row.id).await, body);
        let message = fixture.message(row.id).await;
        assert_eq!(message.payload.sha256, Some(hex::encode(Sha256::digest(body))));
        assert_eq!(row.job_id, Some(AppName(format!("j{i}\0").into_bytes())));
        assert_eq!(row.error_class.as_deref(), Some("bad\\u{0}class"));
        let nul = message.headers.iter().find(|field| field.name == "nul\\u{0}key").unwrap();
        assert_eq!((nul.field_type.as_str(), &nul.value), ("long_string", &json!({"b64": "AO2ggA=="})));
    }
    assert_eq!(fixture.total("?job_id=j1%00").await, 1);
    assert_eq!(fixture.total("?q=%00").await, 4);
    assert_eq!(fixture.total("?error_class=bad%00class").await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_without_an_id_or_with_an_equal_one_are_rows_of_their_own() {
    let fixture = Fixture::draining().await;
    fixture.watch("refunds").await;
    for i in 0..3 {
        fixture.die(BasicProperties::default(), format!("none {i}").as_bytes()).await;
    }
    for i in 0..2 {
        fixture.die(BasicProperties::default().with_message_id("".into()), format!("empty {i}").as_bytes()).await;
    }
    let same = || BasicProperties::default().with_message_id("same".into());
    fixture.die_on("refunds", same(), b"B").await;
    fixture.die(same(), b"A1").await;
    fixture.die(same(), b"A2").await;
    fixture.die(same(), b"A1").await;
    let rows = fixture.stored(9).await;
    assert!(rows[..5].iter().all(|row| row.message_id.is_none()));
    assert!(rows[5..].iter().all(|row| row.message_id == Some("same".into())));
    let mut bodies = Vec::new();
    for row in &rows[5..] {
        bodies.push((row.queue.clone().unwrap().name, fixture.body(row.id).await));
    }
    let name = |queue: &str, body: &[u8]| (queue.to_owned(), body.to_vec());
    assert_eq!(bodies, [name("refunds", b"B"), name("orders", b"A1"), name("orders", b"A2"), name("orders", b"A1")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_header_type_reaches_the_page_with_type_and_value() {
    let fixture = Fixture::draining().await;
    let deep = AMQPValue::FieldArray(FieldArray::from(vec![
        AMQPValue::FieldArray(FieldArray::from(vec![AMQPValue::FieldArray(FieldArray::from(vec![AMQPValue::Void]))])),
        AMQPValue::Boolean(true),
    ]));
    let cases = [
        (AMQPValue::Boolean(true), json!({"type": "bool", "value": true})),
        (AMQPValue::ShortShortInt(-1), json!({"type": "int8", "value": -1})),
        (AMQPValue::ShortShortUInt(255), json!({"type": "uint8", "value": 255})),
        (AMQPValue::ShortInt(-2), json!({"type": "int16", "value": -2})),
        (AMQPValue::ShortUInt(65_535), json!({"type": "uint16", "value": 65_535})),
        (AMQPValue::LongInt(i32::MIN), json!({"type": "int32", "value": i32::MIN})),
        (AMQPValue::LongUInt(u32::MAX), json!({"type": "uint32", "value": u32::MAX})),
        (AMQPValue::LongLongInt((1 << 53) + 1), json!({"type": "int64", "value": "9007199254740993"})),
        (AMQPValue::Float(0.1), json!({"type": "float", "value": "0.1"})),
        (AMQPValue::Double(-0.5), json!({"type": "double", "value": "-0.5"})),
        (AMQPValue::DecimalValue(DecimalValue { scale: 2, value: 125 }), json!({"type": "decimal", "value": "1.25"})),
        (AMQPValue::Timestamp(7), json!({"type": "timestamp", "value": "7"})),
        (AMQPValue::ByteArray(ByteArray::from(vec![0, 128])), json!({"type": "bytes", "value": "AIA="})),
        (AMQPValue::FieldTable(FieldTable::default()), json!({"type": "table", "value": []})),
        (AMQPValue::Void, json!({"type": "void", "value": null})),
        (
            deep,
            json!({"type": "array", "value": [{"type": "array", "value": [{"type": "array", "value": [{"type": "void"}]}]}, {"type": "bool", "value": true}]}),
        ),
    ];
    let headers = table(cases.iter().enumerate().map(|(i, (value, _))| (format!("h{i:02}"), value.clone())));
    fixture.publish(&fixture.dlq_name, BasicProperties::default().with_headers(headers).with_priority(0), b"").await;
    let rows = fixture.stored(1).await;
    let message = fixture.message(rows[0].id).await;
    for (i, (_, want)) in cases.iter().enumerate() {
        let field = message.headers.iter().find(|field| field.name == format!("h{i:02}")).unwrap();
        assert_eq!(json!({"type": field.field_type, "value": field.value}), *want);
        assert_eq!(field.redrive, "keep");
    }
    assert_eq!(message.payload.size_bytes, 0);
    assert_eq!(fixture.body(rows[0].id).await, b"", "an empty body stays empty");
    let priority = message.properties.iter().find(|field| field.name == "priority").unwrap();
    assert_eq!(priority.value, json!(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn hand_made_deaths_are_stored_and_told_as_far_as_they_can_be_read() {
    let fixture = Fixture::draining().await;
    let death = |fields: Vec<(String, AMQPValue)>| AMQPValue::FieldTable(table(fields));
    let list = |items| AMQPValue::FieldArray(FieldArray::from(items));
    let cases = [
        list(vec![]),
        death(vec![header("queue", "orders"), header("reason", "rejected")]),
        AMQPValue::LongString(LongString::from("nonsense")),
        list(vec![AMQPValue::Void, AMQPValue::LongInt(3)]),
        list(vec![death(vec![header("queue", "orders"), ("count".into(), AMQPValue::LongInt(3))])]),
        list(vec![death(vec![header("queue", "orders"), ("time".into(), AMQPValue::Timestamp(u64::MAX))])]),
        list((0..5_000).map(|i| death(vec![header("queue", &format!("q{}", i % 40))])).collect()),
    ];
    let n = i64::try_from(cases.len()).unwrap();
    for (i, value) in cases.into_iter().enumerate() {
        let headers = table([("x-death".to_owned(), value)]);
        let properties = BasicProperties::default().with_headers(headers).with_message_id(i.to_string().into());
        fixture.publish(&fixture.dlq_name, properties, b"x").await;
    }
    // rows of one batch have no order among themselves
    let mut rows = fixture.stored(n).await;
    rows.sort_by(|a, b| a.message_id.cmp(&b.message_id));
    let attributed: Vec<bool> = rows.iter().map(|row| row.queue.is_some()).collect();
    assert_eq!(attributed, [false, true, false, false, true, true, false]);
    let message = fixture.message(rows[4].id).await;
    assert_eq!((message.broker.deaths[0].count, message.broker.deaths[0].at), (Some(3), None));
    assert_eq!(message.broker.original_exchange, None, "unknown");
    assert_eq!(fixture.message(rows[6].id).await.broker.deaths.len(), 5_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_tells_where_it_was_published_and_what_a_redrive_strips() {
    let fixture = Fixture::draining().await;
    fixture.die(job("j1"), b"{}").await;
    let rows = fixture.stored(1).await;
    let message = fixture.message(rows[0].id).await;
    assert_eq!(message.broker.original_exchange, Some("".into()), "the default exchange");
    assert_eq!(message.broker.original_routing_key, Some("orders".into()));
    assert_eq!(message.broker.died_on, Some("orders".into()));
    assert_eq!(message.broker.reason.as_deref(), Some("rejected"));
    assert_eq!(message.row.kind, Kind::Permanent, "no class counts as permanent");
    let strips: Vec<&str> =
        message.headers.iter().filter(|field| field.redrive == "strip").map(|field| field.name.as_str()).collect();
    assert!(strips.contains(&"x-death") && strips.contains(&"x-first-death-queue"), "{strips:?}");
    assert!(!strips.contains(&"job-id"));
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_with_any_name_are_drained() {
    for name in ["a/b %?#[]{}", "naïve ключ 🚢", &"é".repeat(100)] {
        let fixture = Fixture::on(TestApp::start_with_workers().await, name).await;
        fixture.switch("drain").await;
        fixture.die_on(name, job("j1"), b"{}").await;
        let rows = fixture.stored(1).await;
        assert_eq!(rows[0].queue.as_ref().map(|queue| queue.name.as_str()), Some(name));
    }
}
