//! The canary stage: nothing passes but an effect that was absent, is as expected, and is this redrive's.

use super::rig::Rig;
use crate::{cohorts::ward::Letter, harness::Person};
use domain::vocabulary::{CohortState, ItemState, Verdict};
use lazaret::workers::replay::Stepped;
use serde_json::json;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn a_proved_canary_lets_the_rest_follow_and_each_goes_once() {
    let mut rig = Rig::open().await;
    let ids = rig.letters(6).await;
    let ledger = rig.worker().await;
    let cohort = rig.approved(rig.plan(&ids)).await;
    rig.passed(cohort).await;
    let shown = rig.show(cohort).await;
    assert_eq!(shown.canaries[0].verdict, Some(Verdict::Pass));
    assert_eq!(shown.canaries[0].attributed_by.as_deref(), Some("probe row"));
    assert_eq!(rig.count(cohort, ItemState::Scheduled).await, 5);
    assert_eq!(rig.on_queue().await, 0);

    rig.act(cohort, "expand").await;
    let done = rig.until(cohort, CohortState::Completed).await;
    rig.delivered_once(&ledger, 6).await;
    assert_eq!(rig.count(cohort, ItemState::Verified).await, 6, "{:?}", done.row.counts);
    let replay = rig.replay(cohort).await;
    assert!(replay.unfenced.is_empty() && replay.unanswered == 0);
    let claims: i64 =
        sqlx::query_scalar("SELECT count(*) FROM message_claims").fetch_one(rig.ward.app.owner()).await.unwrap();
    assert_eq!(claims, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_is_there_already_is_not_sent() {
    let mut rig = Rig::open().await;
    let ids = rig.letters(2).await;
    let cohort = rig.approved(rig.plan(&ids)).await;
    rig.ward.sql("INSERT INTO effects VALUES ('job-0', 'sent', NULL)").await;
    rig.act(cohort, "canary").await;
    rig.until(cohort, CohortState::CanaryVerifying).await;
    for _ in 0..3 {
        rig.step().await;
    }
    let shown = rig.show(cohort).await;
    assert_eq!(shown.canaries[0].verdict, Some(Verdict::Inconclusive));
    assert_eq!(shown.canaries[0].verdict_reason.as_deref(), Some("already_effective"));
    assert_eq!(rig.on_queue().await, 0, "nothing was published");
    assert_eq!(rig.count(cohort, ItemState::Refused).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_effect_than_expected_fails_the_cohort() {
    let mut rig = Rig::open().await;
    let ids = rig.letters(3).await;
    let cohort = rig.approved(rig.plan(&ids)).await;
    rig.act(cohort, "canary").await;
    rig.until(cohort, CohortState::CanaryVerifying).await;
    rig.ward.sql("INSERT INTO effects SELECT 'job-0', 'refunded', redrive_id::text FROM cohort_items WHERE redrive_id IS NOT NULL").await;
    let failed = rig.until(cohort, CohortState::CanaryFailed).await;
    assert_eq!(failed.canaries[0].verdict_reason.as_deref(), Some("contradicted"));
    assert_eq!(rig.count(cohort, ItemState::Held).await, 2, "the rest is kept");
    assert_eq!(rig.on_queue().await, 1);
}

/// P14: no consumer, so nothing is seen: never a pass, and people end it.
#[tokio::test(flavor = "multi_thread")]
async fn p14_without_an_effect_there_is_no_pass() {
    let mut rig = Rig::open().await;
    let ids = rig.letters(2).await;
    let mut plan = rig.plan(&ids);
    plan["canary"]["wait_s"] = json!(1);
    let cohort = rig.approved(plan).await;
    rig.act(cohort, "canary").await;
    rig.until(cohort, CohortState::CanaryVerifying).await;
    let mut shown = rig.show(cohort).await;
    while shown.canaries[0].verdict.is_none() {
        rig.step().await;
        shown = rig.show(cohort).await;
    }
    assert_eq!(shown.canaries[0].verdict, Some(Verdict::Inconclusive));
    rig.mara
        .act(&format!("/cohorts/{cohort}/expand"), json!({ "reason": "hope", "confirm_count": 1 }))
        .await
        .problem(409, "illegal_transition");
    rig.act(cohort, "fail").await;
    rig.until(cohort, CohortState::CanaryFailed).await;
    assert_eq!(rig.on_queue().await, 1, "only the canary went out");
}

/// A worker of this version begins an attempt on some other job.
async fn begins(feed: &Person, version: &str) {
    let event = json!({ "event_id": Uuid::now_v7(), "kind": "attempt_started", "at": "2026-12-02T03:00:00Z",
        "queue": "orders", "job_id": "another", "attempt": 1, "worker_version": version });
    feed.post("/events", json!({ "events": [event] })).await.is(202);
}

/// A pass of unknown version stands for no version that consumes now: unknown never moves a message.
#[tokio::test(flavor = "multi_thread")]
async fn a_pass_doesnt_count_for_a_version_that_didnt_execute_it() {
    let mut rig = Rig::open().await;
    let ids = rig.letters(3).await;
    let _ledger = rig.worker().await;
    let cohort = rig.approved(rig.plan(&ids)).await;
    rig.passed(cohort).await;
    begins(&rig.ward.app.emitter().await, "2026.12.3").await;
    rig.mara
        .act(&format!("/cohorts/{cohort}/expand"), json!({ "reason": "on", "confirm_count": 2 }))
        .await
        .problem(409, "canary_too_old");
    assert_eq!(rig.count(cohort, ItemState::Scheduled).await, 2, "nothing more has moved");
}

/// Two strata: a fresh pass of one doesn't stand for the other's, which is too old.
#[tokio::test(flavor = "multi_thread")]
async fn each_stratum_needs_a_pass_that_still_counts() {
    let mut rig = Rig::open().await;
    rig.ward.sql(r#"UPDATE queues SET retry_policy = '{"transient_classes": ["timeout", "busy"]}'"#).await;
    let mut ids = rig.letters(2).await;
    ids.push(rig.letter(Letter { class: "busy", ..Letter::of("other") }).await);
    let _ledger = rig.worker().await;
    let mut plan = rig.plan(&ids);
    plan["canary"]["items"] = json!([ids[0], ids[2]]);
    let cohort = rig.approved(plan).await;
    rig.passed(cohort).await;
    assert_eq!(rig.show(cohort).await.canaries.len(), 2);
    rig.ward.sql("UPDATE canaries SET judged_at = judged_at - interval '1 hour' WHERE stratum = 0").await;
    let expand = format!("/cohorts/{cohort}/expand");
    let body = json!({ "reason": "on", "confirm_count": 1 });
    rig.mara.act(&expand, &body).await.problem(409, "canary_too_old");
    rig.ward.sql("UPDATE canaries SET judged_at = judged_at + interval '1 hour' WHERE stratum = 0").await;
    rig.mara.act(&expand, &body).await.is(202);
}

/// A stratum's only named canary is refused before its turn: nothing that nobody named takes its place.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_canary_that_the_plan_names_goes_out() {
    let mut rig = Rig::open().await;
    rig.ward.sql(r#"UPDATE queues SET retry_policy = '{"transient_classes": ["timeout", "busy"]}'"#).await;
    let mut ids = rig.letters(1).await;
    for job in ["named", "other"] {
        ids.push(rig.letter(Letter { class: "busy", ..Letter::of(job) }).await);
    }
    let ledger = rig.worker().await;
    let mut plan = rig.plan(&ids);
    plan["canary"]["items"] = json!([ids[0], ids[1]]);
    let cohort = rig.approved(plan).await;
    rig.act(cohort, "canary").await;
    rig.ward.sql("UPDATE cohort_items SET state = 'refused', state_reason = 'test' WHERE job_id = 'named'").await;
    let halted = Stepped::Halted("no_canary_left".to_owned());
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(25);
    while !rig.step().await.contains(&halted) {
        assert!(tokio::time::Instant::now() < deadline, "never halted: {:?}", rig.show(cohort).await.row);
    }
    rig.delivered_once(&ledger, 1).await;
    assert_eq!(rig.count(cohort, ItemState::Scheduled).await, 1);
}
