//! What a cohort's page shows beside its row: strata, stages, canaries, items.

use crate::error::Result;
use anyhow::Context as _;
use domain::{
    api::{Canary, CohortItem, ItemEvidence, ItemStep, PendingResolution, Preflight, StageEntry, UserRef},
    ids::{AppName, CohortId, ItemId, QuarantineId, RedriveId, UserId},
    vocabulary::ItemState,
};
use sqlx::PgConnection;

/// A stratum as the items make it.
#[derive(Debug, Clone)]
pub struct Stratum {
    /// From 0.
    pub index: i64,
    /// The group key.
    pub fingerprint: String,
    /// The class.
    pub error_class: Option<String>,
    /// How many items.
    pub size: i64,
}

/// Strata, in the order in which their canaries run.
///
/// # Errors
/// The database's.
pub async fn strata(db: &mut PgConnection, cohort: CohortId) -> Result<Vec<Stratum>> {
    let rows = sqlx::query!(
        r#"SELECT item.stratum, min(evidence.fingerprint) AS "fingerprint!", min(evidence.error_class) AS error_class,
             count(*) AS "size!"
           FROM cohort_items AS item JOIN quarantine AS evidence ON evidence.id = item.quarantine_id
           WHERE item.cohort_id = $1 GROUP BY item.stratum ORDER BY item.stratum"#,
        cohort.0
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Stratum {
            index: i64::from(row.stratum),
            fingerprint: row.fingerprint,
            error_class: row.error_class,
            size: row.size,
        })
        .collect())
}

/// When each stage was entered, oldest first.
///
/// # Errors
/// The database's.
pub async fn stages(db: &mut PgConnection, cohort: CohortId) -> Result<Vec<StageEntry>> {
    sqlx::query!(
        r#"SELECT stage.state, stage.at, stage.by_id, users.username AS "username?", stage.reason
           FROM cohort_stages AS stage LEFT JOIN users ON users.id = stage.by_id
           WHERE stage.cohort_id = $1 ORDER BY stage.at, stage.id"#,
        cohort.0
    )
    .fetch_all(db)
    .await?
    .into_iter()
    .map(|row| {
        Ok(StageEntry {
            state: row.state.parse().context("a stored stage")?,
            at: row.at.into(),
            by: row.by_id.zip(row.username).map(|(id, username)| UserRef { id: UserId(id), username }),
            reason: row.reason,
        })
    })
    .collect()
}

/// The canaries that were run, oldest first.
///
/// # Errors
/// The database's.
pub async fn canaries(db: &mut PgConnection, cohort: CohortId) -> Result<Vec<Canary>> {
    sqlx::query!(
        "SELECT canary.item_id, canary.stratum, item.quarantine_id, item.redrive_id, canary.started_at,
           coalesce(canary.confirmed_at, item.confirmed_at) AS confirmed_at, canary.deadline_at, canary.before, canary.after,
           canary.expectations, canary.attributed_by, canary.worker_version, canary.verdict, canary.verdict_reason, canary.judged_at
         FROM canaries AS canary JOIN cohort_items AS item ON item.id = canary.item_id
         WHERE canary.cohort_id = $1 ORDER BY canary.started_at, canary.stratum",
        cohort.0
    )
    .fetch_all(db)
    .await?
    .into_iter()
    .map(|row| {
        Ok(Canary {
            stratum: i64::from(row.stratum),
            quarantine_id: QuarantineId(row.quarantine_id),
            item_id: ItemId(row.item_id),
            redrive_id: row.redrive_id.map(RedriveId),
            started_at: row.started_at.into(),
            confirmed_at: row.confirmed_at.map(Into::into),
            deadline_at: row.deadline_at.map(Into::into),
            before: row.before.map(serde_json::from_value).transpose().context("a stored sample")?,
            after: row.after.map(serde_json::from_value).transpose().context("a stored sample")?,
            expectations: serde_json::from_value(row.expectations).context("stored expectations")?,
            attributed_by: row.attributed_by,
            worker_version: row.worker_version,
            verdict: row.verdict.map(|verdict| verdict.parse()).transpose().context("a stored verdict")?,
            verdict_reason: row.verdict_reason,
            judged_at: row.judged_at.map(Into::into),
        })
    })
    .collect()
}

/// The pre-flight of a revision, as last run.
///
/// # Errors
/// The database's.
pub async fn preflight(db: &mut PgConnection, cohort: CohortId, revision: i64) -> Result<Preflight> {
    let row = sqlx::query!(
        "SELECT preflight, preflight_at FROM cohort_revisions WHERE cohort_id = $1 AND revision = $2",
        cohort.0,
        revision
    )
    .fetch_optional(db)
    .await?;
    let stored = row.as_ref().and_then(|row| row.preflight.clone());
    Ok(match stored {
        Some(stored) => serde_json::from_value(stored).context("a stored pre-flight")?,
        None => Preflight { at: None, refusals: vec![], warnings: vec![] },
    })
}

/// Which items are read.
#[derive(Debug, Clone, Default)]
pub struct ItemFilter {
    /// In any of these states; empty is any.
    pub states: Vec<ItemState>,
    /// In this stratum.
    pub stratum: Option<i32>,
}

impl ItemFilter {
    /// In this state.
    #[must_use]
    pub fn in_state(state: ItemState) -> Self {
        Self { states: vec![state], stratum: None }
    }

    fn words(&self) -> Vec<String> {
        self.states.iter().map(ToString::to_string).collect()
    }
}

/// Items in the plan's order, after `after_position`; at most `limit`.
///
/// # Errors
/// The database's.
pub async fn items(
    db: &mut PgConnection,
    cohort: CohortId,
    filter: &ItemFilter,
    after_position: Option<i32>,
    limit: i64,
) -> Result<Vec<CohortItem>> {
    let rows = sqlx::query!(
        "SELECT id, quarantine_id, position, stratum, job_id, canary, state, state_reason, redrive_id, epoch, published_at, confirmed_at
         FROM cohort_items
         WHERE cohort_id = $1 AND (cardinality($2::text[]) = 0 OR state = ANY($2)) AND ($3::integer IS NULL OR stratum = $3)
           AND ($4::integer IS NULL OR position > $4)
         ORDER BY position LIMIT $5",
        cohort.0,
        &filter.words(),
        filter.stratum,
        after_position,
        limit
    )
    .fetch_all(&mut *db)
    .await?;
    let mut items = rows
        .into_iter()
        .map(|row| {
            Ok(CohortItem {
                id: ItemId(row.id),
                quarantine_id: QuarantineId(row.quarantine_id),
                position: i64::from(row.position),
                stratum: i64::from(row.stratum),
                job_id: row.job_id.map(AppName),
                canary: row.canary,
                state: row.state.parse().context("a stored item state")?,
                state_reason: row.state_reason,
                redrive_id: row.redrive_id.map(RedriveId),
                epoch: row.epoch,
                published_at: row.published_at.map(Into::into),
                confirmed_at: row.confirmed_at.map(Into::into),
                evidence: vec![],
                pending_resolution: None,
                steps: vec![],
            })
        })
        .collect::<Result<Vec<_>>>()?;
    add_doubts(db, &mut items).await?;
    Ok(items)
}

/// How many items there are.
///
/// # Errors
/// The database's.
pub async fn count_items(db: &mut PgConnection, cohort: CohortId, filter: &ItemFilter) -> Result<i64> {
    Ok(sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM cohort_items
           WHERE cohort_id = $1 AND (cardinality($2::text[]) = 0 OR state = ANY($2)) AND ($3::integer IS NULL OR stratum = $3)"#,
        cohort.0,
        &filter.words(),
        filter.stratum
    )
    .fetch_one(db)
    .await?)
}

/// For items in doubt: their steps, what is known of them, and a word that waits for a second person.
async fn add_doubts(db: &mut PgConnection, items: &mut [CohortItem]) -> Result<()> {
    let ids: Vec<uuid::Uuid> =
        items.iter().filter(|item| item.state == ItemState::InDoubt).map(|item| item.id.0).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let steps = sqlx::query!(
        "SELECT item_id, from_state, to_state, at, epoch, source, cause FROM item_steps WHERE item_id = ANY($1) ORDER BY at, id",
        &ids
    )
    .fetch_all(&mut *db)
    .await?;
    let words = sqlx::query!(
        "SELECT word.item_id, word.by_id, users.username, word.at, word.reason
         FROM item_resolutions AS word JOIN users ON users.id = word.by_id
         WHERE word.item_id = ANY($1) AND word.superseded_at IS NULL AND word.confirmed_at IS NULL",
        &ids
    )
    .fetch_all(db)
    .await?;
    for item in items {
        for step in steps.iter().filter(|step| step.item_id == item.id.0) {
            item.steps.push(ItemStep {
                from: step.from_state.as_deref().map(str::parse).transpose().context("a stored step")?,
                to: step.to_state.parse().context("a stored step")?,
                at: step.at.into(),
                epoch: step.epoch,
                cause: step.cause.clone(),
            });
            if step.from_state.as_deref() == Some(step.to_state.as_str())
                || step.to_state == ItemState::InDoubt.as_str()
            {
                item.evidence.push(ItemEvidence {
                    source: step.source.clone(),
                    detail: step.cause.clone(),
                    at: step.at.into(),
                });
            }
        }
        item.pending_resolution = words.iter().find(|word| word.item_id == item.id.0).map(|word| PendingResolution {
            by: UserRef { id: UserId(word.by_id), username: word.username.clone() },
            at: word.at.into(),
            reason: word.reason.clone(),
        });
    }
    Ok(())
}
