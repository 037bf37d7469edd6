//! What worker events say of a queue now.

use crate::error::Result;
use domain::ids::QueueId;
use sqlx::PgPool;
use time::OffsetDateTime;

/// Read from the events of one queue.
#[derive(Debug, Default, Clone)]
pub struct FromEvents {
    /// When the last event came in; `None`: never.
    pub last_event_at: Option<OffsetDateTime>,
    /// The database's clock.
    pub now: Option<OffsetDateTime>,
    /// Age of the oldest unfinished job that hasn't failed and wasn't redriven, seconds.
    pub healthy_age_s: Option<f64>,
    /// Attempts begun in the last 15 minutes and not ended.
    pub in_flight: i64,
    /// Failed attempts of the last minute, by class.
    pub failures: Vec<(String, i64)>,
    /// Worker versions that began an attempt in the last minute.
    pub versions: Vec<String>,
}

/// Reads them.
///
/// # Errors
/// The database's.
pub async fn from_events(pool: &PgPool, queue: QueueId) -> Result<FromEvents> {
    let (feed, failures, versions) = tokio::try_join!(
        sqlx::query!(
            r#"SELECT now() AS "now!",
                 (SELECT max(last_event_at) FROM jobs WHERE queue_id = $1) AS last_event_at,
                 (SELECT extract(epoch FROM now() - min(coalesce(enqueued_at, accepted_at)))::float8 FROM jobs
                  WHERE queue_id = $1 AND effect_at IS NULL AND failed_at IS NULL AND redriven_at IS NULL) AS healthy_age_s,
                 (SELECT count(*) FROM jobs WHERE queue_id = $1 AND last_kind = 'attempt_started'
                  AND last_event_at > now() - interval '15 minutes') AS "in_flight!""#,
            queue.0
        )
        .fetch_one(pool),
        sqlx::query!(
            r#"SELECT coalesce(error_class, 'unclassified') AS "class!", count(*) AS "count!" FROM events
               WHERE queue_id = $1 AND kind = 'attempt_failed' AND received_at > now() - interval '1 minute'
               GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20"#,
            queue.0
        )
        .fetch_all(pool),
        sqlx::query_scalar!(
            r#"SELECT DISTINCT worker_version AS "version!" FROM events
               WHERE queue_id = $1 AND kind = 'attempt_started' AND received_at > now() - interval '1 minute'
                 AND worker_version IS NOT NULL ORDER BY 1 LIMIT 20"#,
            queue.0
        )
        .fetch_all(pool),
    )?;
    Ok(FromEvents {
        last_event_at: feed.last_event_at,
        now: Some(feed.now),
        healthy_age_s: feed.healthy_age_s,
        in_flight: feed.in_flight,
        failures: failures.into_iter().map(|row| (row.class, row.count)).collect(),
        versions,
    })
}
