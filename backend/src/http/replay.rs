//! `/cohorts/{id}/replay`, what people say of items in doubt, and trying a probe.

use super::{Act, Acted, Answer, Json, Path, Permit, auth::Read};
use crate::{
    act,
    app::{
        probes,
        replays::{self, resolve},
    },
    state::App,
    store,
};
use axum::{extract::State, http::StatusCode};
use domain::{
    api::{ProbeSample, Reason, Replay, Resolve, TryProbe},
    ids::{CohortId, ItemId},
};
use utoipa_axum::{router::OpenApiRouter, routes};

act! {
    ResolveItem: Respond, ItemResolved, "cohort";
    ConfirmResolution: Approve, ItemResolutionConfirmed, "cohort";
    TryIt: Administer, ProbeTried, "probe";
}

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(show))
        .routes(routes!(resolve_item))
        .routes(routes!(confirm))
        .routes(routes!(try_it))
}

/// The replay of a cohort: stage, counts, rate and what limits it, who owns it, what may still go out.
#[utoipa::path(get, path = "/cohorts/{id}/replay", operation_id = "get_replay", tag = "cohorts",
    params(("id" = CohortId, Path)), responses((status = 200, description = "The replay", body = Replay)))]
async fn show(State(app): State<App>, _: Permit<Read>, Path(id): Path<CohortId>) -> Answer<Json<Replay>> {
    Ok(Json(replays::view(&app, id).await?))
}

/// Says what became of an item in doubt. `not_published` needs a second person.
#[utoipa::path(post, path = "/cohorts/{id}/items/{item_id}/resolve", operation_id = "resolve_item", tag = "cohorts",
    params(("id" = CohortId, Path), ("item_id" = ItemId, Path)), request_body = Resolve,
    responses((status = 200, description = "Taken", body = resolve::Resolved)))]
async fn resolve_item(
    State(app): State<App>,
    Path((id, item)): Path<(CohortId, ItemId)>,
    act: Act<ResolveItem, Resolve>,
) -> Answer<Acted> {
    act.run(&app, StatusCode::OK, move |tx, actor, word| {
        Box::pin(async move { Ok((resolve::resolve(tx, actor, id, item, word).await?, None)) })
    })
    .await
}

/// Confirms, as a second person, that an item was not published.
#[utoipa::path(post, path = "/cohorts/{id}/items/{item_id}/resolve/confirm", operation_id = "confirm_resolution", tag = "cohorts",
    params(("id" = CohortId, Path), ("item_id" = ItemId, Path)), request_body = Reason,
    responses((status = 200, description = "Resolved", body = resolve::Resolved)))]
async fn confirm(
    State(app): State<App>,
    Path((id, item)): Path<(CohortId, ItemId)>,
    act: Act<ConfirmResolution, Reason>,
) -> Answer<Acted> {
    act.run(&app, StatusCode::OK, move |tx, actor, word| {
        Box::pin(async move { Ok((resolve::confirm(tx, actor, id, item, word).await?, None)) })
    })
    .await
}

/// Asks a probe about one job, now.
#[utoipa::path(post, path = "/probes/{name}/try", operation_id = "try_probe", tag = "probes",
    params(("name" = String, Path)), request_body = TryProbe,
    responses((status = 200, description = "What it answered", body = ProbeSample)))]
async fn try_it(State(app): State<App>, Path(name): Path<String>, act: Act<TryIt, TryProbe>) -> Answer<Acted> {
    let probe = store::probes::get(app.store.pool(), &name).await?;
    let sample = probes::run::ask(&app.clock, &probe.definition, &act.body.job_id).await;
    act.run(&app, StatusCode::OK, move |tx, actor, asked| {
        Box::pin(async move {
            let after = serde_json::json!({ "job_id": asked.job_id, "answered": sample.rows.is_some(), "reason": sample.reason });
            let entry = store::audit::Entry::new(domain::vocabulary::Action::ProbeTried, "probe", &name).after(after);
            store::audit::done(tx, actor, entry).await?;
            Ok((sample, None))
        })
    })
    .await
}
