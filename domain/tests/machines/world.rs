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

    /// What a hurried on-call engineer, a healthy process and the broker would do next.
    fn advance(&mut self, process: usize, c: usize, fate: Fate) -> Outcome {
        use CohortCommand as Do;
        let command = match self.cohorts[c].state {
            CohortState::Draft => Do::Submit,
            CohortState::InReview => Do::Approve,
            CohortState::Approved => Do::StartCanary,
            CohortState::CanaryPassed => Do::Expand,
            CohortState::Paused => Do::Resume,
            CohortState::CanaryVerifying => return self.judge(c, Verdict::Pass),
            CohortState::CanaryRunning | CohortState::Expanding => return self.work(process, c, fate),
            _ => return self.tick(c),
        };
        self.trigger(c, Trigger::Command(command), true)
    }

    fn work(&mut self, process: usize, c: usize, fate: Fate) -> Outcome {
        let newest = self.cohorts[c].epochs.iter().map(|e| e.number).max();
        let (owned, epoch) = match self.owners.iter().find(|((_, of), o)| *of == c && Some(o.epoch) == newest) {
            Some(((process, _), owner))
                if lease::unfenced(&self.cohorts[c].epochs).any(|e| e.number == owner.epoch) =>
            {
                (*process, owner.epoch)
            }
            _ => return self.take(process, c),
        };
        let of_epoch = |x: &Connection| x.cohort == c && x.epoch == epoch;
        if lease::unfenced(&self.cohorts[c].epochs).any(|e| e.number < epoch) {
            return self.close(c, epoch, true);
        }
        if !self.owners[&(owned, c)].unsent.is_empty() {
            return self.send(owned, c);
        }
        if let Some(at) = self.connections.iter().position(|x| of_epoch(x) && !x.wire.is_empty()) {
            return self.read_wire(at, fate);
        }
        if let Some(at) = self.connections.iter().position(|x| of_epoch(x) && !x.answers.is_empty()) {
            return self.read_answer(at);
        }
        match self.cohorts[c].items.iter().position(|i| i.state == ItemState::Scheduled) {
            Some(next) if self.cohorts[c].state == CohortState::Expanding => self.hand_over(owned, c, next),
            _ if self.cohorts[c].items[self.cohorts[c].canary].state == ItemState::Scheduled => {
                self.hand_over(owned, c, 0)
            }
            _ => self.tick(c),
        }
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
            .map(|(item, cohort)| Appearance { item: item.state, cohort })
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

    /// One of the owners that live in a process, by number, with its epoch.
    fn owner(&self, n: usize) -> Option<((usize, usize), i64)> {
        let at = n.checked_rem(self.owners.len())?;
        self.owners.iter().nth(at).map(|(at, owner)| (*at, owner.epoch))
    }

    fn epoch(&mut self, cohort: usize, number: i64) -> &mut Epoch {
        let epochs = &mut self.cohorts[cohort].epochs;
        epochs.iter_mut().find(|e| e.number == number).expect("owners hold known epochs")
    }

    fn take(&mut self, process: usize, c: usize) -> Outcome {
        if !self.cohorts[c].state.holds_lane() {
            return Ok(());
        }
        let number = self.cohorts[c].epochs.iter().map(|e| e.number).max().unwrap_or(0) + 1;
        // the old epoch's publishing items are swept in the same transaction
        for i in 0..self.cohorts[c].items.len() {
            if self.cohorts[c].items[i].state == ItemState::Publishing {
                self.reached.insert("takeover while publishing".into());
                let redrive = self.cohorts[c].items[i].redrive.ok_or("publishing without a redrive id")?;
                self.item_trigger(redrive, item::Trigger::Sweep)?;
            }
        }
        self.cohorts[c].epochs.push(Epoch { number, stopped: false, seen_gone: false });
        self.owners.insert((process, c), Owner { epoch: number, ..Owner::default() });
        self.connections.push(Connection {
            cohort: c,
            epoch: number,
            open: true,
            wire: VecDeque::new(),
            answers: VecDeque::new(),
        });
        Ok(())
    }

    /// Closes the cohort's connections of epochs below `below` at the broker and sees them gone.
    fn close(&mut self, cohort: usize, below: i64, arrives: bool) -> Outcome {
        for at in 0..self.connections.len() {
            let connection = &self.connections[at];
            if connection.cohort != cohort || connection.epoch >= below || !connection.open {
                continue;
            }
            while arrives && !self.connections[at].wire.is_empty() {
                self.read_wire(at, Fate::Stored)?;
            }
            let connection = &mut self.connections[at];
            connection.open = false;
            connection.wire.clear();
            connection.answers.clear();
            let number = connection.epoch;
            self.epoch(cohort, number).seen_gone = true;
        }
        Ok(())
    }

    fn hand_over(&mut self, process: usize, c: usize, i: usize) -> Outcome {
        let Some(owner) = self.owners.get(&(process, c)) else { return Ok(()) };
        let epoch = owner.epoch;
        let cohort = &self.cohorts[c];
        // in the canary stage the owner goes for the running canary
        let i = if cohort.state == CohortState::CanaryRunning { cohort.canary } else { i % cohort.items.len() };
        let check = item::may_hand_over(&HandOverFacts {
            cohort: cohort.state,
            is_running_canary: i == cohort.canary,
            epoch_may_publish: lease::may_publish(&cohort.epochs, epoch) || self.lacks(Defect::SkipEpoch),
            frozen: self.frozen && !self.lacks(Defect::SkipFreeze),
            unanswered: cohort.items.iter().filter(|i| i.state == ItemState::Publishing).count() as u32,
        });
        if item::next(cohort.items[i].state, item::Trigger::HandOver(check)) != Ok(Step::To(ItemState::Publishing)) {
            return Ok(());
        }
        if self.frozen {
            return Err("something new is publishing after a freeze".into());
        }
        if cohort.items[i].was_in_doubt {
            return Err("an item in doubt is published again".into());
        }
        let redrive = self.publishes.len();
        self.publishes.push(Publish { cohort: c, item: i, generation: cohort.generation, stored: 0 });
        let item = &mut self.cohorts[c].items[i];
        item.redrive = Some(redrive);
        item.epoch = Some(epoch);
        self.set(c, i, ItemState::Publishing);
        if let Some(owner) = self.owners.get_mut(&(process, c)) {
            owner.unsent.push_back(redrive);
        }
        Ok(())
    }

    fn send(&mut self, process: usize, c: usize) -> Outcome {
        let Some(owner) = self.owners.get_mut(&(process, c)) else { return Ok(()) };
        let epoch = owner.epoch;
        let Some(redrive) = owner.unsent.pop_front() else { return Ok(()) };
        owner.awaiting.push_back(redrive);
        match self.connections.iter_mut().find(|x| x.cohort == c && x.epoch == epoch && x.open) {
            Some(connection) => connection.wire.push_back(redrive),
            None => {
                owner.awaiting.pop_back();
                self.item_trigger(redrive, item::Trigger::Lost)?;
            }
        }
        Ok(())
    }

    fn deliver(&mut self, at: usize, fate: Fate) -> Outcome {
        let busy: Vec<_> = (0..self.connections.len()).filter(|x| !self.connections[*x].wire.is_empty()).collect();
        if busy.is_empty() { Ok(()) } else { self.read_wire(busy[at % busy.len()], fate) }
    }

    fn read_wire(&mut self, at: usize, fate: Fate) -> Outcome {
        let connection = &mut self.connections[at];
        let Some(redrive) = connection.wire.pop_front() else { return Ok(()) };
        let answer = match fate {
            Fate::Stored => Answer::Confirmed,
            Fate::Unroutable => Answer::Returned,
            Fate::Refused { not_stored } => Answer::Nacked { not_stored },
        };
        connection.answers.push_back((redrive, answer));
        let cohort = self.publishes[redrive].cohort;
        if self.cohorts[cohort].state.is_terminal() {
            return Err(format!("a publish reaches the broker after {}", self.cohorts[cohort].state));
        }
        if matches!(fate, Fate::Stored | Fate::Refused { not_stored: false }) {
            self.publishes[redrive].stored += 1;
        }
        Ok(())
    }

    fn answer(&mut self, at: usize) -> Outcome {
        let ready: Vec<_> = (0..self.connections.len()).filter(|x| !self.connections[*x].answers.is_empty()).collect();
        if ready.is_empty() { Ok(()) } else { self.read_answer(ready[at % ready.len()]) }
    }

    fn read_answer(&mut self, at: usize) -> Outcome {
        let connection = &mut self.connections[at];
        let (cohort, epoch) = (connection.cohort, connection.epoch);
        let Some((redrive, answer)) = connection.answers.pop_front() else { return Ok(()) };
        let reads = |((_, c), owner): &(&(usize, usize), &mut Owner)| *c == cohort && owner.epoch == epoch;
        // a crashed process reads nothing any more
        let Some((_, owner)) = self.owners.iter_mut().find(reads) else { return Ok(()) };
        owner.awaiting.retain(|waiting| *waiting != redrive);
        self.item_trigger(redrive, item::Trigger::Answer(answer))
    }

    fn judge(&mut self, c: usize, verdict: Verdict) -> Outcome {
        let cohort = &self.cohorts[c];
        let canary = &cohort.items[cohort.canary];
        let effect = canary.redrive.is_some_and(|redrive| self.publishes[redrive].stored > 0);
        let may_pass = effect && canary.state == ItemState::Confirmed;
        if cohort.state != CohortState::CanaryVerifying || (verdict == Verdict::Pass && !may_pass) {
            return Ok(());
        }
        let place = cohort.canary;
        self.cohorts[c].verdict = Some(verdict);
        match verdict {
            Verdict::Pass => {
                self.cohorts[c].attributed.insert(place);
                let redrive = self.cohorts[c].items[place].redrive.ok_or("a canary without a redrive id")?;
                self.item_trigger(redrive, item::Trigger::Probed { proved: true })?;
            }
            // the owner stops, so that the failure can be entered fenced
            Verdict::Fail => self.quiesce(c),
            Verdict::Inconclusive => {}
        }
        self.trigger(c, Trigger::Judged(verdict), true)
    }

    /// Owners that may say *stopped* do.
    fn quiesce(&mut self, c: usize) {
        let stopped: Vec<_> =
            self.owners.iter().filter(|((_, of), o)| *of == c && o.is_idle()).map(|(_, o)| o.epoch).collect();
        for number in stopped {
            self.epoch(c, number).stopped = true;
        }
    }

    fn tick(&mut self, c: usize) -> Outcome {
        use ItemState::{Held, InDoubt, Publishing, Scheduled};
        if self.frozen {
            self.trigger(c, Trigger::Frozen, true)?;
        }
        let canary = self.cohorts[c].items[self.cohorts[c].canary].state;
        match self.cohorts[c].state {
            CohortState::CanaryRunning if !matches!(canary, Held | Scheduled | Publishing | InDoubt) => {
                self.trigger(c, Trigger::CanaryAnswered, true)
            }
            CohortState::Expanding => {
                let open = |i: &Item| matches!(i.state, Scheduled | Publishing);
                if !self.cohorts[c].items.iter().any(open) {
                    self.quiesce(c);
                }
                self.trigger(c, Trigger::HandedOver, true)
            }
            CohortState::Settling => self.trigger(c, Trigger::Settled, true),
            CohortState::Aborting => self.trigger(c, Trigger::Fenced, true),
            _ => Ok(()),
        }
    }

    fn message_of(&self, publish: &Publish) -> usize {
        self.cohorts[publish.cohort].items[publish.item].message
    }

    /// The invariants of RULES 20 that a look at the world can check; the others are checked where they could break.
    pub(crate) fn check(&self) -> Outcome {
        let lanes = self.cohorts.iter().filter(|cohort| cohort.state.holds_lane()).count();
        if lanes > 1 {
            return Err(format!("{lanes} cohorts hold one lane"));
        }
        let mut messages = BTreeSet::new();
        let mut jobs = BTreeSet::new();
        for cohort in self.cohorts.iter().filter(|c| !c.state.is_terminal() && c.state != CohortState::Draft) {
            for item in &cohort.items {
                if !messages.insert(item.message) || !jobs.insert(JOB_OF[item.message]) {
                    return Err(format!("message {} or its job is in two unfinished cohorts", item.message));
                }
            }
        }
        let mut by_item = BTreeMap::new();
        let mut by_generation = BTreeMap::new();
        for publish in &self.publishes {
            let message = self.message_of(publish);
            if self.flagged.contains(&message) || publish.stored == 0 {
                continue;
            }
            *by_item.entry((publish.cohort, publish.item)).or_insert(0) += publish.stored;
            *by_generation.entry((JOB_OF[message], publish.generation)).or_insert(0) += publish.stored;
        }
        if let Some((at, n)) = by_item.iter().find(|(_, n)| **n > 1) {
            return Err(format!("{n} publishes of (cohort, item) {at:?}"));
        }
        if let Some((at, n)) = by_generation.iter().find(|(_, n)| **n > 1) {
            return Err(format!("{n} publishes of (job, generation) {at:?}"));
        }
        for cohort in &self.cohorts {
            let counts: usize =
                ItemState::ALL.iter().map(|s| cohort.items.iter().filter(|i| i.state == *s).count()).sum();
            if counts != cohort.items.len() {
                return Err("counts don't add up".into());
            }
            let over = |i: &Item| matches!(i.state, ItemState::Scheduled | ItemState::Publishing);
            if cohort.state.is_terminal() && cohort.items.iter().any(over) {
                return Err(format!("{} with items to hand over", cohort.state));
            }
            let past =
                matches!(cohort.state, CohortState::CanaryPassed | CohortState::Expanding | CohortState::Completed);
            if past && cohort.attributed.is_empty() {
                return Err(format!("{} without an attributed effect", cohort.state));
            }
        }
        Ok(())
    }

    /// From wherever it is, everything comes to an end: people abort or withdraw, old connections are closed.
    pub(crate) fn wind_down(&mut self) -> Outcome {
        for c in 0..self.cohorts.len() {
            let command = match self.cohorts[c].state {
                CohortState::Draft => Some(CohortCommand::Discard),
                CohortState::InReview | CohortState::Approved => Some(CohortCommand::Withdraw),
                state if state.is_terminal() => None,
                CohortState::Aborting => None,
                _ => Some(CohortCommand::Abort),
            };
            if let Some(command) = command {
                self.trigger(c, Trigger::Command(command), true)?;
            }
            self.close(c, i64::MAX, true)?;
            self.trigger(c, Trigger::Fenced, true)?;
            self.check()?;
            if !self.cohorts[c].state.is_terminal() {
                return Err(format!("{} can't reach an end", self.cohorts[c].state));
            }
        }
        Ok(())
    }
}
