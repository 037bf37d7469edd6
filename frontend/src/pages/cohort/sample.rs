//! A cohort for tests, with something in every field of its plan.

use domain::{
    api::{
        Approvals, Attribution, CanaryPlan, Cohort, CohortRow, ConditionFixed, ConditionKind, Draft, Expansion,
        ExpectOp, Expectation, OnRed, Preflight, ProbeDefinition, QueueRef, ResolvedTarget, Stratum, Thousandths,
        Timestamp, UserRef,
    },
    ids::{CohortId, QuarantineId, QueueId, UserId},
    keyed::Hash32,
    vocabulary::CohortState,
};
use time::macros::datetime;
use uuid::Uuid;

pub(super) fn items() -> [(QuarantineId, Hash32, i64); 2] {
    [1, 2].map(|n| (QuarantineId(Uuid::from_u128(n)), Hash32([7; 32]), 0))
}

pub(super) fn probe() -> ProbeDefinition {
    ProbeDefinition::Sql {
        database: "env:EFFECTS".to_owned(),
        statement: "SELECT amount_cents FROM invoices WHERE job = $1".to_owned(),
        redrive_id_column: Some("redrive_id".to_owned()),
    }
}

pub(super) fn cohort() -> Cohort {
    let mara = UserRef { id: UserId(Uuid::from_u128(7)), username: "mara".to_owned() };
    let at = Timestamp(datetime!(2026-12-02 03:00 UTC));
    let canary = QuarantineId(Uuid::from_u128(1));
    Cohort {
        row: CohortRow {
            id: CohortId(Uuid::from_u128(12)),
            queue: QueueRef { id: QueueId(Uuid::from_u128(9)), name: "orders".to_owned() },
            title: "Large invoices".to_owned(),
            state: CohortState::Draft,
            state_reason: None,
            state_since: at,
            state_by: Some(mara.clone()),
            revision: 1,
            version: 3,
            size: 2,
            counts: vec![],
            created_by: mara,
            created_at: at,
            generation: None,
            published_twice: false,
        },
        draft: Draft {
            title: "Large invoices".to_owned(),
            reason: "the fix is out".to_owned(),
            condition_fixed: Some(ConditionFixed {
                kind: ConditionKind::WorkerVersion,
                reference: "release 2026.12.2".to_owned(),
                min_worker_version: Some("2026.12.2".to_owned()),
            }),
            target: None,
            accept_warnings: vec!["possible_duplicate".to_owned()],
            canary: Some(CanaryPlan {
                items: vec![canary],
                probe: "invoice-row".to_owned(),
                expect: vec![Expectation {
                    pointer: "/0/amount_cents".to_owned(),
                    op: ExpectOp::Eq,
                    value: None,
                    from_evidence: Some("/amount_cents".to_owned()),
                }],
                wait_s: 60,
                max_canaries: 2,
                valid_s: 1800,
                attribution: Attribution::RedriveId,
            }),
            expansion: Some(Expansion {
                start_per_s: Thousandths(2000),
                max_per_s: Thousandths(8000),
                step_factor: Thousandths(1500),
                step_s: 10,
                max_in_flight: 20,
                on_red: OnRed::Pause,
                verify_sample_percent: 50,
            }),
            guards: serde_json::Map::new(),
            restore_expiration: true,
            expires_at: Some(Timestamp(datetime!(2026-12-02 03:30 UTC))),
            run_by: Some(Timestamp(datetime!(2026-12-02 04:45 UTC))),
        },
        target: ResolvedTarget {
            exchange: "shop".to_owned(),
            routing_key: "order.created".to_owned(),
            receivers: Some(vec!["orders".to_owned()]),
            is_default: true,
        },
        plan_digest: "00".repeat(32),
        strata: vec![Stratum {
            index: 0,
            fingerprint: "print".to_owned(),
            error_class: Some("amount_rejected".to_owned()),
            size: 2,
            canary: Some(canary),
            canary_inspected: true,
        }],
        preflight: Preflight { at: None, refusals: vec![], warnings: vec![] },
        reviews: vec![],
        approvals: Approvals { needed: 1, given: 0 },
        reviewers: vec![],
        acts: vec![],
        stages: vec![],
        canaries: vec![],
    }
}
