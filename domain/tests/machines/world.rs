//! The world: a database's rows, two processes' memories, a broker. The rules under test decide; the world only does
//! what they say, and checks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use domain::cohort::{self, Effect, Trigger};
use domain::item::{self, Answer, Appearance, HandOverFacts, Step};
use domain::lease::{self, Epoch, GenerationFacts};
use domain::recheck::{self, Lane, StartFacts};
use domain::refusal::Code;
use domain::vocabulary::{CohortCommand, CohortState, ItemState, QuarantineState, Verdict};

use crate::act::{Act, Fate};

mod check;
mod process;

/// A rule left out, to see that the invariants notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    SkipEpoch,
    SkipFence,
    SkipClaims,
    SkipFreeze,
    SkipLane,
    SkipApproval,
    RepublishDoubt,
    ReuseGeneration,
}

impl Defect {
    pub(crate) const ALL: &'static [Self] = &[
        Self::SkipEpoch,
        Self::SkipFence,
        Self::SkipClaims,
        Self::SkipFreeze,
        Self::SkipLane,
        Self::SkipApproval,
        Self::RepublishDoubt,
        Self::ReuseGeneration,
    ];
}

/// The job of each message: the first two are one job's.
const JOB_OF: [usize; 5] = [0, 0, 1, 2, 3];
/// The messages of each cohort: the first overlaps with both others, by message and by job; those are apart.
const MESSAGES_OF: [&[usize]; 3] = [&[0, 2, 3], &[1, 4], &[2, 3]];

#[derive(Debug, Clone)]
struct Item {
    message: usize,
    state: ItemState,
    redrive: Option<usize>,
    epoch: Option<i64>,
    was_in_doubt: bool,
}

#[derive(Debug, Clone)]
struct Cohort {
    state: CohortState,
    items: Vec<Item>,
    epochs: Vec<Epoch>,
    resumes_to: Option<CohortState>,
    /// Valid approvals of this revision.
    approvals: u32,
    consumed: bool,
    expired: bool,
    generation: i64,
    stratum: usize,
    /// The place of the running canary in `items`.
    canary: usize,
    verdict: Option<Verdict>,
    extended: bool,
    /// Canaries whose effect was attributed.
    attributed: BTreeSet<usize>,
}

#[derive(Debug, Clone, Default)]
struct Owner {
    epoch: i64,
    unsent: VecDeque<usize>,
    awaiting: VecDeque<usize>,
}

impl Owner {
    /// Nothing is unsent and every publish is answered: it may say *stopped*.
    fn is_idle(&self) -> bool {
        self.unsent.is_empty() && self.awaiting.is_empty()
    }
}

#[derive(Debug, Clone)]
struct Connection {
    cohort: usize,
    epoch: i64,
    open: bool,
    wire: VecDeque<usize>,
    answers: VecDeque<(usize, Answer)>,
}

/// One publish that was written; its place is its redrive id.
#[derive(Debug, Clone)]
struct Publish {
    cohort: usize,
    item: usize,
    generation: i64,
    stored: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    defect: Option<Defect>,
    cohorts: Vec<Cohort>,
    owners: BTreeMap<(usize, usize), Owner>,
    connections: Vec<Connection>,
    publishes: Vec<Publish>,
    message_claims: BTreeMap<usize, usize>,
    job_claims: BTreeMap<usize, usize>,
    frozen: bool,
    counter: i64,
    flagged: BTreeSet<usize>,
    /// What the run came past, for the depth test.
    pub reached: BTreeSet<String>,
}

type Outcome = Result<(), String>;

impl World {
    pub(crate) fn new(defect: Option<Defect>) -> Self {
        let cohorts = MESSAGES_OF.iter().map(|messages| Cohort {
            state: CohortState::Draft,
            items: messages
                .iter()
                .map(|m| Item { message: *m, state: ItemState::Held, redrive: None, epoch: None, was_in_doubt: false })
                .collect(),
            epochs: vec![],
            resumes_to: None,
            approvals: 0,
            consumed: false,
            expired: false,
            generation: 0,
            stratum: 0,
            canary: 0,
            verdict: None,
            extended: false,
            attributed: BTreeSet::new(),
        });
        Self {
            defect,
            cohorts: cohorts.collect(),
            owners: BTreeMap::new(),
            connections: vec![],
            publishes: vec![],
            message_claims: BTreeMap::new(),
            job_claims: BTreeMap::new(),
            frozen: false,
            counter: 0,
            flagged: BTreeSet::new(),
            reached: BTreeSet::new(),
        }
    }

    fn lacks(&self, rule: Defect) -> bool {
        self.defect == Some(rule)
    }

    pub(crate) fn step(&mut self, act: &Act) -> Outcome {
        match *act {
            Act::Command { cohort, command, fair } => self.trigger(cohort, Trigger::Command(command), fair)?,
            Act::Advance { process, cohort, fate } => {
                // who has the lane goes first: the others wait for it
                let running = self.cohorts.iter().position(|cohort| cohort.state.holds_lane());
                self.advance(process, running.unwrap_or(cohort), fate)?;
            }
            Act::LoseApproval { cohort } => self.cohorts[cohort].approvals = 0,
            Act::StartTimePasses { cohort } => {
                self.cohorts[cohort].expired = true;
                self.trigger(cohort, Trigger::StartTimePassed, true)?;
            }
            Act::RunByPasses { cohort } => self.trigger(cohort, Trigger::RunByPassed, true)?,
            // the switch acts at once; that cohorts pause follows when somebody looks
            Act::Freeze(on) => self.frozen = on,
            Act::Take { process, cohort } => self.take(process, cohort)?,
            Act::CloseOlder { owner, arrives } => {
                if let Some((at, below)) = self.owner(owner) {
                    self.close(at.1, below, arrives)?;
                }
            }
            Act::HandOver { owner, item } => {
                if let Some(((process, cohort), _)) = self.owner(owner) {
                    self.hand_over(process, cohort, item)?;
                }
            }
            Act::Send { owner } => {
                if let Some(((process, cohort), _)) = self.owner(owner) {
                    self.send(process, cohort)?;
                }
            }
            Act::Deliver { connection, fate } => self.deliver(connection, fate)?,
            Act::Answer { connection } => self.answer(connection)?,
            Act::TimeOut { owner } => {
                // given up, yet still unanswered: the owner can't say *stopped* for it
                let at = self.owner(owner).map(|(at, _)| at);
                let waiting = at.and_then(|at| self.owners[&at].awaiting.front().copied());
                if let Some(redrive) = waiting {
                    self.item_trigger(redrive, item::Trigger::Lost)?;
                }
            }
            Act::Stop { owner } => {
                if let Some((at, number)) = self.owner(owner)
                    && self.owners[&at].is_idle()
                {
                    self.epoch(at.1, number).stopped = true;
                }
            }
            Act::Crash { process } => self.owners.retain(|(p, _), _| *p != process),
            Act::Evidence { publish, evidence } => {
                let stored = |p: &Publish| p.stored > 0;
                let seen: Vec<_> = (0..self.publishes.len()).filter(|p| stored(&self.publishes[*p])).collect();
                if !seen.is_empty() {
                    let redrive = seen[publish % seen.len()];
                    if evidence == item::Evidence::LateConfirm {
                        self.reached.insert("late confirm".into());
                    }
                    self.item_trigger(redrive, item::Trigger::Evidence(evidence))?;
                }
            }
            Act::Resolve { item, arrived, second_person } => {
                let in_doubt: Vec<usize> = self
                    .cohorts
                    .iter()
                    .flat_map(|cohort| &cohort.items)
                    .filter(|item| item.state == ItemState::InDoubt)
                    .filter_map(|item| item.redrive)
                    .collect();
                if !in_doubt.is_empty() {
                    let redrive = in_doubt[item % in_doubt.len()];
                    let fenced = lease::fenced(&self.cohorts[self.publishes[redrive].cohort].epochs);
                    let trigger = if arrived {
                        item::Trigger::ResolveArrived
                    } else {
                        item::Trigger::ResolveNotPublished { second_person, fenced }
                    };
                    self.item_trigger(redrive, trigger)?;
                }
            }
            Act::Verify { cohort, item, proved, sampled } => {
                let item = item % self.cohorts[cohort].items.len();
                let trigger = if sampled { item::Trigger::Probed { proved } } else { item::Trigger::NotSampled };
                let expanding = matches!(self.cohorts[cohort].state, CohortState::Expanding | CohortState::Settling);
                if let Some(redrive) = self.cohorts[cohort].items[item].redrive.filter(|_| expanding) {
                    self.item_trigger(redrive, trigger)?;
                }
            }
            Act::Judge { cohort, verdict } => self.judge(cohort, verdict)?,
            Act::Tick { cohort } => self.tick(cohort)?,
        }
        Ok(())
    }

    fn facts(&self, c: usize, fair: bool) -> cohort::Facts {
        let cohort = &self.cohorts[c];
        let is_start = cohort.state == CohortState::Approved;
        let lane_taken = self.cohorts.iter().enumerate().any(|(other, o)| other != c && o.state.holds_lane())
            && !self.lacks(Defect::SkipLane);
        let recheck = recheck::recheck(&recheck::Facts {
            start: is_start.then_some(StartFacts { before_expiry: !cohort.expired, consumed: cohort.consumed }),
            digest_matches: true,
            approvals: if self.lacks(Defect::SkipApproval) { 1 } else { cohort.approvals },
            approvals_needed: 1,
            permanent_without_fix: false,
            frozen: self.frozen,
            target: Ok(()),
            lane: if lane_taken { Lane::Taken } else { Lane::Free },
        });
        let scheduled = cohort.items.iter().any(|i| i.state == ItemState::Scheduled);
        cohort::Facts {
            version_matches: true,
            by_author: fair,
            by_approver_of_this: fair,
            submittable: self.submittable(c),
            approvable: if fair { Ok(()) } else { Err(Code::SelfApproval) },
            policy_met: true,
            recheck,
            guards: Ok(()),
            verdict: cohort.verdict,
            extended: cohort.extended,
            strata_left: cohort.stratum == 0 && scheduled && cohort.items.len() > 2,
            next_canary: if scheduled { Ok(()) } else { Err(Code::NoCanaryLeft) },
            canary_valid: fair,
            canary_left_in_each: scheduled,
            resumes_to: cohort.resumes_to,
            cause_gone: !self.frozen,
            fenced: lease::fenced(&cohort.epochs) || self.lacks(Defect::SkipFence),
            handed_over: cohort.items.iter().all(|i| !matches!(i.state, ItemState::Scheduled | ItemState::Publishing)),
            settled: cohort.items.iter().all(|i| i.state.is_settled()),
        }
    }

    fn submittable(&self, c: usize) -> Result<(), Code> {
        if self.lacks(Defect::SkipClaims) {
            return Ok(());
        }
        for item in &self.cohorts[c].items {
            if self.own_state(item.message) != QuarantineState::Held || self.flagged.contains(&item.message) {
                return Err(Code::PreflightRefused);
            }
            if self.message_claims.contains_key(&item.message) {
                return Err(Code::MessageClaimed);
            }
            if self.job_claims.contains_key(&JOB_OF[item.message]) {
                return Err(Code::JobClaimed);
            }
        }
        Ok(())
    }

    fn own_state(&self, message: usize) -> QuarantineState {
        let appearances: Vec<_> = self
            .cohorts
            .iter()
            .flat_map(|cohort| cohort.items.iter().map(|item| (item, cohort.state)))
            .filter(|(item, _)| item.message == message)
            .map(|(item, cohort)| Appearance {
                item: item.state,
                cohort,
                contradicted: self.flagged.contains(&message),
            })
            .collect();
        item::quarantine_state(&appearances, false, false)
    }

    fn trigger(&mut self, c: usize, trigger: Trigger, fair: bool) -> Outcome {
        let facts = self.facts(c, fair);
        let before = self.cohorts[c].state;
        let Ok(transition) = cohort::next(before, trigger, &facts) else { return Ok(()) };
        if before == CohortState::Approved
            && transition.to == CohortState::CanaryRunning
            && self.cohorts[c].approvals == 0
        {
            return Err("a start without a currently valid approval".into());
        }
        if before == CohortState::Draft && transition.to == CohortState::InReview {
            let used = |m: usize| self.publishes.iter().any(|p| self.message_of(p) == m);
            if MESSAGES_OF[c].iter().any(|m| used(*m)) {
                self.reached.insert("taken anew".into());
            }
        }
        for effect in transition.effects {
            self.apply(c, *effect);
        }
        self.cohorts[c].state = transition.to;
        if transition.to != CohortState::Paused {
            self.cohorts[c].resumes_to = None;
        }
        if transition.to == CohortState::CanaryRunning {
            self.cohorts[c].verdict = None;
        }
        self.reached.insert(format!("cohort {}", transition.to));
        Ok(())
    }

    fn apply(&mut self, c: usize, effect: Effect) {
        let next_scheduled = |cohort: &Cohort| cohort.items.iter().position(|i| i.state == ItemState::Scheduled);
        match effect {
            Effect::NewRevision | Effect::VoidApproval => self.cohorts[c].approvals = 0,
            Effect::Claim => {
                for message in MESSAGES_OF[c] {
                    self.message_claims.insert(*message, c);
                    self.job_claims.insert(JOB_OF[*message], c);
                }
            }
            Effect::ReleaseClaims => {
                self.message_claims.retain(|_, holder| *holder != c);
                self.job_claims.retain(|_, holder| *holder != c);
            }
            Effect::AllocateGeneration => {
                self.cohorts[c].approvals = 1;
                let of_jobs = self.publishes.iter().map(|p| p.generation).max().unwrap_or(0);
                let facts = GenerationFacts { source: self.counter, target: self.counter, on_items: 0, of_jobs };
                let next = lease::next_generation(facts).expect("small numbers");
                let next = if self.lacks(Defect::ReuseGeneration) { 1 } else { next };
                self.counter = next;
                self.cohorts[c].generation = next;
            }
            Effect::ConsumeApproval => self.cohorts[c].consumed = true,
            Effect::Schedule => self.each_item(c, item::Trigger::Scheduled),
            Effect::NextStratum => {
                self.reached.insert("second stratum".into());
                self.cohorts[c].stratum += 1;
                self.cohorts[c].canary = next_scheduled(&self.cohorts[c]).expect("the facts said that one is left");
            }
            Effect::RestartCanaries | Effect::NextCanaryItem => {
                self.cohorts[c].canary = next_scheduled(&self.cohorts[c]).expect("the facts said that one is left");
            }
            Effect::ExtendCanary => self.cohorts[c].extended = true,
            Effect::RememberWhere => self.cohorts[c].resumes_to = Some(self.cohorts[c].state),
            Effect::Probation => {}
            Effect::Sweep => self.each_item(c, item::Trigger::Sweep),
        }
    }

    fn each_item(&mut self, c: usize, trigger: item::Trigger) {
        for i in 0..self.cohorts[c].items.len() {
            if let Ok(Step::To(to)) = item::next(self.cohorts[c].items[i].state, trigger) {
                self.set(c, i, to);
            }
        }
    }

    fn set(&mut self, c: usize, i: usize, to: ItemState) {
        let doubt_forgotten = to == ItemState::InDoubt && self.lacks(Defect::RepublishDoubt);
        let item = &mut self.cohorts[c].items[i];
        item.was_in_doubt |= to == ItemState::InDoubt;
        item.state = if doubt_forgotten { ItemState::Scheduled } else { to };
        self.reached.insert(format!("item {to}"));
    }

    fn item_trigger(&mut self, redrive: usize, trigger: item::Trigger) -> Outcome {
        let Publish { cohort, item, .. } = self.publishes[redrive];
        let now = &self.cohorts[cohort].items[item];
        if now.redrive != Some(redrive) && !self.lacks(Defect::RepublishDoubt) {
            return Err(format!("redrive {redrive} was given up for another publish of its item"));
        }
        match item::next(now.state, trigger) {
            Ok(Step::To(to)) => self.set(cohort, item, to),
            Ok(Step::Contradiction) => {
                self.flagged.insert(now.message);
            }
            Ok(Step::Recorded) | Err(_) => {}
        }
        Ok(())
    }

    fn message_of(&self, publish: &Publish) -> usize {
        self.cohorts[publish.cohort].items[publish.item].message
    }
}
