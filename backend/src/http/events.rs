//! `POST /events`.

use super::{Answer, Permit, auth::SendEvents, problem::read_json};
use crate::{app::events, state::App};
use axum::{
    extract::{DefaultBodyLimit, Request, State},
    http::StatusCode,
};
use domain::api::{EventBatch, EventReceipt};
use utoipa_axum::{router::OpenApiRouter, routes};

/// A full call of events of usual size.
const BODY_LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(take)).layer(DefaultBodyLimit::max(BODY_LIMIT_BYTES))
}

/// Takes worker events, each once by its `event_id`; bad ones are rejected by their place, the rest go in.
#[utoipa::path(post, path = "/events", operation_id = "send_events", tag = "events", request_body = EventBatch,
    responses((status = 202, description = "Taken", body = EventReceipt)))]
async fn take(
    State(app): State<App>,
    permit: Permit<SendEvents>,
    request: Request,
) -> Answer<(StatusCode, super::Json<EventReceipt>)> {
    let super::Json(batch) = read_json::<EventBatch>(request).await?;
    Ok((StatusCode::ACCEPTED, super::Json(events::take(&app, &permit.actor, batch.events).await?)))
}
