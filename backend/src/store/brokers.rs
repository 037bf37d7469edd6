//! RabbitMQ clusters.

use super::Tx;
use crate::{
    broker::Address,
    error::{Error, Result, broken_constraint},
};
use domain::{api::Broker, ids::BrokerId, vocabulary::CohortState};
use sqlx::{PgExecutor, PgPool};

struct Row {
    id: uuid::Uuid,
    name: String,
    amqp_url: String,
    management_url: Option<String>,
    credentials: String,
    created_at: time::OffsetDateTime,
    version: i64,
}

impl From<Row> for Broker {
    fn from(row: Row) -> Self {
        Self {
            id: BrokerId(row.id),
            name: row.name,
            amqp_url: row.amqp_url,
            management_url: row.management_url,
            credentials: row.credentials,
            product_version: None,
            created_at: row.created_at.into(),
            version: row.version,
        }
    }
}

/// Where a registered broker is.
#[must_use]
pub fn address(broker: &Broker) -> Address {
    Address {
        amqp_url: broker.amqp_url.clone(),
        management_url: broker.management_url.clone(),
        credentials: broker.credentials.clone(),
    }
}

/// A broker; its product version isn't known here.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn get(db: impl PgExecutor<'_>, id: BrokerId) -> Result<Broker> {
    let row = sqlx::query_as!(
        Row,
        "SELECT id, name, amqp_url, management_url, credentials, created_at, version FROM brokers WHERE id = $1",
        id.0
    )
    .fetch_optional(db)
    .await?;
    row.map(Into::into).ok_or(Error::NotFound { what: "broker" })
}

/// A broker, locked for a change of it.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn lock(tx: &mut Tx, id: BrokerId) -> Result<Broker> {
    let row = sqlx::query_as!(
        Row,
        "SELECT id, name, amqp_url, management_url, credentials, created_at, version FROM brokers WHERE id = $1 FOR UPDATE",
        id.0
    )
    .fetch_optional(&mut **tx)
    .await?;
    row.map(Into::into).ok_or(Error::NotFound { what: "broker" })
}

/// Whether a cohort over this broker's messages was submitted and hasn't ended. A submit holds the broker's row
/// ([`super::cohorts::facts::lock_for_share`]), so that none slips past [`lock`].
///
/// # Errors
/// The database's.
pub async fn is_in_submitted_plan(tx: &mut Tx, id: BrokerId) -> Result<bool> {
    let open: Vec<&str> = CohortState::ALL.iter().filter(|state| state.is_open()).map(|state| state.as_str()).collect();
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM cohorts JOIN queues ON queues.id = cohorts.queue_id
             WHERE queues.broker_id = $1 AND cohorts.state = ANY ($2)) AS "used!""#,
        id.0,
        &open as &[&str]
    )
    .fetch_one(&mut **tx)
    .await?)
}

/// Brokers by name, after `after`; and how many there are.
///
/// # Errors
/// The database's.
pub async fn list(pool: &PgPool, after: Option<String>, rows: i64) -> Result<(Vec<Broker>, i64)> {
    let brokers = sqlx::query_as!(
        Row,
        "SELECT id, name, amqp_url, management_url, credentials, created_at, version FROM brokers
         WHERE $1::text IS NULL OR name > $1 ORDER BY name LIMIT $2",
        after,
        rows
    )
    .fetch_all(pool)
    .await?;
    let count = sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM brokers"#).fetch_one(pool).await?;
    Ok((brokers.into_iter().map(Into::into).collect(), count))
}

/// Registers a broker.
///
/// # Errors
/// 409 `broker_name_taken`; the database's.
pub async fn insert(tx: &mut Tx, id: BrokerId, name: &str, address: &Address) -> Result<()> {
    sqlx::query!(
        "INSERT INTO brokers (id, name, amqp_url, management_url, credentials) VALUES ($1, $2, $3, $4, $5)",
        id.0,
        name,
        address.amqp_url,
        address.management_url,
        address.credentials
    )
    .execute(&mut **tx)
    .await
    .map_err(|error| match broken_constraint(&error) {
        Some("brokers_name_unique") => Error::refused("broker_name_taken", "a broker of this name is registered"),
        _ => error.into(),
    })?;
    Ok(())
}

/// Writes addresses and credentials; the version rises.
///
/// # Errors
/// The database's.
pub async fn change(tx: &mut Tx, id: BrokerId, address: &Address) -> Result<Broker> {
    let row = sqlx::query_as!(
        Row,
        "UPDATE brokers SET amqp_url = $2, management_url = $3, credentials = $4, version = version + 1 WHERE id = $1
         RETURNING id, name, amqp_url, management_url, credentials, created_at, version",
        id.0,
        address.amqp_url,
        address.management_url,
        address.credentials
    )
    .fetch_one(&mut **tx)
    .await?;
    Ok(row.into())
}
