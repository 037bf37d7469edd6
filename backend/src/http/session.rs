//! `/session`: signing in, who am I, signing in again, signing out.

use super::{Answer, Json, Permit, auth::Own};
use crate::{
    app::sessions::{self, Caller},
    state::App,
};
use axum::{
    extract::{Request, State},
    http::StatusCode,
};
use domain::api::{ConfirmSession, Session, SignIn};
use utoipa_axum::{router::OpenApiRouter, routes};

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(open, show, close)).routes(routes!(confirm))
}

/// Signs in; sets the session cookie.
#[utoipa::path(post, path = "/session", operation_id = "open_session", tag = "session", request_body = SignIn,
    responses((status = 201, description = "Signed in", body = Session)))]
async fn open(
    State(app): State<App>,
    session: tower_sessions::Session,
    request: Request,
) -> Answer<(StatusCode, Json<Session>)> {
    let (parts, body) = request.into_parts();
    let caller = Caller::of(&parts);
    let Json(sign_in) = super::problem::read_json::<SignIn>(Request::from_parts(parts, body)).await?;
    sessions::open(&app, &session, caller, sign_in).await?;
    Ok((StatusCode::CREATED, Json(sessions::show(&app, &session).await?)))
}

/// Who I am and what I may do.
#[utoipa::path(get, path = "/session", operation_id = "get_session", tag = "session",
    responses((status = 200, description = "Who is signed in", body = Session)))]
async fn show(State(app): State<App>, _: Permit<Own>, session: tower_sessions::Session) -> Answer<Json<Session>> {
    Ok(Json(sessions::show(&app, &session).await?))
}

/// Signs out; the session's streams end.
#[utoipa::path(delete, path = "/session", operation_id = "close_session", tag = "session",
    responses((status = 204, description = "Signed out")))]
async fn close(State(app): State<App>, permit: Permit<Own>, session: tower_sessions::Session) -> Answer<StatusCode> {
    sessions::close(&app, &session, permit.actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Signs in again: an approval needs that within five minutes.
#[utoipa::path(post, path = "/session/confirm", operation_id = "confirm_session", tag = "session",
    request_body = ConfirmSession, responses((status = 200, description = "Confirmed", body = Session)))]
async fn confirm(
    State(app): State<App>,
    permit: Permit<Own>,
    session: tower_sessions::Session,
    Json(confirm): Json<ConfirmSession>,
) -> Answer<Json<Session>> {
    sessions::confirm(&app, &session, &permit.actor, confirm.password).await?;
    Ok(Json(sessions::show(&app, &session).await?))
}
