//! The doors of a replay: each a separate, deliberate act. They change rows; the replay goes on from there.

use crate::{
    act,
    app::cohorts::{expiry, look, replay, topology::Reading},
    http::{Act, ActKind, Acted, Answer, Path},
    state::App,
};
use axum::{extract::State, http::StatusCode};
use domain::{
    api::{Cohort, ReplayAct},
    ids::CohortId,
    vocabulary::CohortCommand,
};
use utoipa_axum::{router::OpenApiRouter, routes};

act! {
    StartCanary: Respond, CanaryStarted, "cohort";
    VerifyAgain: Respond, CanaryVerifiedAgain, "cohort";
    NextCanary: Respond, CanaryNext, "cohort";
    FailCanary: Respond, CanaryFailedByPerson, "cohort";
    CanaryAgain: Respond, CanaryAgain, "cohort";
    ExpandCohort: Respond, CohortExpanded, "cohort";
    PauseCohort: Stop, CohortPaused, "cohort";
    ResumeCohort: Respond, CohortResumed, "cohort";
    AbortCohort: Stop, CohortAborted, "cohort";
}

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(start_canary))
        .routes(routes!(verify_again))
        .routes(routes!(next_canary))
        .routes(routes!(fail_canary))
        .routes(routes!(canary_again))
        .routes(routes!(expand_cohort))
        .routes(routes!(pause_cohort))
        .routes(routes!(resume_cohort))
        .routes(routes!(abort_cohort))
}

async fn door<K: ActKind>(app: &App, id: CohortId, act: Act<K, ReplayAct>, command: CohortCommand) -> Answer<Acted> {
    let seen = act.seen();
    expiry::judge(app, id).await?;
    // what only stops asks nothing of the broker
    let reading = match command {
        CohortCommand::Pause | CohortCommand::Abort => Reading::NotAsked,
        _ => look(app, id).await?,
    };
    act.run(app, StatusCode::ACCEPTED, move |tx, actor, body| {
        Box::pin(async move { replay::act(tx, actor, id, command, seen, body, &reading).await })
    })
    .await
}

/// Starts the canary of each stratum, one after another.
#[utoipa::path(post, path = "/cohorts/{id}/canary", operation_id = "start_canary", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = ReplayAct, responses((status = 202, description = "Taken", body = Cohort)))]
async fn start_canary(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<StartCanary, ReplayAct>,
) -> Answer<Acted> {
    door(&app, id, act, CohortCommand::StartCanary).await
}

/// Waits once more for the effect of an inconclusive canary.
#[utoipa::path(post, path = "/cohorts/{id}/verify-again", operation_id = "verify_again", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = ReplayAct, responses((status = 202, description = "Taken", body = Cohort)))]
async fn verify_again(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<VerifyAgain, ReplayAct>,
) -> Answer<Acted> {
    door(&app, id, act, CohortCommand::VerifyAgain).await
}

/// Takes the stratum's next approved canary.
#[utoipa::path(post, path = "/cohorts/{id}/next-canary", operation_id = "next_canary", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = ReplayAct, responses((status = 202, description = "Taken", body = Cohort)))]
async fn next_canary(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<NextCanary, ReplayAct>,
) -> Answer<Acted> {
    door(&app, id, act, CohortCommand::NextCanary).await
}

/// Calls an inconclusive canary failed.
#[utoipa::path(post, path = "/cohorts/{id}/fail", operation_id = "fail_canary", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = ReplayAct, responses((status = 202, description = "Taken", body = Cohort)))]
async fn fail_canary(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<FailCanary, ReplayAct>,
) -> Answer<Acted> {
    door(&app, id, act, CohortCommand::Fail).await
}

/// Repeats the canary stage with the next approved items.
#[utoipa::path(post, path = "/cohorts/{id}/canary-again", operation_id = "canary_again", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = ReplayAct, responses((status = 202, description = "Taken", body = Cohort)))]
async fn canary_again(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<CanaryAgain, ReplayAct>,
) -> Answer<Acted> {
    door(&app, id, act, CohortCommand::CanaryAgain).await
}

/// Lets the rest go out under the governor.
#[utoipa::path(post, path = "/cohorts/{id}/expand", operation_id = "expand_cohort", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = ReplayAct, responses((status = 202, description = "Taken", body = Cohort)))]
async fn expand_cohort(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<ExpandCohort, ReplayAct>,
) -> Answer<Acted> {
    door(&app, id, act, CohortCommand::Expand).await
}

/// Hands over nothing more for now.
#[utoipa::path(post, path = "/cohorts/{id}/pause", operation_id = "pause_cohort", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = ReplayAct, responses((status = 202, description = "Taken", body = Cohort)))]
async fn pause_cohort(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<PauseCohort, ReplayAct>,
) -> Answer<Acted> {
    door(&app, id, act, CohortCommand::Pause).await
}

/// Goes on, first with one message.
#[utoipa::path(post, path = "/cohorts/{id}/resume", operation_id = "resume_cohort", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = ReplayAct, responses((status = 202, description = "Taken", body = Cohort)))]
async fn resume_cohort(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<ResumeCohort, ReplayAct>,
) -> Answer<Acted> {
    door(&app, id, act, CohortCommand::Resume).await
}

/// Ends the replay; aborted once nothing can go out any more.
#[utoipa::path(post, path = "/cohorts/{id}/abort", operation_id = "abort_cohort", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = ReplayAct, responses((status = 202, description = "Taken", body = Cohort)))]
async fn abort_cohort(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<AbortCohort, ReplayAct>,
) -> Answer<Acted> {
    door(&app, id, act, CohortCommand::Abort).await
}
