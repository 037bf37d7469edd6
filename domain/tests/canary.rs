//! No canary passes without an effect that is fresh, as expected and attributed, whatever the probe answers in between
//! (RULES 8 and 20).

use domain::api::{ExpectOp, Expectation};
use domain::canary::{Before, Facts, Judgement, Sample, before, judge, judge_canary};
use domain::vocabulary::{ItemState, Verdict};
use proptest::prelude::*;
use serde_json::{Value, json};
use time::macros::datetime;
use time::{Duration, OffsetDateTime};

const CONFIRMED: OffsetDateTime = datetime!(2026-12-02 07:00 UTC);

fn rows() -> impl Strategy<Value = Vec<Value>> {
    let row = prop_oneof![
        Just(json!({"status": "paid", "amount": 5})),
        Just(json!({"status": "open", "amount": 5})),
        Just(json!({"status": null})),
        Just(json!({})),
    ];
    prop::collection::vec(row, 0..3)
}

fn sample() -> impl Strategy<Value = Option<Sample>> {
    let answered = (-2..3_i64, rows()).prop_map(|(s, rows)| Sample { as_of: CONFIRMED + Duration::seconds(s), rows });
    prop::option::of(answered)
}

fn expectations() -> impl Strategy<Value = Vec<Expectation>> {
    let one = |pointer: &str, op, value, from: Option<&str>| Expectation {
        pointer: pointer.into(),
        op,
        value,
        from_evidence: from.map(Into::into),
    };
    let all = vec![
        one("/0/status", ExpectOp::Eq, Some(json!("paid")), None),
        one("/0/amount", ExpectOp::Gte, Some(json!(5)), None),
        one("/0/amount", ExpectOp::Eq, None, Some("/amount")),
        one("/0", ExpectOp::Exists, None, None),
    ];
    prop::sample::subsequence(all, 0..=4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn a_pass_has_all_that_it_needs(
        sample in sample(),
        rows_before in rows(),
        expectations in expectations(),
        item in prop::sample::select(ItemState::ALL),
        confirmed in any::<bool>(),
        facts in any::<[bool; 7]>(),
    ) {
        let [effect_event, row_carries_id, exclusion, version_counts, version_awaited, permanent_failure, deadline_passed] =
            facts;
        let payload = json!({"amount": 5});
        let judged = judge_canary(&Facts {
            item,
            confirmed_at: confirmed.then_some(CONFIRMED),
            before: &rows_before,
            sample: sample.as_ref(),
            expectations: &expectations,
            evidence: Some(&payload),
            effect_event,
            row_carries_id,
            exclusion,
            version_counts,
            version_awaited,
            permanent_failure,
            deadline_passed,
        });
        if let Judgement::Verdict(Verdict::Pass, _, by) = judged {
            prop_assert!(by.is_some() && (effect_event || row_carries_id || exclusion));
            prop_assert!(confirmed && !permanent_failure && version_counts);
            prop_assert!(!version_awaited || deadline_passed);
            let sample = sample.as_ref().expect("a pass without an answer of the probe");
            prop_assert!(sample.as_of >= CONFIRMED);
            prop_assert!(!expectations.is_empty());
            prop_assert!(judge(&sample.rows, &expectations, Some(&payload)).iter().all(|r| r.holds == Some(true)));
            let gone = [ItemState::Returned, ItemState::Nacked, ItemState::Refused, ItemState::Requarantined, ItemState::InDoubt];
            prop_assert!(!gone.contains(&item));
        }
        // a timer never promotes, and without data there is neither pass nor contradiction
        if sample.is_none() {
            prop_assert!(!matches!(judged, Judgement::Verdict(Verdict::Pass, ..)));
        }
    }

    #[test]
    fn what_is_there_before_is_never_sent(rows in rows(), expectations in expectations()) {
        let answered = Sample { as_of: CONFIRMED, rows: rows.clone() };
        let holds = judge(&rows, &expectations, None).iter().all(|r| r.holds == Some(true));
        if !rows.is_empty() && holds {
            prop_assert_eq!(before(&answered, &expectations, None), Before::AlreadyEffective);
        }
    }

    /// CASES P14: errors and empties in any order, however long.
    #[test]
    fn errors_and_empties_never_pass(answers in prop::collection::vec(any::<bool>(), 1..20), event in any::<bool>(), over in any::<bool>()) {
        let empty = Sample { as_of: CONFIRMED + Duration::SECOND, rows: vec![] };
        let expected = [Expectation { pointer: "/0/status".into(), op: ExpectOp::Eq, value: Some(json!("paid")), from_evidence: None }];
        for answered in answers {
            let judged = judge_canary(&Facts {
                item: ItemState::Confirmed,
                confirmed_at: Some(CONFIRMED),
                before: &[],
                sample: answered.then_some(&empty),
                expectations: &expected,
                evidence: None,
                effect_event: event,
                row_carries_id: false,
                exclusion: true,
                version_counts: true,
                version_awaited: false,
                permanent_failure: false,
                deadline_passed: over,
            });
            prop_assert!(!matches!(judged, Judgement::Verdict(Verdict::Pass | Verdict::Fail, ..)));
        }
    }
}
