//! One lease's life: renew it, drain, come back after each loss with back-off, give it up.

use super::drain::{self, Ended};
use crate::{
    app::custody::Unsent,
    state::App,
    store::{
        custody::{self, Source},
        leases::{self, Lease},
    },
};
use domain::vocabulary::CustodyState;
use std::time::Duration;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// The first wait after a loss.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait between tries: a broker that is back is used again within this.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Drains under the lease until it is lost, custody is switched off, or the process is asked to stop.
pub(super) async fn own(app: App, source: Source, lease: Lease) {
    let stop = app.shutdown.child_token();
    let kept = AbortOnDropHandle::new(tokio::spawn(keep(app.clone(), source.clone(), lease.clone(), stop.clone())));
    let mut unsent = Unsent::default();
    let mut wait = FIRST_WAIT;
    while !stop.is_cancelled() {
        match drain::drain(&app, &source, &lease, &mut unsent, &stop).await {
            Ended::Stopped | Ended::LeaseLost => break,
            Ended::Again => wait = FIRST_WAIT,
            Ended::Lost { reason, drained } => {
                if drained {
                    wait = FIRST_WAIT;
                }
                tracing::warn!(dead_letter_queue = source.name, reason, "draining stopped; it is tried again");
                state(&app, &source, &lease, CustodyState::Stopped, Some(reason)).await;
            }
        }
        // jitter, so that a broker that comes back isn't met by all at once
        let jittered = wait.mul_f64(rand::random_range(0.5..1.0));
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(jittered) => {}
        }
        wait = (wait * 2).min(LONGEST_WAIT);
    }
    stop.cancel();
    // its end is ours: it only renews
    drop(kept.await);
    state(&app, &source, &lease, CustodyState::Waiting, None).await;
    if let Err(error) = leases::release(&app.store, &lease).await {
        tracing::warn!(%error, dead_letter_queue = source.name, "the lease couldn't be given back; it runs out by itself");
    }
}

/// Says how custody is; a page that is a moment behind is no reason to stop draining.
pub(super) async fn state(app: &App, source: &Source, lease: &Lease, state: CustodyState, reason: Option<String>) {
    if let Err(error) = custody::set_state(&app.store, source.id, lease.epoch, state, reason).await {
        tracing::warn!(%error, dead_letter_queue = source.name, state = state.as_str(), "the state couldn't be written");
    }
}

/// Renews the lease, and ends the owner when another has it or custody is switched off.
async fn keep(app: App, source: Source, lease: Lease, stop: CancellationToken) {
    loop {
        tokio::select! {
            // what the owner still stores on its way out is checked against the epoch, whoever has the lease
            () = stop.cancelled() => return,
            () = tokio::time::sleep(leases::RENEW_EVERY) => {}
        }
        // while the database is away nothing can be stored either; the epoch decides when it is back
        match leases::renew(&app.store, &lease).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(
                    dead_letter_queue = source.name,
                    epoch = lease.epoch,
                    "another process has taken custody over"
                );
                stop.cancel();
            }
            Err(error) => tracing::warn!(%error, dead_letter_queue = source.name, "the lease couldn't be renewed"),
        }
        match custody::is_wanted(&app.store, source.id).await {
            Ok(true) => {}
            Ok(false) => stop.cancel(),
            Err(error) => tracing::warn!(%error, "custody's switch couldn't be read"),
        }
    }
}
