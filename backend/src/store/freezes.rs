//! The freeze switches: one row for all, one per queue; publishes share-lock them.

use super::Tx;
use super::cohorts::lane::Lane;
use crate::error::{Error, Result};
use domain::{
    api::{Freeze, FreezeScope, Freezes, QueueFreeze, UserRef},
    ids::{ItemId, QueueId, UserId},
};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// The row for all.
pub const ALL: Uuid = Uuid::nil();

/// A switch that covers a replay.
#[derive(Debug, Clone)]
pub struct Covering {
    /// Its row: [`ALL`], or a queue's id.
    pub scope: Uuid,
    /// Who switched it on and why, if it is on.
    pub on: Option<SwitchedOn>,
}

/// A switch that is on.
#[derive(Debug, Clone)]
pub struct SwitchedOn {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// The switches that cover a replay from `queue` into `lane` (RULES 3): for all, of its queue, of its target where that
/// is watched. The one for all comes first.
///
/// # Errors
/// The database's.
pub async fn covering(db: &mut PgConnection, queue: QueueId, lane: Option<&Lane>) -> Result<Vec<Covering>> {
    let rows = sqlx::query!(
        r#"SELECT scope, frozen, reason, username AS "by?" FROM freezes LEFT JOIN users ON users.id = freezes.by_id
           WHERE scope = $1 OR scope = $2
             OR scope IN (SELECT id FROM queues WHERE broker_id = $3 AND vhost = $4 AND name = $5)
           ORDER BY scope"#,
        ALL,
        queue.0,
        lane.map(|lane| lane.broker.0),
        lane.map(|lane| lane.vhost.as_str()),
        lane.map(|lane| lane.queue.as_str()),
    )
    .fetch_all(db)
    .await?;
    let on = |frozen: bool, by: Option<String>, reason: Option<String>| {
        frozen.then(|| SwitchedOn { by: by.unwrap_or_default(), reason: reason.unwrap_or_default() })
    };
    Ok(rows.into_iter().map(|row| Covering { scope: row.scope, on: on(row.frozen, row.by, row.reason) }).collect())
}

/// Locks switches against change until the transaction ends.
///
/// # Errors
/// The database's.
pub async fn lock_for_share(tx: &mut Tx, switches: &[Covering]) -> Result<()> {
    let scopes: Vec<Uuid> = switches.iter().map(|switch| switch.scope).collect();
    sqlx::query!("SELECT scope FROM freezes WHERE scope = ANY($1) ORDER BY scope FOR SHARE", &scopes)
        .fetch_all(&mut **tx)
        .await?;
    Ok(())
}

/// Every switch that is on.
///
/// # Errors
/// The database's.
pub async fn list(pool: &PgPool) -> Result<Freezes> {
    let rows = sqlx::query!(
        r#"SELECT f.scope, q.name AS "queue?", f.reason AS "reason!", f.at AS "at!", u.id AS by_id, u.username
           FROM freezes f JOIN users u ON u.id = f.by_id LEFT JOIN queues q ON q.id = f.queue_id
           WHERE f.frozen ORDER BY f.at"#
    )
    .fetch_all(pool)
    .await?;
    let mut freezes = Freezes { all: None, queues: Vec::new() };
    for row in rows {
        let scope = if row.scope == ALL { FreezeScope::All } else { FreezeScope::Queue };
        let by = UserRef { id: UserId(row.by_id), username: row.username };
        let freeze = Freeze { scope, by, reason: row.reason, at: row.at.into() };
        match row.queue {
            None => freezes.all = Some(freeze),
            Some(queue) => freezes.queues.push(QueueFreeze { queue_id: QueueId(row.scope), queue, freeze }),
        }
    }
    Ok(freezes)
}

/// Locks a switch and says how it is: its reason, if it is on.
///
/// # Errors
/// `NotFound` for a queue that isn't watched.
pub async fn lock(tx: &mut Tx, scope: Uuid) -> Result<Option<String>> {
    let row = sqlx::query!("SELECT frozen, reason FROM freezes WHERE scope = $1 FOR UPDATE", scope)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Error::NotFound { what: "queue" })?;
    Ok(row.reason.filter(|_| row.frozen))
}

/// Switches on; publishes that come later see it.
///
/// # Errors
/// The database's.
pub async fn freeze(tx: &mut Tx, scope: Uuid, by: UserId, reason: &str) -> Result<()> {
    sqlx::query!(
        "UPDATE freezes SET frozen = true, reason = $3, by_id = $2, at = now() WHERE scope = $1",
        scope,
        by.0,
        reason
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Switches off.
///
/// # Errors
/// The database's.
pub async fn unfreeze(tx: &mut Tx, scope: Uuid) -> Result<()> {
    sqlx::query!("UPDATE freezes SET frozen = false, reason = NULL, by_id = NULL, at = NULL WHERE scope = $1", scope)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Items that were handed to the broker and are unanswered.
///
/// # Errors
/// The database's.
pub async fn publishing(tx: &mut Tx, scope: Uuid) -> Result<Vec<ItemId>> {
    let items = sqlx::query_scalar!(
        "SELECT i.id FROM cohort_items i JOIN cohorts c ON c.id = i.cohort_id
         WHERE i.state = 'publishing' AND ($1::uuid = '00000000-0000-0000-0000-000000000000' OR c.queue_id = $1)
         ORDER BY i.published_at LIMIT 1000",
        scope
    )
    .fetch_all(&mut **tx)
    .await?;
    Ok(items.into_iter().map(ItemId).collect())
}

/// A dead-letter queue as its broker knows it.
#[derive(Debug)]
pub struct Contained {
    /// Its broker.
    pub broker_id: domain::ids::BrokerId,
    /// Virtual host.
    pub vhost: String,
    /// Name.
    pub name: String,
}

/// The dead-letter queues that a switch covers.
///
/// # Errors
/// The database's.
pub async fn dead_letter_queues(pool: &PgPool, scope: Uuid) -> Result<Vec<Contained>> {
    let rows = sqlx::query!(
        "SELECT DISTINCT d.broker_id, d.vhost, d.name FROM dead_letter_queues d JOIN queues q ON q.dead_letter_queue_id = d.id
         WHERE $1::uuid = '00000000-0000-0000-0000-000000000000' OR q.id = $1 ORDER BY d.name LIMIT 50",
        scope
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Contained { broker_id: domain::ids::BrokerId(row.broker_id), vhost: row.vhost, name: row.name })
        .collect())
}
