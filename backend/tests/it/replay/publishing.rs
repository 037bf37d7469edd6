//! The publisher: returns matched to the right message, refusals, properties.

use super::rig::Rig;
use crate::{cohorts::ward::Letter, harness::TestApp};
use domain::{
    amqp::{Message, Properties, ShortString, Table, Value},
    headers::{REDRIVE_GENERATION, REDRIVE_ID},
    strip::{self, Choices, Marks},
    vocabulary::{CohortState, ItemState},
};
use lazaret::broker::{
    Address, connect,
    parcel::{Limits, Parcel},
    publisher::{Answer, Publisher},
    wire,
};
use reqwest::Method;
use serde_json::json;
use std::{collections::BTreeSet, time::Duration};
use uuid::Uuid;

fn parcel(key: &str) -> Parcel {
    let redrive_id = Uuid::now_v7();
    let headers = Table::from_iter([(ShortString::new(REDRIVE_ID).unwrap(), Value::text(redrive_id.to_string()))]);
    let properties = Properties { headers: Some(headers), ..Properties::default() };
    Parcel::new(redrive_id, b"shop", key.as_bytes(), Message { body: b"{}".to_vec(), properties }, Limits::DEFAULT)
        .unwrap()
}

/// P4, over and over: lapin hands returns to the wrong confirms (BROKER.md), and exactly the unroutable ones are returned.
#[tokio::test(flavor = "multi_thread")]
async fn p4_exactly_the_unroutable_ones_are_returned() {
    let app = TestApp::start().await;
    let vhost = app.vhost().await;
    let v = vhost.path_segment();
    vhost
        .manage(Method::PUT, &format!("/api/exchanges/{v}/shop"), Some(json!({ "type": "direct", "durable": true })))
        .await;
    let quorum = json!({ "durable": true, "arguments": { "x-queue-type": "quorum" } });
    vhost.manage(Method::PUT, &format!("/api/queues/{v}/slow"), Some(quorum)).await;
    let bind = format!("/api/bindings/{v}/e/shop/q/slow");
    vhost.manage(Method::POST, &bind, Some(json!({ "routing_key": "order" }))).await;
    let address =
        Address { amqp_url: vhost.amqp_address().to_owned(), management_url: None, credentials: vhost.credentials() };
    let connection = connect(&address, &vhost.name, "p4").await.unwrap();
    let mut publisher = Publisher::open(connection, "p4".to_owned(), Duration::from_secs(20)).await.unwrap();
    for round in 0..30 {
        let batch: Vec<Parcel> = (0..64).map(|n| parcel(if n % 2 == 0 { "order" } else { "nowhere" })).collect();
        let unroutable: BTreeSet<Uuid> = batch.iter().skip(1).step_by(2).map(|parcel| parcel.redrive_id).collect();
        let answers = publisher.publish(batch).await;
        let returned = answers.iter().filter(|(_, answer)| matches!(answer, Answer::Returned { .. }));
        assert_eq!(returned.map(|(id, _)| *id).collect::<BTreeSet<_>>(), unroutable, "round {round}");
        assert_eq!(answers.iter().filter(|(_, answer)| *answer == Answer::Confirmed).count(), 32);
    }
    assert!(publisher.usable());
    publisher.close().await;
}

/// A lost channel leaves the unanswered in doubt, and the publisher is used no more.
#[tokio::test(flavor = "multi_thread")]
async fn p3_a_missing_exchange_leaves_doubt_and_ends_the_publisher() {
    let app = TestApp::start().await;
    let vhost = app.vhost().await;
    let address =
        Address { amqp_url: vhost.amqp_address().to_owned(), management_url: None, credentials: vhost.credentials() };
    let connection = connect(&address, &vhost.name, "p3").await.unwrap();
    let mut publisher = Publisher::open(connection, "p3".to_owned(), Duration::from_secs(20)).await.unwrap();
    let answers = publisher.publish((0..5).map(|_| parcel("order")).collect()).await;
    assert!(answers.iter().all(|(_, answer)| matches!(answer, Answer::InDoubt { .. })), "{answers:?}");
    assert!(!publisher.usable() && !publisher.all_answered());
}

/// P7, P8: every property comes back but for the listed ones; a foreign user is dropped, and no channel is lost.
#[tokio::test(flavor = "multi_thread")]
async fn p7_p8_properties_come_back_as_they_were() {
    let mut rig = Rig::open().await;
    let short = |text: &str| Some(ShortString::new(text).unwrap());
    let headers = Table::from_iter(
        [
            ("attempt", Value::I32(3)),
            ("float", Value::F32(1.5.into())),
            (
                "nested",
                Value::Array(vec![Value::Table(Table::from_iter([(ShortString::new("k").unwrap(), Value::Void)]))]),
            ),
            ("blob", Value::Bytes(vec![0, 255])),
            ("at", Value::Timestamp(7)),
            ("price", Value::Decimal { scale: 2, value: 1999 }),
            ("x-death", Value::Array(vec![])),
            ("x-delivery-count", Value::I64(9)),
            ("CC", Value::Array(vec![Value::text("elsewhere")])),
        ]
        .map(|(key, value)| (ShortString::new(key).unwrap(), value)),
    );
    let properties = Properties {
        content_type: short("application/json"),
        content_encoding: short("gzip"),
        headers: Some(headers),
        delivery_mode: Some(2),
        priority: Some(0),
        correlation_id: short("c"),
        reply_to: short("answers"),
        expiration: short("1000"),
        message_id: short("m"),
        timestamp: Some(1_764_656_700),
        kind: short("order"),
        user_id: short("someone-else"),
        app_id: short("shop"),
        cluster_id: short("x"),
    };
    let id = rig.letter(Letter { properties: properties.clone(), ..Letter::of("job") }).await;
    let ledger = rig.worker().await;
    let plan = rig.plan(&[id]);
    let plan = accepting(plan, &["removes_expiration", "drops_expiration"]);
    let cohort = rig.approved(plan).await;
    rig.act(cohort, "canary").await;
    rig.until(cohort, CohortState::CanaryPassed).await;
    rig.delivered_once(&ledger, 1).await;
    let got = wire::properties(&ledger.lock().unwrap()[0].1);
    let item = rig.items(cohort).await.remove(0);
    assert_eq!(item.state, ItemState::Verified);
    let marks = Marks {
        generation: got.headers.as_ref().unwrap().get(REDRIVE_GENERATION.as_bytes()).unwrap().as_int().unwrap() as u64,
        redrive_id: item.redrive_id.unwrap().0,
    };
    let mut want = strip::redrive(&properties, Choices::default(), marks).properties;
    want.headers = want.headers.map(|headers| headers.sorted());
    assert_eq!(got, want);
}

fn accepting(mut plan: serde_json::Value, warnings: &[&str]) -> serde_json::Value {
    plan["accept_warnings"] = json!(warnings);
    plan
}
