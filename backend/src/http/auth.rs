//! Who is asking, and may they? The answer is in the handler's signature.

use crate::{actor::Actor, error::Error, state::App};
use axum::{extract::FromRequestParts, http::request::Parts};
use domain::vocabulary::Permission;
use std::marker::PhantomData;

/// A permission as a type.
pub trait Need: Send + Sync + 'static {
    /// Which.
    const PERMISSION: Permission;
}

macro_rules! needs {
    ($($name:ident),*) => {$(
        /// A permission as a type (RULES 4).
        #[derive(Debug, Clone, Copy)]
        pub struct $name;
        impl Need for $name {
            const PERMISSION: Permission = Permission::$name;
        }
    )*};
}
needs!(Read, Reveal, Respond, Approve, Stop, Administer, ExportLog, SendEvents, Own);

/// Proof that the asker holds permission `N` now; for calls that decide nothing. Acting calls use [`super::Act`].
#[derive(Debug, Clone)]
pub struct Permit<N> {
    /// Who asks.
    pub actor: Actor,
    need: PhantomData<N>,
}

impl<N: Need> FromRequestParts<App> for Permit<N> {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let actor = actor(parts, app).await?;
        if actor.may(N::PERMISSION) { Ok(Self { actor, need: PhantomData }) } else { Err(missing(N::PERMISSION)) }
    }
}

/// 403 with what is missing.
pub(super) fn missing(permission: Permission) -> Error {
    Error::Forbidden { code: "missing_permission", detail: format!("This needs the permission `{permission}`.") }
}

/// Reads who is asking from the session; 401 when nobody is.
pub(super) async fn actor(parts: &mut Parts, app: &App) -> Result<Actor, Error> {
    crate::app::sessions::actor_of(parts, app).await
}
