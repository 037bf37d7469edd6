//! Signing in, and who is asking.

use crate::{
    actor::Actor,
    error::{Error, Result},
    state::App,
};
use axum::http::request::Parts;

/// Who is asking, from the session that the layer put into the request.
///
/// # Errors
/// `Unauthenticated` when nobody is signed in.
pub async fn actor_of(_parts: &mut Parts, _app: &App) -> Result<Actor> {
    Err(Error::Unauthenticated)
}
