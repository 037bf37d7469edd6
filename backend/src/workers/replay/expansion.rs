//! The expansion: the rest, at the governor's rate, while nothing tells it to stop.

use super::{
    hand_over::{Handed, Outcome},
    run::{Run, Stepped},
};
use crate::{
    broker::publisher::MAX_UNANSWERED,
    error::Result,
    store::replays::{Running, probation, publishing::Which, readings},
};
use domain::{
    cohort::Trigger,
    governor::{Governor, Readings},
    vocabulary::ItemState,
};

impl Run {
    /// `expanding`: one batch, as far as rate, in-flight cap and readings allow.
    pub(super) async fn expand(&mut self, running: &Running) -> Result<Stepped> {
        let Some(plan) = &running.draft.expansion else { return Ok(Stepped::Halted("no_expansion_plan".to_owned())) };
        self.prove(running).await?;
        let pool = self.app.store.pool().clone();
        let counts = readings::counts(&pool, self.cohort).await?;
        if counts.scheduled == 0 && counts.publishing == 0 {
            return self.end(running, Trigger::HandedOver, "everything was handed over").await;
        }
        if !self.owner.hold().await? {
            return Ok(Stepped::Elsewhere);
        }
        if counts.publishing > 0 {
            return self.unrecorded().await;
        }
        let limit = match self.probation(running).await? {
            Probation::None => MAX_UNANSWERED,
            Probation::Due => 1,
            Probation::Waiting => return Ok(Stepped::Idle),
            Probation::Failed(reason) => return self.halt(running, reason).await,
        };
        let feed = readings::event_feed(&pool, running.queue_id).await?;
        let (in_flight, source) = match feed {
            Some(_) => (Some(counts.unfinished), "events"),
            None => match self.look(running).await {
                Ok((_, seen)) => (seen.messages, "management"),
                Err(error) => return Ok(Stepped::Halted(format!("no_management_api: {error}"))),
            },
        };
        let at = self.began.elapsed();
        let blocked = self.owner.standing().is_some_and(|publisher| publisher.blocked());
        let governor = self.governor.get_or_insert_with(|| Governor::new(plan, at));
        let allowance = governor.decide(Readings { at, in_flight, blocked });
        let rate = allowance.allowed_per_s.as_f64();
        let reading = serde_json::json!({ "in_flight": in_flight, "in_flight_source": source, "max_in_flight": plan.max_in_flight,
            "allowed_per_s": allowance.allowed_per_s, "cap_per_s": plan.max_per_s, "binding": allowance.binding,
            "scheduled": counts.scheduled, "in_doubt": counts.in_doubt });
        if let Some(reason) = allowance.halted {
            self.decided(&format!("halted: {reason}"), reading).await?;
            return Ok(Stepped::Halted(reason.to_owned()));
        }
        let binding = allowance.binding.map_or("nothing", domain::vocabulary::Binding::as_str);
        self.decided(&format!("rate {rate}/s, bound by {binding}"), reading).await?;
        let now = allowance.now.min(limit);
        if now == 0 {
            return Ok(Stepped::Idle);
        }
        let batch = i64::try_from(now).unwrap_or(1);
        match self.hand_over(running, Which::Next(batch), false).await? {
            Outcome::Not(stepped) => Ok(stepped),
            Outcome::Handed(handed) => {
                if let Some(governor) = &mut self.governor {
                    governor.used(handed.sent);
                }
                self.after(running, &handed).await
            }
        }
    }

    /// A target that refuses, or that nothing reaches, pauses the cohort: a person looks; nothing is retried blindly.
    async fn after(&mut self, running: &Running, handed: &Handed) -> Result<Stepped> {
        if handed.nacked > 0 {
            return self.halt(running, "the target queue refuses messages").await;
        }
        if handed.sent > 0 && handed.returned == handed.sent {
            return self.halt(running, "no queue would get the messages").await;
        }
        Ok(Stepped::HandedOver(handed.sent))
    }

    async fn halt(&mut self, running: &Running, reason: &'static str) -> Result<Stepped> {
        let moved = self.advance(running.state, Trigger::Halted, Some(reason.to_owned())).await?;
        Ok(moved.map_or(Stepped::Idle, Stepped::Moved))
    }

    /// After a resume one item goes first, and the rest waits for what becomes of it.
    async fn probation(&self, running: &Running) -> Result<Probation> {
        if !running.probation {
            return Ok(Probation::None);
        }
        let Some(item) = probation::item(self.app.store.pool(), self.cohort).await? else { return Ok(Probation::Due) };
        let wait_over = item.waited_s >= running.draft.canary.as_ref().map_or(0, |canary| canary.wait_s);
        match item.state {
            ItemState::Returned | ItemState::Nacked | ItemState::Requarantined | ItemState::VerificationFailed => {
                Ok(Probation::Failed("the probation item failed"))
            }
            ItemState::Confirmed if !item.finished && !wait_over => Ok(Probation::Waiting),
            ItemState::Publishing | ItemState::InDoubt => Ok(Probation::Waiting),
            _ => {
                probation::over(self.app.store.pool(), self.cohort).await?;
                Ok(Probation::None)
            }
        }
    }
}

enum Probation {
    None,
    Due,
    Waiting,
    Failed(&'static str),
}
