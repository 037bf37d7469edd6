//! Where a broker is, for those who connect to it.

use crate::{
    broker::Address,
    error::{Error, Result},
};
use domain::ids::BrokerId;

/// The addresses of a broker, and by what reference its credentials are found.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn of(db: impl sqlx::PgExecutor<'_>, broker: BrokerId) -> Result<Address> {
    sqlx::query_as!(Address, "SELECT amqp_url, management_url, credentials FROM brokers WHERE id = $1", broker.0)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound { what: "broker" })
}
