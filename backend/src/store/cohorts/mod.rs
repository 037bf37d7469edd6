//! Cohorts: the aggregate's own row, its states and stages. Lists, items, claims and reviews have files of their own.

pub mod canaries;
pub mod claims;
pub mod facts;
pub mod generation;
pub mod items;
pub mod lane;
pub mod list;
pub mod read;
pub mod reviews;
pub mod selection;
pub mod write;

use super::Tx;
use crate::{
    clock::new_id,
    error::{Error, Result},
};
use anyhow::Context as _;
use domain::{
    api::Draft,
    ids::{CohortId, QueueId, UserId},
    vocabulary::CohortState,
};
use sqlx::Acquire as _;
use time::OffsetDateTime;

/// A cohort's row.
#[derive(Debug, Clone)]
pub struct Cohort {
    /// Identity.
    pub id: CohortId,
    /// Its source queue.
    pub queue_id: QueueId,
    /// What people wrote, as last saved.
    pub draft: Draft,
    /// Where it is.
    pub state: CohortState,
    /// Why it is there, where a state has a reason.
    pub state_reason: Option<String>,
    /// Where `paused` resumes to.
    pub resumes_to: Option<CohortState>,
    /// Rises with each edit of the plan.
    pub revision: i64,
    /// Rises with every write.
    pub version: i64,
    /// How many items.
    pub size: i64,
    /// The author.
    pub created_by: UserId,
    /// Broker, vhost and name of the queue that the lane is for; set at submit.
    pub lane: Option<String>,
    /// Where its messages go (exchange, key); set at submit.
    pub target: Option<(String, String)>,
    /// Until when it may be started.
    pub expires_at: Option<OffsetDateTime>,
    /// When it aborts by itself.
    pub run_by: Option<OffsetDateTime>,
    /// The queue's policy version at submit.
    pub policy_version: Option<i64>,
    /// Allocated at approval.
    pub generation: Option<i64>,
    /// When a start consumed the approval.
    pub approval_consumed_at: Option<OffsetDateTime>,
    /// The stratum whose canary is or was last in hand.
    pub stratum: i64,
    /// Whether the inconclusive canary was extended already.
    pub verify_extended: bool,
    /// Whether exactly one item goes out before the rest, after a resume.
    pub probation: bool,
    /// Whether something was seen on two messages.
    pub published_twice: bool,
}

struct Row {
    id: uuid::Uuid,
    queue_id: uuid::Uuid,
    draft: serde_json::Value,
    state: String,
    state_reason: Option<String>,
    resumes_to: Option<String>,
    revision: i64,
    version: i64,
    size: i32,
    created_by: uuid::Uuid,
    lane: Option<String>,
    target_exchange: Option<String>,
    target_routing_key: Option<String>,
    expires_at: Option<OffsetDateTime>,
    run_by: Option<OffsetDateTime>,
    policy_version: Option<i64>,
    generation: Option<i64>,
    approval_consumed_at: Option<OffsetDateTime>,
    stratum: i32,
    verify_extended: bool,
    probation: bool,
    published_twice: bool,
}

impl TryFrom<Row> for Cohort {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: CohortId(row.id),
            queue_id: QueueId(row.queue_id),
            draft: serde_json::from_value(row.draft).context("a stored draft can't be read")?,
            state: row.state.parse().context("a stored state")?,
            state_reason: row.state_reason,
            resumes_to: row.resumes_to.map(|state| state.parse()).transpose().context("a stored state")?,
            revision: row.revision,
            version: row.version,
            size: i64::from(row.size),
            created_by: UserId(row.created_by),
            lane: row.lane,
            target: row.target_exchange.zip(row.target_routing_key),
            expires_at: row.expires_at,
            run_by: row.run_by,
            policy_version: row.policy_version,
            generation: row.generation,
            approval_consumed_at: row.approval_consumed_at,
            stratum: i64::from(row.stratum),
            verify_extended: row.verify_extended,
            probation: row.probation,
            published_twice: row.published_twice,
        })
    }
}

/// Reads a cohort and locks its row until the transaction ends.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn load_for_update(tx: &mut Tx, id: CohortId) -> Result<Cohort> {
    sqlx::query_as!(
        Row,
        "SELECT id, queue_id, draft, state, state_reason, resumes_to, revision, version, size, created_by, lane,
           target_exchange, target_routing_key, expires_at, run_by, policy_version, generation, approval_consumed_at,
           stratum, verify_extended, probation, published_twice
         FROM cohorts WHERE id = $1 FOR UPDATE",
        id.0
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(Error::NotFound { what: "cohort" })?
    .try_into()
}

/// Reads a cohort.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn load(db: impl sqlx::PgExecutor<'_>, id: CohortId) -> Result<Cohort> {
    sqlx::query_as!(
        Row,
        "SELECT id, queue_id, draft, state, state_reason, resumes_to, revision, version, size, created_by, lane,
           target_exchange, target_routing_key, expires_at, run_by, policy_version, generation, approval_consumed_at,
           stratum, verify_extended, probation, published_twice
         FROM cohorts WHERE id = $1",
        id.0
    )
    .fetch_optional(db)
    .await?
    .ok_or(Error::NotFound { what: "cohort" })?
    .try_into()
}

/// A state that a cohort enters.
#[derive(Debug, Clone, Copy)]
pub struct Entering<'a> {
    /// Which.
    pub state: CohortState,
    /// Where it resumes to; for `paused` only.
    pub resumes_to: Option<CohortState>,
    /// Why.
    pub reason: Option<&'a str>,
    /// By whom; `None` is the system.
    pub by: Option<UserId>,
}

/// Writes the state, a new version and the stage; a terminal state and a draft hold no claims. Gives the new version.
///
/// The caller holds the cohort's row ([`load_for_update`]) and has asked `domain` whether the way is open.
///
/// # Errors
/// 409 `lane_taken` when another cohort holds the target's lane; the database's.
pub async fn set_state(tx: &mut Tx, cohort: CohortId, entering: Entering<'_>) -> Result<i64> {
    let mut attempt = tx.begin().await?;
    let written = sqlx::query_scalar!(
        "UPDATE cohorts SET state = $2, resumes_to = $3, state_reason = $4, version = version + 1 WHERE id = $1
         RETURNING version",
        cohort.0,
        entering.state.as_str(),
        entering.resumes_to.map(CohortState::as_str),
        entering.reason,
    )
    .fetch_one(&mut *attempt)
    .await;
    let version = match written {
        Ok(version) => {
            attempt.commit().await?;
            version
        }
        Err(error) if crate::error::broken_constraint(&error) == Some("cohorts_one_per_lane") => {
            attempt.rollback().await?;
            return Err(lane_taken(tx, cohort).await?);
        }
        Err(error) => return Err(error.into()),
    };
    add_stage(tx, cohort, entering.state, entering.by, entering.reason).await?;
    if entering.state.is_terminal() || entering.state == CohortState::Draft {
        release_claims(tx, cohort).await?;
    } else if entering.state == CohortState::InReview {
        items::project_cohort(tx, cohort).await?;
    }
    super::notify(tx, "cohorts", Some(cohort.0)).await?;
    Ok(version)
}

/// The refusal that says which cohort holds the lane that this one wants.
async fn lane_taken(tx: &mut Tx, cohort: CohortId) -> Result<Error> {
    let lane = sqlx::query_scalar!("SELECT lane FROM cohorts WHERE id = $1", cohort.0).fetch_one(&mut **tx).await?;
    let holder = lane_holder(tx, cohort, lane.as_deref().unwrap_or_default()).await?;
    Ok(match holder {
        Some((id, title, state)) => held_by(id, &title, state),
        None => Error::refused("lane_taken", "Another cohort held this queue's lane a moment ago; try again."),
    })
}

/// The refusal for a lane that another cohort holds.
#[must_use]
pub fn held_by(id: CohortId, title: &str, state: CohortState) -> Error {
    Error::Refused {
        code: "lane_taken",
        detail: format!(
            "\u{201c}{title}\u{201d} ({state}) replays into this queue now; one cohort at a time, and this one waits for it."
        ),
        facts: Some(serde_json::json!({ "cohort": { "id": id, "title": title }, "state": state })),
    }
}

/// Writes that a stage was entered, for the page.
///
/// # Errors
/// The database's.
pub async fn add_stage(
    tx: &mut Tx,
    cohort: CohortId,
    state: CohortState,
    by: Option<UserId>,
    reason: Option<&str>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO cohort_stages (id, cohort_id, state, by_id, reason) VALUES ($1, $2, $3, $4, $5)",
        new_id(),
        cohort.0,
        state.as_str(),
        by.map(|user| user.0),
        reason
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The unfinished cohort, other than this one, that holds a lane now.
///
/// # Errors
/// The database's.
pub async fn lane_holder(tx: &mut Tx, cohort: CohortId, lane: &str) -> Result<Option<(CohortId, String, CohortState)>> {
    let row = sqlx::query!(
        "SELECT id, title, state FROM cohorts WHERE lane = $1 AND id <> $2 AND state = ANY($3)",
        lane,
        cohort.0,
        &lane_states(),
    )
    .fetch_optional(&mut **tx)
    .await?;
    row.map(|row| Ok((CohortId(row.id), row.title, row.state.parse().context("a stored state")?))).transpose()
}

fn lane_states() -> Vec<String> {
    CohortState::ALL.iter().filter(|state| state.holds_lane()).map(ToString::to_string).collect()
}

/// Marks a cohort for good: something that it published may be there twice.
///
/// # Errors
/// The database's.
pub async fn flag_published_twice(tx: &mut Tx, cohort: CohortId) -> Result<()> {
    sqlx::query!(
        "UPDATE cohorts SET published_twice = true, version = version + 1 WHERE id = $1 AND NOT published_twice",
        cohort.0
    )
    .execute(&mut **tx)
    .await?;
    super::notify(tx, "cohorts", Some(cohort.0)).await?;
    Ok(())
}

/// Releases every claim of a cohort; its dead letters' dispositions follow.
async fn release_claims(tx: &mut Tx, cohort: CohortId) -> Result<()> {
    sqlx::query!("DELETE FROM message_claims WHERE cohort_id = $1", cohort.0).execute(&mut **tx).await?;
    sqlx::query!("DELETE FROM job_claims WHERE cohort_id = $1", cohort.0).execute(&mut **tx).await?;
    items::project_cohort(tx, cohort).await
}

/// The database's clock, now: what deadlines are judged by.
///
/// # Errors
/// The database's.
pub async fn database_now(tx: &mut Tx) -> Result<OffsetDateTime> {
    Ok(sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#).fetch_one(&mut **tx).await?)
}

/// Whether a cohort that wasn't started has passed its `expires_at`, by the database's clock.
///
/// # Errors
/// The database's.
pub async fn is_overdue(db: impl sqlx::PgExecutor<'_>, id: CohortId) -> Result<bool> {
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM cohorts WHERE id = $1 AND state IN ('in_review', 'approved')
             AND expires_at <= clock_timestamp()) AS "overdue!""#,
        id.0
    )
    .fetch_one(db)
    .await?)
}

/// Cohorts that weren't started in time, by the database's clock; at most 100.
///
/// # Errors
/// The database's.
pub async fn overdue(db: impl sqlx::PgExecutor<'_>) -> Result<Vec<CohortId>> {
    let ids = sqlx::query_scalar!(
        "SELECT id FROM cohorts WHERE state IN ('in_review', 'approved') AND expires_at <= clock_timestamp() LIMIT 100"
    )
    .fetch_all(db)
    .await?;
    Ok(ids.into_iter().map(CohortId).collect())
}

/// A new version without a new state: one of several approvals was given.
///
/// # Errors
/// The database's.
pub async fn bump(tx: &mut Tx, id: CohortId) -> Result<()> {
    sqlx::query!("UPDATE cohorts SET version = version + 1 WHERE id = $1", id.0).execute(&mut **tx).await?;
    super::notify(tx, "cohorts", Some(id.0)).await?;
    Ok(())
}

/// Whether every epoch that the cohort ever had stopped, or was closed at the broker and seen gone.
///
/// # Errors
/// The database's.
pub async fn is_fenced(tx: &mut Tx, id: CohortId) -> Result<bool> {
    Ok(sqlx::query_scalar!(
        r#"SELECT NOT EXISTS (SELECT FROM cohort_epochs WHERE cohort_id = $1 AND stopped_at IS NULL AND closed_at IS NULL) AS "fenced!""#,
        id.0
    )
    .fetch_one(&mut **tx)
    .await?)
}
