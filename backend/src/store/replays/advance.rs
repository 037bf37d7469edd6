//! A cohort's next state, by RULES 3, with all that belongs to it, in one transaction.

use crate::{
    actor::Actor,
    error::Result,
    store::{
        Tx, audit,
        cohorts::{
            self, Entering,
            items::{self, Step},
        },
    },
};
use domain::{
    cohort::{Effect, Facts, Transition, Trigger, next},
    ids::CohortId,
    vocabulary::{Action, CohortState, ItemState},
};

/// What is read under the cohort's lock for every transition of the replay's own.
async fn facts(tx: &mut Tx, cohort: &cohorts::Cohort) -> Result<Facts> {
    let read = sqlx::query!(
        r#"SELECT NOT EXISTS (SELECT FROM cohort_epochs WHERE cohort_id = $1 AND stopped_at IS NULL AND closed_at IS NULL) AS "fenced!",
             NOT EXISTS (SELECT FROM cohort_items WHERE cohort_id = $1 AND state IN ('scheduled', 'publishing')) AS "handed_over!",
             NOT EXISTS (SELECT FROM cohort_items WHERE cohort_id = $1
               AND state IN ('held', 'scheduled', 'publishing', 'confirmed', 'in_doubt')) AS "settled!",
             EXISTS (SELECT FROM cohort_items WHERE cohort_id = $1 AND stratum > $2) AS "strata_left!""#,
        cohort.id.0,
        i32::try_from(cohort.stratum).unwrap_or(i32::MAX),
    )
    .fetch_one(&mut **tx)
    .await?;
    Ok(Facts {
        fenced: read.fenced,
        handed_over: read.handed_over,
        settled: read.settled,
        strata_left: read.strata_left,
        ..Facts::UNKNOWN
    })
}

/// Moves the cohort, if it is still in `from` and the rule lets it; gives where it is now, or `None` when it didn't move.
/// The system acts; what people decided has its own entry.
///
/// # Errors
/// The database's.
pub async fn advance(
    tx: &mut Tx,
    id: CohortId,
    from: CohortState,
    trigger: Trigger,
    reason: Option<&str>,
) -> Result<Option<CohortState>> {
    let cohort = cohorts::load_for_update(tx, id).await?;
    if cohort.state != from {
        return Ok(None);
    }
    let facts = facts(tx, &cohort).await?;
    let Ok(Transition { to, effects }) = next(from, trigger, &facts) else { return Ok(None) };
    let mut resumes_to = None;
    for effect in effects {
        match effect {
            Effect::NextStratum => {
                sqlx::query!("UPDATE cohorts SET stratum = stratum + 1, verify_extended = false WHERE id = $1", id.0)
                    .execute(&mut **tx)
                    .await?;
            }
            Effect::RememberWhere => resumes_to = Some(from),
            Effect::Sweep => {
                let ends = Step::new("rule", "its cohort ended");
                items::move_all(tx, id, &[ItemState::Publishing], ItemState::InDoubt, ends).await?;
                items::move_all(tx, id, &[ItemState::Scheduled], ItemState::Held, ends).await?;
            }
            // released by `set_state`; the rest belongs to people's commands
            _ => {}
        }
    }
    if to != from || resumes_to.is_some() {
        cohorts::set_state(tx, id, Entering { state: to, resumes_to, reason, by: None }).await?;
    }
    let action = match to {
        CohortState::Paused => Action::CohortPaused,
        CohortState::Aborting => Action::CohortAborted,
        to if to.is_terminal() || to == CohortState::Settling => Action::CohortEnded,
        // stages within the canary are told by its verdict's entry
        _ => return Ok(Some(to)),
    };
    let entry = audit::Entry::new(action, "cohort", id)
        .named(cohort.draft.title)
        .before(serde_json::json!({ "state": from }))
        .after(serde_json::json!({ "state": to }));
    let entry = match reason {
        Some(reason) => entry.because(reason),
        None => entry,
    };
    audit::done(tx, &Actor::system(), entry).await?;
    Ok(Some(to))
}
