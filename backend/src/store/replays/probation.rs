//! After a resume exactly one item goes before the rest.

use crate::error::Result;
use domain::{ids::CohortId, vocabulary::ItemState};
use sqlx::PgPool;

/// The first item that was handed over since the cohort was resumed.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// Where it is.
    pub state: ItemState,
    /// Its worker is done with it.
    pub finished: bool,
    /// Since it was handed over, seconds.
    pub waited_s: i64,
}

/// The first item that was handed over since the cohort was resumed.
///
/// # Errors
/// The database's.
pub async fn item(pool: &PgPool, cohort: CohortId) -> Result<Option<Item>> {
    sqlx::query!(
        r#"SELECT state, finished_at IS NOT NULL AS "finished!",
             extract(epoch FROM clock_timestamp() - published_at)::bigint AS "waited_s!"
           FROM cohort_items WHERE cohort_id = $1
             AND published_at > (SELECT max(at) FROM cohort_stages WHERE cohort_id = $1 AND state = 'expanding')
           ORDER BY published_at LIMIT 1"#,
        cohort.0
    )
    .fetch_optional(pool)
    .await?
    .map(|row| {
        let state = row.state.parse().map_err(anyhow::Error::from)?;
        Ok(Item { state, finished: row.finished, waited_s: row.waited_s })
    })
    .transpose()
}

/// It did well: the rest may follow.
///
/// # Errors
/// The database's.
pub async fn over(pool: &PgPool, cohort: CohortId) -> Result<()> {
    sqlx::query!("UPDATE cohorts SET probation = false WHERE id = $1", cohort.0).execute(pool).await?;
    Ok(())
}
