//! Items: one place writes an item's state, its step (RULES 5) and what follows for the dead letter that it stands for.

use super::super::Tx;
use crate::{clock::new_id, error::Result};
use domain::{
    ids::{CohortId, ItemId},
    vocabulary::{ItemState, QuarantineState},
};
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

/// The dead letter's own state, derived (RULES 5) from its item's, while an unfinished cohort claims it or after.
const fn derived(item: ItemState, claimed: bool) -> QuarantineState {
    match item {
        ItemState::Confirmed | ItemState::Unverified | ItemState::VerificationFailed | ItemState::ResolvedArrived => {
            QuarantineState::ReturnedToQueue
        }
        ItemState::Verified => QuarantineState::Verified,
        ItemState::Requarantined => QuarantineState::Requarantined,
        ItemState::InDoubt => QuarantineState::InDoubt,
        ItemState::Held
        | ItemState::Scheduled
        | ItemState::Publishing
        | ItemState::Returned
        | ItemState::Refused
        | ItemState::Nacked
        | ItemState::ResolvedNotPublished => {
            if claimed {
                QuarantineState::Claimed
            } else {
                QuarantineState::Held
            }
        }
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
    project(tx, &evidence, to).await?;
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
    let evidence = sqlx::query_scalar!("SELECT quarantine_id FROM cohort_items WHERE id = $1", item.0)
        .fetch_all(&mut **tx)
        .await?;
    project(tx, &evidence, to).await
}

/// Writes the disposition that follows from an item's state and the claim, for the dead letters behind such items.
async fn project(tx: &mut Tx, evidence: &[Uuid], item: ItemState) -> Result<()> {
    sqlx::query!(
        "UPDATE quarantine SET disposition = CASE
           WHEN EXISTS (SELECT FROM message_claims WHERE quarantine_id = quarantine.id) THEN $2 ELSE $3 END
         WHERE id = ANY($1) AND disposition NOT IN ('closed', 'erased')",
        evidence,
        derived(item, true).as_str(),
        derived(item, false).as_str(),
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Writes the dispositions of all a cohort's dead letters anew: its claims were taken or released.
pub(super) async fn project_cohort(tx: &mut Tx, cohort: CohortId) -> Result<()> {
    for state in ItemState::ALL {
        let evidence = sqlx::query_scalar!(
            "SELECT quarantine_id FROM cohort_items WHERE cohort_id = $1 AND state = $2",
            cohort.0,
            state.as_str()
        )
        .fetch_all(&mut **tx)
        .await?;
        if !evidence.is_empty() {
            project(tx, &evidence, *state).await?;
        }
    }
    super::super::notify(tx, "quarantine", None).await?;
    Ok(())
}

fn words(states: &[ItemState]) -> Vec<String> {
    states.iter().map(ToString::to_string).collect()
}
