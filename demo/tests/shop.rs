//! The shop against a real broker and a real database, and the check against planted faults.
//!
//! Needs `LAZARET_TEST_DATABASE_URL` (a superuser), `LAZARET_TEST_AMQP_URL` and `LAZARET_TEST_MANAGEMENT_URL`; each test
//! makes a virtual host and two databases of its own.

mod world;

use std::time::Duration;

use demo::{amqp, check::Plant, database, invoice::LARGE_EVERY, producer, revision::Revision, topology};
use lapin::options::{BasicAckOptions, BasicGetOptions};
use uuid::Uuid;
use world::World;

/// Orders in each test: enough for large ones and the poison.
const ORDERS: i64 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_revision_gives_up_on_large_invoices_and_the_mended_one_makes_them() {
    let world = World::new("story").await;
    world.take_orders(ORDERS).await;
    let bad = world.work(Revision::R2026_12_1).await;
    // large ones and the poison die, each after its whole budget; the others are made
    let dead = ORDERS / LARGE_EVERY + 1;
    world.until("dead letters", async || i64::from(world.dead_letters().await) == dead).await;
    world.until("the rest is made", async || world.effects().await == ORDERS - dead).await;
    let large = "SELECT max(n) FROM (SELECT count(*) n FROM executions GROUP BY job_id) x";
    assert_eq!(world.count(large).await, producer::MAX_ATTEMPTS);
    bad.end().await;

    let report = world.check(None).await;
    assert_eq!((report.ok, report.jobs, report.effects), (true, ORDERS, ORDERS - dead));
    assert_eq!((report.queued, report.lost, report.doubled), (dead, 0, 0), "dead letters are still on a queue");

    // each comes back as Lazaret would bring it
    let mended = world.work(Revision::R2026_12_2).await;
    for _ in 0..dead {
        let (mut job, body) = world.take_dead_letter().await;
        job.redrive_id = Some(Uuid::now_v7());
        job.redrive_generation = Some(1);
        world.publish(&job, &body).await;
    }
    world.until("all but the poison are made", async || world.effects().await == ORDERS - 1).await;
    world.until("the poison died again", async || world.dead_letters().await == 1).await;
    let attributed = "SELECT count(*) FROM invoices WHERE redrive_id IS NOT NULL AND worker_version = '2026.12.2'";
    assert_eq!(world.count(attributed).await, dead - 1);
    let report = world.check(None).await;
    assert_eq!((report.ok, report.lost, report.doubled, report.queued), (true, 0, 0, 1));

    // the pretended faults turn it red, and change nothing
    let planted = world.check(Some(Plant::Loss)).await;
    assert_eq!((planted.ok, planted.lost, planted.doubled), (false, 1, 0));
    let planted = world.check(Some(Plant::Double)).await;
    assert_eq!((planted.ok, planted.lost, planted.doubled), (false, 0, 1));
    assert!(world.check(None).await.ok);
    mended.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_taken_and_dropped_is_lost() {
    let world = World::new("loss").await;
    world.take_orders(3).await;
    let message = world.channel.basic_get(topology::QUEUE.into(), BasicGetOptions::default()).await.unwrap().unwrap();
    message.delivery.acker.ack(BasicAckOptions::default()).await.unwrap();
    let report = world.check(None).await;
    assert_eq!((report.ok, report.jobs, report.queued, report.lost), (false, 3, 2, 1));
    assert_eq!(report.lost_jobs, ["ord-000001.invoice"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_that_arrives_twice_is_doubled_under_one_id_or_two() {
    for other_id in [false, true] {
        let world = World::new("double").await;
        world.take_orders(1).await;
        let worker = world.work(Revision::R2026_12_2).await;
        world.until("the order is made", async || world.effects().await == 1).await;
        let mut job = world.job(1);
        job.redrive_id = Some(Uuid::now_v7());
        job.redrive_generation = Some(1);
        let body = demo::invoice::Invoice::of_order(1).body().unwrap();
        world.publish(&job, &body).await;
        world.until("the redrive ran", async || world.count("SELECT count(*) FROM executions").await == 2).await;
        assert!(world.check(None).await.ok, "one execution of a redrive is right");
        if other_id {
            job.redrive_id = Some(Uuid::now_v7());
        }
        world.publish(&job, &body).await;
        world.until("it ran again", async || world.count("SELECT count(*) FROM executions").await == 3).await;
        let report = world.check(None).await;
        assert_eq!((report.ok, report.lost, report.doubled, report.effects), (false, 0, 1, 1));
        worker.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_vault_keeps_a_job_until_an_item_says_that_it_left() {
    let world = World::new("vault").await;
    world.take_orders(1).await;
    let message = world.channel.basic_get(topology::QUEUE.into(), BasicGetOptions::default()).await.unwrap().unwrap();
    message.delivery.acker.ack(BasicAckOptions::default()).await.unwrap();
    let row = world.put_into_vault("ord-000001.invoice").await;
    let report = world.check(None).await;
    assert_eq!((report.ok, report.held, report.lost), (true, 1, 0));
    // published by the vault, and then nowhere: that is a loss
    world.let_out_of_vault(row, "confirmed").await;
    let report = world.check(None).await;
    assert_eq!((report.ok, report.held, report.lost), (false, 0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_is_replaced_mended_and_ended_by_its_supervisor() {
    let world = World::new("fleet").await;
    let mut control = world.control(Revision::R2026_12_1).await;
    control.order(&["arrival", "40"]).await;
    world.until("orders arrive", async || world.count("SELECT count(*) FROM accepted").await > 20).await;
    control.order(&["deploy", "2026.12.2"]).await;
    assert_eq!(control.state().await["fleet"]["revision"], "2026.12.2");
    let before = world.count("SELECT coalesce(max(seq), 0) FROM executions").await;
    let newer = format!("SELECT count(*) FROM executions WHERE seq > {before} AND worker_version = '2026.12.2'");
    world.until("the new workers work", async || world.count(&newer).await > 10).await;
    control.order(&["rollback"]).await;
    assert_eq!(control.state().await["fleet"]["revision"], "2026.12.1");
    control.order(&["downstream-delay", "1"]).await;
    control.order(&["arrival", "0"]).await;
    assert_eq!(control.state().await["downstream_ms"], 1);

    // a worker that dies comes back
    let pid = control.state().await["fleet"]["workers"][0][1].as_u64().unwrap();
    world::kill(pid);
    world
        .until("another process in its place", async || {
            control.state().await["fleet"]["workers"][0][1].as_u64().is_some_and(|new| new != pid)
        })
        .await;

    // a supervisor that is killed leaves nothing behind
    let state = control.state().await;
    let workers = state["fleet"]["workers"].as_array().unwrap().iter().map(|worker| worker[1].as_u64().unwrap());
    let pids: Vec<u64> = workers.chain(state["fleet"]["producer"].as_u64()).collect();
    assert_eq!(pids.len(), 3);
    control.child.kill().await.unwrap();
    world.until("all have ended", async || !pids.iter().any(|pid| world::runs(*pid))).await;
    assert_eq!(database::knobs(&world.shop).await.unwrap().arrival_per_s, 0);
    let settled = tokio::time::timeout(Duration::from_secs(20), world.check(None)).await.unwrap();
    assert_eq!((settled.lost, settled.doubled), (0, 0));
    drop(amqp::connect(&world.services.amqp_url, "still there").await.unwrap());
}
