//! The plan and its digest (RULES 13): what an approval covers, as RFC 8785 canonical JSON within I-JSON.

use serde::Serialize;
use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};

use crate::{
    api::{Attribution, ConditionFixed, Draft, ExpectOp, Expectation, OnRed, PlanChange, ProbeDefinition, Timestamp},
    ids::{CohortId, QuarantineId, QueueId},
    keyed::Hash32,
};

/// What is hashed before the bytes, so that no other JSON can stand for a plan.
pub const DIGEST_PREFIX: &str = "lazaret plan v1\n";

/// Integers above this are no I-JSON: they are written as decimal strings.
const MAX_SAFE: i64 = (1 << 53) - 1;

/// Everything that a plan is made from. Title, reason, comments and people aren't in it; neither are live capacity and
/// the policy's version, which are facts of the re-check.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// Whose plan: an approval of one cohort never fits another.
    pub cohort: CohortId,
    /// The source queue.
    pub queue: QueueId,
    /// The queue that the lane is for.
    pub lane: &'a str,
    /// Exchange and key.
    pub target: (&'a str, &'a str),
    /// What people wrote.
    pub draft: &'a Draft,
    /// The frozen list, in its order: row id, commitment, stratum.
    pub items: &'a [(QuarantineId, Hash32, i64)],
    /// The probe's definition now; `None` where there is no such probe.
    pub probe: Option<&'a ProbeDefinition>,
    /// Positions of the items that the probe verifies after the expansion.
    pub verification_sample: &'a [i32],
}

/// Canonical bytes and their digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// RFC 8785 JSON, UTF-8.
    pub canonical: Vec<u8>,
    /// SHA-256 over [`DIGEST_PREFIX`] and the bytes.
    pub digest: Hash32,
}

/// The bytes can't be made or read: a defect, not a person's mistake.
#[derive(Debug, thiserror::Error)]
#[error("a plan's JSON: {0}")]
pub struct Broken(#[from] serde_json::Error);

#[derive(Serialize)]
struct Shape<'a> {
    format: &'static str,
    cohort: CohortId,
    queue: QueueId,
    lane: &'a str,
    target: Target<'a>,
    items: Vec<Item>,
    condition_fixed: Option<&'a ConditionFixed>,
    corrections: [(); 0],
    restore_expiration: bool,
    accepted_warnings: Vec<&'a str>,
    canary: Option<Canary<'a>>,
    expansion: Option<Expansion>,
    guards: Value,
    probe: Option<Value>,
    verification_sample: &'a [i32],
    capacity: Option<()>,
    expires_at: Option<Timestamp>,
    run_by: Option<Timestamp>,
}

#[derive(Serialize)]
struct Target<'a> {
    exchange: &'a str,
    routing_key: &'a str,
}

#[derive(Serialize)]
struct Item {
    id: QuarantineId,
    commitment: Hash32,
    stratum: i64,
    correction: Option<()>,
}

#[derive(Serialize)]
struct Canary<'a> {
    items: &'a [QuarantineId],
    probe: &'a str,
    expect: Vec<Expect<'a>>,
    wait_s: i64,
    max_canaries: i64,
    valid_s: i64,
    attribution: Attribution,
}

#[derive(Serialize)]
struct Expect<'a> {
    pointer: &'a str,
    op: ExpectOp,
    value: Option<Value>,
    from_evidence: Option<&'a str>,
}

/// Rates and factors in thousandths: there are no floats in a plan.
#[derive(Serialize)]
struct Expansion {
    start_per_s_thousandths: i64,
    max_per_s_thousandths: i64,
    step_factor_thousandths: i64,
    step_s: i64,
    max_in_flight: i64,
    on_red: OnRed,
    verify_sample_percent: i64,
}

/// Makes the plan.
///
/// # Errors
/// See [`Broken`].
pub fn build(facts: &Facts<'_>) -> Result<Plan, Broken> {
    let draft = facts.draft;
    let mut warnings: Vec<&str> = draft.accept_warnings.iter().map(String::as_str).collect();
    warnings.sort_unstable();
    warnings.dedup();
    let shape = Shape {
        format: "lazaret.plan.v1",
        cohort: facts.cohort,
        queue: facts.queue,
        lane: facts.lane,
        target: Target { exchange: facts.target.0, routing_key: facts.target.1 },
        items: facts
            .items
            .iter()
            .map(|(id, commitment, stratum)| Item {
                id: *id,
                commitment: *commitment,
                stratum: *stratum,
                correction: None,
            })
            .collect(),
        condition_fixed: draft.condition_fixed.as_ref(),
        corrections: [],
        restore_expiration: draft.restore_expiration,
        accepted_warnings: warnings,
        canary: draft.canary.as_ref().map(|canary| Canary {
            items: &canary.items,
            probe: &canary.probe,
            expect: canary.expect.iter().map(expect).collect(),
            wait_s: canary.wait_s,
            max_canaries: canary.max_canaries,
            valid_s: canary.valid_s,
            attribution: canary.attribution,
        }),
        expansion: draft.expansion.as_ref().map(|expansion| Expansion {
            start_per_s_thousandths: expansion.start_per_s.0,
            max_per_s_thousandths: expansion.max_per_s.0,
            step_factor_thousandths: expansion.step_factor.0,
            step_s: expansion.step_s,
            max_in_flight: expansion.max_in_flight,
            on_red: expansion.on_red,
            verify_sample_percent: expansion.verify_sample_percent,
        }),
        guards: i_json(&Value::Object(draft.guards.clone())),
        probe: facts.probe.map(serde_json::to_value).transpose()?,
        verification_sample: facts.verification_sample,
        capacity: None,
        expires_at: draft.expires_at,
        run_by: draft.run_by,
    };
    let canonical = serde_json_canonicalizer::to_vec(&shape)?;
    Ok(Plan { digest: digest(&canonical), canonical })
}

/// The digest that names these canonical bytes.
#[must_use]
pub fn digest(canonical: &[u8]) -> Hash32 {
    Hash32(Sha256::new().chain_update(DIGEST_PREFIX).chain_update(canonical).finalize().into())
}

/// Which items of the rest are verified: `percent` of `size`, spread evenly over the list, the canaries left out by the
/// caller's positions.
#[must_use]
pub fn verification_sample(size: i32, percent: i64) -> Vec<i32> {
    let percent = percent.clamp(0, 100);
    let taken = |position: i32| i64::from(position) * percent / 100;
    (0..size).filter(|position| taken(position + 1) > taken(*position)).collect()
}

/// What differs between two plans' canonical bytes, by JSON pointer; lists of items are compared whole.
///
/// # Errors
/// See [`Broken`].
pub fn changes(before: &[u8], after: &[u8]) -> Result<Vec<PlanChange>, Broken> {
    let (before, after): (Value, Value) = (serde_json::from_slice(before)?, serde_json::from_slice(after)?);
    let mut found = Vec::new();
    compare("", Some(&before), Some(&after), &mut found);
    Ok(found)
}

fn compare(pointer: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<PlanChange>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let step = key.replace('~', "~0").replace('/', "~1");
                compare(&format!("{pointer}/{step}"), old.get(key), new.get(key), found);
            }
        }
        _ => {
            found.push(PlanChange { pointer: pointer.to_owned(), before: before.cloned(), after: after.cloned() });
        }
    }
}

fn expect(expectation: &Expectation) -> Expect<'_> {
    Expect {
        pointer: &expectation.pointer,
        op: expectation.op,
        value: expectation.value.as_ref().map(i_json),
        from_evidence: expectation.from_evidence.as_deref(),
    }
}

/// Within I-JSON: numbers that aren't safe integers become decimal strings under the key `decimal`. An object that a person
/// wrote in that form goes under `literal`, so that no two values have the same bytes.
fn i_json(value: &Value) -> Value {
    match value {
        Value::Number(number) if !is_safe(number) => {
            Value::Object(Map::from_iter([("decimal".to_owned(), Value::String(number.to_string()))]))
        }
        Value::Array(values) => values.iter().map(i_json).collect(),
        Value::Object(fields) => {
            let inner: Value = fields.iter().map(|(key, value)| (key.clone(), i_json(value))).collect();
            let looks_ours = fields.len() == 1 && fields.keys().all(|key| key == "decimal" || key == "literal");
            if looks_ours { Value::Object(Map::from_iter([("literal".to_owned(), inner)])) } else { inner }
        }
        other => other.clone(),
    }
}

fn is_safe(number: &Number) -> bool {
    number.as_i64().is_some_and(|value| (-MAX_SAFE..=MAX_SAFE).contains(&value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uuid::Uuid;

    fn draft() -> Draft {
        serde_json::from_value(json!({
            "title": "t", "reason": "r",
            "condition_fixed": { "kind": "worker_version", "reference": "2026.12.2" },
            "accept_warnings": ["b", "a", "a"],
            "canary": { "items": [Uuid::from_u128(1)], "probe": "invoice", "wait_s": 30, "max_canaries": 1, "valid_s": 600,
                "attribution": "redrive_id", "expect": [{ "pointer": "/0/amount", "op": "eq", "value": 1.5 }] },
            "expansion": { "start_per_s": 0.5, "max_per_s": 20, "step_factor": 1.5, "step_s": 10, "max_in_flight": 10,
                "on_red": "pause", "verify_sample_percent": 10 },
            "expires_at": "2026-12-02T08:00:00Z", "run_by": "2026-12-02T09:00:00Z",
        }))
        .unwrap()
    }

    fn build_with<'a>(draft: &'a Draft, spoil: impl Fn(&mut Facts<'a>)) -> Plan {
        const ITEMS: [(QuarantineId, Hash32, i64); 1] = [(QuarantineId(Uuid::from_u128(1)), Hash32([1; 32]), 0)];
        let mut facts = Facts {
            cohort: CohortId(Uuid::from_u128(9)),
            queue: QueueId(Uuid::from_u128(8)),
            lane: "b/v/q",
            target: ("", "q"),
            draft,
            items: &ITEMS,
            probe: None,
            verification_sample: &[],
        };
        spoil(&mut facts);
        build(&facts).unwrap()
    }

    #[test]
    fn the_bytes_are_canonical_and_have_no_floats() {
        let plan = build_with(&draft(), |_| {});
        let text = String::from_utf8(plan.canonical.clone()).unwrap();
        assert!(text.contains(r#""accepted_warnings":["a","b"]"#), "{text}");
        assert!(text.contains(r#""value":{"decimal":"1.5"}"#) && text.contains(r#""start_per_s_thousandths":500"#));
        assert!(!text.contains("\"title\"") && !text.contains("\"reason\""));
        let again: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json_canonicalizer::to_vec(&again).unwrap(), plan.canonical);
    }

    #[test]
    fn no_two_values_have_the_same_bytes() {
        let values = [
            json!(1.5),
            json!("1.5"),
            json!({ "decimal": "1.5" }),
            json!({ "literal": { "decimal": "1.5" } }),
            json!({ "decimal": 1.5 }),
            json!({ "literal": 1.5 }),
            json!([1.5]),
            json!({ "decimal": "1.5", "literal": 1 }),
        ];
        let digests: std::collections::BTreeSet<_> = values
            .iter()
            .map(|value| {
                let mut edited = draft();
                edited.canary.as_mut().unwrap().expect[0].value = Some(value.clone());
                build_with(&edited, |_| {}).digest.to_string()
            })
            .collect();
        assert_eq!(digests.len(), values.len());
    }

    #[test]
    fn everything_that_an_approval_covers_moves_the_digest() {
        let digest = build_with(&draft(), |_| {}).digest;
        let edits: [(&str, Value); 12] = [
            ("/condition_fixed/reference", json!("other")),
            ("/accept_warnings", json!(["a"])),
            ("/canary/items", json!([Uuid::from_u128(2)])),
            ("/canary/probe", json!("other")),
            ("/canary/expect/0/value", json!(1.6)),
            ("/canary/wait_s", json!(31)),
            ("/canary/attribution", json!("by_exclusion")),
            ("/expansion/max_per_s", json!(21)),
            ("/expansion/on_red", json!("halve")),
            ("/expires_at", json!("2026-12-02T08:00:01Z")),
            ("/run_by", json!("2026-12-02T09:00:01Z")),
            ("/restore_expiration", json!(true)),
        ];
        for (pointer, value) in edits {
            let mut edited = serde_json::to_value(draft()).unwrap();
            *edited.pointer_mut(pointer).unwrap() = value;
            let edited: Draft = serde_json::from_value(edited).unwrap();
            assert_ne!(build_with(&edited, |_| {}).digest, digest, "{pointer}");
        }
        let mut renamed = draft();
        renamed.title = "other".into();
        renamed.reason = "other".into();
        assert_eq!(build_with(&renamed, |_| {}).digest, digest, "people's words aren't covered");

        let other_items = [(QuarantineId(Uuid::from_u128(1)), Hash32([2; 32]), 0)];
        let probe = ProbeDefinition::Sql { database: "env:D".into(), statement: "s".into(), redrive_id_column: None };
        let draft = draft();
        for (what, plan) in [
            ("commitment", build_with(&draft, |f| f.items = &other_items)),
            ("cohort", build_with(&draft, |f| f.cohort = CohortId(Uuid::from_u128(1)))),
            ("queue", build_with(&draft, |f| f.queue = QueueId(Uuid::from_u128(1)))),
            ("target", build_with(&draft, |f| f.target = ("", "other"))),
            ("probe", build_with(&draft, |f| f.probe = Some(&probe))),
            ("sample", build_with(&draft, |f| f.verification_sample = &[0])),
        ] {
            assert_ne!(plan.digest, digest, "{what}");
        }
    }

    #[test]
    fn samples_are_spread() {
        assert_eq!(verification_sample(10, 0), [0; 0]);
        assert_eq!(verification_sample(10, 20), [4, 9]);
        assert_eq!(verification_sample(3, 100), [0, 1, 2]);
        assert_eq!(verification_sample(10_000, 1).len(), 100);
    }

    #[test]
    fn differences_are_by_pointer() {
        let before = build_with(&draft(), |_| {});
        let mut edited = draft();
        edited.run_by = None;
        edited.expansion.as_mut().unwrap().max_in_flight = 11;
        let after = build_with(&edited, |_| {});
        let pointers: Vec<_> =
            changes(&before.canonical, &after.canonical).unwrap().into_iter().map(|change| change.pointer).collect();
        assert_eq!(pointers, ["/expansion/max_in_flight", "/run_by"]);
        assert_eq!(changes(&before.canonical, &before.canonical).unwrap(), []);
    }
}
