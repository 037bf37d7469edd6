//! `/freeze`, `/unfreeze`, and the same of one queue.

use super::{Act, ActKind, Acted, Answer, Json, Path, Permit, auth::Read};
use crate::{
    act,
    app::freezes::{self, NotContained},
    state::App,
    store,
};
use axum::{extract::State, http::StatusCode};
use domain::{
    api::{FreezeResult, Freezes, Reason},
    ids::QueueId,
};
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

act! {
    FreezeAll: Stop, Frozen, "freeze";
    UnfreezeAll: Administer, Unfrozen, "freeze";
    FreezeQueue: Stop, Frozen, "freeze";
    UnfreezeQueue: Respond, Unfrozen, "freeze";
}

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, freeze_all))
        .routes(routes!(unfreeze_all))
        .routes(routes!(freeze_queue))
        .routes(routes!(unfreeze_queue))
}

/// Every switch that is on.
#[utoipa::path(get, path = "/freeze", operation_id = "list_freezes", tag = "freeze",
    responses((status = 200, description = "Switches", body = Freezes)))]
async fn list(State(app): State<App>, _: Permit<Read>) -> Answer<Json<Freezes>> {
    Ok(Json(store::freezes::list(app.store.pool()).await?))
}

/// Stops every replay.
#[utoipa::path(post, path = "/freeze", operation_id = "freeze_all", tag = "freeze", request_body = Reason,
    responses((status = 200, description = "Frozen", body = FreezeResult)))]
async fn freeze_all(State(app): State<App>, act: Act<FreezeAll, Reason>) -> Answer<Acted> {
    switch(&app, act, store::freezes::ALL, true).await
}

/// Lets replay go on, but for queues that are frozen by themselves.
#[utoipa::path(post, path = "/unfreeze", operation_id = "unfreeze_all", tag = "freeze", request_body = Reason,
    responses((status = 200, description = "Not frozen", body = FreezeResult)))]
async fn unfreeze_all(State(app): State<App>, act: Act<UnfreezeAll, Reason>) -> Answer<Acted> {
    switch(&app, act, store::freezes::ALL, false).await
}

/// Stops every replay of one queue.
#[utoipa::path(post, path = "/queues/{id}/freeze", operation_id = "freeze_queue", tag = "freeze",
    params(("id" = QueueId, Path)), request_body = Reason,
    responses((status = 200, description = "Frozen", body = FreezeResult)))]
async fn freeze_queue(State(app): State<App>, Path(id): Path<QueueId>, act: Act<FreezeQueue, Reason>) -> Answer<Acted> {
    switch(&app, act, queue_scope(id)?, true).await
}

/// Lets replay of one queue go on.
#[utoipa::path(post, path = "/queues/{id}/unfreeze", operation_id = "unfreeze_queue", tag = "freeze",
    params(("id" = QueueId, Path)), request_body = Reason,
    responses((status = 200, description = "Not frozen", body = FreezeResult)))]
async fn unfreeze_queue(
    State(app): State<App>,
    Path(id): Path<QueueId>,
    act: Act<UnfreezeQueue, Reason>,
) -> Answer<Acted> {
    switch(&app, act, queue_scope(id)?, false).await
}

/// The nil id is the switch for all: it names no queue, and must not be reached by this door.
fn queue_scope(id: QueueId) -> Answer<Uuid> {
    if id.0.is_nil() { Err(crate::error::Error::NotFound { what: "queue" }) } else { Ok(id.0) }
}

async fn switch<K: ActKind>(app: &App, act: Act<K, Reason>, scope: Uuid, on: bool) -> Answer<Acted> {
    let not_contained: NotContained = freezes::not_contained(app, scope).await;
    act.run(app, StatusCode::OK, move |tx, actor, Reason { reason }| {
        Box::pin(async move {
            let result = if on {
                freezes::freeze(tx, actor, scope, &reason, not_contained).await?
            } else {
                freezes::unfreeze(tx, actor, scope, &reason, not_contained).await?
            };
            Ok((result, None))
        })
    })
    .await
}
