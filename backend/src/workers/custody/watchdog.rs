//! Says when the database keeps custody waiting: nothing else would, since the channel lives (CASES C10).

use super::{owner, reasons};
use crate::{
    state::App,
    store::{custody::Source, leases::Lease},
};
use domain::vocabulary::CustodyState;
use std::{pin::pin, time::Duration};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How long the database may take over one thing before that is said.
pub(super) const STALLED_AFTER: Duration = Duration::from_secs(10);

/// Whose custody it is, and whether it is to stop.
#[derive(Clone, Copy)]
pub(super) struct Watchdog<'a> {
    pub(super) app: &'a App,
    pub(super) source: &'a Source,
    pub(super) lease: &'a Lease,
    pub(super) stop: &'a CancellationToken,
}

impl Watchdog<'_> {
    /// Waits for the database, and sets `said` if it had to say that custody stalls. `None`: custody was to stop, and
    /// the work isn't done within `patience` from then; a transaction that runs goes on by itself.
    pub(super) async fn wait_for<T>(
        self,
        work: impl Future<Output = T>,
        patience: Duration,
        said: &mut bool,
    ) -> Option<T> {
        let mut work = pin!(work);
        let mut stalled = pin!(sleep(STALLED_AFTER));
        let mut out_of_patience = pin!(async {
            self.stop.cancelled().await;
            sleep(patience).await;
        });
        let mut watching = true;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = &mut out_of_patience => return None,
                () = &mut stalled, if watching => {
                    watching = false;
                    *said = true;
                    self.say(CustodyState::Stopped, Some(reasons::stalled(STALLED_AFTER))).await;
                }
            }
        }
    }

    /// Says how custody is.
    pub(super) async fn say(self, state: CustodyState, reason: Option<String>) {
        owner::state(self.app, self.source, self.lease, state, reason).await;
    }
}
