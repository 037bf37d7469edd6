//! A replay as people see it, and what they say of items in doubt.

pub mod resolve;

use crate::{
    error::Result,
    state::App,
    store::{
        cohorts,
        replays::{epochs, readings},
    },
};
use domain::{
    api::{Decision, EpochFacts, Reading, Replay, Thousandths},
    ids::CohortId,
    vocabulary::{Binding, CohortState},
};

/// How many decisions are shown.
const DECISIONS: i64 = 50;

/// The replay of a cohort, as the database has it now.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn view(app: &App, id: CohortId) -> Result<Replay> {
    let pool = app.store.pool();
    let cohort = cohorts::load(pool, id).await?;
    let plan = cohort.draft.expansion.clone();
    let counts = readings::counts(pool, id).await?;
    let decisions = readings::decisions(pool, id, DECISIONS).await?;
    let epochs = epochs::all(pool, id).await?;
    let hands_over =
        matches!(cohort.state, CohortState::CanaryRunning | CohortState::CanaryVerifying | CohortState::Expanding);
    let latest = decisions.first().filter(|_| hands_over || matches!(cohort.state, CohortState::Aborting));
    let read = |what: &str| latest.and_then(|decision| decision.readings.get(what).cloned());
    let halted = latest.and_then(|decision| decision.decision.strip_prefix("halted: ").map(str::to_owned));
    let allowed: Option<Thousandths> = read("allowed_per_s").and_then(|value| serde_json::from_value(value).ok());
    let allowed = allowed.filter(|_| halted.is_none() && cohort.state == CohortState::Expanding).unwrap_or_default();
    let feed = readings::event_feed(pool, cohort.queue_id).await?;
    let eta_s = (allowed.0 > 0 && counts.scheduled > 0).then(|| counts.scheduled * 1000 / allowed.0);
    Ok(Replay {
        state: cohort.state,
        state_reason: cohort.state_reason,
        resumes_to: cohort.resumes_to,
        counts: readings::by_state(pool, id).await?,
        rate_now_per_s: Thousandths(counts.lately * 100),
        allowed_per_s: allowed,
        cap_per_s: plan.as_ref().map(|plan| plan.max_per_s).unwrap_or_default(),
        binding: read("binding").and_then(|binding| serde_json::from_value::<Binding>(binding).ok()),
        in_flight: in_flight(counts.unfinished, feed, read("in_flight").and_then(|value| value.as_f64()), latest),
        max_in_flight: plan.as_ref().map_or(0, |plan| plan.max_in_flight),
        headroom_per_s: Reading {
            value: None,
            source: "capacity".to_owned(),
            as_of: None,
            reason: Some("no_capacity_configured".to_owned()),
        },
        unanswered: counts.publishing,
        epoch: epochs.first().map_or(0, |epoch| epoch.epoch),
        owner: epochs.first().filter(|epoch| !epoch.stopped && !epoch.closed).map(|epoch| epoch.owner.clone()),
        unfenced: epochs
            .iter()
            .filter(|epoch| !epoch.stopped && !epoch.closed)
            .map(|epoch| EpochFacts {
                epoch: epoch.epoch,
                owner: epoch.owner.clone(),
                connection: epoch.connection.clone(),
                standing: "running".to_owned(),
                publishing: epoch.publishing.clone(),
            })
            .collect(),
        decisions: decisions
            .iter()
            .map(|row| Decision { at: row.at.into(), decision: row.decision.clone(), readings: row.readings.clone() })
            .collect(),
        eta_s,
        halted,
    })
}

/// By events where there is a feed, else as the governor last read it from the management API.
#[expect(clippy::cast_precision_loss, reason = "a cohort has at most 10 000 items")]
fn in_flight(
    unfinished: i64,
    feed: Option<time::OffsetDateTime>,
    read: Option<f64>,
    latest: Option<&readings::DecisionRow>,
) -> Reading {
    match (feed, read, latest) {
        (Some(as_of), ..) => Reading {
            value: Some(unfinished as f64),
            source: "events".to_owned(),
            as_of: Some(as_of.into()),
            reason: None,
        },
        (None, Some(value), Some(decision)) => Reading {
            value: Some(value),
            source: "management".to_owned(),
            as_of: Some(decision.at.into()),
            reason: None,
        },
        _ => {
            Reading { value: None, source: "events".to_owned(), as_of: None, reason: Some("no_event_feed".to_owned()) }
        }
    }
}
