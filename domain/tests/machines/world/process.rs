//! Processes and the broker: taking the lease, handing over, sending, answering, the replay's own triggers.

use super::*;

impl World {
    /// What a hurried on-call engineer, a healthy process and the broker would do next.
    pub(super) fn advance(&mut self, process: usize, c: usize, fate: Fate) -> Outcome {
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

    pub(super) fn work(&mut self, process: usize, c: usize, fate: Fate) -> Outcome {
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

    /// One of the owners that live in a process, by number, with its epoch.
    pub(super) fn owner(&self, n: usize) -> Option<((usize, usize), i64)> {
        let at = n.checked_rem(self.owners.len())?;
        self.owners.iter().nth(at).map(|(at, owner)| (*at, owner.epoch))
    }

    pub(super) fn epoch(&mut self, cohort: usize, number: i64) -> &mut Epoch {
        let epochs = &mut self.cohorts[cohort].epochs;
        epochs.iter_mut().find(|e| e.number == number).expect("owners hold known epochs")
    }

    pub(super) fn take(&mut self, process: usize, c: usize) -> Outcome {
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
    pub(super) fn close(&mut self, cohort: usize, below: i64, arrives: bool) -> Outcome {
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

    pub(super) fn hand_over(&mut self, process: usize, c: usize, i: usize) -> Outcome {
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

    pub(super) fn send(&mut self, process: usize, c: usize) -> Outcome {
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

    pub(super) fn deliver(&mut self, at: usize, fate: Fate) -> Outcome {
        let busy: Vec<_> = (0..self.connections.len()).filter(|x| !self.connections[*x].wire.is_empty()).collect();
        if busy.is_empty() { Ok(()) } else { self.read_wire(busy[at % busy.len()], fate) }
    }

    pub(super) fn read_wire(&mut self, at: usize, fate: Fate) -> Outcome {
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

    pub(super) fn answer(&mut self, at: usize) -> Outcome {
        let ready: Vec<_> = (0..self.connections.len()).filter(|x| !self.connections[*x].answers.is_empty()).collect();
        if ready.is_empty() { Ok(()) } else { self.read_answer(ready[at % ready.len()]) }
    }

    pub(super) fn read_answer(&mut self, at: usize) -> Outcome {
        let connection = &mut self.connections[at];
        let (cohort, epoch) = (connection.cohort, connection.epoch);
        let Some((redrive, answer)) = connection.answers.pop_front() else { return Ok(()) };
        let reads = |((_, c), owner): &(&(usize, usize), &mut Owner)| *c == cohort && owner.epoch == epoch;
        // a crashed process reads nothing any more
        let Some((_, owner)) = self.owners.iter_mut().find(reads) else { return Ok(()) };
        owner.awaiting.retain(|waiting| *waiting != redrive);
        self.item_trigger(redrive, item::Trigger::Answer(answer))
    }

    pub(super) fn judge(&mut self, c: usize, verdict: Verdict) -> Outcome {
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
    pub(super) fn quiesce(&mut self, c: usize) {
        let stopped: Vec<_> =
            self.owners.iter().filter(|((_, of), o)| *of == c && o.is_idle()).map(|(_, o)| o.epoch).collect();
        for number in stopped {
            self.epoch(c, number).stopped = true;
        }
    }

    pub(super) fn tick(&mut self, c: usize) -> Outcome {
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
}
