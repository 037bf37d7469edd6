//! Cohorts as rows of a list.

use crate::error::Result;
use anyhow::Context as _;
use domain::{
    api::{CohortRow, QueueRef, StateCount, UserRef},
    ids::{CohortId, QueueId, UserId},
    vocabulary::CohortState,
};
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

/// Which cohorts a list shows; empty lists are "any".
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// In any of these states.
    pub states: Vec<CohortState>,
    /// Of any of these queues.
    pub queues: Vec<QueueId>,
    /// Only this one.
    pub only: Option<CohortId>,
    /// Only those with, or without, an item in doubt.
    pub in_doubt: Option<bool>,
    /// Only those that are, or aren't, marked as published twice.
    pub published_twice: Option<bool>,
    /// After this place of the order: newest first.
    pub after: Option<(OffsetDateTime, CohortId)>,
}

/// Rows, newest first, at most `limit`.
///
/// # Errors
/// The database's.
pub async fn rows(db: &mut PgConnection, filter: &Filter, limit: i64) -> Result<Vec<CohortRow>> {
    let states: Vec<String> = filter.states.iter().map(ToString::to_string).collect();
    let queues: Vec<Uuid> = filter.queues.iter().map(|queue| queue.0).collect();
    let rows = sqlx::query!(
        r#"SELECT cohorts.id, cohorts.queue_id, queues.name AS queue_name, cohorts.title, cohorts.state, cohorts.state_reason,
             cohorts.revision, cohorts.version, cohorts.size, cohorts.created_by, users.username, cohorts.created_at,
             cohorts.generation, cohorts.published_twice, stage.at AS "entered_at?", stage.by_id AS "entered_by?",
             mover.username AS "entered_by_name?"
           FROM cohorts JOIN queues ON queues.id = cohorts.queue_id JOIN users ON users.id = cohorts.created_by
             LEFT JOIN LATERAL (SELECT at, by_id FROM cohort_stages WHERE cohort_id = cohorts.id
               ORDER BY at DESC, id DESC LIMIT 1) AS stage ON true
             LEFT JOIN users AS mover ON mover.id = stage.by_id
           WHERE (cardinality($1::text[]) = 0 OR cohorts.state = ANY($1))
             AND (cardinality($2::uuid[]) = 0 OR cohorts.queue_id = ANY($2))
             AND ($3::uuid IS NULL OR cohorts.id = $3)
             AND ($4::timestamptz IS NULL OR (cohorts.created_at, cohorts.id) < ($4, $5))
             AND ($6::boolean IS NULL OR $6 = EXISTS (SELECT FROM cohort_items AS item
               WHERE item.cohort_id = cohorts.id AND item.state = 'in_doubt'))
             AND ($7::boolean IS NULL OR cohorts.published_twice = $7)
           ORDER BY cohorts.created_at DESC, cohorts.id DESC LIMIT $8"#,
        &states,
        &queues,
        filter.only.map(|id| id.0),
        filter.after.map(|(at, _)| at),
        filter.after.map(|(_, id)| id.0),
        filter.in_doubt,
        filter.published_twice,
        limit,
    )
    .fetch_all(&mut *db)
    .await?;
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let counts = sqlx::query!(
        r#"SELECT cohort_id, state, count(*) AS "count!" FROM cohort_items WHERE cohort_id = ANY($1)
           GROUP BY cohort_id, state ORDER BY cohort_id, state"#,
        &ids
    )
    .fetch_all(db)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(CohortRow {
                id: CohortId(row.id),
                queue: QueueRef { id: QueueId(row.queue_id), name: row.queue_name },
                title: row.title,
                state: row.state.parse().context("a stored state")?,
                state_reason: row.state_reason,
                // every cohort begins with a stage
                state_since: row.entered_at.unwrap_or(row.created_at).into(),
                state_by: row
                    .entered_by
                    .zip(row.entered_by_name)
                    .map(|(id, username)| UserRef { id: UserId(id), username }),
                revision: row.revision,
                version: row.version,
                size: i64::from(row.size),
                counts: counts
                    .iter()
                    .filter(|count| count.cohort_id == row.id)
                    .map(|count| {
                        Ok(StateCount {
                            state: count.state.parse().context("a stored item state")?,
                            count: count.count,
                        })
                    })
                    .collect::<Result<_>>()?,
                created_by: UserRef { id: UserId(row.created_by), username: row.username },
                created_at: row.created_at.into(),
                generation: row.generation,
                published_twice: row.published_twice,
            })
        })
        .collect()
}

/// How many cohorts match, whatever the place.
///
/// # Errors
/// The database's.
pub async fn count(db: &mut PgConnection, filter: &Filter) -> Result<i64> {
    let states: Vec<String> = filter.states.iter().map(ToString::to_string).collect();
    let queues: Vec<Uuid> = filter.queues.iter().map(|queue| queue.0).collect();
    Ok(sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM cohorts
           WHERE (cardinality($1::text[]) = 0 OR state = ANY($1)) AND (cardinality($2::uuid[]) = 0 OR queue_id = ANY($2))
             AND ($3::boolean IS NULL OR $3 = EXISTS (SELECT FROM cohort_items AS item
               WHERE item.cohort_id = cohorts.id AND item.state = 'in_doubt'))
             AND ($4::boolean IS NULL OR published_twice = $4)"#,
        &states,
        &queues,
        filter.in_doubt,
        filter.published_twice,
    )
    .fetch_one(db)
    .await?)
}
