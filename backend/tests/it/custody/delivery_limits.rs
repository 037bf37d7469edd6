//! C13: a quorum queue drops what comes back more often than its delivery limit; custody stops before, and says so.

use super::{Fixture, job, losses::flagged};
use crate::harness::eventually;
use lazaret::workers;
use reqwest::Method;
use serde_json::json;

/// What the first prefetch takes in one go.
const MESSAGES: u32 = 4;

/// Makes every store of custody fail: the batch is held, never committed.
async fn refuse_to_store(fixture: &Fixture) {
    sqlx::raw_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$;
         CREATE TRIGGER refuses BEFORE INSERT ON payloads FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    .execute(fixture.app.owner())
    .await
    .unwrap();
}

async fn store_again(fixture: &Fixture) {
    sqlx::raw_sql("DROP TRIGGER refuses ON payloads").execute(fixture.app.owner()).await.unwrap();
}

async fn dead_letters(fixture: &Fixture) {
    for i in 0..MESSAGES {
        fixture.die(job(&format!("j{i}")), format!("{i}").as_bytes()).await;
    }
    all_are_back(fixture).await;
}

async fn all_are_back(fixture: &Fixture) {
    let back = || async { Some(fixture.ready().await).filter(|ready| *ready == MESSAGES) };
    eventually("the broker has all of them", back).await;
}

/// A process that is killed once it holds every message, or once it has said why it takes none: that, if so.
async fn lives_and_dies(fixture: &Fixture, name: &str) -> Option<String> {
    // the lease of the one before has run out, and what that said is forgotten
    sqlx::raw_sql(
        "UPDATE leases SET expires_at = now() WHERE duty = 'custody';
         UPDATE dead_letter_queues SET state = 'waiting', state_reason = NULL WHERE custody = 'drain'",
    )
    .execute(fixture.app.owner())
    .await
    .unwrap();
    let process = fixture.process(name);
    let mut duties = workers::start(&process);
    let refused = eventually("it holds the messages, or says why not", || async {
        let reason = fixture.dead_letter_queue().await.state_reason.filter(|reason| reason.starts_with("cut_off"));
        if reason.is_none() && fixture.ready().await > 0 {
            return None;
        }
        Some(reason)
    })
    .await;
    duties.abort_all();
    while duties.join_next().await.is_some() {}
    all_are_back(fixture).await;
    refused
}

async fn limit(fixture: &Fixture, limit: u32) {
    let policy = json!({ "pattern": "\\.dlq$", "apply-to": "queues", "definition": { "delivery-limit": limit } });
    let path = format!("/api/policies/{}/limit", fixture.vhost.path_segment());
    fixture.vhost.manage(Method::PUT, &path, Some(policy)).await;
    eventually("the policy is in force", || async {
        let path = format!("/api/queues/{}/{}", fixture.vhost.path_segment(), fixture.dlq_name);
        let queue = fixture.vhost.manage(Method::GET, &path, None).await;
        (queue["effective_policy_definition"]["delivery-limit"] == limit).then_some(())
    })
    .await;
}

/// On RabbitMQ 4 the limit is 20 with nobody's doing; 3.10 has none, and custody goes on trying.
#[tokio::test(flavor = "multi_thread")]
async fn custody_that_is_killed_25_times_before_its_commit_stops_before_the_broker_drops_anything() {
    let has_a_limit = std::env::var("LAZARET_TEST_BROKER").unwrap() == "4";
    let fixture = Fixture::new().await;
    refuse_to_store(&fixture).await;
    dead_letters(&fixture).await;
    fixture.switch("drain").await;
    let mut refused = Vec::new();
    for life in 0..if has_a_limit { 25 } else { 10 } {
        refused.extend(lives_and_dies(&fixture, &format!("life {life}")).await);
    }
    assert_eq!(refused.len(), if has_a_limit { 17 } else { 0 }, "{refused:?}");
    assert!(refused.iter().all(|why| why.contains("8 times") && why.contains("limit is 20")), "{refused:?}");

    if has_a_limit {
        let page = fixture.viewer.send(fixture.viewer.request(Method::GET, "/")).await.is(200).text();
        assert!(page.contains("Custody of orders.dlq has stopped") && page.contains("cut off: custody was cut off"));
        let ready = fixture.viewer.send(fixture.viewer.request(Method::GET, "/readyz")).await.is(503).text();
        assert!(ready.contains("cut_off"), "{ready}");
    }

    // the cause is mended, and a person says so
    store_again(&fixture).await;
    fixture.switch("off").await;
    fixture.switch("drain").await;
    let mended = fixture.process("mended");
    let _duties = workers::start(&mended);
    let rows = fixture.stored(i64::from(MESSAGES)).await;
    assert_eq!(flagged(&rows), 0);
    fixture.is("draining").await;
    mended.shutdown.cancel();
}

/// However often people let it try, never the last returns; a limit that is raised is found by itself.
#[tokio::test(flavor = "multi_thread")]
async fn no_one_can_make_custody_take_a_messages_last_return() {
    let fixture = Fixture::new().await;
    limit(&fixture, 5).await;
    refuse_to_store(&fixture).await;
    dead_letters(&fixture).await;
    fixture.switch("drain").await;
    let mut refused = Vec::new();
    for life in 0..8 {
        let why = lives_and_dies(&fixture, &format!("life {life}")).await;
        if why.is_some() {
            fixture.switch("off").await;
            fixture.switch("drain").await;
        }
        refused.extend(why);
    }
    let (asking, never) = refused.split_first().unwrap();
    assert!(asking.contains("2 times") && asking.contains("limit is 5") && asking.contains("off and on"), "{asking}");
    assert_eq!(never.len(), 4, "two lives, a question, one more life, and no other: {never:?}");
    assert!(never.iter().all(|why| why.contains("3 times") && why.contains("raise the limit")), "{never:?}");

    store_again(&fixture).await;
    sqlx::raw_sql("UPDATE leases SET expires_at = now()").execute(fixture.app.owner()).await.unwrap();
    let last = fixture.process("last");
    let _duties = workers::start(&last);
    let stopped = fixture.is("stopped").await;
    assert!(stopped.state_reason.unwrap().starts_with("cut_off"));
    limit(&fixture, 50).await;
    let rows = fixture.stored(i64::from(MESSAGES)).await;
    assert_eq!(flagged(&rows), 0);
    last.shutdown.cancel();
}
