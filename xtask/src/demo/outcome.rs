//! The result of the autopilot, as CONVENTIONS.md fixes it.

use serde::Serialize;
use serde_json::Value;

use super::unbuilt::UNBUILT;

/// One object, the last line of standard output. What isn't known (yet) is `null`.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Outcome {
    /// Derived from all the rest by [`Outcome::judge`].
    pub(super) ok: bool,
    /// The broker's version.
    pub(super) broker: String,
    /// Accepted jobs, by the independent check.
    pub(super) jobs: Option<i64>,
    /// Durable effects, by the independent check.
    pub(super) effects: Option<i64>,
    /// Accepted jobs that are nowhere, by the independent check.
    pub(super) lost: Option<i64>,
    /// Redrives that were executed more than once, by the independent check.
    pub(super) doubled: Option<i64>,
    /// Messages in custody, by the independent check.
    pub(super) held: Option<i64>,
    /// Whether the check turned red when a loss, and when a double, was pretended.
    pub(super) check_notices: CheckNotices,
    /// Whether both authors' own approvals were refused: for want of the role, and by the rule of four eyes.
    pub(super) self_approval_refused: Option<bool>,
    /// The cohort that was brought back.
    pub(super) cohort: CohortOutcome,
    /// Whether the poisoned message alone stayed in custody.
    pub(super) poison_held: Option<bool>,
    /// `met`, `not_met`, `unknown`.
    pub(super) exit_conditions: ExitConditions,
    /// The trail.
    pub(super) audit: AuditOutcome,
    /// From the start of the services to this line.
    pub(super) seconds: f64,
    /// Why it isn't ok.
    pub(super) problems: Vec<String>,
}

/// Whether the independent check can fail.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct CheckNotices {
    /// A pretended loss.
    pub(super) loss: Option<bool>,
    /// A pretended double.
    pub(super) double: Option<bool>,
}

/// The cohort's items, counted from its list.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct CohortOutcome {
    /// All of them.
    pub(super) items: Option<i64>,
    /// The broker took them.
    pub(super) confirmed: Option<i64>,
    /// Their effect was proved.
    pub(super) verified: Option<i64>,
    /// Their publish has no known outcome.
    pub(super) in_doubt: Option<i64>,
}

/// The four conditions.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct ExitConditions {
    pub(super) poison_quarantined: Option<&'static str>,
    pub(super) healthy_advancing: Option<&'static str>,
    pub(super) canary_verified: Option<&'static str>,
    pub(super) rehearsal_clean: Option<&'static str>,
}

/// The trail, as the auditor read it.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct AuditOutcome {
    /// Entries.
    pub(super) entries: Option<i64>,
    /// Whether the log verifies.
    pub(super) verified: Option<bool>,
}

impl Outcome {
    /// Sets `ok`, and says what stands against it.
    ///
    /// # Errors
    /// Never in practice: the fields are plain.
    pub(super) fn judge(&mut self) -> serde_json::Result<()> {
        for null in nulls(&serde_json::to_value(&*self)?) {
            if !UNBUILT.iter().any(|(pointer, _)| *pointer == null) {
                self.problems.push(format!("{null} is not known"));
            }
        }
        let conditions = &self.exit_conditions;
        let all = [
            ("poison_quarantined", conditions.poison_quarantined),
            ("healthy_advancing", conditions.healthy_advancing),
            ("canary_verified", conditions.canary_verified),
            ("rehearsal_clean", conditions.rehearsal_clean),
        ];
        for (name, state) in all {
            if let Some(state @ ("not_met" | "unknown")) = state {
                self.problems.push(format!("{name} is {state}"));
            }
        }
        let must_be_zero = [
            (self.lost, "jobs were lost"),
            (self.doubled, "redrives were executed more than once"),
            (self.cohort.in_doubt, "items are in doubt"),
        ];
        for (count, what) in must_be_zero {
            if let Some(count @ 1..) = count {
                self.problems.push(format!("{count} {what}"));
            }
        }
        let must_hold = [
            (self.self_approval_refused, "an author's own approval was not refused as it must be"),
            (self.check_notices.loss, "the check did not notice a pretended loss"),
            (self.check_notices.double, "the check did not notice a pretended double"),
            (self.poison_held, "the poisoned message is not held"),
            (self.audit.verified, "the audit log does not verify"),
        ];
        self.problems
            .extend(must_hold.into_iter().filter(|(held, _)| *held == Some(false)).map(|(_, what)| what.to_owned()));
        self.ok = self.problems.is_empty();
        Ok(())
    }
}

/// The pointers of all nulls.
fn nulls(value: &Value) -> Vec<String> {
    let below = |name: String, value: &Value| nulls(value).into_iter().map(move |pointer| format!("/{name}{pointer}"));
    match value {
        Value::Null => vec![String::new()],
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(index, item)| below(index.to_string(), item)).collect()
        }
        Value::Object(fields) => fields.iter().flat_map(|(name, field)| below(name.clone(), field)).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Outcome {
        Outcome {
            jobs: Some(10),
            effects: Some(9),
            lost: Some(0),
            doubled: Some(0),
            held: Some(1),
            check_notices: CheckNotices { loss: Some(true), double: Some(true) },
            self_approval_refused: Some(true),
            cohort: CohortOutcome { items: Some(4), confirmed: Some(4), verified: Some(4), in_doubt: Some(0) },
            poison_held: Some(true),
            exit_conditions: ExitConditions { canary_verified: Some("met"), ..ExitConditions::default() },
            audit: AuditOutcome { entries: Some(12), verified: None },
            ..Outcome::default()
        }
    }

    fn judged(change: impl FnOnce(&mut Outcome)) -> Outcome {
        let mut outcome = good();
        change(&mut outcome);
        outcome.judge().unwrap();
        outcome
    }

    #[test]
    fn ok_only_if_everything_that_can_be_known_is_known_and_good() {
        assert!(judged(|_| {}).ok);
        assert!(!judged(|o| o.lost = Some(1)).ok);
        assert!(!judged(|o| o.doubled = Some(2)).ok);
        assert!(!judged(|o| o.lost = None).ok);
        assert!(!judged(|o| o.self_approval_refused = Some(false)).ok);
        assert!(!judged(|o| o.self_approval_refused = None).ok);
        assert!(!judged(|o| o.cohort.in_doubt = Some(1)).ok);
        assert!(!judged(|o| o.exit_conditions.canary_verified = Some("unknown")).ok);
        assert!(!judged(|o| o.exit_conditions.canary_verified = None).ok);
        assert!(!judged(|o| o.exit_conditions.rehearsal_clean = Some("not_met")).ok);
        assert!(!judged(|o| o.poison_held = Some(false)).ok);
        assert!(!judged(|o| o.check_notices.loss = Some(false)).ok);
        assert!(!judged(|o| o.problems.push("the story broke off".to_owned())).ok);
    }

    #[test]
    fn what_is_unbuilt_is_a_field_of_the_result() {
        let value = serde_json::to_value(Outcome::default()).unwrap();
        for (pointer, _) in UNBUILT {
            assert_eq!(value.pointer(pointer), Some(&Value::Null), "{pointer}");
        }
        assert_eq!(judged(|o| o.lost = None).problems, ["/lost is not known"]);
    }
}
