//! Reading cohorts, their plans and their items.

use crate::{
    app::cohorts::{look, plan, view},
    error::{Error, Result},
    http::{Answer, Json, Path, Permit, Query, auth::Read},
    state::App,
    store::cohorts::{self, list},
};
use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::IntoResponse,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{
    api::{Cohort, CohortItem, CohortRow, Page, PlanView, Total, TotalRelation},
    ids::{CohortId, QueueId},
    vocabulary::{CohortState, ItemState},
};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show)).routes(routes!(items)).routes(routes!(plan_of))
}

/// Which cohorts; several values of one name: any of them.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Filters {
    /// In any of these states.
    state: Vec<CohortState>,
    /// Of any of these queues.
    queue: Vec<QueueId>,
    /// `true`: only those with an item in doubt; `false`: only those without.
    in_doubt: Option<bool>,
    /// `true`: only those whose message may have been published twice; `false`: only the others.
    published_twice: Option<bool>,
    /// 1 to 200.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<i64>,
    /// Where the last page ended.
    cursor: Option<String>,
}

/// Which items.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ItemFilters {
    /// In any of these states.
    state: Vec<ItemState>,
    /// In this stratum, from 0.
    #[param(minimum = 0)]
    stratum: Option<i32>,
    /// 1 to 200.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<i64>,
    /// Where the last page ended.
    cursor: Option<String>,
}

fn limit(asked: Option<i64>) -> Result<i64> {
    match asked.unwrap_or(50) {
        limit @ 1..=200 => Ok(limit),
        _ => Err(Error::invalid("limit", "1 to 200")),
    }
}

fn bad_cursor() -> Error {
    Error::BadRequest { code: "bad_cursor", detail: "The cursor isn't one that this list gave.".to_owned() }
}

fn to_cursor(row: &CohortRow) -> String {
    let micros = i64::try_from(row.created_at.0.unix_timestamp_nanos() / 1_000).unwrap_or(i64::MAX);
    URL_SAFE_NO_PAD.encode([&micros.to_be_bytes()[..], row.id.0.as_bytes()].concat())
}

fn from_cursor(cursor: &str) -> Result<(time::OffsetDateTime, CohortId)> {
    let bytes: [u8; 24] =
        URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| bytes.try_into().ok()).ok_or_else(bad_cursor)?;
    let (mut micros, mut id) = ([0; 8], [0; 16]);
    micros.copy_from_slice(&bytes[..8]);
    id.copy_from_slice(&bytes[8..]);
    let nanos = i128::from(i64::from_be_bytes(micros)) * 1_000;
    let at = time::OffsetDateTime::from_unix_timestamp_nanos(nanos).map_err(|_| bad_cursor())?;
    Ok((at, CohortId(uuid::Uuid::from_bytes(id))))
}

/// Cohorts, newest first.
#[utoipa::path(get, path = "/cohorts", operation_id = "list_cohorts", tag = "cohorts", params(Filters),
    responses((status = 200, description = "A page", body = Page<CohortRow>)))]
async fn list(
    State(app): State<App>,
    _: Permit<Read>,
    Query(filters): Query<Filters>,
) -> Answer<Json<Page<CohortRow>>> {
    let limit = limit(filters.limit)?;
    let after = filters.cursor.as_deref().map(from_cursor).transpose()?;
    let filter = list::Filter {
        states: filters.state,
        queues: filters.queue,
        only: None,
        in_doubt: filters.in_doubt,
        published_twice: filters.published_twice,
        after,
    };
    let (items, value) = app
        .store
        .tx(move |tx| {
            Box::pin(async move { Ok((list::rows(tx, &filter, limit + 1).await?, list::count(tx, &filter).await?)) })
        })
        .await?;
    Ok(Json(page(items, limit, value, to_cursor)))
}

/// A page of what was read one further than asked.
fn page<T>(mut items: Vec<T>, limit: i64, value: i64, cursor: impl Fn(&T) -> String) -> Page<T> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = items.len() > limit;
    items.truncate(limit);
    let next_cursor = items.last().filter(|_| more).map(cursor);
    Page { items, next_cursor, total: Total { value, relation: TotalRelation::Eq } }
}

/// A cohort: plan, target, strata, pre-flight, reviews, who may review, what the reader may do.
#[utoipa::path(get, path = "/cohorts/{id}", operation_id = "get_cohort", tag = "cohorts", params(("id" = CohortId, Path)),
    responses((status = 200, description = "The cohort", body = Cohort)))]
async fn show(State(app): State<App>, permit: Permit<Read>, Path(id): Path<CohortId>) -> Answer<impl IntoResponse> {
    let reading = look(&app, id).await?;
    let actor = permit.actor;
    let cohort = app.store.tx(move |tx| Box::pin(async move { view::of(tx, &actor, id, &reading).await })).await?;
    let etag = HeaderValue::try_from(format!("\"{}\"", cohort.row.version)).map_err(anyhow::Error::from)?;
    Ok(([(header::ETAG, etag)], Json(cohort)))
}

/// A cohort's items, in the plan's order.
#[utoipa::path(get, path = "/cohorts/{id}/items", operation_id = "list_cohort_items", tag = "cohorts",
    params(("id" = CohortId, Path), ItemFilters), responses((status = 200, description = "A page", body = Page<CohortItem>)))]
async fn items(
    State(app): State<App>,
    _: Permit<Read>,
    Path(id): Path<CohortId>,
    Query(filters): Query<ItemFilters>,
) -> Answer<Json<Page<CohortItem>>> {
    let limit = limit(filters.limit)?;
    let after = filters.cursor.as_deref().map(|cursor| cursor.parse::<i32>().map_err(|_| bad_cursor())).transpose()?;
    let filter = cohorts::read::ItemFilter { states: filters.state, stratum: filters.stratum };
    let (items, value) = app
        .store
        .tx(move |tx| {
            Box::pin(async move {
                cohorts::load(&mut **tx, id).await?;
                let items = cohorts::read::items(tx, id, &filter, after, limit + 1).await?;
                Ok((items, cohorts::read::count_items(tx, id, &filter).await?))
            })
        })
        .await?;
    Ok(Json(page(items, limit, value, |item| item.position.to_string())))
}

/// The exact bytes that an approval covers, their digest, and what differs from the last reviewed plan.
#[utoipa::path(get, path = "/cohorts/{id}/plan", operation_id = "get_cohort_plan", tag = "cohorts",
    params(("id" = CohortId, Path)), responses((status = 200, description = "The plan", body = PlanView)))]
async fn plan_of(State(app): State<App>, _: Permit<Read>, Path(id): Path<CohortId>) -> Answer<Json<PlanView>> {
    Ok(Json(app.store.tx(move |tx| Box::pin(async move { plan::view(tx, id).await })).await?))
}
