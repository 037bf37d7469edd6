//! Ends that follow a start: entered only when nothing can go out any more (RULES 3, *Fenced*).

use super::run::{Run, Stepped};
use crate::{
    broker::Management,
    error::Result,
    store::replays::{Running, epochs},
};
use domain::cohort::Trigger;

impl Run {
    /// Stops the own epoch, sees every older one's connection gone, and then moves the cohort, if the rule lets it.
    /// While an epoch can't be fenced it stays where it is, loudly, with the list of what may still go out.
    pub(super) async fn end(&mut self, running: &Running, trigger: Trigger, reason: &str) -> Result<Stepped> {
        let pool = self.app.store.pool().clone();
        self.owner.stop_epoch().await?;
        if !epochs::unfenced(&pool, self.cohort).await?.is_empty() {
            // an epoch that never said stopped: its lease must be ours before its connection is closed
            if !self.owner.hold().await? {
                return Ok(Stepped::Elsewhere);
            }
            let management = match Management::for_broker(&self.app.http, &running.address) {
                Ok(management) => management,
                Err(error) => return Ok(Stepped::Halted(format!("no_management_api: {error}"))),
            };
            if !self.owner.fence_others(&management).await? {
                return Ok(Stepped::Halted("older_epoch_not_fenced".to_owned()));
            }
            if !self.owner.fence_own(&management).await? {
                return Ok(Stepped::Halted("own_epoch_not_fenced".to_owned()));
            }
        }
        match self.advance(running.state, trigger, Some(reason.to_owned())).await? {
            Some(state) => {
                if state.is_terminal() {
                    self.owner.retire().await;
                }
                Ok(Stepped::Moved(state))
            }
            None => Ok(Stepped::Idle),
        }
    }
}
