//! People and machines.

use crate::{
    actor::Actor,
    app::passwords::Passwords,
    config::Config,
    error::{Error, Result},
    store::{self, Store, Tx, audit, sessions, users},
};
use domain::{
    api::{ChangeUser, User},
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

/// Roles of a new or changed account: at least one, each once; a machine sends events and does nothing else.
///
/// # Errors
/// `Invalid`.
pub fn roles(roles: &[Role], machine: bool) -> Result<Vec<Role>> {
    let mut roles = roles.to_vec();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() {
        return Err(Error::invalid("/roles", "at least one role"));
    }
    if machine && roles != [Role::Emitter] {
        return Err(Error::invalid("/roles", "a machine has the role emitter and no other"));
    }
    Ok(roles)
}

/// Changes roles or standing: from the next request on, and for open streams at once.
///
/// # Errors
/// 409 `last_admin`, 412, 404, 422.
pub async fn change(tx: &mut Tx, actor: &Actor, id: UserId, version: i64, change: ChangeUser) -> Result<User> {
    let admins = users::lock_admins(tx).await?;
    let before = users::lock(tx, id).await?;
    if before.version != version {
        return Err(Error::Stale { now: before.version });
    }
    let new_roles = match &change.roles {
        Some(new) => roles(new, before.machine)?,
        None => before.roles.clone(),
    };
    let disabled = change.disabled.unwrap_or(before.disabled_at.is_some());
    if admins == [id] && (disabled || !new_roles.contains(&Role::Admin)) {
        return Err(Error::refused("last_admin", "this is the last account that may administer"));
    }
    let by = actor.user.as_ref().map(|user| user.id);
    if new_roles != before.roles {
        users::touch(tx, id, by, "roles").await?;
    }
    if disabled != before.disabled_at.is_some() {
        users::touch(tx, id, by, "disabled").await?;
    }
    let after = users::change(tx, id, &new_roles, disabled).await?;
    if disabled {
        sessions::remove_all(tx, id, None).await?;
    } else {
        store::notify(tx, store::SESSIONS_TOPIC, Some(id.0)).await?;
    }
    let entry = audit::Entry::new(Action::UserChanged, "user", id)
        .named(&after.username)
        .before(json!({ "roles": before.roles, "disabled": before.disabled_at.is_some() }))
        .after(json!({ "roles": after.roles, "disabled": disabled }));
    audit::done(tx, actor, entry).await?;
    Ok(after)
}

/// Sets a password; every session of the account ends but the actor's own.
///
/// # Errors
/// 404.
pub async fn set_password(tx: &mut Tx, actor: &Actor, id: UserId, password_hash: &str) -> Result<User> {
    let user = users::set_password(tx, id, password_hash).await?;
    let by = actor.user()?;
    users::touch(tx, id, Some(by.id), "password").await?;
    sessions::remove_all(tx, id, Some(&by.credential_id)).await?;
    audit::done(tx, actor, audit::Entry::new(Action::UserPasswordSet, "user", id).named(&user.username)).await?;
    Ok(user)
}
