//! Leases with epochs: one process at a time does a duty, and every write of its says under which epoch (DESIGN 9).
//!
//! Only the database's clock counts. An expired lease isn't lost until another takes it: what decides is the epoch,
//! which rises with each grant and is checked, share-locked, in the transaction of each write ([`hold`]).

use super::{Store, Tx};
use crate::error::{Error, Result};
use uuid::Uuid;

/// How long a grant or a renewal lasts, seconds: how soon another process takes over a dead owner's duty.
pub const LEASE_S: i32 = 5;
/// How often an owner renews.
pub const RENEW_EVERY: std::time::Duration = std::time::Duration::from_millis(1_500);

/// What a lease is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Custody of one dead-letter queue.
    Custody,
    /// The replay of one cohort.
    Replay,
}

impl Duty {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Custody => "custody",
            Self::Replay => "replay",
        }
    }
}

/// A lease that was granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What for.
    pub duty: Duty,
    /// The dead-letter queue or cohort.
    pub subject: Uuid,
    /// Rises with each grant.
    pub epoch: i64,
}

/// Takes the lease if nobody has it or its time ran out; a new epoch each time, also for the same process. `None`:
/// another has it.
///
/// # Errors
/// The database's.
pub async fn grant(tx: &mut Tx, duty: Duty, subject: Uuid, owner: &str) -> Result<Option<Lease>> {
    let epoch = sqlx::query_scalar!(
        "INSERT INTO leases AS lease (duty, subject, epoch, owner, expires_at)
         VALUES ($1, $2, 1, $3, clock_timestamp() + make_interval(secs => $4))
         ON CONFLICT (duty, subject) DO UPDATE SET epoch = lease.epoch + 1, owner = excluded.owner,
           expires_at = clock_timestamp() + make_interval(secs => $4)
         WHERE lease.owner IS NULL OR lease.expires_at <= clock_timestamp()
         RETURNING epoch",
        duty.as_str(),
        subject,
        owner,
        f64::from(LEASE_S),
    )
    .fetch_optional(&mut **tx)
    .await?;
    Ok(epoch.map(|epoch| Lease { duty, subject, epoch }))
}

/// Extends the lease; `false`: another has it, and what this epoch still does will be refused.
///
/// # Errors
/// The database's.
pub async fn renew(store: &Store, lease: &Lease) -> Result<bool> {
    let renewed = sqlx::query!(
        "UPDATE leases SET expires_at = clock_timestamp() + make_interval(secs => $4)
         WHERE duty = $1 AND subject = $2 AND epoch = $3 AND owner IS NOT NULL",
        lease.duty.as_str(),
        lease.subject,
        lease.epoch,
        f64::from(LEASE_S),
    )
    .execute(store.pool())
    .await?;
    Ok(renewed.rows_affected() == 1)
}

/// Proves, until the transaction ends, that the epoch is still the newest: a grant to another waits for it. No other
/// transaction of the epoch runs beside it: what an earlier one writes, though nobody waits for it any more, is
/// committed or gone before this one reads.
///
/// # Errors
/// 409 `lease_lost`; the database's.
pub async fn hold(tx: &mut Tx, lease: &Lease) -> Result<()> {
    let held = sqlx::query_scalar!(
        "SELECT epoch FROM leases WHERE duty = $1 AND subject = $2 AND epoch = $3 AND owner IS NOT NULL FOR NO KEY UPDATE",
        lease.duty.as_str(),
        lease.subject,
        lease.epoch,
    )
    .fetch_optional(&mut **tx)
    .await?;
    match held {
        Some(_) => Ok(()),
        None => Err(Error::refused("lease_lost", "another process has taken this duty over")),
    }
}

/// Gives the lease back, so that another need not wait for it to run out. Nothing may be written under it afterwards.
///
/// # Errors
/// The database's.
pub async fn release(store: &Store, lease: &Lease) -> Result<()> {
    sqlx::query!(
        "UPDATE leases SET owner = NULL, expires_at = NULL WHERE duty = $1 AND subject = $2 AND epoch = $3",
        lease.duty.as_str(),
        lease.subject,
        lease.epoch,
    )
    .execute(store.pool())
    .await?;
    Ok(())
}
