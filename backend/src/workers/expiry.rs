//! What ends by the clock, also when nobody looks: cohorts that weren't started in time, sessions, idempotency keys. Each
//! is judged anyway where it is used.

use crate::{
    app::cohorts::expiry,
    error::Result,
    state::App,
    store::{idempotency, sessions},
};
use std::time::Duration;
use tokio::time::MissedTickBehavior;

const EVERY: Duration = Duration::from_secs(5);

/// Rows that nothing counts any more: there is no hurry.
const FORGET_EVERY: Duration = Duration::from_secs(15 * 60);

/// Sweeps until the process is asked to stop.
pub(super) async fn supervise(app: App) {
    let (mut cohorts, mut rows) = (tokio::time::interval(EVERY), tokio::time::interval(FORGET_EVERY));
    cohorts.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let swept = tokio::select! {
            () = app.shutdown.cancelled() => return,
            _ = cohorts.tick() => expiry::sweep(&app).await.map(drop),
            _ = rows.tick() => forget(&app).await,
        };
        if let Err(error) = swept {
            tracing::warn!(%error, "what may have ended by the clock could not be swept; it is tried again");
        }
    }
}

async fn forget(app: &App) -> Result<()> {
    let (sessions, keys) = (sessions::sweep(&app.store).await?, idempotency::sweep(&app.store).await?);
    tracing::debug!(sessions, keys, "sessions and idempotency keys that had ended were removed");
    Ok(())
}
