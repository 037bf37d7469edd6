//! What outlives a cohort: its doubts, what people say of them, and what its messages became.

use super::rig::Rig;
use crate::harness::eventually;
use domain::ids::AppName;
use domain::{
    api::{CohortItem, QuarantinedMessage},
    ids::{CohortId, QuarantineId},
    vocabulary::{CohortState, ItemState, QuarantineState, Role},
};
use lapin::{
    BasicProperties,
    options::BasicPublishOptions,
    types::{AMQPValue, FieldTable},
};
use lazaret::workers;
use serde_json::json;
use uuid::Uuid;

/// A cohort that was aborted while one of its items had no answer; the item.
async fn aborted_in_doubt() -> (Rig, CohortId, CohortItem) {
    let (mut rig, cohort, _) = Rig::under_way(10).await;
    rig.ward
        .sql(
            "UPDATE cohort_items SET state = 'in_doubt', confirmed_at = NULL, finished_at = NULL WHERE id =
        (SELECT id FROM cohort_items WHERE NOT canary AND redrive_id IS NOT NULL ORDER BY published_at DESC LIMIT 1)",
        )
        .await;
    // its effect isn't there either: only events can tell
    rig.ward.sql("DELETE FROM effects").await;
    rig.act(cohort, "abort").await;
    rig.until(cohort, CohortState::Aborted).await;
    let item = rig.items(cohort).await.into_iter().find(|item| item.state == ItemState::InDoubt).unwrap();
    (rig, cohort, item)
}

async fn own_state(rig: &Rig, id: QuarantineId) -> QuarantineState {
    rig.mara.get(&format!("/quarantine/{id}")).await.ok::<QuarantinedMessage>().row.state
}

/// A worker says that it took a message with this item's redrive id.
async fn reported(rig: &Rig, item: &CohortItem, message: &AppName) {
    let event = json!({ "event_id": Uuid::now_v7(), "kind": "acked", "at": "2026-12-02T03:00:00Z", "queue": "orders",
        "job_id": "whose", "attempt": 1, "redrive_id": item.redrive_id, "message_id": message });
    rig.ward.app.emitter().await.post("/events", json!({ "events": [event] })).await.is(202);
}

/// The id of an item's message, which its redrive keeps.
fn message_of(item: &CohortItem) -> AppName {
    AppName(item.quarantine_id.0.as_bytes().to_vec())
}

async fn audited(rig: &Rig, action: &str) -> i64 {
    let count = sqlx::query_scalar("SELECT count(*) FROM audit_entries WHERE action = $1").bind(action);
    count.fetch_one(rig.ward.app.owner()).await.unwrap()
}

/// RULES 5: in doubt → confirmed by evidence, also after the cohort ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_doubt_that_outlived_its_cohort_is_settled_by_evidence() {
    let (rig, cohort, item) = aborted_in_doubt().await;
    assert_eq!(own_state(&rig, item.quarantine_id).await, QuarantineState::InDoubt);
    reported(&rig, &item, &message_of(&item)).await;
    assert_eq!(rig.count(cohort, ItemState::InDoubt).await, 0);
    assert_eq!(own_state(&rig, item.quarantine_id).await, QuarantineState::ReturnedToQueue);
}

/// Evidence against people's word is loud, also after the cohort ended, and the message isn't held any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_evidence_contradicts_after_the_end_is_published_twice() {
    let (rig, cohort, item) = aborted_in_doubt().await;
    let path = format!("/cohorts/{cohort}/items/{}/resolve", item.id);
    rig.mara.act(&path, json!({ "outcome": "not_published", "reason": "nothing in the log" })).await.is(200);
    let again = json!({ "reason": "I looked too" });
    // an approver whose account the first person's hand is on is no second person (RULES 4)
    let puppet = rig.ward.app.hire("puppet", &[Role::Approver]).await;
    sqlx::query("INSERT INTO user_changes (id, user_id, changed_by, what) VALUES ($1, $1, $2, 'created')")
        .bind(puppet.0)
        .bind(rig.ward.app.id_of("mara").await.0)
        .execute(rig.ward.app.owner())
        .await
        .unwrap();
    rig.ward.app.sign_in("puppet").await.act(&format!("{path}/confirm"), &again).await.is(409);
    assert_eq!(rig.count(cohort, ItemState::InDoubt).await, 1);
    rig.ward.app.approver().await.act(&format!("{path}/confirm"), &again).await.is(200);
    assert_eq!(own_state(&rig, item.quarantine_id).await, QuarantineState::Held, "another cohort may take it");
    for _ in 0..2 {
        reported(&rig, &item, &message_of(&item)).await;
        assert!(rig.show(cohort).await.row.published_twice);
        assert_eq!(own_state(&rig, item.quarantine_id).await, QuarantineState::ReturnedToQueue);
    }
    assert_eq!(audited(&rig, "item.published_twice").await, 1, "said once");
    assert_eq!(audited(&rig, "item.redrive_id_reused").await, 0);
}

/// A draft over the same messages claims nothing, and its end doesn't make what another cohort sent held again.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_draft_hides_nothing_that_another_cohort_sent() {
    let mut rig = Rig::open().await;
    let ids = rig.letters(2).await;
    let _ledger = rig.worker().await;
    let draft = rig.ward.draft(&rig.mara, rig.plan(&ids)).await;
    let cohort = rig.approved(rig.plan(&ids)).await;
    rig.passed(cohort).await;
    rig.act(cohort, "expand").await;
    rig.until(cohort, CohortState::Completed).await;
    rig.mara.act(&format!("/cohorts/{}/discard", draft.row.id), json!({})).await.is(200);
    for id in ids {
        assert_eq!(own_state(&rig, id).await, QuarantineState::Verified);
    }
}

/// A copy of a redriven message, made by a worker under a message id of its own, is `redrive_id_reused` (RULES 3).
#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_id_that_workers_report_on_two_messages_is_reused() {
    let (rig, cohort, item) = aborted_in_doubt().await;
    reported(&rig, &item, &message_of(&item)).await;
    assert!(!rig.show(cohort).await.row.published_twice, "it is its own");
    for _ in 0..2 {
        reported(&rig, &item, &AppName(b"a copy".to_vec())).await;
        assert!(rig.show(cohort).await.row.published_twice);
    }
    assert_eq!(audited(&rig, "item.redrive_id_reused").await, 1, "said once");
}

/// Two dead letters with one redrive id, neither a suspect of custody's: the first is the message that died again, the
/// second one a copy.
#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_id_on_two_dead_letters_is_reused() {
    let (rig, cohort, item) = aborted_in_doubt().await;
    let duties = workers::start(&rig.ward.app.app);
    let channel = rig.ward.vhost.connect().await.create_channel().await.unwrap();
    let redrive = item.redrive_id.unwrap().to_string();
    for (n, (copies, said)) in [(1, 0), (2, 1)].into_iter().enumerate() {
        let mut headers = FieldTable::default();
        headers.insert("lazaret-redrive-id".into(), AMQPValue::LongString(redrive.as_str().into()));
        let properties = BasicProperties::default().with_headers(headers);
        let options = BasicPublishOptions::default();
        channel
            .basic_publish("".into(), "orders.dlq".into(), options, &[u8::try_from(n).unwrap()], properties)
            .await
            .unwrap();
        eventually("custody has it", || async {
            let stored = sqlx::query_scalar("SELECT count(*) FROM quarantine WHERE redrive_id = $1")
                .bind(item.redrive_id.unwrap().0);
            let stored: i64 = stored.fetch_one(rig.ward.app.owner()).await.unwrap();
            (stored == copies).then_some(())
        })
        .await;
        assert_eq!(own_state(&rig, item.quarantine_id).await, QuarantineState::Requarantined);
        assert_eq!(audited(&rig, "item.redrive_id_reused").await, said);
        assert_eq!(rig.show(cohort).await.row.published_twice, said == 1);
    }
    drop(duties);
}
