//! `/brokers`: RabbitMQ clusters.

use super::{Act, Acted, Answer, Json, Path, Permit, Query, auth::Read};
use crate::{
    act,
    app::{brokers, paging},
    state::App,
    store,
};
use axum::{extract::State, http::StatusCode};
use domain::{
    api::{Broker, ChangeBroker, NewBroker, Page, Topology},
    ids::BrokerId,
};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};

act! {
    Create: Administer, BrokerCreated, "broker";
    Change: Administer, BrokerChanged, "broker";
}

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(show, change)).routes(routes!(topology))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// 1 to 200, default 50.
    limit: Option<i64>,
    /// As `next_cursor` said.
    cursor: Option<String>,
}

/// Brokers, by name.
#[utoipa::path(get, path = "/brokers", operation_id = "list_brokers", tag = "brokers", params(ListQuery),
    responses((status = 200, description = "Brokers", body = Page<Broker>)))]
async fn list(State(app): State<App>, _: Permit<Read>, Query(query): Query<ListQuery>) -> Answer<Json<Page<Broker>>> {
    let (limit, after) = (paging::limit(query.limit)?, paging::after(query.cursor.as_deref())?);
    let (rows, count) = store::brokers::list(app.store.pool(), after, limit + 1).await?;
    let mut page = paging::page(rows, limit, count, |broker| broker.name.clone())?;
    page.items =
        futures::future::join_all(page.items.into_iter().map(|broker| brokers::with_version(&app, broker))).await;
    Ok(Json(page))
}

/// Registers a broker.
#[utoipa::path(post, path = "/brokers", operation_id = "create_broker", tag = "brokers", request_body = NewBroker,
    responses((status = 201, description = "Registered", body = Broker)))]
async fn create(State(app): State<App>, act: Act<Create, NewBroker>) -> Answer<Acted> {
    act.run(&app, StatusCode::CREATED, |tx, actor, new| {
        Box::pin(async move {
            let broker = brokers::create(tx, actor, new).await?;
            let version = broker.version;
            Ok((broker, Some(version)))
        })
    })
    .await
}

/// One broker.
#[utoipa::path(get, path = "/brokers/{id}", operation_id = "get_broker", tag = "brokers",
    params(("id" = BrokerId, Path)), responses((status = 200, description = "The broker", body = Broker)))]
async fn show(State(app): State<App>, _: Permit<Read>, Path(id): Path<BrokerId>) -> Answer<Json<Broker>> {
    let broker = store::brokers::get(app.store.pool(), id).await?;
    Ok(Json(brokers::with_version(&app, broker).await))
}

/// Changes addresses or credentials.
#[utoipa::path(patch, path = "/brokers/{id}", operation_id = "change_broker", tag = "brokers",
    params(("id" = BrokerId, Path)), request_body = ChangeBroker,
    responses((status = 200, description = "Changed", body = Broker)))]
async fn change(State(app): State<App>, Path(id): Path<BrokerId>, act: Act<Change, ChangeBroker>) -> Answer<Acted> {
    let version = act.if_match()?;
    act.run(&app, StatusCode::OK, move |tx, actor, change| {
        Box::pin(async move {
            let broker = brokers::change(tx, actor, id, version, change).await?;
            let version = broker.version;
            Ok((broker, Some(version)))
        })
    })
    .await
}

/// What the broker holds, to choose from.
#[utoipa::path(get, path = "/brokers/{id}/topology", operation_id = "get_topology", tag = "brokers",
    params(("id" = BrokerId, Path)), responses((status = 200, description = "Its topology", body = Topology)))]
async fn topology(State(app): State<App>, _: Permit<Read>, Path(id): Path<BrokerId>) -> Answer<Json<Topology>> {
    let broker = store::brokers::get(app.store.pool(), id).await?;
    Ok(Json(brokers::topology(&app, &broker).await?))
}
