//! `/healthz` (the process) and `/readyz` (what it needs): outside `/api/v1`, for machines that route traffic.

use crate::{app::health, state::App};
use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};

pub(super) fn routes() -> Router<App> {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz))
}

pub(super) async fn healthz() -> &'static str {
    "ok"
}

async fn readyz(State(app): State<App>) -> Response {
    readiness(health::check(&app).await)
}

/// 200 when all is well, else 503; the body says what isn't.
pub(super) fn readiness(readiness: health::Readiness) -> Response {
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness)).into_response()
}
