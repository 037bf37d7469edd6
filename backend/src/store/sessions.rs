//! Sessions in Postgres: a store for `tower-sessions` whose `save` never inserts, so that a session which was ended
//! can't come back; and the count of failed sign-ins.

use super::{Store, audit, users};
use crate::{
    actor::{Actor, ActorUser},
    error::{Error, Result},
};
use domain::{ids::UserId, vocabulary::Action};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use time::OffsetDateTime;
use tower_sessions::{
    SessionStore,
    session::{Id, Record},
    session_store,
};
use uuid::Uuid;

/// Under this name a session's data holds [`SignedIn`].
pub const SIGNED_IN: &str = "signed_in";
/// Under this name a session's data holds [`Opening`] until its row is written.
pub const OPENING: &str = "opening";

/// Whose session it is, by the database's clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SignedIn {
    /// The account.
    pub user_id: UserId,
    /// When the password was last given.
    #[serde(with = "time::serde::rfc3339")]
    pub confirmed_at: OffsetDateTime,
    /// When the session ends by itself.
    #[serde(with = "time::serde::rfc3339")]
    pub expires_at: OffsetDateTime,
}

/// What makes a session's row: the only two ways to one are giving a password first and giving it again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Opening {
    /// The account.
    pub user_id: UserId,
    /// Whether it was signed in already.
    pub again: bool,
    /// For the audit entry.
    pub request_id: Option<String>,
    /// For the audit entry.
    pub ip: Option<String>,
}

/// What names a session in the database and in the audit trail: never the secret itself.
#[must_use]
pub fn credential_id(id: &Id) -> String {
    hex::encode(Sha256::digest(id.to_string().as_bytes()))
}

/// The `sessions` table.
#[derive(Debug, Clone)]
pub struct SessionRows {
    store: Store,
}

impl SessionRows {
    /// Over this database.
    #[must_use]
    pub const fn new(store: Store) -> Self {
        Self { store }
    }

    /// A session's row and its audit entry, in one transaction.
    async fn open(&self, record: &Record) -> Result<Record> {
        let mut record = record.clone();
        let opening: Opening = record
            .data
            .remove(OPENING)
            .and_then(|value| serde_json::from_value(value).ok())
            .ok_or_else(|| Error::Internal(anyhow::anyhow!("a session without its opening")))?;
        self.store
            .tx(move |tx| {
                Box::pin(async move {
                    let user = users::standing(&mut **tx, opening.user_id).await?.filter(|user| !user.disabled);
                    let user = user.ok_or(Error::WrongCredentials)?;
                    let times = sqlx::query!(
                        r#"SELECT now() AS "now!", now() + make_interval(secs => $1) AS "expires_at!""#,
                        crate::app::sessions::LIFETIME.as_seconds_f64()
                    )
                    .fetch_one(&mut **tx)
                    .await?;
                    let signed_in =
                        SignedIn { user_id: opening.user_id, confirmed_at: times.now, expires_at: times.expires_at };
                    record.expiry_date = times.expires_at;
                    record.data.insert(
                        SIGNED_IN.to_owned(),
                        serde_json::to_value(&signed_in).map_err(|e| Error::Internal(e.into()))?,
                    );
                    let credential_id = credential_id(&record.id);
                    sqlx::query!(
                        "INSERT INTO sessions (id, user_id, data, expires_at) VALUES ($1, $2, $3, $4)",
                        credential_id,
                        opening.user_id.0,
                        encode(&record)?,
                        record.expiry_date
                    )
                    .execute(&mut **tx)
                    .await?;
                    let username = user.username.clone();
                    let actor = Actor {
                        user: Some(ActorUser {
                            id: opening.user_id,
                            username: user.username,
                            roles: user.roles,
                            machine: user.machine,
                            credential_id: credential_id.clone(),
                            confirmed_at: times.now,
                        }),
                        request_id: opening.request_id,
                        ip: opening.ip,
                    };
                    let action = if opening.again { Action::SessionConfirmed } else { Action::SessionOpened };
                    audit::done(tx, &actor, audit::Entry::new(action, "session", credential_id).named(username))
                        .await?;
                    Ok(record)
                })
            })
            .await
    }
}

#[async_trait::async_trait]
impl SessionStore for SessionRows {
    async fn create(&self, record: &mut Record) -> session_store::Result<()> {
        *record = self.open(record).await.map_err(backend)?;
        Ok(())
    }

    async fn save(&self, record: &Record) -> session_store::Result<()> {
        let data = encode(record).map_err(backend)?;
        sqlx::query!("UPDATE sessions SET data = $2 WHERE id = $1", credential_id(&record.id), data)
            .execute(self.store.pool())
            .await
            .map_err(|e| backend(e.into()))?;
        Ok(())
    }

    async fn load(&self, id: &Id) -> session_store::Result<Option<Record>> {
        let row = sqlx::query!(
            "SELECT data, expires_at FROM sessions WHERE id = $1 AND expires_at > now()",
            credential_id(id)
        )
        .fetch_optional(self.store.pool())
        .await
        .map_err(|e| backend(e.into()))?;
        row.map(|row| {
            let data: HashMap<String, serde_json::Value> =
                serde_json::from_slice(&row.data).map_err(|error| session_store::Error::Decode(error.to_string()))?;
            Ok(Record { id: *id, data, expiry_date: row.expires_at })
        })
        .transpose()
    }

    async fn delete(&self, id: &Id) -> session_store::Result<()> {
        let id = credential_id(id);
        self.store.tx(move |tx| Box::pin(async move { remove(tx, &id).await.map(|_| ()) })).await.map_err(backend)
    }
}

fn encode(record: &Record) -> Result<Vec<u8>> {
    serde_json::to_vec(&record.data).map_err(|error| Error::Internal(error.into()))
}

fn backend(error: Error) -> session_store::Error {
    session_store::Error::Backend(error.to_string())
}

/// Ends a session; its streams hear of it. Whether there was one.
///
/// # Errors
/// The database's.
pub async fn remove(tx: &mut super::Tx, credential_id: &str) -> Result<bool> {
    let ended = sqlx::query_scalar!("DELETE FROM sessions WHERE id = $1 RETURNING user_id", credential_id)
        .fetch_optional(&mut **tx)
        .await?;
    if let Some(user) = ended {
        super::notify(tx, super::SESSIONS_TOPIC, user).await?;
    }
    Ok(ended.is_some())
}

/// Forgets sessions that ended by time; how many.
///
/// # Errors
/// The database's.
pub async fn sweep(store: &Store) -> Result<u64> {
    Ok(sqlx::query!("DELETE FROM sessions WHERE expires_at < now()").execute(store.pool()).await?.rows_affected())
}

/// Ends every session of an account, but `kept`.
///
/// # Errors
/// The database's.
pub async fn remove_all(tx: &mut super::Tx, user: UserId, kept: Option<&str>) -> Result<()> {
    sqlx::query!("DELETE FROM sessions WHERE user_id = $1 AND id IS DISTINCT FROM $2", user.0, kept)
        .execute(&mut **tx)
        .await?;
    super::notify(tx, super::SESSIONS_TOPIC, Some(user.0)).await?;
    Ok(())
}

/// Whether a session is alive.
///
/// # Errors
/// The database's.
pub async fn is_alive(store: &Store, credential_id: &str) -> Result<bool> {
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM sessions s JOIN users u ON u.id = s.user_id
             WHERE s.id = $1 AND s.expires_at > now() AND u.disabled_at IS NULL) AS "alive!""#,
        credential_id
    )
    .fetch_one(store.pool())
    .await?)
}

/// Failures that an account may have within [`FAILURE_WINDOW_S`].
pub const FAILURES_PER_ACCOUNT: i64 = 10;
/// Failures that an address may have within [`FAILURE_WINDOW_S`].
pub const FAILURES_PER_ADDRESS: i64 = 50;
/// How long a failure counts, seconds.
pub const FAILURE_WINDOW_S: f64 = 15.0 * 60.0;

/// Counts a sign-in as failed before it is judged, so that parallel guesses can't outrun the count; [`forgive`] takes it back.
///
/// # Errors
/// `TooMany` at the limit of the account or of the address.
pub async fn charge(store: &Store, username: String, ip: String) -> Result<Uuid> {
    store
        .tx(move |tx| {
            Box::pin(async move {
                sqlx::query!("SELECT pg_advisory_xact_lock(hashtext('lazaret login_failures'))")
                    .execute(&mut **tx)
                    .await?;
                sqlx::query!(
                    "DELETE FROM login_failures WHERE at < now() - make_interval(secs => $1)",
                    FAILURE_WINDOW_S
                )
                .execute(&mut **tx)
                .await?;
                let wait = sqlx::query_scalar!(
                    r#"SELECT ceil(extract(epoch FROM max(oldest) + make_interval(secs => $5) - now()))::bigint
                       FROM (
                         SELECT min(at) AS oldest FROM login_failures WHERE username = $1 HAVING count(*) >= $3
                         UNION ALL
                         SELECT min(at) FROM login_failures WHERE ip = $2 HAVING count(*) >= $4
                       ) AS over"#,
                    username,
                    ip,
                    FAILURES_PER_ACCOUNT,
                    FAILURES_PER_ADDRESS,
                    FAILURE_WINDOW_S
                )
                .fetch_one(&mut **tx)
                .await?;
                if let Some(wait) = wait {
                    return Err(Error::TooMany { retry_after_s: u64::try_from(wait).unwrap_or(1).max(1) });
                }
                let id = crate::clock::new_id();
                sqlx::query!("INSERT INTO login_failures (id, username, ip) VALUES ($1, $2, $3)", id, username, ip)
                    .execute(&mut **tx)
                    .await?;
                Ok(id)
            })
        })
        .await
}

/// The sign-in was none of the failures.
///
/// # Errors
/// The database's.
pub async fn forgive(store: &Store, charge: Uuid) -> Result<()> {
    sqlx::query!("DELETE FROM login_failures WHERE id = $1", charge).execute(store.pool()).await?;
    Ok(())
}
