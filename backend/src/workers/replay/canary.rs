//! The canary stage: one inspected message per stratum, published only where its effect is absent, judged by its effect.

use super::{
    hand_over::Outcome,
    run::{Run, Stepped},
};
use crate::{
    actor::Actor,
    app::probes::run as probes,
    error::Result,
    store::{
        audit,
        cohorts::items::{self, Step},
        replays::{
            Running, advance,
            canaries::{self, InHand},
            evidence,
            publishing::Which,
            readings,
        },
    },
};
use domain::{
    api::{Attribution, CanaryPlan, ProbeDefinition, ProbeSample},
    canary::{self, Attributed, Before, Facts, Judgement},
    cohort::Trigger,
    kind,
    vocabulary::{Action, CohortState, ItemState, Kind, Verdict},
};
use std::time::Duration;
use tokio::time::Instant;

/// How often a probe is asked about one item.
pub(super) const ASK_EVERY: Duration = Duration::from_secs(1);

impl Run {
    /// `canary_running`: publish the stratum's canary, or see it answered.
    pub(super) async fn canary(&mut self, running: &Running) -> Result<Stepped> {
        let Some(plan) = &running.draft.canary else { return Ok(Stepped::Halted("no_canary_plan".to_owned())) };
        if !self.owner.hold().await? {
            return Ok(Stepped::Elsewhere);
        }
        let pool = self.app.store.pool().clone();
        let in_hand = canaries::in_hand(&pool, self.cohort, running.stratum).await?.filter(|c| c.verdict.is_none());
        let item = match &in_hand {
            Some(canary) if canary.state == ItemState::Scheduled => canary.item,
            Some(canary) if canary.state == ItemState::Publishing => return self.unrecorded().await,
            Some(canary) if canary.state == ItemState::InDoubt => {
                self.prove(running).await?;
                return Ok(Stepped::Idle);
            }
            Some(canary) if canary.state != ItemState::Held => return self.answered(canary, plan.wait_s).await,
            _ => match canaries::pick(&pool, self.cohort, running.stratum, &plan.items).await? {
                Some(item) => item,
                None => return Ok(Stepped::Halted("no_canary_left".to_owned())),
            },
        };
        if !self.may_ask(item) {
            return Ok(Stepped::Idle);
        }
        let candidates = crate::store::replays::publishing::candidates(&pool, self.cohort, Which::One(item)).await?;
        let Some(candidate) = candidates.into_iter().next() else { return Ok(Stepped::Idle) };
        let Some(probe) = self.ask(plan, candidate.job_id.as_ref()).await? else {
            return Ok(Stepped::Halted("probe_missing".to_owned()));
        };
        let Some(sample) = probes::sample(&probe) else {
            let detail = probe.detail.unwrap_or_default();
            return Ok(Stepped::Halted(format!("probe_no_data: {detail}")));
        };
        let payload = canaries::evidence(&pool, candidate.quarantine_id).await?;
        let (cohort, stratum) = (self.cohort, running.stratum);
        self.app
            .store
            .tx(move |tx| Box::pin(async move { canaries::open(tx, cohort, stratum, item, &probe).await }))
            .await?;
        if canary::before(&sample, &plan.expect, payload.as_ref()) == Before::AlreadyEffective {
            self.refuse(item, "already_effective", "the probe finds its effect now; it isn't sent").await?;
            return Ok(Stepped::Idle);
        }
        match self.hand_over(running, Which::One(item), true).await? {
            Outcome::Not(stepped) => Ok(stepped),
            Outcome::Handed(handed) => Ok(Stepped::HandedOver(handed.sent)),
        }
    }

    /// The canary was confirmed, or settled otherwise: its wait begins.
    async fn answered(&self, canary: &InHand, wait_s: i64) -> Result<Stepped> {
        let (cohort, item) = (self.cohort, canary.item);
        let moved = self
            .app
            .store
            .tx(move |tx| {
                Box::pin(async move {
                    canaries::start_waiting(tx, item, wait_s).await?;
                    advance::advance(tx, cohort, CohortState::CanaryRunning, Trigger::CanaryAnswered, None).await
                })
            })
            .await?;
        Ok(moved.map_or(Stepped::Idle, Stepped::Moved))
    }

    /// `canary_verifying`: ask the probe, judge, and on a failure end the cohort, fenced.
    pub(super) async fn verify_canary(&mut self, running: &Running) -> Result<Stepped> {
        let Some(plan) = &running.draft.canary else { return Ok(Stepped::Halted("no_canary_plan".to_owned())) };
        let pool = self.app.store.pool().clone();
        let Some(canary) = canaries::in_hand(&pool, self.cohort, running.stratum).await? else {
            return Ok(Stepped::Idle);
        };
        match canary.verdict.as_deref() {
            Some("fail") => {
                return self.end(running, Trigger::Judged(Verdict::Fail), "the canary failed").await;
            }
            Some(_) => return Ok(Stepped::Idle),
            None => {}
        }
        if !self.owner.hold().await? {
            return Ok(Stepped::Elsewhere);
        }
        // what settled otherwise needs no answer
        let awaited = canary.state == ItemState::Confirmed;
        if awaited && !canary.deadline_passed && !self.may_ask(canary.item) {
            return Ok(Stepped::Idle);
        }
        let asked = if awaited { self.ask(plan, canary.job_id.as_ref()).await? } else { None };
        let payload = canaries::evidence(&pool, canary.quarantine_id).await?;
        let sample = asked.as_ref().and_then(probes::sample);
        let found = sample.as_ref().map(|s| canary::judge(&s.rows, &plan.expect, payload.as_ref())).unwrap_or_default();
        if let (Some(asked), true) = (&asked, sample.is_some()) {
            canaries::sampled(&pool, canary.item, asked, &found).await?;
        }
        let told = match canary.redrive_id {
            Some(redrive) => evidence::told(&pool, redrive).await?,
            None => evidence::Told::default(),
        };
        let before = canary.before.clone().and_then(|b| serde_json::from_value::<ProbeSample>(b).ok());
        let before = before.and_then(|sample| sample.rows).unwrap_or_default();
        let by_exclusion = plan.attribution == Attribution::ByExclusion
            && readings::event_feed(&pool, running.queue_id).await?.is_none()
            && !canaries::other_message_alive(&pool, canary.item).await?;
        let permanent = if told.failed_classes.is_empty() {
            false
        } else {
            let policy = canaries::retry_policy(&pool, running.queue_id).await?;
            told.failed_classes.iter().any(|class| kind::judge(&policy, class.as_deref()) == Kind::Permanent)
        };
        let column = self.redrive_column(plan).await?;
        let row_carries_id = match (&sample, column, canary.redrive_id) {
            (Some(sample), Some(column), Some(id)) => canary::carries(&sample.rows, &column, id),
            _ => false,
        };
        let least = running.draft.condition_fixed.as_ref().and_then(|fixed| fixed.min_worker_version.as_deref());
        let version_counts =
            least.is_none_or(|least| told.worker_version.as_ref().is_some_and(|v| canary::is_at_least(v, least)));
        let version_awaited =
            told.worker_version.is_none() && readings::event_feed(&pool, running.queue_id).await?.is_some();
        let judgement = canary::judge_canary(&Facts {
            item: canary.state,
            confirmed_at: canary.confirmed_at,
            before: &before,
            sample: sample.as_ref(),
            expectations: &plan.expect,
            evidence: payload.as_ref(),
            effect_event: told.effect,
            row_carries_id,
            exclusion: by_exclusion,
            version_counts,
            version_awaited,
            permanent_failure: permanent,
            deadline_passed: canary.deadline_passed,
        });
        match judgement {
            Judgement::Wait => Ok(Stepped::Idle),
            Judgement::Verdict(verdict, reason, by) => {
                self.judged(running, &canary, verdict, reason, by, told.worker_version).await
            }
        }
    }

    async fn judged(
        &self,
        running: &Running,
        canary: &InHand,
        verdict: Verdict,
        reason: Option<&'static str>,
        by: Option<Attributed>,
        worker_version: Option<String>,
    ) -> Result<Stepped> {
        let (cohort, item, stratum, title) = (self.cohort, canary.item, running.stratum, running.title.clone());
        // what wasn't sent says why: `already_effective`, `unpublishable` …
        let why = match reason {
            Some("not_sent") => canary.state_reason.clone().or_else(|| reason.map(str::to_owned)),
            reason => reason.map(str::to_owned),
        };
        let moved = self
            .app
            .store
            .tx(move |tx| {
                Box::pin(async move {
                    let by = by.map(Attributed::as_str);
                    if !canaries::judged(tx, item, verdict, why.as_deref(), by, worker_version.as_deref()).await? {
                        return Ok(None);
                    }
                    let entry = audit::Entry::new(Action::CanaryJudged, "cohort", cohort).named(title).after(
                        serde_json::json!({ "verdict": verdict, "reason": why, "item": item, "stratum": stratum,
                          "attributed_by": by, "worker_version": worker_version }),
                    );
                    audit::done(tx, &Actor::system(), entry).await?;
                    match verdict {
                        Verdict::Pass => {
                            let proved = Step::new("probe", "its effect is proved");
                            items::move_item(tx, item, &[ItemState::Confirmed], ItemState::Verified, proved).await?;
                            advance::advance(tx, cohort, CohortState::CanaryVerifying, Trigger::Judged(verdict), None)
                                .await
                        }
                        Verdict::Fail => {
                            let other = Step::new("probe", "its effect isn't as expected").because("contradicted");
                            if reason == Some("contradicted") {
                                items::move_item(
                                    tx,
                                    item,
                                    &[ItemState::Confirmed],
                                    ItemState::VerificationFailed,
                                    other,
                                )
                                .await?;
                            }
                            // the cohort ends when it is fenced
                            Ok(None)
                        }
                        Verdict::Inconclusive => {
                            crate::store::notify(tx, "cohorts", Some(cohort.0)).await?;
                            Ok(None)
                        }
                    }
                })
            })
            .await?;
        Ok(moved.map_or(Stepped::Idle, Stepped::Moved))
    }

    /// Asks the plan's probe about a job; `None` where there is no such probe or no job id.
    pub(super) async fn ask(
        &self,
        plan: &CanaryPlan,
        job: Option<&domain::ids::AppName>,
    ) -> Result<Option<ProbeSample>> {
        let (Some(definition), Some(job)) = (canaries::probe(self.app.store.pool(), &plan.probe).await?, job) else {
            return Ok(None);
        };
        Ok(Some(probes::ask(&self.app.clock, &definition, job).await))
    }

    /// The column of the probe's rows that carries redrive ids.
    pub(super) async fn redrive_column(&self, plan: &CanaryPlan) -> Result<Option<String>> {
        Ok(canaries::probe(self.app.store.pool(), &plan.probe).await?.and_then(|probe| match probe {
            ProbeDefinition::Sql { redrive_id_column, .. } => redrive_id_column,
        }))
    }

    /// Whether enough time passed to ask about this item again; remembers that it is asked.
    pub(super) fn may_ask(&mut self, item: domain::ids::ItemId) -> bool {
        let due = self.probed_at.get(&item).is_none_or(|at| at.elapsed() >= ASK_EVERY);
        if due {
            self.probed_at.insert(item, Instant::now());
        }
        due
    }
}
