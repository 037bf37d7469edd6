//! The list, its facets and its groups: one filter for all of them.

use crate::error::Result;
use anyhow::Context as _;
use domain::{
    api::{CohortRef, FacetValue, QuarantineGroup, QuarantineRow, QueueRef},
    ids::{AppName, CohortId, QuarantineId, QueueId},
};
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

/// What is looked for; an empty list filters nothing. In a list of values `""` is "none".
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Queue ids.
    pub queue: Vec<String>,
    /// Derived states.
    pub state: Vec<String>,
    /// Classes.
    pub error_class: Vec<String>,
    /// Group keys.
    pub fingerprint: Vec<String>,
    /// Revisions.
    pub worker_version: Vec<String>,
    /// `permanent`, `transient`.
    pub kind: Vec<String>,
    /// A job, by all its bytes.
    pub job_id: Option<Vec<u8>>,
    /// A message, by all its bytes.
    pub message_id: Option<Vec<u8>>,
    /// The generation that it carries.
    pub generation: Option<i64>,
    /// In this cohort, at any time.
    pub cohort: Option<Uuid>,
    /// Died at or after.
    pub dead_lettered_from: Option<OffsetDateTime>,
    /// Died before.
    pub dead_lettered_to: Option<OffsetDateTime>,
    /// Literal text in job id or message id …
    pub q_bytes: Option<Vec<u8>>,
    /// … or error text, whatever its case.
    pub q_text: Option<String>,
}

/// Runs a checked query whose WHERE is the filter (parameters 1 to 14); others follow from 15 on.
macro_rules! filtered {
    ($macro:ident![$($type:tt)*], $head:tt, $tail:tt, $filter:expr $(, $more:expr)* $(,)?) => {
        sqlx::$macro!(
            $($type)*
            $head + "
            WHERE (cardinality($1::text[]) = 0 OR coalesce(dead.queue_id::text, '') = ANY($1))
              AND (cardinality($2::text[]) = 0 OR dead.disposition = ANY($2))
              AND (cardinality($3::text[]) = 0 OR coalesce(dead.error_class, '') = ANY($3))
              AND (cardinality($4::text[]) = 0 OR dead.fingerprint = ANY($4))
              AND (cardinality($5::text[]) = 0 OR coalesce(dead.worker_version, '') = ANY($5))
              AND (cardinality($6::text[]) = 0 OR dead.kind = ANY($6))
              AND ($7::bytea IS NULL OR dead.job_id = $7)
              AND ($8::bytea IS NULL OR dead.message_id = $8)
              AND ($9::bigint IS NULL OR dead.redrive_generation = $9)
              AND ($10::uuid IS NULL OR EXISTS (SELECT FROM cohort_items AS item WHERE item.quarantine_id = dead.id AND item.cohort_id = $10))
              AND ($11::timestamptz IS NULL OR dead.dead_lettered_at >= $11)
              AND ($12::timestamptz IS NULL OR dead.dead_lettered_at < $12)
              AND ($13::bytea IS NULL OR position($13 in coalesce(dead.job_id, '')) > 0
                OR position($13 in coalesce(dead.message_id, '')) > 0
                OR position(lower($14::text) in lower(coalesce(dead.error_text, ''))) > 0)
            " + $tail,
            &$filter.queue,
            &$filter.state,
            &$filter.error_class,
            &$filter.fingerprint,
            &$filter.worker_version,
            &$filter.kind,
            $filter.job_id.as_deref(),
            $filter.message_id.as_deref(),
            $filter.generation,
            $filter.cohort,
            $filter.dead_lettered_from,
            $filter.dead_lettered_to,
            $filter.q_bytes.as_deref(),
            $filter.q_text.as_deref(),
            $($more),*
        )
    };
}

/// A row as it is read; see [`QuarantineRow`].
#[derive(Debug)]
pub(super) struct ListRow {
    pub(super) id: Uuid,
    pub(super) queue_id: Option<Uuid>,
    pub(super) queue_name: Option<String>,
    pub(super) disposition: String,
    pub(super) job_id: Option<Vec<u8>>,
    pub(super) message_id: Option<Vec<u8>>,
    pub(super) attempt: Option<i64>,
    pub(super) max_attempts: Option<i64>,
    pub(super) delivery_count: Option<i64>,
    pub(super) redrive_generation: Option<i64>,
    pub(super) error_class: Option<String>,
    pub(super) error_text: Option<String>,
    pub(super) kind: String,
    pub(super) fingerprint: String,
    pub(super) worker_version: Option<String>,
    pub(super) size_bytes: i64,
    pub(super) dead_lettered_at: Option<OffsetDateTime>,
    pub(super) arrived_at: OffsetDateTime,
    pub(super) possible_duplicate_of: Option<Uuid>,
    pub(super) cohort_id: Option<Uuid>,
    pub(super) cohort_title: Option<String>,
}

impl TryFrom<ListRow> for QuarantineRow {
    type Error = crate::error::Error;

    fn try_from(row: ListRow) -> Result<Self> {
        Ok(Self {
            id: QuarantineId(row.id),
            queue: row.queue_id.zip(row.queue_name).map(|(id, name)| QueueRef { id: QueueId(id), name }),
            state: row.disposition.parse().context("a stored disposition")?,
            job_id: row.job_id.map(AppName),
            message_id: row.message_id.map(AppName),
            attempt: row.attempt,
            max_attempts: row.max_attempts,
            delivery_count: row.delivery_count,
            redrive_generation: row.redrive_generation,
            error_class: row.error_class,
            error_text: row.error_text,
            kind: row.kind.parse().context("a stored kind")?,
            fingerprint: row.fingerprint,
            worker_version: row.worker_version,
            size_bytes: row.size_bytes,
            dead_lettered_at: row.dead_lettered_at.map(Into::into),
            arrived_at: row.arrived_at.into(),
            possible_duplicate_of: row.possible_duplicate_of.map(QuarantineId),
            cohort: row.cohort_id.zip(row.cohort_title).map(|(id, title)| CohortRef { id: CohortId(id), title }),
        })
    }
}

/// One page, newest first: what comes after `(arrived_at, id)`.
///
/// # Errors
/// The database's.
pub async fn page(
    db: &mut PgConnection,
    filter: &Filter,
    after: Option<(OffsetDateTime, Uuid)>,
    limit: i64,
) -> Result<Vec<QuarantineRow>> {
    filtered!(
        query_as![ListRow,],
        r#"SELECT dead.id, dead.queue_id, queue.name AS "queue_name?", dead.disposition, dead.job_id, dead.message_id, dead.attempt,
             dead.max_attempts, dead.delivery_count, dead.redrive_generation, dead.error_class,
             left(dead.error_text, 300) AS error_text, dead.kind, dead.fingerprint, dead.worker_version, dead.size_bytes,
             dead.dead_lettered_at, dead.arrived_at, dead.possible_duplicate_of, cohort.id AS "cohort_id?", cohort.title AS "cohort_title?"
           FROM quarantine AS dead LEFT JOIN queues AS queue ON queue.id = dead.queue_id
           LEFT JOIN message_claims AS claim ON claim.quarantine_id = dead.id LEFT JOIN cohorts AS cohort ON cohort.id = claim.cohort_id"#,
        "AND ($15::timestamptz IS NULL OR (dead.arrived_at, dead.id) < ($15, $16::uuid))
         ORDER BY dead.arrived_at DESC, dead.id DESC LIMIT $17",
        filter,
        after.map(|(at, _)| at),
        after.map(|(_, id)| id),
        limit
    )
    .fetch_all(db)
    .await?
    .into_iter()
    .map(TryInto::try_into)
    .collect()
}

/// How many match.
///
/// # Errors
/// The database's.
pub async fn count(db: &mut PgConnection, filter: &Filter) -> Result<i64> {
    Ok(filtered!(query_scalar![], r#"SELECT count(*) AS "count!" FROM quarantine AS dead"#, "", filter)
        .fetch_one(db)
        .await?)
}

/// The most frequent values of one filter among what matches: `queue`, `state`, `error_class`, `worker_version`, `kind`.
///
/// # Errors
/// The database's.
pub async fn facet(db: &mut PgConnection, filter: &Filter, name: &str) -> Result<Vec<FacetValue>> {
    let rows = filtered!(
        query![],
        r#"SELECT value AS "value!", coalesce(queue.name, value) AS "label!", count AS "count!" FROM (
             SELECT coalesce(CASE $15::text WHEN 'queue' THEN dead.queue_id::text WHEN 'state' THEN dead.disposition
               WHEN 'error_class' THEN dead.error_class WHEN 'worker_version' THEN dead.worker_version ELSE dead.kind END, '') AS value,
               count(*) AS count
             FROM quarantine AS dead"#,
        "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20) AS counted
         LEFT JOIN queues AS queue ON $15 = 'queue' AND queue.id::text = value ORDER BY count DESC, value",
        filter,
        name
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| FacetValue { value: row.value, label: row.label, count: row.count }).collect())
}

/// What matches by fingerprint, the largest groups first, at most `limit`.
///
/// # Errors
/// The database's.
pub async fn groups(db: &mut PgConnection, filter: &Filter, limit: i64) -> Result<Vec<QuarantineGroup>> {
    let rows = filtered!(
        query![],
        r#"SELECT dead.fingerprint, min(dead.error_class) AS error_class, min(dead.normalised_text) AS normalised_text,
             dead.queue_id, min(queue.name) AS queue_name, count(*) AS "count!",
             count(*) FILTER (WHERE dead.disposition = 'held') AS "held!", min(dead.arrived_at) AS "first_seen!",
             max(dead.arrived_at) AS "last_seen!",
             coalesce(array_agg(DISTINCT dead.worker_version) FILTER (WHERE dead.worker_version IS NOT NULL), '{}') AS "worker_versions!",
             (array_agg(dead.id ORDER BY dead.arrived_at DESC, dead.id DESC))[1] AS "sample_id!"
           FROM quarantine AS dead LEFT JOIN queues AS queue ON queue.id = dead.queue_id"#,
        "GROUP BY dead.fingerprint, dead.queue_id ORDER BY count(*) DESC, dead.fingerprint LIMIT $15",
        filter,
        limit
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| QuarantineGroup {
            fingerprint: row.fingerprint,
            error_class: row.error_class,
            normalised_text: row.normalised_text,
            queue: row.queue_id.zip(row.queue_name).map(|(id, name)| QueueRef { id: QueueId(id), name }),
            count: row.count,
            held: row.held,
            first_seen: row.first_seen.into(),
            last_seen: row.last_seen.into(),
            worker_versions: row.worker_versions,
            sample_id: QuarantineId(row.sample_id),
        })
        .collect())
}

/// How many groups match.
///
/// # Errors
/// The database's.
pub async fn count_groups(db: &mut PgConnection, filter: &Filter) -> Result<i64> {
    Ok(filtered!(
        query_scalar![],
        r#"SELECT count(DISTINCT (dead.fingerprint, dead.queue_id)) AS "count!" FROM quarantine AS dead"#,
        "",
        filter
    )
    .fetch_one(db)
    .await?)
}
