//! What the database's clock does to a cohort: `expires_at` before a start, judged at each command and by a sweep.

use crate::{
    actor::Actor,
    error::Result,
    state::App,
    store::{
        Tx, audit,
        cohorts::{self, Entering},
    },
};
use domain::{
    cohort::{self as machine, Facts, Trigger},
    ids::CohortId,
    vocabulary::{Action, CohortState},
};

/// Expires this cohort if its time has passed, in a transaction of its own, so that a refused command finds it expired.
///
/// # Errors
/// The database's.
pub async fn judge(app: &App, id: CohortId) -> Result<()> {
    if !cohorts::is_overdue(app.store.pool(), id).await? {
        return Ok(());
    }
    app.store.tx(move |tx| Box::pin(async move { expire(tx, id).await })).await
}

/// Expires every cohort whose time has passed; how many did. A sweeper's step.
///
/// # Errors
/// The database's.
pub async fn sweep(app: &App) -> Result<usize> {
    let overdue = cohorts::overdue(app.store.pool()).await?;
    for id in &overdue {
        judge(app, *id).await?;
    }
    Ok(overdue.len())
}

async fn expire(tx: &mut Tx, id: CohortId) -> Result<()> {
    let cohort = cohorts::load_for_update(tx, id).await?;
    let now = cohorts::database_now(tx).await?;
    if cohort.expires_at.is_none_or(|expires_at| now < expires_at) {
        return Ok(());
    }
    let Ok(transition) = machine::next(cohort.state, Trigger::StartTimePassed, &Facts::UNKNOWN) else { return Ok(()) };
    let reason = "not started in time";
    let entering = Entering { state: transition.to, resumes_to: None, reason: Some(reason), by: None };
    cohorts::set_state(tx, id, entering).await?;
    let entry = audit::Entry::new(Action::CohortExpired, "cohort", id)
        .named(&cohort.draft.title)
        .before(serde_json::json!({ "state": cohort.state }))
        .after(serde_json::json!({ "state": CohortState::Expired, "expires_at": cohort.expires_at.map(domain::api::Timestamp) }))
        .because(reason);
    audit::done(tx, &Actor::system(), entry).await
}
