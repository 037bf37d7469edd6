//! What waits, says so, and keeps nothing else waiting.

use super::{Fixture, header, job, losses::flagged, table};
use crate::harness::eventually;
use domain::{api::DeadLetterQueue, vocabulary::Kind};
use lazaret::workers;
use reqwest::Method;

/// C10: a commit that hangs while the broker takes the channel away.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_hangs_is_said_and_its_end_makes_no_second_row() {
    let fixture = Fixture::draining().await;
    let lock = fixture.hold_up().await;
    fixture.die(job("j1"), b"{}").await;
    fixture.is_held_up().await;
    let stopped = fixture.is("stopped").await;
    assert!(stopped.state_reason.as_deref().unwrap().starts_with("commit_stalled"), "{:?}", stopped.state_reason);
    let page = fixture.viewer.send(fixture.viewer.request(Method::GET, "/")).await.is(200).text();
    assert!(page.contains("Custody of orders.dlq has stopped") && page.contains("commit stalled"));

    let cut = eventually("custody's connection is listed", || async { Some(fixture.cut().await).filter(|n| *n > 0) });
    assert_eq!(cut.await, 1);
    eventually("the broker has it back", || async { Some(fixture.ready().await).filter(|ready| *ready == 1) }).await;
    lock.rollback().await.unwrap();
    eventually("it is absorbed", || async { Some(fixture.absorbed().await).filter(|absorbed| *absorbed == 1) }).await;
    assert_eq!(flagged(&fixture.stored(1).await), 0);
    assert_eq!(fixture.is("draining").await.state_reason, None, "the alarm is cleared");
}

/// A commit that hangs doesn't keep a person from switching custody off.
#[tokio::test(flavor = "multi_thread")]
async fn custody_can_be_switched_off_while_its_commit_hangs() {
    let fixture = Fixture::draining().await;
    let lock = fixture.hold_up().await;
    fixture.die(job("j1"), b"{}").await;
    fixture.is_held_up().await;
    fixture.switch("off").await;
    eventually("the broker has it back", || async { Some(fixture.ready().await).filter(|ready| *ready == 1) }).await;
    lock.rollback().await.unwrap();
    // what was underway is committed, and what the broker still has says so once it comes
    fixture.stored(1).await;
    fixture.switch("drain").await;
    assert_eq!(flagged(&fixture.stored(2).await), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_cant_be_had_keeps_no_other_queue_waiting() {
    let fixture = Fixture::new().await;
    fixture.switch("drain").await;
    let other = fixture.also_drains("refunds.dlq").await;
    let owner = fixture.app.owner();
    // of a process that died while a transaction of its own ran
    sqlx::query(
        "INSERT INTO leases (duty, subject, epoch, owner, expires_at) VALUES ('custody', $1, 1, 'dead', now())",
    )
    .bind(fixture.dlq.0)
    .execute(owner)
    .await
    .unwrap();
    #[expect(clippy::disallowed_methods, reason = "the test's own lock")]
    let mut lock = owner.begin().await.unwrap();
    sqlx::query("SELECT FROM leases WHERE subject = $1 FOR NO KEY UPDATE")
        .bind(fixture.dlq.0)
        .execute(&mut *lock)
        .await
        .unwrap();
    let process = fixture.process("living");
    let _duties = workers::start(&process);
    eventually("the other is drained", || async {
        let queue: DeadLetterQueue = fixture.viewer.get(&format!("/dead-letter-queues/{other}")).await.ok();
        (queue.state.as_str() == "draining").then_some(())
    })
    .await;
    let held = fixture.dead_letter_queue().await;
    assert_eq!((held.state.as_str(), held.lease_epoch), ("waiting", 1));
    lock.rollback().await.unwrap();
    assert_eq!(fixture.is("draining").await.lease_epoch, 2);
    process.shutdown.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_cant_be_read_touch_only_their_own_queues_dead_letters() {
    let fixture = Fixture::draining().await;
    fixture.watch("refunds").await;
    sqlx::query("UPDATE queues SET retry_policy = '\"?\"', headers = '[]' WHERE id = $1")
        .bind(fixture.queue.0)
        .execute(fixture.app.owner())
        .await
        .unwrap();
    let failed = || job("j").with_headers(table([header("job-id", "j"), header("error-class", "timeout")]));
    fixture.die_on("orders", failed(), b"unreadable").await;
    fixture.die_on("refunds", failed(), b"readable").await;
    let rows = fixture.stored(2).await;
    let of = |name: &str| rows.iter().find(|row| row.queue.as_ref().is_some_and(|queue| queue.name == name)).unwrap();
    assert_eq!((of("refunds").error_class.as_deref(), of("refunds").kind), (Some("timeout"), Kind::Transient));
    assert_eq!((of("orders").error_class.as_deref(), of("orders").kind), (None, Kind::Permanent));
}
