//! Replays as they run: who owns one, what was handed over, what was read. A cohort's own row and its items' moves are in
//! [`super::cohorts`].

pub mod advance;
pub mod canaries;
pub mod epochs;
pub mod evidence;
pub mod probation;
pub mod publishing;
pub mod readings;
pub mod resolutions;

use super::{cohorts::lane::Lane, freezes};
use crate::{broker::Address, error::Result};
use anyhow::Context as _;
use domain::{
    api::Draft,
    ids::{BrokerId, CohortId, QueueId},
    vocabulary::CohortState,
};
use sqlx::PgPool;
use uuid::Uuid;

/// What a replay needs to know of its cohort, its queue and its broker, read in one statement.
#[derive(Debug, Clone)]
pub struct Running {
    /// Identity.
    pub id: CohortId,
    /// What a person calls it.
    pub title: String,
    /// The plan's own words.
    pub draft: Draft,
    /// Where it is.
    pub state: CohortState,
    /// The stratum whose canary is in hand.
    pub stratum: i32,
    /// Allocated at approval.
    pub generation: i64,
    /// Exactly one item goes out before the rest.
    pub probation: bool,
    /// `run_by` is over, by the database's clock.
    pub overdue: bool,
    /// A freeze covers it, and why.
    pub frozen: Option<String>,
    /// The freeze rows that cover it: all, its queue's, its target's.
    pub freeze_scopes: Vec<Uuid>,
    /// The source queue.
    pub queue_id: QueueId,
    /// Its virtual host.
    pub vhost: String,
    /// The queue that the lane is for.
    pub target_queue: String,
    /// Where messages are published.
    pub exchange: String,
    /// With this key.
    pub routing_key: String,
    /// The broker.
    pub broker_id: BrokerId,
    /// Its addresses.
    pub address: Address,
}

/// Every cohort that was started and isn't terminal.
///
/// # Errors
/// The database's.
pub async fn started(pool: &PgPool) -> Result<Vec<CohortId>> {
    Ok(sqlx::query_scalar!("SELECT id FROM cohorts WHERE state = ANY($1) ORDER BY id", &started_states())
        .fetch_all(pool)
        .await?
        .into_iter()
        .map(CohortId)
        .collect())
}

/// The states between a start and an end.
pub const STARTED: [CohortState; 7] = [
    CohortState::CanaryRunning,
    CohortState::CanaryVerifying,
    CohortState::CanaryPassed,
    CohortState::Expanding,
    CohortState::Paused,
    CohortState::Aborting,
    CohortState::Settling,
];

fn started_states() -> Vec<String> {
    STARTED.iter().map(ToString::to_string).collect()
}

/// Reads a started cohort; `None` when it isn't (any more).
///
/// # Errors
/// The database's.
pub async fn load(pool: &PgPool, id: CohortId) -> Result<Option<Running>> {
    let Some(row) = sqlx::query!(
        r#"SELECT c.title, c.draft, c.state, c.stratum, c.generation, c.probation, c.lane, c.target_exchange,
             c.target_routing_key, c.queue_id, q.vhost, q.broker_id, b.amqp_url, b.management_url, b.credentials,
             coalesce(c.run_by <= clock_timestamp(), false) AS "overdue!"
           FROM cohorts c JOIN queues q ON q.id = c.queue_id JOIN brokers b ON b.id = q.broker_id
           WHERE c.id = $1 AND c.state = ANY($2)"#,
        id.0,
        &started_states(),
    )
    .fetch_optional(pool)
    .await?
    else {
        return Ok(None);
    };
    let lane = row.lane.context("a started cohort without a lane")?;
    let lane: Lane = lane.parse()?;
    let switches = freezes::covering(&mut *pool.acquire().await?, QueueId(row.queue_id), Some(&lane)).await?;
    Ok(Some(Running {
        id,
        title: row.title,
        draft: serde_json::from_value(row.draft).context("a stored draft can't be read")?,
        state: row.state.parse().context("a stored state")?,
        stratum: row.stratum,
        generation: row.generation.context("a started cohort without a generation")?,
        probation: row.probation,
        overdue: row.overdue,
        freeze_scopes: switches.iter().map(|switch| switch.scope).collect(),
        frozen: switches.into_iter().find_map(|switch| switch.on).map(|on| on.reason),
        queue_id: QueueId(row.queue_id),
        vhost: row.vhost,
        target_queue: lane.queue,
        exchange: row.target_exchange.context("a started cohort without a target")?,
        routing_key: row.target_routing_key.context("a started cohort without a target")?,
        broker_id: BrokerId(row.broker_id),
        address: Address { amqp_url: row.amqp_url, management_url: row.management_url, credentials: row.credentials },
    }))
}
