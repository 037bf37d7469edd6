//! One cohort's replay in this process: a step reads the state and does what comes next.

use super::{owner::Owner, target::Target};
use crate::{
    error::Result,
    state::App,
    store::replays::{self, Running, advance::advance, evidence, readings},
};
use domain::{cohort::Trigger, governor::Governor, ids::CohortId, vocabulary::CohortState};
use std::time::Duration;
use tokio::time::Instant;

/// How long the broker may take to answer a publish; then it is in doubt.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// A decision is kept when it changes, and at least so often.
const KEEP_EVERY: Duration = Duration::from_secs(10);

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stepped {
    /// The cohort isn't running (any more).
    Gone,
    /// Another process owns it.
    Elsewhere,
    /// So many messages were handed over and answered.
    HandedOver(usize),
    /// The cohort moved to this state.
    Moved(CohortState),
    /// Nothing to do now.
    Idle,
    /// It would hand over, and something is missing.
    Halted(String),
}

impl Stepped {
    /// How long to wait for the next step.
    pub(super) const fn pause(&self) -> Duration {
        match self {
            Self::HandedOver(_) | Self::Moved(_) => Duration::from_millis(20),
            Self::Idle => Duration::from_millis(100),
            Self::Elsewhere | Self::Halted(_) | Self::Gone => Duration::from_millis(500),
        }
    }
}

/// One cohort's replay in this process. What it remembers may be lost at any moment; what counts is in the database.
pub struct Run {
    pub(super) app: App,
    pub(super) cohort: CohortId,
    pub(super) owner: Owner,
    pub(super) target: Target,
    pub(super) governor: Option<Governor>,
    pub(super) began: Instant,
    pub(super) probed_at: std::collections::HashMap<domain::ids::ItemId, Instant>,
    last_decision: Option<(String, Instant)>,
}

impl Run {
    /// Of one cohort, by a process of that name.
    #[must_use]
    pub fn new(app: App, cohort: CohortId, owner: String, answer_within: Duration) -> Self {
        Self {
            owner: Owner::new(app.clone(), cohort, owner, answer_within),
            app,
            cohort,
            target: Target::default(),
            governor: None,
            began: Instant::now(),
            probed_at: std::collections::HashMap::new(),
            last_decision: None,
        }
    }

    /// One step. The lease is renewed while it takes.
    ///
    /// # Errors
    /// The database's; the next step starts from what was committed.
    pub async fn step(&mut self) -> Result<Stepped> {
        let Some(running) = replays::load(self.app.store.pool(), self.cohort).await? else {
            self.stop().await;
            return Ok(Stepped::Gone);
        };
        let renewing = self.owner.renewing();
        let stepped = {
            let step = self.act(&running);
            tokio::pin!(step);
            tokio::select! {
                stepped = &mut step => stepped,
                never = renewing => match never {},
            }
        }?;
        if let Stepped::Halted(reason) = &stepped {
            let reason = format!("halted: {reason}");
            self.decided(&reason, serde_json::json!({ "state": running.state })).await?;
        }
        Ok(stepped)
    }

    async fn act(&mut self, running: &Running) -> Result<Stepped> {
        self.evidence().await?;
        if let Some(moved) = self.by_the_clock(running).await? {
            return Ok(moved);
        }
        match running.state {
            CohortState::CanaryRunning => self.canary(running).await,
            CohortState::CanaryVerifying => self.verify_canary(running).await,
            CohortState::Expanding => self.expand(running).await,
            CohortState::Aborting => self.end(running, Trigger::Fenced, "aborted; nothing can go out any more").await,
            CohortState::Settling => self.settle(running).await,
            // what was handed over before may still be proved
            CohortState::Paused | CohortState::CanaryPassed => {
                self.prove(running).await?;
                Ok(Stepped::Idle)
            }
            _ => Ok(Stepped::Idle),
        }
    }

    /// What time and freezes do, whoever owns the replay: the cohort's row is locked for it.
    async fn by_the_clock(&self, running: &Running) -> Result<Option<Stepped>> {
        let trigger = if running.overdue {
            (Trigger::RunByPassed, "its time to run by is over".to_owned())
        } else if let Some(reason) = &running.frozen {
            (Trigger::Frozen, format!("frozen: {reason}"))
        } else {
            return Ok(None);
        };
        Ok(self.advance(running.state, trigger.0, Some(trigger.1)).await?.map(Stepped::Moved))
    }

    /// Moves the cohort by RULES 3; `None` when it isn't so any more, or the rule says no.
    pub(super) async fn advance(
        &self,
        from: CohortState,
        trigger: Trigger,
        reason: Option<String>,
    ) -> Result<Option<CohortState>> {
        let cohort = self.cohort;
        self.app
            .store
            .tx(move |tx| Box::pin(async move { advance(tx, cohort, from, trigger, reason.as_deref()).await }))
            .await
    }

    /// Worker events and new dead letters that came in since: anyone may append them.
    async fn evidence(&self) -> Result<()> {
        let (pool, cohort) = (self.app.store.pool(), self.cohort);
        evidence::finish(pool, cohort).await?;
        let (dead, seen, contradicted) = (
            evidence::died_again(pool, cohort).await?,
            evidence::seen_by_workers(pool, cohort).await?,
            evidence::contradicted(pool, cohort).await?,
        );
        if dead.is_empty() && seen.is_empty() && contradicted.is_empty() {
            return Ok(());
        }
        let epoch = self.owner.epoch();
        self.app
            .store
            .tx(move |tx| {
                Box::pin(async move {
                    evidence::requarantine(tx, &dead, epoch).await?;
                    evidence::arrived(tx, &seen, "event", "a worker reported its redrive id").await?;
                    for item in contradicted {
                        evidence::published_twice(tx, cohort, item).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Keeps a decision where it differs from the last one, or that one is old.
    pub(super) async fn decided(&mut self, decision: &str, readings: serde_json::Value) -> Result<()> {
        let old = self.last_decision.as_ref().is_none_or(|(last, at)| last != decision || at.elapsed() >= KEEP_EVERY);
        if old {
            readings::decided(self.app.store.pool(), self.cohort, self.owner.epoch(), decision, &readings).await?;
            self.last_decision = Some((decision.to_owned(), Instant::now()));
        }
        Ok(())
    }

    /// Gives the cohort up in good order: what is answered is stopped, the lease is free for the next.
    pub async fn stop(&mut self) {
        self.owner.retire().await;
    }
}
