//! What must hold after every step, and that everything can end.

use super::*;

impl World {
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
