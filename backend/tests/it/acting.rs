//! What holds for every call: idempotency, problems, limits, clients that leave.

use crate::harness::{TestApp, eventually};
use domain::api::{FreezeResult, Page, Problem, User};
use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_does_it_once() {
    let app = TestApp::start().await;
    let mara = app.responder().await;
    let before = app.audit_count().await;
    let body = json!({ "reason": "once" });
    let parallel = (0..10).map(|_| mara.act_with("one", "/freeze", &body));
    for reply in futures::future::join_all(parallel).await {
        assert!(reply.ok::<FreezeResult>().frozen);
    }
    assert_eq!(app.audit_count().await, before + 1, "one effect, one entry");
    mara.act_with("one", "/freeze", json!({ "reason": "other" })).await.problem(409, "idempotency_key_reused");
    mara.post("/freeze", &body).await.problem(400, "idempotency_key_required");
    mara.act_with(&"k".repeat(201), "/freeze", &body).await.problem(400, "idempotency_key_required");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_problems() {
    let app = TestApp::start().await;
    let mara = app.responder().await;
    let post = |body: &str, kind: &str| {
        mara.request(Method::POST, "/api/v1/freeze")
            .header("origin", &app.base_url)
            .header("idempotency-key", "k")
            .header("content-type", kind)
            .body(body.to_owned())
    };
    mara.get("/no/such/route").await.problem(404, "not_found");
    mara.get("/queues/none").await.problem(404, "not_found");
    mara.delete("/freeze").await.problem(405, "method_not_allowed");
    mara.send(post("{", "application/json")).await.problem(422, "invalid_request");
    mara.send(post("{}", "application/json")).await.problem(422, "invalid_request");
    mara.send(post("{\"reason\":\"x\"}", "text/plain")).await.problem(400, "not_json");
    mara.send(post("", "application/json")).await.problem(422, "invalid_request");
    let large = format!("{{\"reason\":\"{}\"}}", "x".repeat(2 * 1024 * 1024));
    mara.send(post(&large, "application/json")).await.problem(413, "too_large");
    mara.act("/freeze", json!({ "reason": "a\u{0}b" })).await.problem(422, "invalid_request");
    mara.get("/queues?limit=0").await.problem(422, "invalid_request");
    mara.get("/queues?limit=many").await.problem(422, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_one_kind_fold_to_one_entry_a_minute() {
    let app = TestApp::start().await;
    let vera = app.viewer().await;
    let before = app.audit_count().await;
    for _ in 0..5 {
        vera.act("/freeze", json!({ "reason": "no right" })).await.problem(403, "missing_permission");
    }
    let entries = app.audit_count().await - before;
    // a minute may end in between
    assert!((1..=2).contains(&entries), "{entries} entries");
    let counted: i64 =
        sqlx::query_scalar("SELECT sum(count)::bigint FROM audit_refusal_counts").fetch_one(app.owner()).await.unwrap();
    assert_eq!(counted, 5);
}

/// C16: clients that leave while the database is slow.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_leave_leave_no_transaction_open() {
    let app = TestApp::start().await;
    let mara = app.responder().await;
    let mut lock = app.owner().acquire().await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT * FROM freezes FOR UPDATE").execute(&mut *lock).await.unwrap();
    let leaving = (0..200).map(|_| {
        let mara = mara.clone();
        async move {
            let body = json!({ "reason": "leaves" });
            tokio::time::timeout(std::time::Duration::from_millis(300), mara.act("/freeze", body)).await.is_err()
        }
    });
    let left = futures::future::join_all(leaving).await.into_iter().filter(|left| *left).count();
    assert!(left > 0, "nobody left");
    sqlx::raw_sql("ROLLBACK").execute(&mut *lock).await.unwrap();
    eventually("every connection is outside a transaction", || async {
        let open: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'lazaret_app'
             AND state LIKE 'idle in transaction%' OR (datname = current_database() AND usename = 'lazaret_app' AND state = 'active')",
        )
        .fetch_one(app.owner())
        .await
        .unwrap();
        (open == 0).then_some(())
    })
    .await;
    mara.act("/freeze", json!({ "reason": "normal work" })).await.is(200);
    assert_eq!(app.admin().await.get("/users?limit=3").await.ok::<Page<User>>().items.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_forms_and_filters_answer_problems_too() {
    let app = TestApp::start().await;
    let vera = app.viewer().await;
    let form = |path: &str, body: &str| {
        vera.request(Method::POST, path)
            .header("origin", &app.base_url)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.to_owned())
    };
    let reply = vera.send(form("/login", "username=vera")).await;
    assert_eq!(reply.header("x-frame-options"), Some("DENY"));
    assert_eq!(reply.header("content-security-policy"), Some("default-src 'none'; frame-ancestors 'none'"));
    reply.problem(422, "invalid_request");
    let id = uuid::Uuid::now_v7();
    vera.send(form(&format!("/cohorts/{id}/review"), "act=approve")).await.problem(422, "invalid_request");
    vera.send(form("/cohorts/none/review", "act=approve")).await.problem(404, "not_found");
    vera.send(form("/login", &"x".repeat(2 * 1024 * 1024))).await.problem(413, "too_large");
    vera.get("/stream?topics=weather").await.problem(422, "invalid_request");
    vera.get("/quarantine/groups?by=fingerprint").await.is(200);
    vera.get("/quarantine/groups?by=weather").await.problem(422, "invalid_request");
    vera.get("/quarantine?by=fingerprint").await.problem(422, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_call_leaves_its_connection_usable() {
    let app = TestApp::start().await;
    let host = app.base_url.trim_start_matches("http://").to_owned();
    let (reading, mut writing) = TcpStream::connect(&host).await.unwrap().into_split();
    let mut lines = BufReader::new(reading).lines();
    let body = r#"{"reason":"nobody is signed in"}"#;
    for _ in 0..2 {
        // the server asks for the body only when it reads it
        let head = format!(
            "POST /api/v1/freeze HTTP/1.1\r\nHost: {host}\r\nOrigin: {}\r\nContent-Type: application/json\r\n\
             Idempotency-Key: k\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            app.base_url,
            body.len()
        );
        writing.write_all(head.as_bytes()).await.unwrap();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("HTTP/1.1 100 Continue"));
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some(""));
        writing.write_all(body.as_bytes()).await.unwrap();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("HTTP/1.1 401 Unauthorized"));
        let mut length = 0;
        while let Some(header) = lines.next_line().await.unwrap().filter(|line| !line.is_empty()) {
            if let Some(value) = header.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
        }
        let mut problem = vec![0; length];
        lines.get_mut().read_exact(&mut problem).await.unwrap();
        assert_eq!(serde_json::from_slice::<Problem>(&problem).unwrap().code, "no_session");
    }
}
