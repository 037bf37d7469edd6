//! Signing in and out, and what ends a session.

use crate::harness::{PASSWORD, TestApp};
use domain::api::Session;
use reqwest::{Method, header};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn signing_in_says_who_and_what() {
    let app = TestApp::start().await;
    app.nobody().get("/session").await.problem(401, "no_session");
    let mara = app.responder().await;
    let session: Session = mara.get("/session").await.ok();
    assert_eq!(session.user.username, "mara");
    assert_eq!(session.user.id, app.id_of("mara").await);
    assert!(session.expires_at > session.confirmed_at);
    mara.delete("/session").await.is(204);
    mara.get("/session").await.problem(401, "no_session");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cookie_is_closed_to_scripts_and_other_sites() {
    let app = TestApp::start().await;
    let body = json!({ "username": "MARA ", "password": PASSWORD });
    let reply = app.nobody().post("/session", body).await.is(201);
    let cookie = reply.header("set-cookie").unwrap().to_owned();
    assert!(cookie.starts_with("lazaret_session="), "{cookie}");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    assert!(!cookie.contains("Secure"), "on loopback: {cookie}");
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    let secret = cookie.trim_start_matches("lazaret_session=").split(';').next().unwrap();
    let kept: Vec<String> = sqlx::query_scalar("SELECT id FROM sessions").fetch_all(app.owner()).await.unwrap();
    assert!(kept.iter().all(|id| !id.contains(secret)), "the database holds a hash, not the secret");
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_from_elsewhere_are_refused() {
    let app = TestApp::start().await;
    let mara = app.responder().await;
    let body = json!({ "username": "mara", "password": PASSWORD });
    for (origin, site) in [
        (None, None),
        (Some("http://evil.example"), None),
        (Some("null"), None),
        (Some(app.base_url.as_str()), Some("cross-site")),
        (Some(app.base_url.as_str()), Some("same-site")),
        (Some("http://127.0.0.1:1"), None),
    ] {
        let mut request = mara.request(Method::POST, "/api/v1/session").json(&body);
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        if let Some(site) = site {
            request = request.header("sec-fetch-site", site);
        }
        mara.send(request).await.problem(403, "bad_origin");
    }
    let form = mara.request(Method::POST, "/logout").header(header::ORIGIN, "http://evil.example");
    mara.send(form).await.problem(403, "bad_origin");
    mara.get("/session").await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_is_limited_and_the_right_password_waits_too() {
    let app = TestApp::start().await;
    let guess = |password: &'static str| {
        let nobody = app.nobody();
        async move { nobody.post("/session", json!({ "username": "mara", "password": password })).await }
    };
    let guesses = futures::future::join_all((0..20).map(|_| guess("wrong"))).await;
    let (wrong, limited): (Vec<_>, Vec<_>) = guesses.into_iter().partition(|reply| reply.status == 401);
    assert_eq!((wrong.len(), limited.len()), (10, 10), "parallel guesses don't outrun the count");
    for reply in limited {
        assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() > 800);
        reply.problem(429, "too_many_requests");
    }
    guess(PASSWORD).await.problem(429, "too_many_requests");
    app.approver().await.get("/session").await.is(200);
    app.nobody()
        .post("/session", json!({ "username": "no\u{0}body", "password": "x" }))
        .await
        .problem(422, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ended_cannot_come_back() {
    use lazaret::store::sessions::{SessionRows, credential_id};
    use tower_sessions::{SessionStore as _, session::Id};
    let app = TestApp::start().await;
    let body = json!({ "username": "mara", "password": PASSWORD });
    let person = app.nobody();
    let reply = person.post("/session", body).await.is(201);
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let id: Id = cookie.trim_start_matches("lazaret_session=").parse().unwrap();
    let rows = SessionRows::new(app.app.store.clone());
    let loaded = rows.load(&id).await.unwrap().unwrap();
    person.delete("/session").await.is(204);
    // a request that began before the log-out saves its session after it
    rows.save(&loaded).await.unwrap();
    assert!(rows.load(&id).await.unwrap().is_none());
    assert!(!lazaret::store::sessions::is_alive(&app.app.store, &credential_id(&id)).await.unwrap());
    let again = app.nobody().request(Method::GET, "/api/v1/session").header("cookie", cookie);
    app.nobody().send(again).await.problem(401, "no_session");
}

#[tokio::test(flavor = "multi_thread")]
async fn confirming_changes_the_id_and_logging_out_ends_the_stream() {
    let app = TestApp::start().await;
    let mara = app.responder().await;
    let before: Session = mara.get("/session").await.ok();
    mara.post("/session/confirm", json!({ "password": "wrong" })).await.problem(401, "wrong_credentials");
    let after: Session = mara.post("/session/confirm", json!({ "password": PASSWORD })).await.ok();
    assert!(after.confirmed_at > before.confirmed_at);
    let mut stream = mara.request(Method::GET, "/api/v1/stream?topics=freeze").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    mara.act("/freeze", json!({ "reason": "hear this" })).await.is(200);
    let note = async { String::from_utf8(stream.chunk().await.unwrap().unwrap().to_vec()).unwrap() };
    let note = tokio::time::timeout(std::time::Duration::from_secs(10), note).await.unwrap();
    assert!(note.contains("event: changed") && note.contains("\"freeze\""), "{note}");
    mara.delete("/session").await.is(204);
    let ended = async { while stream.chunk().await.unwrap().is_some() {} };
    tokio::time::timeout(std::time::Duration::from_secs(10), ended).await.expect("the stream ends with its session");
}
