//! Drafting, editing, submitting.

use super::Nothing;
use crate::{
    act,
    app::cohorts::{draft, expiry, look, submit, topology},
    http::{Act, Acted, Answer, Path},
    state::App,
};
use axum::{extract::State, http::StatusCode};
use domain::{
    api::{Cohort, Draft, NewCohort},
    ids::CohortId,
};
use utoipa_axum::{router::OpenApiRouter, routes};

act! {
    CreateCohort: Respond, CohortCreated, "cohort";
    EditCohort: Respond, CohortEdited, "cohort";
    SubmitCohort: Respond, CohortSubmitted, "cohort";
}

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(create)).routes(routes!(edit)).routes(routes!(submit_it))
}

/// Makes a draft; its list is frozen now.
#[utoipa::path(post, path = "/cohorts", operation_id = "create_cohort", tag = "cohorts", request_body = NewCohort,
    responses((status = 201, description = "The draft", body = Cohort)))]
async fn create(State(app): State<App>, act: Act<CreateCohort, NewCohort>) -> Answer<Acted> {
    let queue = act.body.queue_id;
    let source = app.store.tx(move |tx| Box::pin(async move { draft::source(tx, queue).await })).await?;
    let reading = topology::read(&app, &source).await;
    act.run(&app, StatusCode::CREATED, move |tx, actor, new| {
        Box::pin(async move { draft::create(tx, actor, new, &reading).await })
    })
    .await
}

/// Changes a draft: a new revision.
#[utoipa::path(patch, path = "/cohorts/{id}", operation_id = "edit_cohort", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = Draft, responses((status = 200, description = "The draft", body = Cohort)))]
async fn edit(State(app): State<App>, Path(id): Path<CohortId>, act: Act<EditCohort, Draft>) -> Answer<Acted> {
    let seen = act.if_match()?;
    expiry::judge(&app, id).await?;
    let reading = look(&app, id).await?;
    act.run(&app, StatusCode::OK, move |tx, actor, body| {
        Box::pin(async move { draft::edit(tx, actor, id, seen, body, &reading).await })
    })
    .await
}

/// Asks for review: pre-flight, claims, the digest that an approval covers.
#[utoipa::path(post, path = "/cohorts/{id}/submit", operation_id = "submit_cohort", tag = "cohorts",
    params(("id" = CohortId, Path)), responses((status = 200, description = "In review", body = Cohort)))]
async fn submit_it(State(app): State<App>, Path(id): Path<CohortId>, act: Act<SubmitCohort, Nothing>) -> Answer<Acted> {
    let seen = act.seen();
    expiry::judge(&app, id).await?;
    let reading = look(&app, id).await?;
    act.run(&app, StatusCode::OK, move |tx, actor, _| {
        Box::pin(async move { submit::submit(tx, actor, id, seen, &reading).await })
    })
    .await
}
