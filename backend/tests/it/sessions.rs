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
