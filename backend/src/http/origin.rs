//! Writes come from our own pages, or from a client that says so: the Origin and `Sec-Fetch-Site` check.

use crate::{error::Error, state::App};
use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, Method, Response, header},
    middleware::Next,
    response::IntoResponse,
};

/// Refuses a write whose `Origin` is missing or foreign, or that a browser calls anything but same-origin.
pub(super) async fn check(State(app): State<App>, request: Request, next: Next) -> Response<Body> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if reads || is_ours(request.headers(), &app) { next.run(request).await } else { refusal().into_response() }
}

fn is_ours(headers: &HeaderMap, app: &App) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    text("sec-fetch-site").is_none_or(|site| site == "same-origin")
        && text(header::ORIGIN.as_str()).is_some_and(|origin| app.config.is_own_origin(origin))
}

fn refusal() -> Error {
    Error::Forbidden {
        code: "bad_origin",
        detail: "A write needs an Origin header that names this server's own address.".to_owned(),
    }
}
