//! What the database says of its own and of custody's state.

use super::Store;
use crate::error::{Error, Result, is_an_outage};
use sqlx::Row as _;

/// Why the schema isn't the one of this build, if it isn't.
///
/// # Errors
/// The database can't be reached.
pub async fn pending_migrations(store: &Store) -> Result<Option<String>> {
    // not compile-checked: the table is the migrator's own, and absent where `lazaret migrate` never ran
    let applied = sqlx::query("SELECT version FROM _sqlx_migrations WHERE success").fetch_all(store.pool()).await;
    let applied: Vec<i64> = match applied {
        Ok(rows) => rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?,
        Err(sqlx::Error::Database(error)) if !error.code().is_some_and(|code| is_an_outage(&code)) => {
            return Ok(Some(format!("the migrations' own table can't be read ({error}); run `lazaret migrate`")));
        }
        Err(error) => return Err(Error::from(error)),
    };
    let missing: Vec<String> = super::MIGRATIONS
        .iter()
        .filter(|migration| !applied.contains(&migration.version))
        .map(|migration| migration.version.to_string())
        .collect();
    Ok((!missing.is_empty()).then(|| format!("not applied: {}; run `lazaret migrate`", missing.join(", "))))
}

/// The dead-letter queues whose custody doesn't run though it should, with their reasons.
///
/// # Errors
/// The database's.
pub async fn stopped_custody(store: &Store) -> Result<Option<String>> {
    let stopped = sqlx::query!(
        "SELECT name, state_reason FROM dead_letter_queues WHERE custody <> 'off' AND state = 'stopped' ORDER BY name LIMIT 20"
    )
    .fetch_all(store.pool())
    .await?;
    let words: Vec<String> = stopped
        .into_iter()
        .map(|row| format!("custody of {} is stopped: {}", row.name, row.state_reason.unwrap_or_default()))
        .collect();
    Ok((!words.is_empty()).then(|| words.join("; ")))
}
