//! The installation's own row.

use super::Store;
use crate::error::{Error, Result};

/// The installation's HMAC key; the first start, or `lazaret migrate`, makes it.
///
/// # Errors
/// The database's.
pub async fn key(store: &Store) -> Result<[u8; 32]> {
    let (id, fresh) = (crate::clock::new_id(), rand::random::<[u8; 32]>());
    sqlx::query!(
        "INSERT INTO installation (id, hmac_key) VALUES ($1, $2) ON CONFLICT (only_one) DO NOTHING",
        id,
        &fresh[..]
    )
    .execute(store.pool())
    .await?;
    let key = sqlx::query_scalar!("SELECT hmac_key FROM installation").fetch_one(store.pool()).await?;
    key.try_into().map_err(|_| Error::Internal(anyhow::anyhow!("the installation's key isn't 32 bytes")))
}
