//! Postgres: one module per aggregate; queries are checked at compile time; no rule lives here.

pub mod audit;
pub mod cohorts;
pub mod idempotency;
mod tx;

pub use tx::{Tx, TxFuture};

use sqlx::PgPool;

/// The pool of the application role.
#[derive(Clone, Debug)]
pub struct Store {
    pool: PgPool,
}

impl Store {
    /// Over a pool that [`connect`](Self::connect) didn't make: tests.
    #[must_use]
    pub const fn new(pool: PgPool) -> Self {
        Self { pool }
    }

    /// For single reads, which need no transaction.
    #[must_use]
    pub const fn pool(&self) -> &PgPool {
        &self.pool
    }
}

/// Tells every replica that something changed, when the transaction commits.
///
/// # Errors
/// The database's.
pub async fn notify(tx: &mut Tx, topic: &str, id: Option<uuid::Uuid>) -> Result<(), sqlx::Error> {
    let note = serde_json::json!({ "topic": topic, "id": id }).to_string();
    sqlx::query!("SELECT pg_notify('lazaret', $1)", note).execute(&mut **tx).await?;
    Ok(())
}
