//! The expansion: its limits, and everything that stops it.

use super::rig::Rig;
use domain::vocabulary::{CohortState, ItemState};
use lazaret::workers::replay::Stepped;
use reqwest::Method;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_ends_fenced_and_nothing_follows() {
    let (mut rig, cohort, ledger) = Rig::under_way(30).await;
    rig.act(cohort, "abort").await;
    rig.until(cohort, CohortState::Aborted).await;
    let held = rig.count(cohort, ItemState::Held).await;
    let sent = 30 - usize::try_from(held).unwrap();
    assert!(held > 0);
    for _ in 0..5 {
        assert!(rig.step().await.is_empty(), "nothing runs");
    }
    rig.delivered_once(&ledger, sent).await;
    assert!(rig.replay(cohort).await.unfenced.is_empty());
    let epochs: i64 =
        sqlx::query_scalar("SELECT count(*) FROM cohort_epochs WHERE stopped_at IS NULL AND closed_at IS NULL")
            .fetch_one(rig.ward.app.owner())
            .await
            .unwrap();
    assert_eq!(epochs, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_and_a_pause_stop_it_and_a_resume_goes_on_with_one() {
    let (mut rig, cohort, ledger) = Rig::under_way(20).await;
    rig.mara.act("/freeze", json!({ "reason": "storm" })).await.is(200);
    let before = rig.count(cohort, ItemState::Scheduled).await;
    let paused = rig.until(cohort, CohortState::Paused).await;
    assert!(paused.row.state_reason.unwrap().contains("storm"));
    assert_eq!(paused.row.state_by, None, "Lazaret paused it: the words are its own");
    for _ in 0..5 {
        rig.step().await;
    }
    assert_eq!(rig.count(cohort, ItemState::Scheduled).await, before, "nothing after the freeze");
    rig.ward.app.admin().await.act("/unfreeze", json!({ "reason": "calm" })).await.is(200);
    rig.act(cohort, "resume").await;
    let resumed = rig.show(cohort).await.row;
    assert_eq!(resumed.state_by.map(|by| by.username), Some("mara".to_owned()), "a person's words");
    assert!(resumed.state_since > paused.row.state_since);
    while rig.count(cohort, ItemState::Scheduled).await == before {
        rig.step().await;
    }
    assert_eq!(rig.count(cohort, ItemState::Scheduled).await, before - 1, "one probation item first");
    rig.until(cohort, CohortState::Completed).await;
    rig.delivered_once(&ledger, 20).await;
}

/// P5: a target that refuses pauses the cohort; what was refused is kept and not retried.
#[tokio::test(flavor = "multi_thread")]
async fn p5_a_refusing_target_pauses() {
    let mut rig = Rig::open().await;
    let ids = rig.letters(12).await;
    let cohort = rig.approved(rig.plan(&ids)).await;
    rig.act(cohort, "canary").await;
    rig.until(cohort, CohortState::CanaryVerifying).await;
    rig.ward.sql("INSERT INTO effects SELECT 'job-0', 'sent', redrive_id::text FROM cohort_items WHERE redrive_id IS NOT NULL").await;
    rig.until(cohort, CohortState::CanaryPassed).await;
    let policy = json!({ "pattern": "^orders$", "definition": { "max-length": 3, "overflow": "reject-publish" }, "apply-to": "queues" });
    let path = format!("/api/policies/{}/full", rig.ward.vhost.path_segment());
    rig.ward.vhost.manage(Method::PUT, &path, Some(policy)).await;
    rig.act(cohort, "expand").await;
    let paused = rig.until(cohort, CohortState::Paused).await;
    assert!(paused.row.state_reason.unwrap().contains("refuses"));
    assert!(rig.count(cohort, ItemState::Nacked).await >= 1);
    let on_queue = i64::from(rig.on_queue().await);
    assert_eq!(rig.count(cohort, ItemState::Confirmed).await + rig.count(cohort, ItemState::Verified).await, on_queue);
}

/// P3: the queue goes in mid-run; what nothing would get is returned, not counted as sent, and the rest waits.
#[tokio::test(flavor = "multi_thread")]
async fn p3_a_deleted_queue_returns_and_pauses() {
    let (mut rig, cohort, _) = Rig::under_way(20).await;
    let path = format!("/api/queues/{}/orders", rig.ward.vhost.path_segment());
    rig.ward.vhost.manage(Method::DELETE, &path, None).await;
    let paused = rig.until(cohort, CohortState::Paused).await;
    assert!(paused.row.state_reason.unwrap().contains("no queue"));
    assert!(rig.count(cohort, ItemState::Returned).await >= 1);
    assert!(rig.count(cohort, ItemState::Scheduled).await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn never_more_than_64_unanswered_and_without_management_nothing_goes() {
    let mut rig = Rig::open().await;
    let ids = rig.letters(150).await;
    let ledger = rig.worker().await;
    let mut plan = rig.plan(&ids);
    plan["expansion"]["start_per_s"] = json!(2000);
    plan["expansion"]["max_per_s"] = json!(2000);
    plan["expansion"]["verify_sample_percent"] = json!(0);
    let cohort = rig.approved(plan).await;
    rig.passed(cohort).await;
    rig.act(cohort, "expand").await;
    rig.ward.sql("UPDATE brokers SET management_url = 'http://127.0.0.1:9'").await;
    // the last look at the target may still count
    tokio::time::sleep(std::time::Duration::from_millis(2_100)).await;
    let did = rig.step().await;
    assert!(matches!(&did[..], [Stepped::Halted(why)] if why.starts_with("no_management_api")), "{did:?}");
    assert!(rig.replay(cohort).await.halted.unwrap().starts_with("no_management_api"));
    assert_eq!(rig.count(cohort, ItemState::Scheduled).await, 149);
    let back = sqlx::query("UPDATE brokers SET management_url = $1").bind(rig.ward.vhost.management_address());
    back.execute(rig.ward.app.owner()).await.unwrap();
    let mut handed = 0;
    while handed < 149 {
        for did in rig.step().await {
            if let Stepped::HandedOver(many) = did {
                assert!(many <= 64, "{many}");
                handed += many;
            }
        }
    }
    rig.until(cohort, CohortState::Completed).await;
    rig.delivered_once(&ledger, 150).await;
}
