//! `/queues`: watched queues.

use super::{Act, Acted, Answer, Json, Path, Permit, Query, auth::Read};
use crate::{
    act,
    app::{paging, queues},
    error::Error,
    state::App,
    store,
};
use axum::{extract::State, http::StatusCode};
use domain::{
    api::{ChangeQueue, NewQueue, Page, Queue},
    ids::QueueId,
};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};

act! {
    Create: Administer, QueueCreated, "queue";
    Change: Administer, QueueChanged, "queue";
}

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(show, change))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// 1 to 200, default 50.
    limit: Option<i64>,
    /// As `next_cursor` said.
    cursor: Option<String>,
}

/// Watched queues, by name, with live readings.
#[utoipa::path(get, path = "/queues", operation_id = "list_queues", tag = "queues", params(ListQuery),
    responses((status = 200, description = "Queues", body = Page<Queue>)))]
async fn list(State(app): State<App>, _: Permit<Read>, Query(query): Query<ListQuery>) -> Answer<Json<Page<Queue>>> {
    let (limit, after) = (paging::limit(query.limit)?, paging::after(query.cursor.as_deref())?);
    let (rows, count) = store::queues::list(app.store.pool(), after, limit + 1).await?;
    let page = paging::page(rows, limit, count, |row| (row.name.clone(), row.id))?;
    let items = queues::show(&app, page.items).await?;
    Ok(Json(Page { items, next_cursor: page.next_cursor, total: page.total }))
}

/// Puts a queue under watch.
#[utoipa::path(post, path = "/queues", operation_id = "create_queue", tag = "queues", request_body = NewQueue,
    responses((status = 201, description = "Under watch", body = Queue)))]
async fn create(State(app): State<App>, act: Act<Create, NewQueue>) -> Answer<Acted> {
    queues::must_exist(&app, &act.body).await?;
    let shown = app.clone();
    act.run(&app, StatusCode::CREATED, move |tx, actor, new| {
        Box::pin(async move {
            let id = queues::create(tx, actor, new).await?;
            let row = store::queues::get(&mut **tx, id).await?;
            answer(&shown, row).await
        })
    })
    .await
}

/// One watched queue.
#[utoipa::path(get, path = "/queues/{id}", operation_id = "get_queue", tag = "queues",
    params(("id" = QueueId, Path)), responses((status = 200, description = "The queue", body = Queue)))]
async fn show(State(app): State<App>, _: Permit<Read>, Path(id): Path<QueueId>) -> Answer<Json<Queue>> {
    let row = store::queues::get(app.store.pool(), id).await?;
    let queue = queues::show(&app, vec![row]).await?.pop();
    queue.map(Json).ok_or(Error::NotFound { what: "queue" })
}

/// Changes what a queue is judged by.
#[utoipa::path(patch, path = "/queues/{id}", operation_id = "change_queue", tag = "queues",
    params(("id" = QueueId, Path)), request_body = ChangeQueue,
    responses((status = 200, description = "Changed", body = Queue)))]
async fn change(State(app): State<App>, Path(id): Path<QueueId>, act: Act<Change, ChangeQueue>) -> Answer<Acted> {
    let version = act.if_match()?;
    let shown = app.clone();
    act.run(&app, StatusCode::OK, move |tx, actor, change| {
        Box::pin(async move {
            queues::change(tx, actor, id, version, change).await?;
            let row = store::queues::get(&mut **tx, id).await?;
            answer(&shown, row).await
        })
    })
    .await
}

/// The answer to a change: readings are those of what the pool sees, without the broker's.
async fn answer(app: &App, row: store::queues::QueueRow) -> crate::error::Result<(Queue, Option<i64>)> {
    let version = row.version;
    let queue = queues::show(app, vec![row]).await?.pop();
    Ok((queue.ok_or(Error::NotFound { what: "queue" })?, Some(version)))
}
