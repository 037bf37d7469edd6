//! Review. A machine never approves; whoever touched the plan doesn't either.

use crate::{
    act,
    app::cohorts::{expiry, look, review},
    http::{Act, ActKind, Acted, Answer, Path},
    state::App,
};
use axum::{extract::State, http::StatusCode};
use domain::{
    api::{Approve, Cohort, Comment},
    ids::CohortId,
    vocabulary::CohortCommand,
};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};

act! {
    ApproveCohort: Approve, CohortApproved, "cohort";
    RequestChanges: Approve, CohortChangesRequested, "cohort";
    RejectCohort: Approve, CohortRejected, "cohort";
    RevokeApproval: Approve, CohortRevoked, "cohort";
    WithdrawCohort: Respond, CohortWithdrawn, "cohort";
    DiscardCohort: Respond, CohortDiscarded, "cohort";
}

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(approve))
        .routes(routes!(request_changes))
        .routes(routes!(reject))
        .routes(routes!(revoke))
        .routes(routes!(withdraw))
        .routes(routes!(discard))
}

/// Words that may be left out.
#[derive(Debug, Deserialize)]
struct MaybeComment {
    #[serde(default)]
    comment: Option<String>,
}

/// Approves the plan of this digest.
#[utoipa::path(post, path = "/cohorts/{id}/approve", operation_id = "approve_cohort", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = Approve,
    responses((status = 200, description = "Counted", body = Cohort)))]
async fn approve(State(app): State<App>, Path(id): Path<CohortId>, act: Act<ApproveCohort, Approve>) -> Answer<Acted> {
    let seen = act.seen();
    expiry::judge(&app, id).await?;
    let reading = look(&app, id).await?;
    act.run(&app, StatusCode::OK, move |tx, actor, body| {
        Box::pin(async move { review::approve(tx, actor, id, seen, body, &reading).await })
    })
    .await
}

async fn say<K: ActKind, B: Send + 'static>(
    app: &App,
    id: CohortId,
    act: Act<K, B>,
    command: CohortCommand,
    comment: fn(B) -> Option<String>,
) -> Answer<Acted> {
    let seen = act.seen();
    expiry::judge(app, id).await?;
    let reading = look(app, id).await?;
    act.run(app, StatusCode::OK, move |tx, actor, body| {
        let comment = comment(body);
        Box::pin(async move { review::say(tx, actor, id, command, seen, comment, &reading).await })
    })
    .await
}

fn words(body: Comment) -> Option<String> {
    Some(body.comment)
}

fn maybe(body: Option<MaybeComment>) -> Option<String> {
    body.and_then(|body| body.comment).filter(|comment| !comment.is_empty())
}

/// Sends the plan back to its author; the next revision has no approvals.
#[utoipa::path(post, path = "/cohorts/{id}/request-changes", operation_id = "request_changes", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = Comment,
    responses((status = 200, description = "A draft again", body = Cohort)))]
async fn request_changes(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<RequestChanges, Comment>,
) -> Answer<Acted> {
    say(&app, id, act, CohortCommand::RequestChanges, words).await
}

/// Says no, for good.
#[utoipa::path(post, path = "/cohorts/{id}/reject", operation_id = "reject_cohort", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = Comment, responses((status = 200, description = "Rejected", body = Cohort)))]
async fn reject(State(app): State<App>, Path(id): Path<CohortId>, act: Act<RejectCohort, Comment>) -> Answer<Acted> {
    say(&app, id, act, CohortCommand::Reject, words).await
}

/// Takes one's own approval back, before the start.
#[utoipa::path(post, path = "/cohorts/{id}/revoke", operation_id = "revoke_approval", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = Option<Comment>,
    responses((status = 200, description = "In review again", body = Cohort)))]
async fn revoke(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<RevokeApproval, Option<MaybeComment>>,
) -> Answer<Acted> {
    say(&app, id, act, CohortCommand::Revoke, maybe).await
}

/// The author takes it back.
#[utoipa::path(post, path = "/cohorts/{id}/withdraw", operation_id = "withdraw_cohort", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = Comment, responses((status = 200, description = "Withdrawn", body = Cohort)))]
async fn withdraw(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<WithdrawCohort, Comment>,
) -> Answer<Acted> {
    say(&app, id, act, CohortCommand::Withdraw, words).await
}

/// The author drops a draft.
#[utoipa::path(post, path = "/cohorts/{id}/discard", operation_id = "discard_cohort", tag = "cohorts",
    params(("id" = CohortId, Path)), request_body = Option<Comment>,
    responses((status = 200, description = "Withdrawn", body = Cohort)))]
async fn discard(
    State(app): State<App>,
    Path(id): Path<CohortId>,
    act: Act<DiscardCohort, Option<MaybeComment>>,
) -> Answer<Acted> {
    say(&app, id, act, CohortCommand::Discard, maybe).await
}
