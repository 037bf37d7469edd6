//! Items: one place writes an item's state, its step (RULES 5) and what follows for the dead letter that it stands for.

use super::super::Tx;
use crate::{clock::new_id, error::Result};
use anyhow::Context as _;
use domain::{
    ids::{CohortId, ItemId},
    item::{Appearance, quarantine_state},
    vocabulary::ItemState,
};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Why an item moves, for its step row.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The owner's epoch, where a replay moves it.
    pub epoch: Option<i64>,
    /// `confirm`, `event`, `dead_letter`, `probe`, `late_confirm`, `takeover`, `person`, `rule`.
    pub source: &'a str,
    /// In words.
    pub cause: &'a str,
    /// Kept on the item as its reason (`no_route`, `already_effective` …); `None` clears the old one.
    pub state_reason: Option<&'a str>,
}

impl<'a> Step<'a> {
    /// A step without an epoch and without a reason that stays on the item.
    #[must_use]
    pub const fn new(source: &'a str, cause: &'a str) -> Self {
        Self { epoch: None, source, cause, state_reason: None }
    }

    /// Under this epoch.
    #[must_use]
    pub const fn under(mut self, epoch: i64) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// With a reason that stays on the item.
    #[must_use]
    pub const fn because(mut self, state_reason: &'a str) -> Self {
        self.state_reason = Some(state_reason);
        self
    }
}

/// Moves one item, if it is in one of `from`: the item, its step and its dead letter's disposition, together.
/// Whether it moved.
///
/// What a state needs beside its name (`publishing`: redrive id, epoch, connection, time) is written by the caller, who
/// then calls [`record_step`]; `confirmed` gets its time here.
///
/// # Errors
/// The database's.
pub async fn move_item(tx: &mut Tx, item: ItemId, from: &[ItemState], to: ItemState, step: Step<'_>) -> Result<bool> {
    Ok(move_items(tx, &[item], from, to, step).await? == 1)
}

/// Moves those of `items` that are in one of `from`; how many moved.
///
/// # Errors
/// The database's.
pub async fn move_items(
    tx: &mut Tx,
    items: &[ItemId],
    from: &[ItemState],
    to: ItemState,
    step: Step<'_>,
) -> Result<usize> {
    let ids: Vec<Uuid> = items.iter().map(|item| item.0).collect();
    let moved = sqlx::query!(
        r#"WITH before AS (
             SELECT id, state FROM cohort_items WHERE id = ANY($1) AND state = ANY($2) ORDER BY id FOR UPDATE
           )
           UPDATE cohort_items AS item SET state = $3, state_reason = $4,
             confirmed_at = CASE WHEN $3 = 'confirmed' THEN coalesce(item.confirmed_at, clock_timestamp()) ELSE item.confirmed_at END
           FROM before WHERE item.id = before.id
           RETURNING item.id, before.state AS "from_state!", item.quarantine_id, item.cohort_id"#,
        &ids,
        &words(from),
        to.as_str(),
        step.state_reason,
    )
    .fetch_all(&mut **tx)
    .await?;
    if moved.is_empty() {
        return Ok(0);
    }
    let (step_ids, item_ids): (Vec<Uuid>, Vec<Uuid>) = moved.iter().map(|row| (new_id(), row.id)).unzip();
    let from_states: Vec<String> = moved.iter().map(|row| row.from_state.clone()).collect();
    sqlx::query!(
        "INSERT INTO item_steps (id, item_id, from_state, to_state, epoch, source, cause)
         SELECT step.id, step.item_id, step.from_state, $4, $5, $6, $7
         FROM unnest($1::uuid[], $2::uuid[], $3::text[]) AS step (id, item_id, from_state)",
        &step_ids,
        &item_ids,
        &from_states,
        to.as_str(),
        step.epoch,
        step.source,
        step.cause,
    )
    .execute(&mut **tx)
    .await?;
    let evidence: Vec<Uuid> = moved.iter().map(|row| row.quarantine_id).collect();
    project(tx, &evidence).await?;
    for cohort in moved.iter().map(|row| row.cohort_id).collect::<std::collections::BTreeSet<_>>() {
        super::super::notify(tx, "cohorts", Some(cohort)).await?;
    }
    Ok(moved.len())
}

/// Moves every item of a cohort that is in one of `from`; how many moved.
///
/// # Errors
/// The database's.
pub async fn move_all(
    tx: &mut Tx,
    cohort: CohortId,
    from: &[ItemState],
    to: ItemState,
    step: Step<'_>,
) -> Result<usize> {
    let items: Vec<ItemId> = sqlx::query_scalar!(
        "SELECT id FROM cohort_items WHERE cohort_id = $1 AND state = ANY($2)",
        cohort.0,
        &words(from)
    )
    .fetch_all(&mut **tx)
    .await?
    .into_iter()
    .map(ItemId)
    .collect();
    move_items(tx, &items, from, to, step).await
}

/// Writes the step of an item that the caller moved in a statement of its own, and what follows for its dead letter.
/// A late confirm, which moves nothing, is a step from a state to itself.
///
/// # Errors
/// The database's.
pub async fn record_step(
    tx: &mut Tx,
    item: ItemId,
    from: Option<ItemState>,
    to: ItemState,
    step: Step<'_>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO item_steps (id, item_id, from_state, to_state, epoch, source, cause) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        new_id(),
        item.0,
        from.map(ItemState::as_str),
        to.as_str(),
        step.epoch,
        step.source,
        step.cause,
    )
    .execute(&mut **tx)
    .await?;
    if from == Some(to) {
        return Ok(());
    }
    project_items(tx, &[item]).await
}

/// Writes the dispositions of dead letters, derived from all their appearances in cohorts: a discarded draft doesn't hide
/// what another cohort sent.
async fn project(tx: &mut Tx, evidence: &[Uuid]) -> Result<()> {
    let rows = sqlx::query!(
        r#"SELECT item.quarantine_id, item.state, coalesce(item.state_reason = 'published_twice', false) AS "contradicted!",
             cohort.state AS cohort_state
           FROM cohort_items AS item JOIN cohorts AS cohort ON cohort.id = item.cohort_id
           WHERE item.quarantine_id = ANY($1) ORDER BY cohort.created_at, cohort.id"#,
        evidence
    )
    .fetch_all(&mut **tx)
    .await?;
    let mut appearances: BTreeMap<Uuid, Vec<Appearance>> = BTreeMap::new();
    for row in rows {
        appearances.entry(row.quarantine_id).or_default().push(Appearance {
            item: row.state.parse().context("a stored item state")?,
            cohort: row.cohort_state.parse().context("a stored state")?,
            contradicted: row.contradicted,
        });
    }
    let (ids, states): (Vec<Uuid>, Vec<String>) = appearances
        .into_iter()
        .map(|(id, appearances)| (id, quarantine_state(&appearances, false, false).to_string()))
        .unzip();
    sqlx::query!(
        "UPDATE quarantine SET disposition = derived.state FROM unnest($1::uuid[], $2::text[]) AS derived (id, state)
         WHERE quarantine.id = derived.id AND disposition NOT IN ('closed', 'erased') AND disposition <> derived.state",
        &ids,
        &states
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Writes the dispositions of these items' dead letters anew.
pub(in crate::store) async fn project_items(tx: &mut Tx, items: &[ItemId]) -> Result<()> {
    let ids: Vec<Uuid> = items.iter().map(|item| item.0).collect();
    let evidence = sqlx::query_scalar!("SELECT quarantine_id FROM cohort_items WHERE id = ANY($1)", &ids)
        .fetch_all(&mut **tx)
        .await?;
    project(tx, &evidence).await
}

/// Writes the dispositions of all a cohort's dead letters anew: its state, and so its claims, changed.
pub(super) async fn project_cohort(tx: &mut Tx, cohort: CohortId) -> Result<()> {
    let evidence = sqlx::query_scalar!("SELECT quarantine_id FROM cohort_items WHERE cohort_id = $1", cohort.0)
        .fetch_all(&mut **tx)
        .await?;
    project(tx, &evidence).await?;
    super::super::notify(tx, "quarantine", None).await?;
    Ok(())
}

fn words(states: &[ItemState]) -> Vec<String> {
    states.iter().map(ToString::to_string).collect()
}
