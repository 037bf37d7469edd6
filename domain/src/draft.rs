//! What a draft's fields may hold; whether the plan may be submitted is [`crate::preflight`]'s.

use crate::api::{CanaryPlan, Draft, Expansion, ExpectOp, Expectation, FieldError};

/// Messages in one cohort at most.
pub const MAX_ITEMS: usize = 10_000;

const TITLE_CHARS: usize = 200;
const TEXT_CHARS: usize = 2_000;
/// Rates: at most 10 000/s, in thousandths.
const MAX_RATE: i64 = 10_000_000;
const DAY_S: i64 = 86_400;

/// Every bad field, by JSON pointer.
#[must_use]
pub fn check(draft: &Draft) -> Vec<FieldError> {
    let mut bad = Bad(Vec::new());
    bad.text("/title", &draft.title, TITLE_CHARS);
    bad.text("/reason", &draft.reason, TEXT_CHARS);
    if let Some(fixed) = &draft.condition_fixed {
        bad.text("/condition_fixed/reference", &fixed.reference, TITLE_CHARS);
        if let Some(version) = &fixed.min_worker_version {
            bad.text("/condition_fixed/min_worker_version", version, TITLE_CHARS);
        }
    }
    if let Some(target) = &draft.target {
        bad.when(target.exchange.len() > 255, "/target/exchange", "at most 255 bytes");
        bad.when(target.routing_key.len() > 255, "/target/routing_key", "at most 255 bytes");
        let nowhere = target.exchange.is_empty() && target.routing_key.is_empty();
        bad.when(nowhere, "/target/routing_key", "the default exchange needs a queue's name");
    }
    bad.when(draft.accept_warnings.len() > 100, "/accept_warnings", "at most 100 names");
    if let Some(canary) = &draft.canary {
        check_canary(&mut bad, canary);
    }
    if let Some(expansion) = &draft.expansion {
        check_expansion(&mut bad, expansion);
    }
    if let (Some(expires_at), Some(run_by)) = (draft.expires_at, draft.run_by) {
        bad.when(run_by.0 <= expires_at.0, "/run_by", "later than expires_at");
    }
    bad.0
}

fn check_canary(bad: &mut Bad, canary: &CanaryPlan) {
    bad.when(canary.items.is_empty(), "/canary/items", "one message per stratum");
    bad.when(canary.items.len() > MAX_ITEMS, "/canary/items", "at most 10 000");
    bad.text("/canary/probe", &canary.probe, 64);
    bad.range("/canary/wait_s", canary.wait_s, 1, 3_600);
    bad.range("/canary/max_canaries", canary.max_canaries, 1, 10);
    bad.range("/canary/valid_s", canary.valid_s, 1, 7 * DAY_S);
    bad.when(canary.expect.is_empty(), "/canary/expect", "at least one expectation");
    bad.when(canary.expect.len() > 20, "/canary/expect", "at most 20 expectations");
    for (index, expectation) in canary.expect.iter().enumerate() {
        check_expectation(bad, index, expectation);
    }
}

fn check_expectation(bad: &mut Bad, index: usize, expectation: &Expectation) {
    let at = |field: &str| format!("/canary/expect/{index}/{field}");
    let is_pointer = |text: &str| (text.is_empty() || text.starts_with('/')) && text.len() <= 500;
    bad.when(!is_pointer(&expectation.pointer), &at("pointer"), "a JSON pointer like /0/status");
    match (expectation.op, &expectation.value, &expectation.from_evidence) {
        (ExpectOp::Exists, None, None) => {}
        (ExpectOp::Exists, ..) => bad.add(&at("op"), "`exists` compares with nothing"),
        (_, Some(_), None) => {}
        (_, None, Some(pointer)) => bad.when(!is_pointer(pointer), &at("from_evidence"), "a JSON pointer"),
        (..) => bad.add(&at("value"), "either value or from_evidence"),
    }
    if expectation.op == ExpectOp::Gte {
        let no_number = expectation.value.as_ref().is_some_and(|value| !value.is_number());
        bad.when(no_number, &at("value"), "a number");
    }
}

fn check_expansion(bad: &mut Bad, expansion: &Expansion) {
    bad.range_of("/expansion/start_per_s", expansion.start_per_s.0, 1, MAX_RATE, "above 0, at most 10 000");
    bad.range_of("/expansion/max_per_s", expansion.max_per_s.0, 1, MAX_RATE, "above 0, at most 10 000");
    let above = expansion.start_per_s > expansion.max_per_s;
    bad.when(above, "/expansion/start_per_s", "at most max_per_s");
    bad.range_of("/expansion/step_factor", expansion.step_factor.0, 1_000, 100_000, "1 to 100");
    bad.range("/expansion/step_s", expansion.step_s, 1, 3_600);
    bad.range("/expansion/max_in_flight", expansion.max_in_flight, 1, 1_000_000);
    bad.range("/expansion/verify_sample_percent", expansion.verify_sample_percent, 0, 100);
}

/// Whether a person's words are there and not too many.
#[must_use]
pub fn check_words(pointer: &str, text: &str) -> Vec<FieldError> {
    let mut bad = Bad(Vec::new());
    bad.text(pointer, text, TEXT_CHARS);
    bad.0
}

struct Bad(Vec<FieldError>);

impl Bad {
    fn add(&mut self, pointer: &str, detail: &str) {
        self.0.push(FieldError { pointer: pointer.to_owned(), detail: detail.to_owned() });
    }

    fn when(&mut self, bad: bool, pointer: &str, detail: &str) {
        if bad {
            self.add(pointer, detail);
        }
    }

    /// Text with something in it; Postgres can't keep NUL.
    fn text(&mut self, pointer: &str, text: &str, chars: usize) {
        let count = text.chars().count();
        self.when(text.trim().is_empty() || count > chars, pointer, &format!("1 to {chars} characters"));
        self.when(text.contains('\0'), pointer, "no NUL");
    }

    fn range(&mut self, pointer: &str, value: i64, from: i64, to: i64) {
        self.range_of(pointer, value, from, to, &format!("{from} to {to}"));
    }

    fn range_of(&mut self, pointer: &str, value: i64, from: i64, to: i64, detail: &str) {
        self.when(!(from..=to).contains(&value), pointer, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn good() -> Value {
        json!({
            "title": "t", "reason": "r", "target": { "exchange": "", "routing_key": "q" },
            "condition_fixed": { "kind": "data", "reference": "CHG-1" },
            "canary": {
                "items": ["0193d000-0000-7000-8000-000000000001"], "probe": "invoice", "wait_s": 30, "max_canaries": 2,
                "valid_s": 600, "attribution": "redrive_id",
                "expect": [{ "pointer": "/0/status", "op": "eq", "value": "sent" }, { "pointer": "/0", "op": "exists" },
                    { "pointer": "/0/amount", "op": "gte", "from_evidence": "/amount" }],
            },
            "expansion": { "start_per_s": 0.5, "max_per_s": 20, "step_factor": 1.5, "step_s": 10, "max_in_flight": 10,
                "on_red": "pause", "verify_sample_percent": 10 },
            "expires_at": "2026-12-02T08:00:00Z", "run_by": "2026-12-02T09:00:00Z",
        })
    }

    fn pointers(draft: Value) -> Vec<String> {
        check(&serde_json::from_value(draft).unwrap()).into_iter().map(|error| error.pointer).collect()
    }

    #[test]
    fn a_sound_draft_and_a_bare_one_are_fine() {
        assert_eq!(pointers(good()), [""; 0]);
        assert_eq!(pointers(json!({ "title": "t", "reason": "r" })), [""; 0]);
    }

    #[test]
    fn each_field_has_its_bounds() {
        let cases: &[(&str, Value)] = &[
            ("/title", json!("  ")),
            ("/title", json!("x".repeat(201))),
            ("/reason", json!("a\0b")),
            ("/target/routing_key", json!("")),
            ("/condition_fixed/reference", json!("")),
            ("/canary/items", json!([])),
            ("/canary/wait_s", json!(0)),
            ("/canary/wait_s", json!(3601)),
            ("/canary/max_canaries", json!(11)),
            ("/canary/valid_s", json!(0)),
            ("/canary/expect", json!([])),
            ("/canary/expect/0/pointer", json!("status")),
            ("/expansion/start_per_s", json!(0)),
            ("/expansion/start_per_s", json!(21)),
            ("/expansion/step_factor", json!(0.9)),
            ("/expansion/step_s", json!(0)),
            ("/expansion/max_in_flight", json!(0)),
            ("/expansion/verify_sample_percent", json!(101)),
            ("/run_by", json!("2026-12-02T08:00:00Z")),
        ];
        for (pointer, value) in cases {
            let mut draft = good();
            *draft.pointer_mut(pointer).unwrap() = value.clone();
            assert_eq!(pointers(draft), [*pointer], "{value}");
        }
    }

    #[test]
    fn an_expectation_compares_with_one_thing() {
        for (expectation, field) in [
            (json!({ "pointer": "", "op": "eq" }), "value"),
            (json!({ "pointer": "", "op": "eq", "value": 1, "from_evidence": "/a" }), "value"),
            (json!({ "pointer": "", "op": "exists", "value": 1 }), "op"),
            (json!({ "pointer": "", "op": "gte", "value": "1" }), "value"),
        ] {
            let mut draft = good();
            draft["canary"]["expect"] = json!([expectation]);
            assert_eq!(pointers(draft), [format!("/canary/expect/0/{field}")]);
        }
    }
}
