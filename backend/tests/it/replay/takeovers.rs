//! An owner that dies, or stops answering, between its record and its publish (P12, P16).

use super::rig::Rig;
use domain::{
    api::{CohortItem, CohortRow, Page},
    vocabulary::{CohortState, ItemState},
};
use lazaret::workers::replay::{Replays, Stepped};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn p12_what_the_dead_owner_left_is_in_doubt_and_never_goes_again() {
    let mut rig = Rig::open().await;
    let ids = rig.letters(20).await;
    let ledger = rig.worker().await;
    let mut plan = rig.plan(&ids);
    plan["expansion"]["start_per_s"] = json!(5);
    plan["expansion"]["max_per_s"] = json!(5);
    plan["canary"]["wait_s"] = json!(2);
    let cohort = rig.approved(plan).await;
    rig.passed(cohort).await;
    rig.act(cohort, "expand").await;
    while rig.count(cohort, ItemState::Scheduled).await > 15 {
        rig.step().await;
    }
    // the owner stands still: two were sent without their answers recorded, one was recorded and never sent
    rig.ward.sql(
        "UPDATE cohort_items SET state = 'publishing', confirmed_at = NULL, finished_at = NULL WHERE id IN
           (SELECT id FROM cohort_items WHERE state IN ('confirmed', 'verified') AND NOT canary ORDER BY published_at DESC LIMIT 2)",
    ).await;
    rig.ward.sql(
        "UPDATE cohort_items SET state = 'publishing', redrive_id = gen_random_uuid(), generation = 1, published_at = now(),
           epoch = (SELECT max(epoch) FROM cohort_epochs), connection = 'lost'
         WHERE id = (SELECT id FROM cohort_items WHERE state = 'scheduled' ORDER BY position DESC LIMIT 1)",
    ).await;
    let mut old = std::mem::replace(&mut rig.replays, Replays::named(&rig.ward.app.app, "two"));
    assert_eq!(rig.step().await, [Stepped::Elsewhere], "the lease is another's");
    rig.ward.sql("UPDATE leases SET expires_at = now() - interval '1 second' WHERE duty = 'replay'").await;
    rig.until(cohort, CohortState::Settling).await;
    // the old owner wakes up: its connection is gone, its epoch is over, it hands over nothing
    old.try_step().await.unwrap();
    let replay = rig.replay(cohort).await;
    assert!(replay.epoch >= 2 && replay.unfenced.is_empty(), "{replay:?}");
    rig.delivered_once(&ledger, 19).await;
    // the two that arrived are proved by the probe; the one that was never sent stays in doubt, until people say
    while rig.count(cohort, ItemState::InDoubt).await > 1 {
        rig.step().await;
    }
    let doubt: Vec<CohortItem> =
        rig.items(cohort).await.into_iter().filter(|item| item.state == ItemState::InDoubt).collect();
    // found whatever its age and state: nobody pages through the newest for it
    for (filter, found) in [("in_doubt=true", 1), ("in_doubt=false", 0), ("published_twice=true", 0)] {
        let list: Page<CohortRow> = rig.mara.get(&format!("/cohorts?{filter}")).await.ok();
        assert_eq!((list.items.len(), list.total.value), (found, i64::try_from(found).unwrap()), "{filter}");
    }
    let path = format!("/cohorts/{cohort}/items/{}/resolve", doubt[0].id);
    let word = json!({ "outcome": "not_published", "reason": "the broker's log shows nothing" });
    rig.mara.act(&path, &word).await.is(200);
    assert_eq!(rig.count(cohort, ItemState::InDoubt).await, 1, "one person's word isn't enough");
    rig.mara.act(&format!("{path}/confirm"), json!({ "reason": "me again" })).await.problem(403, "missing_permission");
    let jon = rig.ward.app.approver().await;
    jon.act(&format!("{path}/confirm"), json!({ "reason": "I looked too" })).await.is(200);
    rig.until(cohort, CohortState::Completed).await;
    rig.delivered_once(&ledger, 19).await;
    assert_eq!(rig.count(cohort, ItemState::ResolvedNotPublished).await, 1);
}

/// The database goes away between the publish and the record of its answer: the same process may not guess either.
#[tokio::test(flavor = "multi_thread")]
async fn p12_answers_that_were_not_recorded_are_in_doubt_for_their_own_process_too() {
    let (mut rig, cohort, ledger) = Rig::under_way(8).await;
    let lost = "UPDATE cohort_items SET state = 'publishing', confirmed_at = NULL WHERE id =
                  (SELECT id FROM cohort_items WHERE NOT canary AND published_at IS NOT NULL ORDER BY published_at DESC LIMIT 1)";
    rig.ward.sql(lost).await;
    let epoch = rig.replay(cohort).await.epoch;
    rig.until(cohort, CohortState::Completed).await;
    assert!(rig.replay(cohort).await.epoch > epoch);
    rig.delivered_once(&ledger, 8).await;
    assert_eq!(rig.count(cohort, ItemState::Verified).await, 8);
}

/// P16: the owner can't be heard; `aborting` stays until its connection is seen gone.
#[tokio::test(flavor = "multi_thread")]
async fn p16_an_abort_waits_for_the_silent_owner_to_be_fenced() {
    let mut rig = Rig::open().await;
    let ids = rig.letters(5).await;
    let _ledger = rig.worker().await;
    let cohort = rig.approved(rig.plan(&ids)).await;
    rig.passed(cohort).await;
    rig.act(cohort, "abort").await;
    // another process may not end it while the owner's lease stands
    let mut old = std::mem::replace(&mut rig.replays, Replays::named(&rig.ward.app.app, "two"));
    assert_eq!(rig.step().await, [Stepped::Elsewhere]);
    assert_eq!(rig.replay(cohort).await.unfenced.len(), 1);
    rig.ward.sql("UPDATE leases SET expires_at = now() - interval '1 second' WHERE duty = 'replay'").await;
    let name = rig.replay(cohort).await.unfenced[0].connection.clone().unwrap();
    rig.until(cohort, CohortState::Aborted).await;
    let listed = rig.ward.vhost.manage(reqwest::Method::GET, "/api/connections", None).await.to_string();
    assert!(!listed.contains(&name), "the silent owner's connection is gone at the broker");
    assert!(old.try_step().await.unwrap().is_empty(), "it finds nothing to do");
}
