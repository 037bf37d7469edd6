//! People and machines.

use super::Tx;
use crate::error::{Error, Result, broken_constraint};
use domain::{ids::UserId, vocabulary::Role};
use sqlx::{PgExecutor, PgPool};

/// What an account may do now.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Name.
    pub username: String,
    /// Roles.
    pub roles: Vec<Role>,
    /// A machine never approves.
    pub machine: bool,
    /// May not sign in, nor act with a session that it still has.
    pub disabled: bool,
}

/// An account's standing now.
///
/// # Errors
/// The database's.
pub async fn standing(db: impl PgExecutor<'_>, id: UserId) -> Result<Option<Standing>> {
    let row = sqlx::query!(
        r#"SELECT username, roles, machine, disabled_at IS NOT NULL AS "disabled!" FROM users WHERE id = $1"#,
        id.0
    )
    .fetch_optional(db)
    .await?;
    row.map(|row| {
        Ok(Standing { username: row.username, roles: roles(&row.roles)?, machine: row.machine, disabled: row.disabled })
    })
    .transpose()
}

/// The id and password hash of the account with this name (lower case), unless it is disabled.
///
/// # Errors
/// The database's.
pub async fn credentials(pool: &PgPool, username: &str) -> Result<Option<(UserId, String)>> {
    let row = sqlx::query!("SELECT id, password_hash FROM users WHERE username = $1 AND disabled_at IS NULL", username)
        .fetch_optional(pool)
        .await?;
    Ok(row.map(|row| (UserId(row.id), row.password_hash)))
}

/// Roles as the database has them.
///
/// # Errors
/// A word that isn't one: the schema's check forbids it.
pub(crate) fn roles(words: &[String]) -> Result<Vec<Role>> {
    words
        .iter()
        .map(|word| word.parse().map_err(|e: domain::vocabulary::UnknownWord| Error::Internal(e.into())))
        .collect()
}

/// A new account.
#[derive(Debug)]
pub struct NewRow<'a> {
    /// Identity.
    pub id: UserId,
    /// Lower case.
    pub username: &'a str,
    /// argon2id, PHC form.
    pub password_hash: &'a str,
    /// At least one.
    pub roles: &'a [Role],
    /// A machine never approves.
    pub machine: bool,
}

/// Writes an account and who made it (RULES 4: `tainted_approver`).
///
/// # Errors
/// 409 `username_taken`; the database's.
pub async fn insert(tx: &mut Tx, row: NewRow<'_>, by: Option<UserId>) -> Result<()> {
    let roles: Vec<String> = row.roles.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "INSERT INTO users (id, username, password_hash, roles, machine) VALUES ($1, $2, $3, $4, $5)",
        row.id.0,
        row.username,
        row.password_hash,
        &roles,
        row.machine
    )
    .execute(&mut **tx)
    .await
    .map_err(|error| match broken_constraint(&error) {
        Some("users_username_unique") => Error::refused("username_taken", "an account of this name exists"),
        _ => error.into(),
    })?;
    touch(tx, row.id, by, "created").await
}

/// Keeps who changed whose account, and what.
///
/// # Errors
/// The database's.
pub async fn touch(tx: &mut Tx, user: UserId, by: Option<UserId>, what: &str) -> Result<()> {
    sqlx::query!(
        "INSERT INTO user_changes (id, user_id, changed_by, what) VALUES ($1, $2, $3, $4)",
        crate::clock::new_id(),
        user.0,
        by.map(|by| by.0),
        what
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}
