//! The control page: which revision runs, how much arrives, how slow the downstream is. Loopback only.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use axum::{
    Form, Json, Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{Html, IntoResponse, Redirect, Response},
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use tokio::{net::TcpListener, sync::Mutex};
use tokio_util::sync::CancellationToken;

use crate::{
    database::{self, Knobs},
    revision::Revision,
    supervisor::{Fleet, FleetState},
};

/// How often ended processes are looked for.
const TEND_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone)]
struct Room {
    fleet: Arc<Mutex<Fleet>>,
    pool: PgPool,
}

/// All that the page shows.
#[derive(Debug, Serialize)]
struct Status {
    fleet: FleetState,
    arrival_per_s: i32,
    downstream_ms: i32,
    jobs: i64,
    effects: i64,
}

/// Serves the page and looks after the fleet until stopped, then ends the fleet. `ready` is called with the address.
///
/// # Errors
/// When the address isn't loopback or is taken, or the fleet can't be ended.
pub async fn serve(
    listen: SocketAddr,
    fleet: Fleet,
    pool: PgPool,
    stop: &CancellationToken,
    ready: impl FnOnce(SocketAddr),
) -> anyhow::Result<()> {
    if !listen.ip().is_loopback() {
        bail!("the control page asks nobody who they are, so it listens on loopback only, not on {listen}");
    }
    let listener = TcpListener::bind(listen).await.with_context(|| format!("{listen} can't be listened on"))?;
    let room = Room { fleet: Arc::new(Mutex::new(fleet)), pool };
    ready(listener.local_addr()?);
    tokio::spawn(tend(Arc::clone(&room.fleet), stop.clone()));
    let stopped = stop.clone().cancelled_owned();
    axum::serve(listener, router(room.clone())).with_graceful_shutdown(stopped).await?;
    room.fleet.lock().await.end().await
}

/// Starts what ended by itself, until the end.
async fn tend(fleet: Arc<Mutex<Fleet>>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(TEND_EVERY)).await.is_some() {
        let mut fleet = fleet.lock().await;
        if stop.is_cancelled() {
            return;
        }
        if let Err(error) = fleet.tend().await {
            tracing::warn!("the fleet can't be mended now: {error:#}");
        }
    }
}

fn router(room: Room) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/state", get(state))
        .route("/deploy", post(deploy))
        .route("/rollback", post(rollback))
        .route("/arrival", post(arrival))
        .route("/downstream", post(downstream))
        .layer(middleware::from_fn(same_origin))
        .with_state(room)
}

/// A page of another site may be open in the same browser: it must not turn these knobs.
async fn same_origin(request: Request, next: Next) -> Response {
    if request.method() == axum::http::Method::POST && !is_same_origin(request.headers()) {
        return (StatusCode::FORBIDDEN, "this page takes orders from itself only\n").into_response();
    }
    next.run(request).await
}

fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    match (text(header::ORIGIN), text(header::HOST)) {
        (Some(origin), Some(host)) => origin.strip_prefix("http://") == Some(host),
        // no browser leaves it out of a cross-origin post: this is the command line
        (None, _) => true,
        (Some(_), None) => false,
    }
}

#[derive(Deserialize)]
struct Deploy {
    revision: String,
}

#[derive(Deserialize)]
struct Arrival {
    per_s: i32,
}

#[derive(Deserialize)]
struct Downstream {
    ms: i32,
}

async fn deploy(State(room): State<Room>, headers: HeaderMap, Form(form): Form<Deploy>) -> Result<Response, Refusal> {
    let revision: Revision = form.revision.parse().map_err(Refusal::bad_request)?;
    act(room, move |room| async move { room.fleet.lock().await.deploy(revision).await }).await?;
    Ok(done(&headers))
}

async fn rollback(State(room): State<Room>, headers: HeaderMap) -> Result<Response, Refusal> {
    act(room, |room| async move { room.fleet.lock().await.rollback().await }).await?;
    Ok(done(&headers))
}

async fn arrival(State(room): State<Room>, headers: HeaderMap, Form(form): Form<Arrival>) -> Result<Response, Refusal> {
    database::set_arrival(&room.pool, form.per_s).await?;
    Ok(done(&headers))
}

async fn downstream(
    State(room): State<Room>,
    headers: HeaderMap,
    Form(form): Form<Downstream>,
) -> Result<Response, Refusal> {
    database::set_downstream(&room.pool, form.ms).await?;
    Ok(done(&headers))
}

/// Runs a change on a task of its own: a browser that goes away in the middle doesn't leave half a fleet.
async fn act<F>(room: Room, change: impl FnOnce(Room) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    tokio::spawn(change(room)).await?
}

/// Back to the page for a browser, nothing for a script.
fn done(headers: &HeaderMap) -> Response {
    let browser = headers.get(header::ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(b"text/html"));
    if browser { Redirect::to("/").into_response() } else { StatusCode::NO_CONTENT.into_response() }
}

async fn state(State(room): State<Room>) -> Result<Json<Status>, Refusal> {
    Ok(Json(status(&room).await?))
}

async fn status(room: &Room) -> anyhow::Result<Status> {
    let Knobs { arrival_per_s, downstream_ms } = database::knobs(&room.pool).await?;
    let (jobs, effects) = database::totals(&room.pool).await?;
    let fleet = room.fleet.lock().await.state();
    Ok(Status { fleet, arrival_per_s, downstream_ms, jobs, effects })
}

async fn page(State(room): State<Room>) -> Result<Html<String>, Refusal> {
    Ok(Html(render(&status(&room).await?)))
}

/// Buttons only, so that reading itself anew every few seconds disturbs nobody's typing. All text is our own.
fn render(status: &Status) -> String {
    let button = |path: &str, name: &str, value: &str, label: &str, current: bool| {
        let pressed = if current { " aria-pressed=\"true\" class=\"now\"" } else { "" };
        format!(
            "<form method=\"post\" action=\"{path}\"><button name=\"{name}\" value=\"{value}\"{pressed}>{label}</button></form>"
        )
    };
    let revisions: String = [
        (Revision::R2026_11_3, "2026.11.3 (good)"),
        (Revision::R2026_12_1, "2026.12.1 (fails large invoices, republishes)"),
        (Revision::R2026_12_2, "2026.12.2 (mended)"),
    ]
    .map(|(revision, label)| {
        button("/deploy", "revision", revision.as_str(), label, revision.as_str() == status.fleet.revision)
    })
    .concat();
    let arrivals: String = [0, 6, 12, 24, 48]
        .map(|rate| button("/arrival", "per_s", &rate.to_string(), &format!("{rate}/s"), rate == status.arrival_per_s))
        .concat();
    let delays: String = [0, 100, 500, 2_000]
        .map(|ms| button("/downstream", "ms", &ms.to_string(), &format!("{ms} ms"), ms == status.downstream_ms))
        .concat();
    let rollback =
        button("/rollback", "to", status.fleet.previous, &format!("Back to {}", status.fleet.previous), false);
    let workers: String = status
        .fleet
        .workers
        .iter()
        .map(|(name, pid)| {
            format!("<li>{name}, process {}</li>", pid.map_or("ended".to_owned(), |pid| pid.to_string()))
        })
        .collect();
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="5">
<title>Demo control</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 46rem; margin: 2rem auto; padding: 0 1rem }}
form {{ display: inline-block; margin: 0 .5rem .5rem 0 }}
button {{ font: inherit; padding: .3rem .8rem }}
button.now {{ font-weight: 600; outline: 2px solid }}
</style>
</head>
<body>
<h1>Demo control</h1>
<p>{jobs} jobs accepted, {effects} invoices written. This page is the shop's, not Lazaret's.</p>
<h2>Workers run {revision}</h2>
{revisions}
{rollback}
<ul>{workers}</ul>
<h2>New orders</h2>
{arrivals}
<h2>Downstream delay</h2>
{delays}
</body>
</html>
"#,
        jobs = status.jobs,
        effects = status.effects,
        revision = status.fleet.revision,
    )
}

/// What went wrong, in words.
struct Refusal(StatusCode, String);

impl Refusal {
    fn bad_request(text: String) -> Self {
        Self(StatusCode::BAD_REQUEST, text)
    }
}

impl From<anyhow::Error> for Refusal {
    fn from(error: anyhow::Error) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, format!("{error:#}"))
    }
}

impl From<sqlx::Error> for Refusal {
    fn from(error: sqlx::Error) -> Self {
        match error.as_database_error().and_then(|refused| refused.constraint()) {
            Some(constraint) => Self::bad_request(format!("out of range ({constraint})")),
            None => Self(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, format!("{}\n", self.1)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_of_other_sites_are_refused() {
        let headers = |origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "127.0.0.1:8190".parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            headers
        };
        assert!(is_same_origin(&headers(None)));
        assert!(is_same_origin(&headers(Some("http://127.0.0.1:8190"))));
        for foreign in ["http://127.0.0.1:9000", "https://evil.example", "null"] {
            assert!(!is_same_origin(&headers(Some(foreign))), "{foreign}");
        }
    }
}
