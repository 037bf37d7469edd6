//! The canary's verdict (RULES 8): an effect that was absent before, is as expected after, and is this redrive's.
//! Without data there is no pass, and a timer that runs out never promotes.

use serde_json::Value;
use time::{Duration, OffsetDateTime};

use crate::{
    api::{ExpectOp, Expectation, ExpectationResult},
    ids::RedriveId,
    vocabulary::{ItemState, Verdict},
};

/// What a probe answered: rows with the database's own instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// By the database's clock.
    pub as_of: OffsetDateTime,
    /// JSON objects.
    pub rows: Vec<Value>,
}

/// How things stand before the publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// No effect, or one that the expectation will change: it may go out.
    Absent,
    /// The effect is there already: not sent.
    AlreadyEffective,
}

/// Judges the probe's answer before the publish. No answer at all is not asked here: it moves nothing.
#[must_use]
pub fn before(sample: &Sample, expectations: &[Expectation], evidence: Option<&Value>) -> Before {
    let present =
        !sample.rows.is_empty() && judge(&sample.rows, expectations, evidence).iter().all(|r| r.holds == Some(true));
    if present { Before::AlreadyEffective } else { Before::Absent }
}

/// What ties an effect to this redrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attributed {
    /// An `effect_recorded` event carries the redrive id.
    Event,
    /// A row of the probe carries it.
    ProbeRow,
    /// No other live message of the job is known, and the plan accepts that.
    Exclusion,
}

impl Attributed {
    /// As the page says it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Event => "effect_recorded event",
            Self::ProbeRow => "probe row",
            Self::Exclusion => "by exclusion",
        }
    }
}

/// What is known of a canary after its publish.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Where its item is.
    pub item: ItemState,
    /// When the broker took it.
    pub confirmed_at: Option<OffsetDateTime>,
    /// The rows before the publish.
    pub before: &'a [Value],
    /// The latest answer of the probe; `None` where it has answered nothing since the publish.
    pub sample: Option<&'a Sample>,
    /// What must hold.
    pub expectations: &'a [Expectation],
    /// The message's JSON payload, for `from_evidence`.
    pub evidence: Option<&'a Value>,
    /// An `effect_recorded` event carries the redrive id.
    pub effect_event: bool,
    /// A row of the sample carries the redrive id.
    pub row_carries_id: bool,
    /// The plan accepts attribution by exclusion, and no other live message of the job is known.
    pub exclusion: bool,
    /// The plan names no least worker version, or one that executed this redrive is known to be that or later.
    pub version_counts: bool,
    /// Workers report, and none has said yet by which version this was executed.
    pub version_awaited: bool,
    /// A worker reported a failure of a permanent class for this redrive.
    pub permanent_failure: bool,
    /// The wait is over, by the database's clock.
    pub deadline_passed: bool,
}

/// What follows from the facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Neither shown nor over.
    Wait,
    /// A verdict, its reason, and what attributed a pass.
    Verdict(Verdict, Option<&'static str>, Option<Attributed>),
}

/// Judges a canary.
#[must_use]
pub fn judge_canary(facts: &Facts<'_>) -> Judgement {
    let fail = |reason| Judgement::Verdict(Verdict::Fail, Some(reason), None);
    let inconclusive = |reason| Judgement::Verdict(Verdict::Inconclusive, Some(reason), None);
    match facts.item {
        ItemState::Returned => return fail("returned"),
        ItemState::Nacked => return fail("nacked"),
        ItemState::Requarantined => return fail("requarantined"),
        ItemState::Refused => return inconclusive("not_sent"),
        ItemState::ResolvedNotPublished | ItemState::ResolvedArrived => return inconclusive("no_data"),
        ItemState::Held | ItemState::Scheduled | ItemState::Publishing | ItemState::InDoubt => return Judgement::Wait,
        ItemState::Confirmed | ItemState::Verified | ItemState::Unverified | ItemState::VerificationFailed => {}
    }
    if facts.permanent_failure {
        return fail("permanent_failure");
    }
    // only what the database said after our confirm counts
    let fresh = facts.sample.filter(|sample| facts.confirmed_at.is_some_and(|confirmed| sample.as_of >= confirmed));
    let holds = fresh.is_some_and(|sample| {
        !facts.expectations.is_empty()
            && judge(&sample.rows, facts.expectations, facts.evidence).iter().all(|result| result.holds == Some(true))
    });
    let attributed = if facts.effect_event {
        Some(Attributed::Event)
    } else if fresh.is_some() && facts.row_carries_id {
        Some(Attributed::ProbeRow)
    } else if facts.exclusion && fresh.is_some_and(|sample| sample.rows != facts.before) {
        Some(Attributed::Exclusion)
    } else {
        None
    };
    match (fresh, holds, attributed) {
        // the version that executed it is recorded with a pass; its event may be a moment behind the effect
        (Some(_), true, Some(_)) if facts.version_awaited && !facts.deadline_passed => Judgement::Wait,
        (Some(_), true, Some(by)) if facts.version_counts => Judgement::Verdict(Verdict::Pass, None, Some(by)),
        (Some(sample), false, Some(_)) if !sample.rows.is_empty() => fail("contradicted"),
        _ if !facts.deadline_passed => Judgement::Wait,
        (None, ..) => inconclusive("no_data"),
        (Some(_), true, None) => inconclusive("unattributed"),
        (Some(_), true, Some(_)) => inconclusive("worker_version"),
        (Some(_), false, _) => inconclusive("deadline"),
    }
}

/// What a stratum's latest canary showed, when it passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Since its verdict.
    pub age: Duration,
    /// The worker version that executed it; `None` stands for no version.
    pub worker_version: Option<String>,
}

/// Whether the passes still let the rest go out (RULES 3): the latest canary of every stratum passed, within the plan's
/// `valid_s`, and was executed by each worker version that consumes now. `None` is a stratum whose latest didn't pass.
#[must_use]
pub fn still_count(strata: &[Option<Pass>], valid: Duration, consuming: &[String]) -> bool {
    let counts = |pass: &Pass| {
        pass.age <= valid && consuming.iter().all(|version| pass.worker_version.as_ref() == Some(version))
    };
    !strata.is_empty() && strata.iter().all(|pass| pass.as_ref().is_some_and(counts))
}

/// Whether a row carries the redrive id in the named column.
#[must_use]
pub fn carries(rows: &[Value], column: &str, redrive_id: RedriveId) -> bool {
    let wanted = redrive_id.to_string();
    rows.iter().any(|row| row.get(column).and_then(Value::as_str).is_some_and(|id| id.eq_ignore_ascii_case(&wanted)))
}

/// Judges each expectation over the probe's rows. `holds` is `None` where the value to compare with isn't known.
#[must_use]
pub fn judge(rows: &[Value], expectations: &[Expectation], evidence: Option<&Value>) -> Vec<ExpectationResult> {
    let all = Value::Array(rows.to_vec());
    expectations
        .iter()
        .map(|expectation| {
            let found = all.pointer(&expectation.pointer).cloned();
            let wanted = match &expectation.from_evidence {
                Some(pointer) => evidence.and_then(|payload| payload.pointer(pointer)).cloned(),
                None => expectation.value.clone(),
            };
            let there = found.as_ref().filter(|value| !value.is_null());
            let holds = match (expectation.op, &wanted) {
                (ExpectOp::Exists, _) => Some(there.is_some()),
                (_, None) => None,
                (ExpectOp::Eq, Some(wanted)) => Some(found.as_ref().is_some_and(|value| equal(value, wanted))),
                (ExpectOp::Gte, Some(wanted)) => Some(there.is_some_and(|value| at_least(value, wanted))),
            };
            ExpectationResult { expected: sentence(expectation, wanted.as_ref()), found, holds }
        })
        .collect()
}

fn sentence(expectation: &Expectation, wanted: Option<&Value>) -> String {
    let wanted = match (wanted, &expectation.from_evidence) {
        (Some(value), Some(pointer)) => format!("{value} (the message's {pointer})"),
        (Some(value), None) => value.to_string(),
        (None, Some(pointer)) => format!("the message's {pointer}, which it hasn't"),
        (None, None) => String::new(),
    };
    match expectation.op {
        ExpectOp::Exists => format!("{} exists", expectation.pointer),
        ExpectOp::Eq => format!("{} = {wanted}", expectation.pointer),
        ExpectOp::Gte => format!("{} ≥ {wanted}", expectation.pointer),
    }
}

/// Equal as JSON, numbers by value at every level.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => compare(a, b) == Some(std::cmp::Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}

fn at_least(value: &Value, wanted: &Value) -> bool {
    compare(value, wanted).is_some_and(std::cmp::Ordering::is_ge)
}

/// Integers exactly, else as floats.
fn compare(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    let int = |value: &Value| value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    match (int(a), int(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Whether a worker version is `least` or a later one: the numbers in both are compared in order, as in `2026.12.2`.
/// A version without numbers is only itself.
#[must_use]
pub fn is_at_least(version: &str, least: &str) -> bool {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
    };
    let (ours, theirs) = (numbers(version), numbers(least));
    version == least || (!ours.is_empty() && !theirs.is_empty() && ours >= theirs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::macros::datetime;

    use super::*;

    const CONFIRMED: OffsetDateTime = datetime!(2026-12-02 07:00 UTC);

    fn expect(pointer: &str, op: ExpectOp, value: Option<Value>, from: Option<&str>) -> Expectation {
        Expectation { pointer: pointer.into(), op, value, from_evidence: from.map(Into::into) }
    }

    fn sample(rows: Value) -> Sample {
        Sample { as_of: CONFIRMED + time::Duration::seconds(1), rows: rows.as_array().unwrap().clone() }
    }

    #[test]
    fn expectations_compare_by_value() {
        let payload = json!({ "amount": 12.5, "id": "a" });
        let rows = [json!({ "amount": 12.50, "n": 3, "status": null })];
        let cases = [
            (expect("/0/amount", ExpectOp::Eq, None, Some("/amount")), Some(true)),
            (expect("/0/amount", ExpectOp::Eq, None, Some("/total")), None),
            (expect("/0/n", ExpectOp::Eq, Some(json!(3.0)), None), Some(true)),
            (expect("/0/n", ExpectOp::Gte, Some(json!(4)), None), Some(false)),
            (expect("/0/n", ExpectOp::Gte, Some(json!("3")), None), Some(false)),
            (expect("/0/status", ExpectOp::Exists, None, None), Some(false)),
            (expect("/0/status", ExpectOp::Eq, Some(Value::Null), None), Some(true)),
            (expect("/1", ExpectOp::Exists, None, None), Some(false)),
            (expect("/0/n", ExpectOp::Exists, None, None), Some(true)),
        ];
        for (expectation, want) in cases {
            let result = judge(&rows, std::slice::from_ref(&expectation), Some(&payload));
            assert_eq!(result[0].holds, want, "{expectation:?}");
        }
    }

    #[test]
    fn before_the_publish_the_effect_must_be_absent() {
        let expected = [expect("/0/status", ExpectOp::Eq, Some(json!("paid")), None)];
        assert_eq!(before(&sample(json!([])), &expected, None), Before::Absent);
        assert_eq!(before(&sample(json!([{ "status": "open" }])), &expected, None), Before::Absent);
        assert_eq!(before(&sample(json!([{ "status": "paid" }])), &expected, None), Before::AlreadyEffective);
    }

    #[test]
    fn verdicts() {
        let expected = [expect("/0/status", ExpectOp::Eq, Some(json!("paid")), None)];
        let (paid, open, none) =
            (sample(json!([{ "status": "paid" }])), sample(json!([{ "status": "open" }])), sample(json!([])));
        let stale = Sample { as_of: CONFIRMED - time::Duration::seconds(1), ..paid.clone() };
        let base = Facts {
            item: ItemState::Confirmed,
            confirmed_at: Some(CONFIRMED),
            before: &[],
            sample: None,
            expectations: &expected,
            evidence: None,
            effect_event: false,
            row_carries_id: false,
            exclusion: false,
            version_counts: true,
            version_awaited: false,
            permanent_failure: false,
            deadline_passed: false,
        };
        let pass = |by| Judgement::Verdict(Verdict::Pass, None, Some(by));
        let fail = |why| Judgement::Verdict(Verdict::Fail, Some(why), None);
        let open_end = |why| Judgement::Verdict(Verdict::Inconclusive, Some(why), None);
        let cases: [(&str, Facts<'_>, Judgement); 19] = [
            (
                "proved by event",
                Facts { sample: Some(&paid), effect_event: true, ..base.clone() },
                pass(Attributed::Event),
            ),
            (
                "proved by row",
                Facts { sample: Some(&paid), row_carries_id: true, ..base.clone() },
                pass(Attributed::ProbeRow),
            ),
            (
                "accepted exclusion",
                Facts { sample: Some(&paid), exclusion: true, ..base.clone() },
                pass(Attributed::Exclusion),
            ),
            (
                "unchanged rows exclude nothing",
                Facts { sample: Some(&paid), before: &paid.rows, exclusion: true, ..base.clone() },
                Judgement::Wait,
            ),
            (
                "an older worker",
                Facts {
                    sample: Some(&paid),
                    effect_event: true,
                    version_counts: false,
                    deadline_passed: true,
                    ..base.clone()
                },
                open_end("worker_version"),
            ),
            (
                "a version that may still be told",
                Facts { sample: Some(&paid), effect_event: true, version_awaited: true, ..base.clone() },
                Judgement::Wait,
            ),
            (
                "a version that nobody told",
                Facts {
                    sample: Some(&paid),
                    effect_event: true,
                    version_awaited: true,
                    deadline_passed: true,
                    ..base.clone()
                },
                pass(Attributed::Event),
            ),
            ("unattributed waits", Facts { sample: Some(&paid), ..base.clone() }, Judgement::Wait),
            (
                "unattributed never passes",
                Facts { sample: Some(&paid), deadline_passed: true, ..base.clone() },
                open_end("unattributed"),
            ),
            (
                "an event without rows waits",
                Facts { sample: Some(&none), effect_event: true, ..base.clone() },
                Judgement::Wait,
            ),
            ("other effect", Facts { sample: Some(&open), effect_event: true, ..base.clone() }, fail("contradicted")),
            ("someone else's row", Facts { sample: Some(&open), ..base.clone() }, Judgement::Wait),
            ("before the confirm", Facts { sample: Some(&stale), effect_event: true, ..base.clone() }, Judgement::Wait),
            ("no data", Facts { deadline_passed: true, effect_event: true, ..base.clone() }, open_end("no_data")),
            ("deadline", Facts { sample: Some(&none), deadline_passed: true, ..base.clone() }, open_end("deadline")),
            ("returned", Facts { item: ItemState::Returned, ..base.clone() }, fail("returned")),
            (
                "died again",
                Facts { item: ItemState::Requarantined, sample: Some(&paid), ..base.clone() },
                fail("requarantined"),
            ),
            ("reported permanent", Facts { permanent_failure: true, ..base.clone() }, fail("permanent_failure")),
            ("in doubt", Facts { item: ItemState::InDoubt, deadline_passed: true, ..base.clone() }, Judgement::Wait),
        ];
        for (name, facts, want) in cases {
            assert_eq!(judge_canary(&facts), want, "{name}");
        }
        let no_expectation = Facts { sample: Some(&paid), expectations: &[], effect_event: true, ..base };
        assert_ne!(judge_canary(&no_expectation), pass(Attributed::Event), "nothing expected proves nothing");
    }

    #[test]
    fn rows_carry_ids() {
        let id = RedriveId(uuid::Uuid::from_u128(7));
        assert!(carries(&[json!({ "r": id.to_string() })], "r", id));
        assert!(!carries(&[json!({ "r": null }), json!({ "x": id.to_string() })], "r", id));
    }

    #[test]
    fn versions_compare_by_their_numbers() {
        let cases = [
            ("2026.12.2", "2026.12.2", true),
            ("2026.12.10", "2026.12.2", true),
            ("2026.11.3", "2026.12.2", false),
            ("v2", "v10", false),
            ("main", "main", true),
            ("main", "2026.12.2", false),
        ];
        for (version, least, want) in cases {
            assert_eq!(is_at_least(version, least), want, "{version} {least}");
        }
    }

    #[test]
    fn a_pass_counts_only_for_the_version_that_executed_it() {
        let minute = Duration::MINUTE;
        let pass = |age, version: Option<&str>| Some(Pass { age, worker_version: version.map(str::to_owned) });
        let (new, both) = (vec!["2026.12.2".to_owned()], vec!["2026.12.1".to_owned(), "2026.12.2".to_owned()]);
        let passed = pass(minute, Some("2026.12.2"));
        assert!(still_count(std::slice::from_ref(&passed), minute, &new));
        assert!(!still_count(&[pass(minute + Duration::MICROSECOND, Some("2026.12.2"))], minute, &new), "too old");
        assert!(!still_count(&[passed], minute, &both), "another version consumes");
        assert!(!still_count(&[pass(minute, None)], minute, &new), "unknown never moves a message");
        assert!(still_count(&[pass(minute, None)], minute, &[]), "without a feed there is no version to tell apart");
    }

    #[test]
    fn every_stratum_has_a_pass_of_its_own() {
        let minute = Duration::MINUTE;
        let pass = |age, version: &str| Some(Pass { age, worker_version: Some(version.to_owned()) });
        let new = vec!["2026.12.2".to_owned()];
        let fresh = pass(Duration::ZERO, "2026.12.2");
        assert!(still_count(&[fresh.clone(), pass(minute, "2026.12.2")], minute, &new));
        assert!(!still_count(&[pass(minute * 2, "2026.12.2"), fresh.clone()], minute, &new), "the oldest one counts");
        assert!(!still_count(&[pass(Duration::ZERO, "2026.12.1"), fresh.clone()], minute, &new), "of another version");
        assert!(!still_count(&[fresh, None], minute, &new), "a stratum without a pass");
        assert!(!still_count(&[], minute, &[]), "no stratum, no canary");
    }
}
