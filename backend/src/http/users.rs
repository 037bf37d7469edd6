//! `/users`: people and machines.

use super::{Act, Acted, Answer, Json, Path, Permit, Query, auth::Administer};
use crate::{
    act,
    app::{paging, users},
    state::App,
    store,
};
use axum::{extract::State, http::StatusCode};
use domain::{
    api::{ChangeUser, NewUser, Page, SetPassword, User},
    ids::UserId,
};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};

act! {
    CreateUser: Administer, UserCreated, "user";
    Change: Administer, UserChanged, "user";
    Password: Administer, UserPasswordSet, "user";
}

/// The noun's routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(show, change)).routes(routes!(set_password))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// 1 to 200, default 50.
    limit: Option<i64>,
    /// As `next_cursor` said.
    cursor: Option<String>,
}

/// Accounts, by name.
#[utoipa::path(get, path = "/users", operation_id = "list_users", tag = "users", params(ListQuery),
    responses((status = 200, description = "Accounts", body = Page<User>)))]
async fn list(
    State(app): State<App>,
    _: Permit<Administer>,
    Query(query): Query<ListQuery>,
) -> Answer<Json<Page<User>>> {
    let (limit, after) = (paging::limit(query.limit)?, paging::after(query.cursor.as_deref())?);
    let (users, count) = store::users::list(app.store.pool(), after, limit + 1).await?;
    Ok(Json(paging::page(users, limit, count, |user| user.username.clone())?))
}

/// Makes an account.
#[utoipa::path(post, path = "/users", operation_id = "create_user", tag = "users", request_body = NewUser,
    responses((status = 201, description = "Made", body = User)))]
async fn create(State(app): State<App>, act: Act<CreateUser, NewUser>) -> Answer<Acted> {
    let password_hash = app.passwords.hash(act.body.password.clone()).await?;
    act.run(&app, StatusCode::CREATED, move |tx, actor, new| {
        Box::pin(async move {
            let (id, username) = (UserId(crate::clock::new_id()), users::username(&new.username)?);
            let roles = users::roles(&new.roles, new.machine)?;
            let row = store::users::NewRow {
                id,
                username: &username,
                password_hash: &password_hash,
                roles: &roles,
                machine: new.machine,
            };
            users::create(tx, actor, row).await?;
            let user = store::users::get(&mut **tx, id).await?;
            Ok((user.clone(), Some(user.version)))
        })
    })
    .await
}

/// One account.
#[utoipa::path(get, path = "/users/{id}", operation_id = "get_user", tag = "users", params(("id" = UserId, Path)),
    responses((status = 200, description = "The account", body = User)))]
async fn show(State(app): State<App>, _: Permit<Administer>, Path(id): Path<UserId>) -> Answer<Json<User>> {
    Ok(Json(store::users::get(app.store.pool(), id).await?))
}

/// Changes roles or standing.
#[utoipa::path(patch, path = "/users/{id}", operation_id = "change_user", tag = "users", params(("id" = UserId, Path)),
    request_body = ChangeUser, responses((status = 200, description = "Changed", body = User)))]
async fn change(State(app): State<App>, Path(id): Path<UserId>, act: Act<Change, ChangeUser>) -> Answer<Acted> {
    let version = act.if_match()?;
    act.run(&app, StatusCode::OK, move |tx, actor, change| {
        Box::pin(async move {
            let user = users::change(tx, actor, id, version, change).await?;
            Ok((user.clone(), Some(user.version)))
        })
    })
    .await
}

/// Sets a password; the account's sessions end.
#[utoipa::path(post, path = "/users/{id}/password", operation_id = "set_password", tag = "users",
    params(("id" = UserId, Path)), request_body = SetPassword,
    responses((status = 200, description = "Set", body = User)))]
async fn set_password(
    State(app): State<App>,
    Path(id): Path<UserId>,
    act: Act<Password, SetPassword>,
) -> Answer<Acted> {
    let password_hash = app.passwords.hash(act.body.password.clone()).await?;
    act.run(&app, StatusCode::OK, move |tx, actor, _| {
        Box::pin(async move {
            let user = users::set_password(tx, actor, id, &password_hash).await?;
            Ok((user.clone(), Some(user.version)))
        })
    })
    .await
}
