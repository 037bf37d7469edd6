//! axum: routes, extractors, problem+json, streams, OpenAPI. No SQL and no broker call lives here.
//!
//! Each noun is a module with `pub(super) fn routes() -> OpenApiRouter<App>`, whose paths are relative to `/api/v1`;
//! `nouns` names them all. [`api`] is the only way in, for browser, pages (in-process), scripts and tests;
//! [`server`] puts pages, plain forms and probes of the process beside it.

pub mod act;
mod audit;
pub mod auth;
mod brokers;
mod cohorts;
mod csp;
mod dead_letter_queues;
mod events;
mod forms;
mod frame;
mod freezes;
mod health;
mod openapi;
mod origin;
pub mod pages;
mod probes;
pub mod problem;
mod quarantine;
mod queues;
mod replay;
mod review_form;
mod session;
pub mod starting;
mod stream;
mod users;

pub use act::{Act, ActKind, Acted};
pub use auth::{Need, Permit};
pub use problem::{Form, Json, Path, Query};

use crate::{state::App, store::sessions::SessionRows};
use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{any, get},
};
use tower_sessions::{Expiry, SessionManagerLayer, cookie::SameSite};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

/// What every handler answers.
pub type Answer<T> = std::result::Result<T, crate::error::Error>;

/// The session cookie's name.
pub const SESSION_COOKIE: &str = "lazaret_session";

/// The largest body that a call takes, unless its route says otherwise.
pub const BODY_LIMIT_BYTES: usize = 1024 * 1024;

/// Every noun of the API; a new module adds its line here.
fn nouns() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(session::routes())
        .merge(users::routes())
        .merge(brokers::routes())
        .merge(queues::routes())
        .merge(freezes::routes())
        .merge(probes::routes())
        .merge(audit::routes())
        .merge(stream::routes())
        .merge(events::routes())
        .merge(dead_letter_queues::routes())
        .merge(quarantine::routes())
        .merge(cohorts::routes())
        .merge(replay::routes())
}

/// `/api/v1` with its session layer, Origin check and problems, and its description.
pub fn api(app: App) -> (Router, OpenApi) {
    let (routes, document) = OpenApiRouter::with_openapi(openapi::base()).nest("/api/v1", nouns()).split_for_parts();
    let document = openapi::complete(document);
    let sessions = SessionManagerLayer::new(SessionRows::new(app.store.clone()))
        .with_name(SESSION_COOKIE)
        .with_http_only(true)
        .with_same_site(SameSite::Lax)
        .with_secure(!app.config.is_loopback())
        .with_expiry(Expiry::OnInactivity(crate::app::sessions::LIFETIME));
    let router = routes
        .route("/api/v1/openapi.json", get(openapi::serve(&document)))
        .method_not_allowed_fallback(problem::method_not_allowed)
        .route("/api/v1", any(problem::no_such_route))
        .route("/api/v1/{*rest}", any(problem::no_such_route))
        .layer(DefaultBodyLimit::max(BODY_LIMIT_BYTES))
        .layer(sessions)
        .layer(middleware::from_fn_with_state(app.clone(), origin::check))
        .layer(frame::catch_panics())
        .layer(middleware::from_fn(frame::api_headers))
        .layer(middleware::from_fn(frame::request))
        .with_state(app);
    (router, document)
}

/// Everything that the listener serves.
pub fn server(app: App) -> Router {
    let (api, _) = api(app.clone());
    let pages = pages::pages(api.clone(), app.config.site_dir.clone());
    let outside = Router::new()
        .merge(forms::routes(api.clone()))
        .merge(review_form::routes(api.clone()))
        .merge(health::routes())
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(DefaultBodyLimit::max(BODY_LIMIT_BYTES))
        .with_state(app);
    frame::outermost(api.merge(outside).merge(pages))
}
