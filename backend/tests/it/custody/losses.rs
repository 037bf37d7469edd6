//! Losses at every moment: nothing is lost, and what may be there twice says so.

use super::{Fixture, job};
use crate::harness::{TestApp, eventually};
use domain::api::QuarantineRow;
use lapin::options::QueueDeleteOptions;
use lazaret::{state::App, workers};
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;

/// Another process of the installation, as far as leases and knowledge go.
fn process(fixture: &Fixture, name: &str) -> App {
    let mut config = (*fixture.app.app.config).clone();
    config.process_name = name.to_owned();
    App { config: config.into(), shutdown: CancellationToken::new(), ..fixture.app.app.clone() }
}

/// Holds up every commit of custody until it is dropped.
async fn hold_up(fixture: &Fixture) -> sqlx::Transaction<'static, sqlx::Postgres> {
    #[expect(clippy::disallowed_methods, reason = "the test's own lock")]
    let mut lock = fixture.app.owner().begin().await.unwrap();
    sqlx::query("LOCK TABLE payloads IN EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    lock
}

/// Waits until custody has a batch that it can't commit.
async fn is_held_up(fixture: &Fixture) {
    eventually("a batch waits for the lock", || async {
        let waiting: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'payloads'::regclass)",
        )
        .fetch_one(fixture.app.owner())
        .await
        .unwrap();
        waiting.then_some(())
    })
    .await;
}

fn flagged(rows: &[QuarantineRow]) -> usize {
    rows.iter().filter(|row| row.possible_duplicate_of.is_some()).count()
}

async fn absorbed(fixture: &Fixture) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM absorptions").fetch_one(fixture.app.owner()).await.unwrap()
}

/// Lets these bodies die, cuts custody's connection before their ack, and lets custody go on; the rows, one a message.
async fn cut_before_the_ack(fixture: &Fixture, bodies: &[&str]) -> Vec<QuarantineRow> {
    let lock = hold_up(fixture).await;
    for body in bodies {
        fixture.die(job("cut"), body.as_bytes()).await;
    }
    is_held_up(fixture).await;
    let cut = eventually("custody's connection is listed", || async { Some(fixture.cut().await).filter(|n| *n > 0) });
    assert_eq!(cut.await, 1);
    let all = u32::try_from(bodies.len()).unwrap();
    eventually("the broker has them back", || async { Some(fixture.ready().await).filter(|ready| *ready == all) })
        .await;
    lock.rollback().await.unwrap();
    eventually("the queue is empty", || async { Some(fixture.ready().await).filter(|ready| *ready == 0) }).await;
    let rows = fixture.stored(i64::from(all)).await;
    assert!(absorbed(fixture).await >= 1, "the batch whose ack was never sent came again");
    fixture.is("draining").await;
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_lost_before_the_ack_was_sent_makes_no_second_row() {
    let fixture = Fixture::draining().await;
    let rows = cut_before_the_ack(&fixture, &["0", "1", "2", "3", "4", "5"]).await;
    assert_eq!(flagged(&rows), 0, "no two are equal, so nothing is a suspect");
}

/// RULES 2: with equal messages a row may be flagged, wherever a batch happened to end; a row more or less may not be.
#[tokio::test(flavor = "multi_thread")]
async fn equal_twins_are_absorbed_one_for_one() {
    let fixture = Fixture::draining().await;
    let rows = cut_before_the_ack(&fixture, &["0", "0", "1", "1", "2", "2"]).await;
    assert!(flagged(&rows) <= 3, "at most one of each pair is a suspect");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_between_commit_and_ack_leaves_rows_that_say_they_may_be_double() {
    let fixture = Fixture::new().await;
    fixture.switch("drain").await;
    let first = process(&fixture, "first");
    let mut duties = workers::start(&first);
    fixture.is("draining").await;
    let lock = hold_up(&fixture).await;
    for i in 0..8 {
        fixture.die(job(&format!("j{i}")), format!("{i}").as_bytes()).await;
    }
    is_held_up(&fixture).await;
    // what runs in the database goes on, as after a kill; nothing of the process does
    duties.abort_all();
    while duties.join_next().await.is_some() {}
    eventually("the broker has them back", || async { Some(fixture.ready().await).filter(|ready| *ready == 8) }).await;
    lock.rollback().await.unwrap();
    let second = process(&fixture, "second");
    let _duties = workers::start(&second);
    eventually("the queue is empty", || async {
        let there = fixture.total("").await >= 8 && fixture.ready().await == 0;
        let settled = there && fixture.dead_letter_queue().await.lease_owner.as_deref() == Some("second");
        settled.then_some(())
    })
    .await;
    let rows = eventually("every message is there", || async {
        let total = fixture.total("").await;
        let rows = fixture.stored(total).await;
        let mut bodies: Vec<_> = rows.iter().map(|row| row.job_id.clone()).collect();
        bodies.sort();
        bodies.dedup();
        (bodies.len() == 8).then_some(rows)
    })
    .await;
    assert_eq!(rows.len() - 8, flagged(&rows), "rows − messages = flagged rows");
    assert!(flagged(&rows) >= 1, "the fault hit the window");
    let by_id: HashMap<_, _> = rows.iter().map(|row| (row.id, row)).collect();
    for row in rows.iter().filter(|row| row.possible_duplicate_of.is_some()) {
        assert_eq!(by_id[&row.possible_duplicate_of.unwrap()].job_id, row.job_id);
    }
    assert_eq!(absorbed(&fixture).await, 0, "another process knows nothing of the first one's acks");
    assert!(fixture.dead_letter_queue().await.lease_epoch >= 2);
    second.shutdown.cancel();
}

/// A change of prefetch waits 5 s for what is on its channel; a commit that takes longer goes on without it, and its
/// messages come again under the same epoch.
#[tokio::test(flavor = "multi_thread")]
async fn messages_that_come_again_beside_their_own_stalled_commit_are_flagged() {
    let fixture = Fixture::on(TestApp::start_with_workers().await, "orders").await;
    let owner = fixture.app.owner();
    sqlx::raw_sql(
        "CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$;
         CREATE TRIGGER stalls BEFORE INSERT ON payloads FOR EACH ROW WHEN (NEW.body = 'slow') EXECUTE FUNCTION stall()",
    )
    .execute(owner)
    .await
    .unwrap();
    #[expect(clippy::disallowed_methods, reason = "the test's own lock")]
    let mut lock = owner.begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(7)").execute(&mut *lock).await.unwrap();
    // the first two fill a batch of the first, small prefetch; the others are what its change finds
    for (id, body) in [("0", "fast"), ("1", "fast"), ("2", "slow"), ("3", "slow")] {
        // of no queue: those that wait for events of theirs are kept apart by that already
        fixture.publish(&fixture.dlq_name, job(id), body.as_bytes()).await;
    }
    fixture.switch("drain").await;
    eventually("both commits and a renewal wait", || async {
        let waiting: i64 = sqlx::query_scalar(
            "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted
               AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())",
        )
        .fetch_one(fixture.app.owner())
        .await
        .unwrap();
        (waiting >= 3).then_some(())
    })
    .await;
    lock.rollback().await.unwrap();
    let rows = fixture.stored(6).await;
    assert_eq!(flagged(&rows), 2, "rows − messages = flagged rows");
    eventually("the queue is empty", || async { Some(fixture.ready().await).filter(|ready| *ready == 0) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_cut_under_load_lose_and_double_nothing() {
    let fixture = Fixture::draining().await;
    let mut cuts = 0;
    for i in 0..60 {
        fixture.publish(&fixture.dlq_name, job(&format!("j{i}")), format!("{i}").as_bytes()).await;
        if i % 12 == 11 {
            cuts +=
                eventually("custody's connection is listed", || async { Some(fixture.cut().await).filter(|n| *n > 0) })
                    .await;
        }
    }
    let rows = eventually("every message is there", || async {
        let rows: domain::api::QuarantinePage = fixture.viewer.get("/quarantine?limit=200").await.ok();
        let mut messages: Vec<_> = rows.items.iter().map(|row| row.message_id.clone()).collect();
        messages.sort();
        messages.dedup();
        (messages.len() == 60 && fixture.ready().await == 0).then_some(rows.items)
    })
    .await;
    assert!(cuts >= 1, "no connection was cut");
    assert_eq!(rows.len() - 60, flagged(&rows), "rows − messages = flagged rows");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_queue_is_said_not_made_and_drained_once_it_is_back() {
    let fixture = Fixture::draining().await;
    fixture.channel.queue_delete(fixture.dlq_name.as_str().into(), QueueDeleteOptions::default()).await.unwrap();
    let stopped = fixture.is("stopped").await;
    assert!(stopped.state_reason.unwrap().starts_with("queue_missing"));
    let queues = fixture
        .vhost
        .manage(reqwest::Method::GET, &format!("/api/queues/{}", fixture.vhost.path_segment()), None)
        .await;
    assert!(queues.as_array().unwrap().iter().all(|queue| queue["name"] != fixture.dlq_name.as_str()));
    fixture.declare_dlq().await;
    fixture.is("draining").await;
    fixture.die(job("j1"), b"{}").await;
    fixture.stored(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_acknowledges_what_was_stored_and_another_process_goes_on_at_once() {
    let fixture = Fixture::new().await;
    fixture.switch("drain").await;
    let first = process(&fixture, "first");
    let mut duties = workers::start(&first);
    fixture.is("draining").await;
    for i in 0..40 {
        fixture.publish(&fixture.dlq_name, job(&format!("j{i}")), b"{}").await;
    }
    first.shutdown.cancel();
    let began = std::time::Instant::now();
    while duties.join_next().await.is_some() {}
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    let stored = fixture.total("").await;
    assert_eq!(fixture.dead_letter_queue().await.lease_owner, None, "the lease was given back");
    assert_eq!(i64::from(fixture.ready().await) + stored, 40, "each is stored and acknowledged, or on the queue");
    let second = process(&fixture, "second");
    let _duties = workers::start(&second);
    let rows = fixture.stored(40).await;
    assert_eq!(flagged(&rows), 0);
    second.shutdown.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn custody_switched_off_leaves_messages_on_the_queue() {
    let fixture = Fixture::draining().await;
    fixture.switch("off").await;
    eventually("the lease is given back", || async {
        fixture.dead_letter_queue().await.lease_owner.is_none().then_some(())
    })
    .await;
    fixture.die(job("j1"), b"{}").await;
    eventually("it is on the queue", || async { Some(fixture.ready().await).filter(|ready| *ready == 1) }).await;
    assert_eq!(fixture.total("").await, 0);
    assert_eq!(fixture.is("off").await.state_reason, None);
    assert_eq!(fixture.purged().await, 1);
}
