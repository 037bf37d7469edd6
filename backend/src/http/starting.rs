//! What is served while the database can't be reached yet: the process lives, and everything says what it waits for.

use super::{frame, health};
use crate::{app::health::Readiness, error::Error};
use axum::{
    Router,
    extract::Request,
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use std::sync::{Arc, Mutex};

/// Why the start isn't finished; the loop that tries writes it.
pub type Waiting = Arc<Mutex<String>>;

/// The router until [`super::server`] can take over.
pub fn starting(waiting: Waiting) -> Router {
    let why = move || waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let ready = why.clone();
    frame::outermost(
        Router::new()
            .route("/healthz", get(health::healthz))
            .route("/readyz", get(async move || health::readiness(Readiness::waiting_for_database(&ready()))))
            .fallback(async move |request: Request| answer(&request, &why())),
    )
}

fn answer(request: &Request, why: &str) -> Response {
    if request.uri().path().starts_with("/api/") {
        return Error::Unavailable { code: "database_unavailable", detail: format!("Lazaret is starting: {why}") }
            .into_response();
    }
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=5><title>Lazaret is starting</title>\
         <h1>Lazaret is starting</h1><p>{}</p><p>This page tries again every 5 seconds. Nothing is lost meanwhile: messages stay at the broker.</p>",
        escape(why)
    );
    let policy = [(header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'")];
    (StatusCode::SERVICE_UNAVAILABLE, policy, Html(page)).into_response()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
