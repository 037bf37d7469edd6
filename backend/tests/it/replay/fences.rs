//! *Fenced* (RULES 3): an epoch whose answers are missing doesn't say *stopped*, however often it is asked.

use super::rig::Rig;
use domain::vocabulary::{CohortState, ItemState};
use lazaret::workers::replay::{Replays, Stepped};
use std::time::Duration;
use tokio::time::Instant;

/// How many messages the cohort has.
const LETTERS: usize = 64;

/// What was sent without an answer may still land: with the management API away the abort stays, and says what may go out.
#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_without_its_answers_never_says_stopped() {
    let mut rig = Rig::open().await;
    let ids = rig.letters(LETTERS).await;
    let cohort = rig.approved(rig.plan(&ids)).await;
    rig.act(cohort, "canary").await;
    rig.until(cohort, CohortState::CanaryVerifying).await;
    rig.prove_canary().await;
    rig.until(cohort, CohortState::CanaryPassed).await;
    // from here on an answer counts only if it is there as soon as the message is written: one is, now and then, and so
    // there are more messages than one
    let impatient = Replays::named(&rig.ward.app.app, "one").answering_within(Duration::ZERO);
    std::mem::replace(&mut rig.replays, impatient).stop().await;
    rig.act(cohort, "expand").await;
    let deadline = Instant::now() + Duration::from_secs(60);
    while rig.count(cohort, ItemState::InDoubt).await == 0 {
        let did = rig.step().await;
        assert!(Instant::now() < deadline, "none went into doubt: {did:?}, {:?}", rig.show(cohort).await.row.counts);
    }
    rig.ward.sql("UPDATE brokers SET management_url = 'http://127.0.0.1:9'").await;
    rig.act(cohort, "abort").await;
    let unfenced = Stepped::Halted("own_epoch_not_fenced".to_owned());
    for _ in 0..3 {
        assert_eq!(rig.step().await, std::slice::from_ref(&unfenced));
        assert_eq!(rig.show(cohort).await.row.state, CohortState::Aborting);
    }
    let replay = rig.replay(cohort).await;
    let connection = replay.unfenced[0].connection.clone().unwrap();
    let back = sqlx::query("UPDATE brokers SET management_url = $1").bind(rig.ward.vhost.management_address());
    back.execute(rig.ward.app.owner()).await.unwrap();
    rig.until(cohort, CohortState::Aborted).await;
    let listed = rig.ward.vhost.manage(reqwest::Method::GET, "/api/connections", None).await.to_string();
    assert!(!listed.contains(&connection), "seen gone at the broker before the end");
    assert!(rig.replay(cohort).await.unfenced.is_empty());
    let (kept, doubtful) = (rig.count(cohort, ItemState::Held).await, rig.count(cohort, ItemState::InDoubt).await);
    let (sure, landed) = (LETTERS as i64 - kept - doubtful, i64::from(rig.on_queue().await));
    assert!((sure..=sure + doubtful).contains(&landed), "{landed} of {sure} confirmed and {doubtful} in doubt");
}
