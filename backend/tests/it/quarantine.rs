//! Reading the vault through the API.

use crate::custody::{Fixture, header, job, table};
use domain::{
    api::{QuarantinePage, RevealedPayload},
    ids::AppName,
    vocabulary::Kind,
};
use lapin::BasicProperties;
use serde_json::json;

async fn hold(fixture: &Fixture, jobs: &[&str]) {
    for id in jobs {
        fixture.die(job(id), format!("body of {id}").as_bytes()).await;
    }
    fixture.stored(i64::try_from(jobs.len()).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_is_literal_and_never_fails() {
    let fixture = Fixture::draining().await;
    hold(&fixture, &["100%", "1000", "a_b", "axb", "back\\slash", "it's", "émoji 🚢"]).await;
    let cases = [
        ("100%25", 1),
        ("a_b", 1),
        ("back%5Cslash", 1),
        ("it%27s", 1),
        ("%F0%9F%9A%A2", 1),
        ("", 7),
        ("%25", 1),
        ("%00", 0),
        ("A_B", 0),
    ];
    for (q, want) in cases {
        assert_eq!(fixture.total(&format!("?q={q}")).await, want, "{q}");
    }
    fixture.viewer.get(&format!("/quarantine?q={}", "x".repeat(2_000))).await.problem(422, "invalid_request");
    assert_eq!(fixture.total("?job_id=100%25").await, 1);
    assert_eq!(fixture.total("?message_id=m-a_b&state=held&state=claimed").await, 1);
    for bad in ["state=lost", "limit=0", "limit=201", "generation=x", "nonsense=1", "cohort=x"] {
        fixture.viewer.get(&format!("/quarantine?{bad}")).await.problem(422, "invalid_request");
    }
    fixture.viewer.get("/quarantine?cursor=nonsense").await.problem(400, "bad_cursor");
    fixture.app.nobody().get("/quarantine").await.problem(401, "no_session");
}

#[tokio::test(flavor = "multi_thread")]
async fn paging_skips_and_repeats_nothing_while_messages_arrive() {
    let fixture = Fixture::draining().await;
    let jobs: Vec<String> = (0..12).map(|i| format!("old-{i}")).collect();
    hold(&fixture, &jobs.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut seen = Vec::new();
    let mut cursor = String::new();
    for page in 0.. {
        let answer: QuarantinePage = fixture.viewer.get(&format!("/quarantine?limit=5{cursor}")).await.ok();
        seen.extend(answer.items.into_iter().map(|row| row.job_id));
        let Some(next) = answer.next_cursor else { break };
        cursor = format!("&cursor={next}");
        let new = format!("new-{page}");
        fixture.die(job(&new), b"{}").await;
        fixture.stored(13 + page).await;
    }
    let want: Vec<_> = jobs.iter().rev().map(|id| Some(AppName::from(id.as_str()))).collect();
    assert_eq!(seen, want);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_is_opened_with_a_reason_by_who_may_and_that_is_on_record() {
    let fixture = Fixture::draining().await;
    hold(&fixture, &["j1"]).await;
    let id = fixture.stored(1).await[0].id;
    let (reveal, payload) = (format!("/quarantine/{id}/reveal"), format!("/quarantine/{id}/payload"));
    let mara = fixture.app.responder().await;
    fixture.viewer.act(&reveal, json!({"reason": "curious"})).await.problem(403, "missing_permission");
    fixture.viewer.get(&payload).await.problem(403, "missing_permission");
    mara.get(&payload).await.problem(409, "reveal_first");
    mara.act(&reveal, json!({"reason": "  "})).await.problem(422, "invalid_request");
    assert!(fixture.message(id).await.inspected_by.is_empty());
    let shown: RevealedPayload = mara.act_with("one", &reveal, json!({"reason": "is it the tax field?"})).await.ok();
    assert_eq!(shown.text.as_deref(), Some("body of j1"));
    let again: RevealedPayload = mara.act_with("one", &reveal, json!({"reason": "is it the tax field?"})).await.ok();
    assert_eq!(again, shown);
    assert_eq!(mara.get(&payload).await.is(200).body, b"body of j1");
    fixture.app.auditor().await.get(&payload).await.problem(409, "reveal_first");
    let inspected = fixture.message(id).await.inspected_by;
    assert_eq!(
        inspected.iter().map(|seen| seen.by.username.as_str()).collect::<Vec<_>>(),
        ["mara"],
        "once for one act"
    );
    let kept: Vec<u8> = sqlx::query_scalar("SELECT body FROM idempotency_keys WHERE key = 'one'")
        .fetch_one(fixture.app.owner())
        .await
        .unwrap();
    assert!(!String::from_utf8_lossy(&kept).contains("body of"), "the payload isn't kept outside the vault");
    mara.act("/quarantine/00000000-0000-0000-0000-000000000000/reveal", json!({"reason": "x"}))
        .await
        .problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unattributed_message_is_given_to_a_queue_once_and_read_by_its_mapping() {
    let fixture = Fixture::draining().await;
    let headers = table([header("job-id", "j1"), header("error-class", "timeout"), header("error-text", "slow")]);
    fixture.publish(&fixture.dlq_name, BasicProperties::default().with_headers(headers), b"{}").await;
    let row = fixture.stored(1).await.remove(0);
    assert_eq!((row.queue, row.job_id, row.error_class), (None, None, None));
    let assign = format!("/quarantine/{}/assign", row.id);
    let body = json!({"queue_id": fixture.queue, "reason": "the producer says so"});
    fixture.viewer.act(&assign, &body).await.problem(403, "missing_permission");
    let mara = fixture.app.responder().await;
    let nowhere = json!({"queue_id": uuid::Uuid::now_v7(), "reason": "x"});
    mara.act(&assign, nowhere).await.problem(422, "invalid_request");
    mara.act(&assign, &body).await.is(204);
    mara.act(&assign, &body).await.problem(409, "already_attributed");
    let message = fixture.message(row.id).await;
    assert_eq!(message.row.queue.map(|queue| queue.id), Some(fixture.queue));
    assert_eq!((message.row.job_id, message.row.kind), (Some("j1".into()), Kind::Transient));
    assert_eq!(message.custody.assigned_by.map(|by| by.username).as_deref(), Some("mara"));
}
