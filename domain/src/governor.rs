//! How fast an expansion hands messages over (RULES 7): a rate by token bucket that rises in steps up to the cap, an
//! in-flight cap, and a halt where a reading is missing. Until guards exist the cap is the plan's own.

use std::time::Duration;

use crate::{
    api::{Expansion, Thousandths},
    vocabulary::Binding,
};

/// The governor's memory between decisions; a new owner starts anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Governor {
    rate: f64,
    tokens: f64,
    at: Duration,
    step_began: Duration,
    used_in_step: f64,
    step_s: f64,
    factor: f64,
    cap: f64,
    max_in_flight: i64,
}

/// What a decision rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Readings {
    /// Monotonic.
    pub at: Duration,
    /// Confirmed and unfinished; `None` is unknown.
    pub in_flight: Option<i64>,
    /// The broker blocks the connection.
    pub blocked: bool,
}

/// What may be handed over now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// How many messages, now.
    pub now: usize,
    /// The rate that is enforced.
    pub allowed_per_s: Thousandths,
    /// Which limit binds; `None` where nothing is handed over for want of a reading.
    pub binding: Option<Binding>,
    /// Why nothing is handed over, though the replay runs; goes on by itself.
    pub halted: Option<&'static str>,
}

impl Governor {
    /// Starts at the plan's first rate.
    #[must_use]
    pub fn new(plan: &Expansion, at: Duration) -> Self {
        let cap = plan.max_per_s.as_f64();
        Self {
            rate: plan.start_per_s.as_f64().min(cap),
            tokens: 1.0,
            at,
            step_began: at,
            used_in_step: 0.0,
            #[expect(clippy::cast_precision_loss, reason = "seconds of a plan are far below 2^53")]
            step_s: plan.step_s.max(1) as f64,
            factor: plan.step_factor.as_f64().max(1.0),
            cap,
            max_in_flight: plan.max_in_flight,
        }
    }

    /// Decides how many may go now. What is handed over is told by [`used`](Self::used).
    pub fn decide(&mut self, readings: Readings) -> Allowance {
        self.fill(readings.at);
        self.step(readings.at);
        let binding = if self.rate < self.cap { Binding::Step } else { Binding::Plan };
        let none = |binding, halted| Allowance { now: 0, allowed_per_s: self.rate_now(), binding, halted };
        if readings.blocked {
            return none(Some(Binding::BrokerBlocked), Some("broker_blocked"));
        }
        let Some(in_flight) = readings.in_flight else { return none(None, Some("in_flight_unknown")) };
        let room = usize::try_from(self.max_in_flight - in_flight).unwrap_or(0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "tokens are between 0 and the bucket"
        )]
        let tokens = self.tokens as usize;
        let now = tokens.min(room);
        let binding = if room == 0 || room < tokens { Binding::InFlight } else { binding };
        Allowance { now, allowed_per_s: self.rate_now(), binding: Some(binding), halted: None }
    }

    /// That many were handed over.
    pub fn used(&mut self, messages: usize) {
        #[expect(clippy::cast_precision_loss, reason = "a batch is at most 64")]
        let messages = messages as f64;
        self.tokens = (self.tokens - messages).max(0.0);
        self.used_in_step += messages;
    }

    fn fill(&mut self, at: Duration) {
        let bucket = (self.rate * 0.1).max(1.0);
        let passed = at.saturating_sub(self.at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.rate).min(bucket);
        self.at = self.at.max(at);
    }

    /// A step that used at least 80 % of its rate lets the next one rise.
    fn step(&mut self, at: Duration) {
        let passed = at.saturating_sub(self.step_began).as_secs_f64();
        if passed < self.step_s {
            return;
        }
        if self.used_in_step >= 0.8 * self.rate * passed {
            self.rate = (self.rate * self.factor).min(self.cap);
        }
        self.step_began = at;
        self.used_in_step = 0.0;
    }

    fn rate_now(&self) -> Thousandths {
        #[expect(clippy::cast_possible_truncation, reason = "plans bound their rates")]
        Thousandths((self.rate * 1000.0).round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::OnRed;

    fn plan(start: i64, max: i64, in_flight: i64) -> Expansion {
        Expansion {
            start_per_s: Thousandths(start * 1000),
            max_per_s: Thousandths(max * 1000),
            step_factor: Thousandths(2000),
            step_s: 10,
            max_in_flight: in_flight,
            on_red: OnRed::Pause,
            verify_sample_percent: 0,
        }
    }

    fn readings(ms: u64, in_flight: Option<i64>) -> Readings {
        Readings { at: Duration::from_millis(ms), in_flight, blocked: false }
    }

    #[test]
    fn what_binds_is_named() {
        let mut governor = Governor::new(&plan(2, 8, 5), Duration::ZERO);
        assert_eq!(governor.decide(readings(0, Some(0))).binding, Some(Binding::Step));
        assert_eq!(governor.decide(readings(0, Some(5))).binding, Some(Binding::InFlight));
        assert_eq!(governor.decide(readings(0, None)).halted, Some("in_flight_unknown"));
        let blocked = governor.decide(Readings { blocked: true, ..readings(0, Some(0)) });
        assert_eq!((blocked.now, blocked.binding), (0, Some(Binding::BrokerBlocked)));
        let full = Governor::new(&plan(8, 8, 5), Duration::ZERO).decide(readings(0, Some(0)));
        assert_eq!((full.now, full.binding), (1, Some(Binding::Plan)));
    }

    #[test]
    fn rises_only_when_the_rate_is_used() {
        let mut governor = Governor::new(&plan(2, 8, 1_000), Duration::ZERO);
        governor.decide(readings(10_000, Some(0)));
        assert_eq!(governor.decide(readings(10_000, Some(0))).allowed_per_s, Thousandths(2_000), "idle step");
        for ms in (10_000..=20_000).step_by(100) {
            let now = governor.decide(readings(ms, Some(0))).now;
            governor.used(now);
        }
        assert_eq!(governor.decide(readings(20_100, Some(0))).allowed_per_s, Thousandths(4_000));
    }

    proptest! {
        #[test]
        fn never_above_the_cap(start in 1i64..50, max in 1i64..50, gaps in prop::collection::vec(1u64..2_000, 1..200)) {
            let mut governor = Governor::new(&plan(start, max, 10_000), Duration::ZERO);
            let (mut at, mut sent) = (0, 0);
            for gap in gaps {
                at += gap;
                let now = governor.decide(readings(at, Some(0))).now;
                governor.used(now);
                sent += now;
            }
            let most = max as f64 * (at as f64 / 1000.0) + (max as f64 * 0.1).max(1.0);
            prop_assert!(sent as f64 <= most + 1e-6, "{sent} > {most}");
        }

        #[test]
        fn never_above_the_room(in_flight in -5i64..200, room in 0i64..100) {
            let now = Governor::new(&plan(500, 500, room), Duration::ZERO).decide(readings(5_000, Some(in_flight))).now;
            prop_assert!(now as i64 <= (room - in_flight).max(0));
        }
    }
}
