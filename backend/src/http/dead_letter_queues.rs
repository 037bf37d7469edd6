//! `/dead-letter-queues`.

use super::{Act, Acted, Answer, Json, Path, Permit, auth::Read};
use crate::{act, app::dead_letter_queues, state::App};
use axum::{
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use domain::{
    api::{ChangeDeadLetterQueue, DeadLetterQueue, Page, Total, TotalRelation},
    ids::DeadLetterQueueId,
};
use utoipa_axum::{router::OpenApiRouter, routes};

act! {
    SwitchCustody: Administer, CustodyChanged, "dead_letter_queue";
}

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show, change))
}

/// Every dead-letter queue and how its custody goes.
#[utoipa::path(get, path = "/dead-letter-queues", operation_id = "list_dead_letter_queues", tag = "queues",
    responses((status = 200, description = "By name", body = Page<DeadLetterQueue>)))]
async fn list(State(app): State<App>, _: Permit<Read>) -> Answer<Json<Page<DeadLetterQueue>>> {
    let items = dead_letter_queues::list(&app).await?;
    let total = Total { value: i64::try_from(items.len()).unwrap_or(i64::MAX), relation: TotalRelation::Eq };
    Ok(Json(Page { items, next_cursor: None, total }))
}

/// One dead-letter queue.
#[utoipa::path(get, path = "/dead-letter-queues/{id}", operation_id = "get_dead_letter_queue", tag = "queues",
    params(("id" = DeadLetterQueueId, Path)),
    responses((status = 200, description = "With its version as ETag", body = DeadLetterQueue)))]
async fn show(State(app): State<App>, _: Permit<Read>, Path(id): Path<DeadLetterQueueId>) -> Answer<impl IntoResponse> {
    let queue = dead_letter_queues::show(&app, id).await?;
    Ok(([(header::ETAG, format!("\"{}\"", queue.version))], Json(queue)))
}

/// Switches custody; what is taken already stays in the vault.
#[utoipa::path(patch, path = "/dead-letter-queues/{id}", operation_id = "change_dead_letter_queue", tag = "queues",
    params(("id" = DeadLetterQueueId, Path)), request_body = ChangeDeadLetterQueue,
    responses((status = 200, description = "Switched", body = DeadLetterQueue)))]
async fn change(
    State(app): State<App>,
    Path(id): Path<DeadLetterQueueId>,
    act: Act<SwitchCustody, ChangeDeadLetterQueue>,
) -> Answer<Acted> {
    let seen = act.if_match()?;
    act.run(&app, StatusCode::OK, move |tx, actor, body| {
        Box::pin(dead_letter_queues::change(tx, actor, id, seen, body))
    })
    .await
}
