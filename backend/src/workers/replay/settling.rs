//! What became of messages after their hand-over: proved, left out of the sample, or failed at their deadline.

use super::run::{Run, Stepped};
use crate::{
    app::probes::run as probes,
    error::Result,
    store::{
        cohorts::items::{self, Step},
        replays::{Running, canaries, evidence, readings},
    },
};
use domain::{api::Attribution, canary, cohort::Trigger, ids::ItemId, vocabulary::ItemState};

/// How many probes are asked in one step.
const ASK_AT_ONCE: usize = 8;
/// How many open items a step looks at.
const LOOK_AT: i64 = 200;

impl Run {
    /// Settles what can be settled, by events and probe.
    pub(super) async fn prove(&mut self, running: &Running) -> Result<()> {
        let Some(plan) = &running.draft.canary else { return Ok(()) };
        let pool = self.app.store.pool().clone();
        let open = evidence::open(&pool, self.cohort, plan.wait_s, LOOK_AT).await?;
        self.probed_at.retain(|item, _| open.iter().any(|o| o.item == *item));
        let column = self.redrive_column(plan).await?;
        // the plan's reviewers accepted it, and no feed could tell better
        let by_exclusion = plan.attribution == Attribution::ByExclusion
            && readings::event_feed(&pool, running.queue_id).await?.is_none();
        let mut asked = 0;
        for item in open {
            if item.state == ItemState::Confirmed && !item.verify {
                // a worker has dealt with it, or its time is over: nothing more is looked for
                if item.finished || item.deadline_passed {
                    let step = Step::new("rule", "not in the plan's verification sample");
                    self.settle_item(item.item, ItemState::Confirmed, ItemState::Unverified, step).await?;
                }
                continue;
            }
            if asked == ASK_AT_ONCE || !self.may_ask(item.item) {
                continue;
            }
            asked += 1;
            let Some(sample) = self.ask(plan, item.job_id.as_ref()).await?.as_ref().and_then(probes::sample) else {
                continue;
            };
            let carries = column.as_ref().is_some_and(|column| canary::carries(&sample.rows, column, item.redrive_id));
            if item.state == ItemState::InDoubt {
                if carries {
                    let step = Step::new("probe", "a row of the probe carries its redrive id");
                    self.settle_item(item.item, ItemState::InDoubt, ItemState::Confirmed, step).await?;
                }
                continue;
            }
            let fresh = item.confirmed_at.is_some_and(|at| sample.as_of >= at);
            let payload = canaries::evidence(&pool, item.quarantine_id).await?;
            let holds =
                canary::judge(&sample.rows, &plan.expect, payload.as_ref()).iter().all(|r| r.holds == Some(true));
            let attributed = carries
                || evidence::told(&pool, item.redrive_id).await?.effect
                || (by_exclusion && !canaries::other_message_alive(&pool, item.item).await?);
            if fresh && holds && attributed && !plan.expect.is_empty() {
                let step = Step::new("probe", "its effect is proved");
                self.settle_item(item.item, ItemState::Confirmed, ItemState::Verified, step).await?;
            } else if fresh && item.deadline_passed {
                let step = Step::new("probe", "its effect is absent, other, or not this redrive's at its deadline")
                    .because("deadline");
                self.settle_item(item.item, ItemState::Confirmed, ItemState::VerificationFailed, step).await?;
            }
        }
        Ok(())
    }

    async fn settle_item(&self, item: ItemId, from: ItemState, to: ItemState, step: Step<'static>) -> Result<()> {
        self.app
            .store
            .tx(move |tx| {
                Box::pin(async move {
                    items::move_item(tx, item, &[from], to, step).await?;
                    Ok(())
                })
            })
            .await
    }

    /// `settling`: everything was handed over; the last open items are waited for.
    pub(super) async fn settle(&mut self, running: &Running) -> Result<Stepped> {
        self.prove(running).await?;
        self.end(running, Trigger::Settled, "every item is settled").await
    }
}
