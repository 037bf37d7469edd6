//! The only way to a transaction.

use super::Store;
use crate::error::{Error, Result};
use futures::future::BoxFuture;

/// An open transaction.
pub type Tx = sqlx::Transaction<'static, sqlx::Postgres>;

/// What a transaction's work returns.
pub type TxFuture<'t, T> = BoxFuture<'t, Result<T>>;

impl Store {
    /// Runs `work` in one transaction, on a task of its own: committed when it is `Ok`, rolled back when it isn't.
    ///
    /// `Pool::begin` isn't cancel-safe (sqlx #4385, #4393): a handler that its client leaves must not drop it half-way.
    /// So the work goes on when the caller is dropped; only the caller's wait ends.
    ///
    /// # Errors
    /// The work's, or the database's.
    pub async fn tx<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> TxFuture<'t, T> + Send + 'static,
    {
        let pool = self.pool().clone();
        let span = tracing::Span::current();
        let task = tokio::spawn(tracing::Instrument::instrument(
            async move {
                #[expect(clippy::disallowed_methods, reason = "this is the one place")]
                let mut tx = pool.begin().await?;
                let outcome = work(&mut tx).await;
                match outcome {
                    Ok(value) => tx.commit().await.map(|()| value).map_err(Error::from),
                    Err(error) => {
                        if let Err(rollback) = tx.rollback().await {
                            tracing::warn!(error = %rollback, "rollback failed; the connection is dropped");
                        }
                        Err(error)
                    }
                }
            },
            span,
        ));
        task.await.map_err(|panic| Error::Internal(anyhow::anyhow!("a transaction's task failed: {panic}")))?
    }
}
