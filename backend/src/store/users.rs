//! People and machines.

use super::Tx;
use crate::error::{Error, Result, broken_constraint};
use domain::{api::User, ids::UserId, vocabulary::Role};
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

/// An account as pages show it.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn get(db: impl PgExecutor<'_>, id: UserId) -> Result<User> {
    sqlx::query_as!(
        UserRow,
        "SELECT id, username, roles, machine, disabled_at, created_at, version FROM users WHERE id = $1",
        id.0
    )
    .fetch_optional(db)
    .await?
    .ok_or(Error::NotFound { what: "user" })?
    .read()
}

/// An account, locked for a change of it.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn lock(tx: &mut Tx, id: UserId) -> Result<User> {
    sqlx::query_as!(
        UserRow,
        "SELECT id, username, roles, machine, disabled_at, created_at, version FROM users WHERE id = $1 FOR UPDATE",
        id.0
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(Error::NotFound { what: "user" })?
    .read()
}

/// Accounts by name, after `after`; and how many there are.
///
/// # Errors
/// The database's.
pub async fn list(pool: &PgPool, after: Option<String>, rows: i64) -> Result<(Vec<User>, i64)> {
    let users = sqlx::query_as!(
        UserRow,
        "SELECT id, username, roles, machine, disabled_at, created_at, version FROM users
         WHERE $1::text IS NULL OR username > $1 ORDER BY username LIMIT $2",
        after,
        rows
    )
    .fetch_all(pool)
    .await?;
    let count = sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM users"#).fetch_one(pool).await?;
    Ok((users.into_iter().map(UserRow::read).collect::<Result<_>>()?, count))
}

/// Writes roles and standing; the version rises.
///
/// # Errors
/// The database's.
pub async fn change(tx: &mut Tx, id: UserId, roles: &[Role], disabled: bool) -> Result<User> {
    let roles: Vec<String> = roles.iter().map(ToString::to_string).collect();
    sqlx::query_as!(
        UserRow,
        "UPDATE users SET roles = $2, version = version + 1,
           disabled_at = CASE WHEN $3 THEN coalesce(disabled_at, now()) END
         WHERE id = $1 RETURNING id, username, roles, machine, disabled_at, created_at, version",
        id.0,
        &roles,
        disabled
    )
    .fetch_one(&mut **tx)
    .await?
    .read()
}

/// Writes a password's hash; the version rises.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn set_password(tx: &mut Tx, id: UserId, password_hash: &str) -> Result<User> {
    sqlx::query_as!(
        UserRow,
        "UPDATE users SET password_hash = $2, version = version + 1
         WHERE id = $1 RETURNING id, username, roles, machine, disabled_at, created_at, version",
        id.0,
        password_hash
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(Error::NotFound { what: "user" })?
    .read()
}

/// How many accounts may administer; locked, so that two changes can't both leave one.
///
/// # Errors
/// The database's.
pub async fn lock_admins(tx: &mut Tx) -> Result<Vec<UserId>> {
    let admins = sqlx::query_scalar!(
        "SELECT id FROM users WHERE 'admin' = ANY (roles) AND disabled_at IS NULL ORDER BY id FOR UPDATE"
    )
    .fetch_all(&mut **tx)
    .await?;
    Ok(admins.into_iter().map(UserId).collect())
}

struct UserRow {
    id: uuid::Uuid,
    username: String,
    roles: Vec<String>,
    machine: bool,
    disabled_at: Option<time::OffsetDateTime>,
    created_at: time::OffsetDateTime,
    version: i64,
}

impl UserRow {
    fn read(self) -> Result<User> {
        Ok(User {
            id: UserId(self.id),
            username: self.username,
            roles: roles(&self.roles)?,
            machine: self.machine,
            disabled_at: self.disabled_at.map(Into::into),
            created_at: self.created_at.into(),
            version: self.version,
        })
    }
}
