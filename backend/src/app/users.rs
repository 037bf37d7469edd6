//! People and machines.

use crate::{
    actor::Actor,
    app::passwords::Passwords,
    config::Config,
    error::{Error, Result},
    store::{self, Store, Tx, audit, users},
};
use domain::{
    ids::UserId,
    vocabulary::{Action, Role},
};
use serde_json::json;

/// A name as accounts have it: lower case, 1 to 64 of `a-z0-9._-`.
///
/// # Errors
/// `Invalid`.
pub fn username(name: &str) -> Result<String> {
    let name = name.trim().to_lowercase();
    let fits = (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
    if fits { Ok(name) } else { Err(Error::invalid("/username", "1 to 64 of a-z 0-9 . _ -")) }
}

/// Makes an account and its audit entry.
///
/// # Errors
/// 409 `username_taken`; the database's.
pub async fn create(tx: &mut Tx, actor: &Actor, new: users::NewRow<'_>) -> Result<()> {
    let entry = audit::Entry::new(Action::UserCreated, "user", new.id)
        .named(new.username)
        .after(json!({ "roles": new.roles, "machine": new.machine }));
    users::insert(tx, new, actor.user.as_ref().map(|user| user.id)).await?;
    audit::done(tx, actor, entry).await
}

/// `lazaret user add`: the way to the first admin; whoever can run it holds the database's address anyway.
///
/// # Errors
/// Bad fields, a name that is taken, the database's.
pub async fn add_from_command_line(
    config: &Config,
    name: String,
    roles: Vec<Role>,
    machine: bool,
    password: String,
) -> anyhow::Result<()> {
    let (store, passwords) = (Store::connect(&config.database_url)?, Passwords::new(config.password_cost)?);
    let (name, password_hash) = (username(&name)?, passwords.hash(password).await?);
    store::installation::key(&store).await?;
    store
        .tx(move |tx| {
            Box::pin(async move {
                let id = UserId(crate::clock::new_id());
                let new = users::NewRow { id, username: &name, password_hash: &password_hash, roles: &roles, machine };
                create(tx, &Actor::system(), new).await
            })
        })
        .await?;
    Ok(())
}
