//! Probe definitions.

use super::Tx;
use crate::error::{Error, Result};
use domain::api::{Probe, ProbeDefinition};
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
