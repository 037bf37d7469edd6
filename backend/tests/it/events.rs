//! Worker events through the API: once each, bad ones by their place, and what they tell of dead letters.

use crate::{
    custody::{Fixture, header, table},
    harness::Person,
};
use domain::{api::EventReceipt, ids::AppName, vocabulary::Kind};
use lapin::BasicProperties;
use serde_json::{Value, json};
use uuid::Uuid;

fn event(kind: &str, job: &str, more: Value) -> Value {
    let mut event = json!({"event_id": Uuid::now_v7(), "kind": kind, "at": "2026-12-02T03:00:00Z", "queue": "orders", "job_id": job});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

async fn send(feed: &Person, events: &[Value]) -> EventReceipt {
    feed.post("/events", json!({ "events": events })).await.is(202).ok()
}

/// A message that names no class.
fn bare(id: &str) -> BasicProperties {
    BasicProperties::default()
        .with_message_id(format!("m-{id}").as_str().into())
        .with_headers(table([header("job-id", id)]))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_counts_once_however_often_it_is_sent() {
    let fixture = Fixture::new().await;
    let feed = fixture.app.emitter().await;
    let events = [
        event("accepted", "j1", json!({})),
        event("attempt_started", "j1", json!({"attempt": 1, "at": "2026-12-02T03:00:02Z"})),
        event("effect_recorded", "j1", json!({"at": "2026-12-02T03:00:03Z"})),
    ];
    let first = send(&feed, &[events[0].clone(), events[1].clone(), events[0].clone()]).await;
    assert_eq!((first.accepted, first.duplicates), (2, 1));
    let again = send(&feed, &events).await;
    assert_eq!((again.accepted, again.duplicates), (1, 2));
    let (jobs, kind, done): (i64, String, bool) =
        sqlx::query_as("SELECT count(*) OVER (), last_kind, effect_at IS NOT NULL FROM jobs")
            .fetch_one(fixture.app.owner())
            .await
            .unwrap();
    assert_eq!((jobs, kind.as_str(), done), (1, "effect_recorded", true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_event_is_rejected_by_its_place_and_the_rest_go_in() {
    let fixture = Fixture::new().await;
    let feed = fixture.app.emitter().await;
    let receipt = send(
        &feed,
        &[
            event("accepted", "j1", json!({})),
            event("exploded", "j1", json!({})),
            event("accepted", "j1", json!({"queue": "nowhere\0"})),
            json!("nonsense"),
            event("accepted", "", json!({})),
            event("accepted", "j2\0", json!({"error_text": "nul \0", "trace_id": "nul \0"})),
            event("accepted", "j3", json!({"error_text": "x".repeat(70_000)})),
            event("accepted", "j4", json!({"job_id": {"b64": "Y2Fm6Q=="}})),
        ],
    )
    .await;
    let rejected: Vec<(i64, &str)> = receipt.rejected.iter().map(|r| (r.index, r.code.as_str())).collect();
    assert_eq!(
        rejected,
        [(1, "unknown_kind"), (2, "unknown_queue"), (3, "invalid_event"), (4, "invalid_event"), (6, "too_large")]
    );
    assert_eq!(receipt.accepted, 3);
    let too_many: Vec<Value> = (0..1_001).map(|i| event("accepted", &format!("j{i}"), json!({}))).collect();
    feed.post("/events", json!({ "events": too_many })).await.problem(422, "invalid_request");
    fixture.viewer.post("/events", json!({ "events": [] })).await.problem(403, "missing_permission");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_without_a_class_takes_that_of_its_failure_before_or_after_custody_and_once() {
    let fixture = Fixture::draining().await;
    let feed = fixture.app.emitter().await;
    let failed = |job: &str, class: &str, at: &str| {
        let message = format!("m-{job}");
        event(
            "attempt_failed",
            job,
            json!({"message_id": message, "error_class": class, "error_text": "no answer in 31 s",
            "worker_version": "2026.12.1", "attempt": 1, "at": at}),
        )
    };
    // before: the latest counts
    send(
        &feed,
        &[
            failed("before", "schema_invalid", "2026-12-02T03:00:00Z"),
            failed("before", "timeout", "2026-12-02T03:00:05Z"),
        ],
    )
    .await;
    fixture.die(bare("before"), b"{}").await;
    fixture.die(bare("after"), b"{}").await;
    fixture.stored(2).await;
    send(&feed, &[failed("after", "timeout", "2026-12-02T03:00:00Z")]).await;
    send(&feed, &[failed("after", "schema_invalid", "2026-12-02T04:00:00Z")]).await;
    let rows = fixture.stored(2).await;
    for row in &rows {
        assert_eq!(row.error_class.as_deref(), Some("timeout"), "{:?}", row.job_id);
        assert_eq!((row.kind, row.worker_version.as_deref()), (Kind::Transient, Some("2026.12.1")));
    }
    assert_eq!(rows[0].fingerprint, rows[1].fingerprint, "one group, whichever way the class came");
    assert_eq!(rows[0].job_id, Some(AppName::from("before")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_another_generation_says_nothing_of_this_one() {
    let fixture = Fixture::draining().await;
    let feed = fixture.app.emitter().await;
    let failure = json!({"message_id": "m-j1", "error_class": "timeout", "redrive_id": Uuid::now_v7()});
    send(&feed, &[event("attempt_failed", "j1", failure)]).await;
    fixture.die(bare("j1"), b"{}").await;
    let rows = fixture.stored(1).await;
    assert_eq!((rows[0].error_class.as_deref(), rows[0].kind), (None, Kind::Permanent));
}
