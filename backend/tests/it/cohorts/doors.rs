//! The doors of a replay, and the one re-check behind them.

use super::ward::Ward;
use crate::harness::Person;
use domain::{
    api::Cohort,
    vocabulary::{CohortCommand, CohortState, ItemState},
};
use serde_json::json;

async fn start(who: &Person, cohort: &Cohort) -> crate::harness::Reply {
    who.act(&format!("/cohorts/{}/canary", cohort.row.id), json!({ "reason": "try one" })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a6_of_twenty_starts_one_is_taken() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let cohort = ward.approved(&mara, &ward.hold_many("job", 3).await).await;
    let starts = futures::future::join_all((0..20).map(|_| start(&mara, &cohort))).await;
    let taken = starts.iter().filter(|reply| reply.status == 202).count();
    assert_eq!((taken, starts.iter().filter(|reply| reply.status == 409).count()), (1, 19));
    let shown: Cohort = mara.get(&format!("/cohorts/{}", cohort.row.id)).await.ok();
    assert_eq!((shown.row.state, shown.canaries.len()), (CohortState::CanaryRunning, 1));
    assert!(shown.row.counts.iter().all(|count| count.state == ItemState::Scheduled && count.count == 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_a5_what_was_approved_must_still_be_so() {
    let cases = [
        ("plan_digest_mismatch", "UPDATE probes SET definition = jsonb_set(definition, '{statement}', '\"SELECT 2\"')"),
        ("plan_digest_mismatch", "UPDATE quarantine SET commitment = sha256('other')"),
        ("approvals_insufficient", "UPDATE users SET roles = '{viewer}' WHERE username = 'jon'"),
        ("approvals_insufficient", "UPDATE queues SET approval_policy = '{\"approvals\": 2}'"),
        ("policy_tightened", "UPDATE queues SET retry_policy = '{\"permanent_classes\": [\"timeout\"]}'"),
        (
            "frozen",
            "UPDATE freezes SET frozen = true, reason = 'storm', at = now(), by_id = (SELECT id FROM users WHERE username = 'mara')
             WHERE queue_id IS NULL",
        ),
        ("no_management_api", "UPDATE brokers SET management_url = 'http://127.0.0.1:9'"),
        ("target_changed", "UPDATE brokers SET name = name"),
        // A9: the database's clock decides, whatever a sweeper has done
        ("approval_expired", "UPDATE cohorts SET expires_at = now()"),
    ];
    for (code, spoil) in cases {
        let ward = Ward::open().await;
        let mara = ward.app.responder().await;
        let cohort = ward.approved(&mara, &ward.hold_many("job", 1).await).await;
        ward.sql(spoil).await;
        if code == "target_changed" {
            let unbind = format!("/api/queues/{}/orders", ward.vhost.path_segment());
            ward.vhost.manage(reqwest::Method::DELETE, &unbind, None).await;
        }
        start(&mara, &cohort).await.problem(409, code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p20_one_lane_and_it_says_for_whom() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let first = ward.approved(&mara, &ward.hold_many("a", 1).await).await;
    let second = ward.approved(&mara, &ward.hold_many("b", 1).await).await;
    let (one, two) = tokio::join!(start(&mara, &first), start(&mara, &second));
    let (won, lost) = if one.status == 202 { (first, two) } else { (second, one) };
    let problem = lost.problem(409, "lane_taken");
    assert_eq!(problem.facts.unwrap()["cohort"]["id"], won.row.id.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn doors_take_what_the_state_has() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let cohort = ward.approved(&mara, &ward.hold_many("job", 2).await).await;
    let path = format!("/cohorts/{}", cohort.row.id);
    let why = json!({ "reason": "why not" });
    let problem = mara.act(&format!("{path}/expand"), &why).await.problem(409, "illegal_transition");
    assert_eq!(problem.facts.unwrap()["legal"], json!(["withdraw", "revoke", "canary"]));
    let wrong = json!({ "reason": "go", "confirm_count": 7 });
    mara.act(&format!("{path}/canary"), wrong).await.problem(409, "count_mismatch");
    start(&mara, &cohort).await.is(202);
    let paused: Cohort = mara.act(&format!("{path}/pause"), &why).await.is(202).ok();
    assert_eq!(paused.row.state, CohortState::Paused);
    let resumed: Cohort = mara.act(&format!("{path}/resume"), &why).await.is(202).ok();
    assert_eq!(resumed.row.state, CohortState::CanaryRunning);
    mara.act(&format!("{path}/verify-again"), &why).await.problem(409, "illegal_transition");
    let aborting: Cohort = mara.act(&format!("{path}/abort"), &why).await.is(202).ok();
    assert_eq!(aborting.row.state, CohortState::Aborting);
    assert!(aborting.acts.iter().all(|act| act.command != CohortCommand::Abort));
    ward.app.viewer().await.act(&format!("{path}/abort"), &why).await.problem(403, "missing_permission");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_of_the_target_stops_the_start_too() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let billing = ward.second_queue().await;
    let ids = ward.hold_many("job", 1).await;
    let mut plan = ward.plan(&ids);
    plan["target"] = json!({ "exchange": "", "routing_key": "billing" });
    plan["accept_warnings"] = json!(["more_receivers"]);
    let draft = ward.draft(&mara, plan).await;
    ward.inspect(&mara, ids[0]).await;
    let submitted: Cohort = mara.act(&format!("/cohorts/{}/submit", draft.row.id), json!({})).await.ok();
    let cohort: Cohort = super::ward::approve(&ward.app.approver().await, &submitted).await.ok();
    mara.act(&format!("/queues/{billing}/freeze"), json!({ "reason": "storm" })).await.is(200);
    let problem = start(&mara, &cohort).await.problem(409, "frozen");
    assert!(problem.detail.contains("target queue") && problem.detail.contains("storm"), "{}", problem.detail);
    mara.act(&format!("/queues/{billing}/unfreeze"), json!({ "reason": "over" })).await.is(200);
    start(&mara, &cohort).await.is(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_says_nothing_of_a_broker_that_it_did_not_ask() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let cohort = ward.approved(&mara, &ward.hold_many("job", 1).await).await;
    start(&mara, &cohort).await.is(202);
    let pause = format!("/cohorts/{}/pause", cohort.row.id);
    let paused: Cohort = mara.act(&pause, json!({ "reason": "wait" })).await.is(202).ok();
    let resume = paused.acts.iter().find(|act| act.command == CohortCommand::Resume).unwrap();
    assert_eq!((resume.allowed, resume.reason.as_deref()), (false, Some("unknown_fact")));
    let read: Cohort = mara.get(&format!("/cohorts/{}", cohort.row.id)).await.ok();
    assert!(read.acts.iter().any(|act| act.command == CohortCommand::Resume && act.allowed), "{:?}", read.acts);
}

/// Done, each leaves one entry (the table is in `coverage`); what follows from it is a worker's, and there is none here.
#[tokio::test(flavor = "multi_thread")]
async fn each_act_leaves_one_entry() {
    let ward = Ward::open().await;
    let (mara, jon, other) = (ward.app.responder().await, ward.app.approver().await, ward.app.second_approver().await);
    let ids = ward.hold_many("job", 2).await;
    let mut before = ward.app.audit_count().await;
    let mut left_one = async |act: &str| {
        let now = ward.app.audit_count().await;
        assert_eq!(now - before, 1, "{act}");
        before = now;
    };
    let cohort = ward.draft(&mara, ward.plan(&ids)).await;
    left_one("draft").await;
    ward.inspect(&mara, ids[0]).await;
    left_one("reveal").await;
    let path = format!("/cohorts/{}", cohort.row.id);
    let words = json!({ "reason": "why", "comment": "why", "confirm_count": 1 });
    mara.change(&path, cohort.row.version, ward.plan(&ids)).await.is(200);
    left_one("edit").await;
    for (who, act) in [(&mara, "submit"), (&jon, "request-changes"), (&mara, "submit"), (&mara, "withdraw")] {
        who.act(&format!("{path}/{act}"), said(act, &words)).await.is(200);
        left_one(act).await;
    }
    let ids = ward.hold_many("other", 1).await;
    let cohort = ward.draft(&mara, ward.plan(&ids)).await;
    left_one("draft").await;
    ward.inspect(&mara, ids[0]).await;
    left_one("reveal").await;
    let path = format!("/cohorts/{}", cohort.row.id);
    let submitted: Cohort = mara.act(&format!("{path}/submit"), json!({})).await.ok();
    left_one("submit").await;
    super::ward::approve(&jon, &submitted).await.is(200);
    left_one("approve").await;
    jon.act(&format!("{path}/revoke"), said("revoke", &words)).await.is(200);
    left_one("revoke").await;
    super::ward::approve(&other, &submitted).await.is(200);
    left_one("approve").await;
    for act in ["canary", "pause", "resume", "abort"] {
        mara.act(&format!("{path}/{act}"), said(act, &words)).await.is(202);
        left_one(act).await;
    }
    let discarded = ward.draft(&mara, ward.plan(&ward.hold_many("third", 1).await)).await;
    left_one("draft").await;
    mara.act(&format!("/cohorts/{}/discard", discarded.row.id), json!({})).await.is(200);
    left_one("discard").await;
}

fn said(act: &str, words: &serde_json::Value) -> serde_json::Value {
    match act {
        "submit" => json!({}),
        "request-changes" | "withdraw" | "revoke" => json!({ "comment": words["comment"] }),
        _ => json!({ "reason": words["reason"], "confirm_count": words["confirm_count"] }),
    }
}
