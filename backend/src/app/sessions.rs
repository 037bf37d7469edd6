//! Signing in, and who is asking.

use crate::{
    actor::{Actor, ActorUser},
    error::{Error, Result},
    http::problem,
    state::App,
    store::{
        audit,
        sessions::{self, OPENING, Opening, SIGNED_IN, SignedIn},
        users,
    },
};
use axum::{extract::ConnectInfo, http::request::Parts};
use domain::{
    api::{SignIn, UserRef},
    ids::UserId,
    permissions,
    vocabulary::Action,
};
use std::net::SocketAddr;
use time::Duration;
use tower_sessions::Session;

/// How long a session lives from its sign-in.
pub const LIFETIME: Duration = Duration::hours(12);

/// Where a request comes from.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Names the request in the logs.
    pub request_id: Option<String>,
    /// The address it came from.
    pub ip: Option<String>,
}

impl Caller {
    /// Of this request.
    #[must_use]
    pub fn of(parts: &Parts) -> Self {
        let ip = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip().to_string());
        Self { request_id: Some(problem::request_id()).filter(|id| !id.is_empty()), ip }
    }
}

/// Who is asking, from the session that the layer put into the request; roles and standing are those of now.
///
/// # Errors
/// `Unauthenticated` when nobody is signed in, or the account is disabled.
pub async fn actor_of(parts: &mut Parts, app: &App) -> Result<Actor> {
    let session = session_of(parts)?;
    let signed_in = signed_in(session).await?;
    let user = users::standing(app.store.pool(), signed_in.user_id).await?;
    let user = user.filter(|user| !user.disabled).ok_or(Error::Unauthenticated)?;
    let id = session.id().ok_or(Error::Unauthenticated)?;
    let Caller { request_id, ip } = Caller::of(parts);
    Ok(Actor {
        user: Some(ActorUser {
            id: signed_in.user_id,
            username: user.username,
            roles: user.roles,
            machine: user.machine,
            credential_id: sessions::credential_id(&id),
            confirmed_at: signed_in.confirmed_at,
        }),
        request_id,
        ip,
    })
}

/// The session that the layer put into the request.
///
/// # Errors
/// There is no layer: a defect.
pub fn session_of(parts: &Parts) -> Result<&Session> {
    parts.extensions.get().ok_or_else(|| Error::Internal(anyhow::anyhow!("a route without the session layer")))
}

async fn signed_in(session: &Session) -> Result<SignedIn> {
    session.get(SIGNED_IN).await.map_err(store_error)?.ok_or(Error::Unauthenticated)
}

/// Signs in: the failure is counted before the password is looked at, and forgiven when it was right.
///
/// # Errors
/// `WrongCredentials`, `TooMany`.
pub async fn open(app: &App, session: &Session, caller: Caller, sign_in: SignIn) -> Result<()> {
    let username = sign_in.username.trim().to_lowercase();
    let known = users::credentials(app.store.pool(), &username).await?;
    let user_id = known.as_ref().map(|(id, _)| *id);
    prove(app, &caller, &username, sign_in.password, known.map(|(_, hash)| hash)).await?;
    begin(session, user_id.ok_or(Error::WrongCredentials)?, false, caller).await
}

/// Gives the password again: an approval needs that to be recent.
///
/// # Errors
/// `WrongCredentials`, `TooMany`.
pub async fn confirm(app: &App, session: &Session, actor: &Actor, password: String) -> Result<()> {
    let user = actor.user()?;
    let caller = Caller { request_id: actor.request_id.clone(), ip: actor.ip.clone() };
    let known = users::credentials(app.store.pool(), &user.username).await?;
    prove(app, &caller, &user.username, password, known.map(|(_, hash)| hash)).await?;
    begin(session, user.id, true, caller).await
}

async fn prove(app: &App, caller: &Caller, username: &str, password: String, known: Option<String>) -> Result<()> {
    // what is no account's name counts too, but isn't kept at any length
    let counted: String = username.chars().filter(|c| *c != '\0').take(64).collect();
    let charge = sessions::charge(&app.store, counted, caller.ip.clone().unwrap_or_default()).await?;
    if !app.passwords.verify(password, known).await? {
        tracing::warn!(ip = caller.ip, "a sign-in failed");
        return Err(Error::WrongCredentials);
    }
    sessions::forgive(&app.store, charge).await
}

/// A new id at every change of privilege: the old session ends, the new row and its audit entry are written together.
async fn begin(session: &Session, user_id: UserId, again: bool, caller: Caller) -> Result<()> {
    let opening = Opening { user_id, again, request_id: caller.request_id, ip: caller.ip };
    session.insert(OPENING, opening).await.map_err(store_error)?;
    session.cycle_id().await.map_err(store_error)?;
    session.save().await.map_err(store_error)
}

/// Who I am.
///
/// # Errors
/// `Unauthenticated`.
pub async fn show(app: &App, session: &Session) -> Result<domain::api::Session> {
    let signed_in = signed_in(session).await?;
    let user = users::standing(app.store.pool(), signed_in.user_id).await?.ok_or(Error::Unauthenticated)?;
    Ok(domain::api::Session {
        user: UserRef { id: signed_in.user_id, username: user.username },
        permissions: permissions::of(&user.roles),
        roles: user.roles,
        confirmed_at: signed_in.confirmed_at.into(),
        expires_at: signed_in.expires_at.into(),
    })
}

/// Signs out: the row goes with its audit entry, and every stream of the session ends.
///
/// # Errors
/// The database's.
pub async fn close(app: &App, session: &Session, actor: Actor) -> Result<()> {
    app.store
        .tx(move |tx| {
            Box::pin(async move {
                let user = actor.user()?;
                let entry =
                    audit::Entry::new(Action::SessionClosed, "session", &user.credential_id).named(&user.username);
                if sessions::remove(tx, &user.credential_id).await? {
                    audit::done(tx, &actor, entry).await?;
                }
                Ok(())
            })
        })
        .await?;
    session.flush().await.map_err(store_error)
}

fn store_error(error: tower_sessions::session::Error) -> Error {
    tracing::warn!(%error, "the session store failed");
    Error::Unavailable { code: "database_unavailable", detail: "the session can't be read or written now".to_owned() }
}
