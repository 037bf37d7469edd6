//! Cohorts that weren't started in time expire, also when nobody looks. Each command judges its own cohort anyway.

use crate::{app::cohorts::expiry, state::App};
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(5);

/// Sweeps until the process is asked to stop.
pub(super) async fn supervise(app: App) {
    loop {
        tokio::select! {
            () = app.shutdown.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        if let Err(error) = expiry::sweep(&app).await {
            tracing::warn!(%error, "cohorts that may have expired could not be swept; it is tried again");
        }
    }
}
