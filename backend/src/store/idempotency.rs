//! Acting calls that may be sent again: the key is taken in the business transaction and answers as the first time.

use super::{Store, Tx};
use crate::error::{Error, Result};
use domain::ids::UserId;

/// What scopes a key: actor, method, path; for 24 h.
#[derive(Debug, Clone)]
pub struct Key {
    /// Who.
    pub actor: UserId,
    /// HTTP method.
    pub method: String,
    /// Path.
    pub path: String,
    /// The client's key.
    pub key: String,
    /// SHA-256 of the body and `If-Match`.
    pub request_hash: [u8; 32],
}

/// An answer as it was given the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The ETag, where it had one.
    pub etag: Option<String>,
    /// JSON bytes.
    pub body: Vec<u8>,
}

/// Takes the key, or gives the answer of the first time. A parallel call with the same key waits here for the first to end.
///
/// # Errors
/// 409 `idempotency_key_reused` for another body; the database's.
pub async fn take(tx: &mut Tx, key: &Key) -> Result<Option<Answer>> {
    sqlx::query!(
        "DELETE FROM idempotency_keys WHERE actor_id = $1 AND method = $2 AND path = $3 AND key = $4
           AND created_at < now() - interval '24 hours'",
        key.actor.0,
        key.method,
        key.path,
        key.key
    )
    .execute(&mut **tx)
    .await?;
    let taken = sqlx::query!(
        "INSERT INTO idempotency_keys (actor_id, method, path, key, request_hash, status, body)
         VALUES ($1, $2, $3, $4, $5, 0, '') ON CONFLICT ON CONSTRAINT idempotency_keys_scope DO NOTHING",
        key.actor.0,
        key.method,
        key.path,
        key.key,
        &key.request_hash[..]
    )
    .execute(&mut **tx)
    .await?
    .rows_affected()
        == 1;
    if taken {
        return Ok(None);
    }
    let first = sqlx::query!(
        "SELECT request_hash, status, etag, body FROM idempotency_keys
         WHERE actor_id = $1 AND method = $2 AND path = $3 AND key = $4",
        key.actor.0,
        key.method,
        key.path,
        key.key
    )
    .fetch_one(&mut **tx)
    .await?;
    if first.request_hash != key.request_hash {
        return Err(Error::refused("idempotency_key_reused", "this Idempotency-Key came with another request before"));
    }
    let status = u16::try_from(first.status).map_err(|e| Error::Internal(e.into()))?;
    Ok(Some(Answer { status, etag: first.etag, body: first.body }))
}

/// Forgets keys that are too old to count; how many.
///
/// # Errors
/// The database's.
pub async fn sweep(store: &Store) -> Result<u64> {
    Ok(sqlx::query!("DELETE FROM idempotency_keys WHERE created_at < now() - interval '24 hours'")
        .execute(store.pool())
        .await?
        .rows_affected())
}

/// Keeps the answer for the next time.
///
/// # Errors
/// The database's.
pub async fn answer(tx: &mut Tx, key: &Key, answer: &Answer) -> Result<()> {
    sqlx::query!(
        "UPDATE idempotency_keys SET status = $5, etag = $6, body = $7
         WHERE actor_id = $1 AND method = $2 AND path = $3 AND key = $4",
        key.actor.0,
        key.method,
        key.path,
        key.key,
        i32::from(answer.status),
        answer.etag,
        answer.body
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}
