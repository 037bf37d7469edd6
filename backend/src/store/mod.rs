//! Postgres: one module per aggregate; queries are checked at compile time; no rule lives here.

pub mod audit;
pub mod broker_addresses;
pub mod brokers;
pub mod changes;
pub mod cohorts;
pub mod custody;
pub mod dead_letter_queues;
pub mod events;
pub mod evidence;
pub mod freezes;
pub mod health;
pub mod idempotency;
pub mod installation;
pub mod leases;
pub mod probes;
pub mod quarantine;
pub mod queues;
pub mod readings;
pub mod replays;
pub mod sessions;
mod tx;
pub mod users;

pub use tx::{Tx, TxFuture};

use crate::config::ConfigError;
use sqlx::{
    Connection as _, Executor as _, PgConnection, PgPool, Row as _,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use std::time::Duration;

/// The schema, as this build knows it.
pub static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../migrations");

/// The NOTIFY channel of all replicas.
const CHANNEL: &str = "lazaret";

/// The topic of notes about sessions that ended or accounts that changed: for streams' own ends, not for readers.
pub const SESSIONS_TOPIC: &str = "sessions";

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

    /// A pool that connects when it is first asked, and says within seconds when it can't.
    ///
    /// # Errors
    /// The address isn't one.
    pub fn connect(database_url: &str) -> Result<Self, ConfigError> {
        let options: PgConnectOptions = database_url.parse().map_err(|error| ConfigError {
            variable: "DATABASE_URL",
            problem: format!("it can't be read: {error}"),
            form: "postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE",
        })?;
        let pool = PgPoolOptions::new()
            .max_connections(20)
            .acquire_timeout(Duration::from_secs(3))
            .after_release(|connection, _| Box::pin(is_outside_any_transaction(connection)))
            .connect_lazy_with(options.application_name("lazaret"));
        Ok(Self { pool })
    }

    /// For single reads, which need no transaction.
    #[must_use]
    pub const fn pool(&self) -> &PgPool {
        &self.pool
    }
}

/// Proves that a connection that comes back is outside any transaction (sqlx #4385, #4393); else it is closed.
async fn is_outside_any_transaction(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    // by the simple protocol: one message, so both clocks are the same unless a transaction began earlier
    let row = connection.fetch_one(sqlx::raw_sql("SELECT (now() = statement_timestamp())::text")).await?;
    let outside = row.try_get::<String, _>(0)? == "true";
    if !outside {
        tracing::error!("a connection came back inside a transaction; it is closed");
        metrics::counter!("lazaret_connections_in_transaction_total").increment(1);
    }
    Ok(outside)
}

/// Brings the schema to this build's, as its owner, and lets the application role see which one it is.
///
/// # Errors
/// The database's, or a migration that was changed after it was applied.
pub async fn migrate(owner_url: &str) -> anyhow::Result<()> {
    let mut connection = PgConnection::connect(owner_url).await?;
    MIGRATIONS.run(&mut connection).await?;
    connection.execute("GRANT SELECT ON _sqlx_migrations TO lazaret_app").await?;
    connection.close().await?;
    Ok(())
}

/// Makes the transaction, before its first query, one look at one moment: its pages, counts and facets agree.
///
/// # Errors
/// The database's.
pub async fn one_moment(tx: &mut Tx) -> Result<(), sqlx::Error> {
    sqlx::query!("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY").execute(&mut **tx).await?;
    Ok(())
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
