//! Probe definitions.

use super::Tx;
use crate::error::{Error, Result};
use domain::{
    api::{Probe, ProbeDefinition},
    vocabulary::CohortState,
};
use sqlx::PgExecutor;

struct Row {
    name: String,
    definition: serde_json::Value,
    changed_at: time::OffsetDateTime,
    version: i64,
}

impl Row {
    fn read(self) -> Result<Probe> {
        let definition = serde_json::from_value(self.definition).map_err(|e| Error::Internal(e.into()))?;
        Ok(Probe { name: self.name, definition, changed_at: self.changed_at.into(), version: self.version })
    }
}

/// A probe.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn get(db: impl PgExecutor<'_>, name: &str) -> Result<Probe> {
    let row = sqlx::query_as!(Row, "SELECT name, definition, changed_at, version FROM probes WHERE name = $1", name)
        .fetch_optional(db)
        .await?;
    row.ok_or(Error::NotFound { what: "probe" })?.read()
}

/// Locks the name of a probe, whether there is one or not, and gives what there is.
///
/// # Errors
/// The database's.
pub async fn lock(tx: &mut Tx, name: &str) -> Result<Option<Probe>> {
    sqlx::query!("SELECT pg_advisory_xact_lock(hashtext('lazaret probe ' || $1))", name).execute(&mut **tx).await?;
    let row = sqlx::query_as!(
        Row,
        "SELECT name, definition, changed_at, version FROM probes WHERE name = $1 FOR UPDATE",
        name
    )
    .fetch_optional(&mut **tx)
    .await?;
    row.map(Row::read).transpose()
}

/// Whether it proves something already: it is the default of a queue whose evidence the vault holds, or an unfinished
/// cohort names it.
///
/// # Errors
/// The database's.
pub async fn is_relied_on(tx: &mut Tx, name: &str) -> Result<bool> {
    let ended: Vec<&str> =
        CohortState::ALL.iter().filter(|state| state.is_terminal()).map(|state| state.as_str()).collect();
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM queues JOIN quarantine ON quarantine.queue_id = queues.id
               WHERE queues.default_probe = $1)
             OR EXISTS (SELECT FROM cohorts
               WHERE draft -> 'canary' ->> 'probe' = $1 AND state <> ALL ($2)) AS "relied!""#,
        name,
        &ended as &[&str]
    )
    .fetch_one(&mut **tx)
    .await?)
}

/// Writes a definition; the version rises.
///
/// # Errors
/// The database's.
pub async fn put(tx: &mut Tx, name: &str, definition: &ProbeDefinition) -> Result<Probe> {
    let definition = serde_json::to_value(definition).map_err(|e| Error::Internal(e.into()))?;
    sqlx::query_as!(
        Row,
        "INSERT INTO probes (name, definition) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET definition = excluded.definition, changed_at = now(), version = probes.version + 1
         RETURNING name, definition, changed_at, version",
        name,
        definition
    )
    .fetch_one(&mut **tx)
    .await?
    .read()
}
