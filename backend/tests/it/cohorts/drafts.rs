//! Drafting and submitting.

use super::ward::{Letter, Ward};
use domain::{
    amqp::{Properties, ShortString, Table, Value as Amqp},
    api::{Cohort, CohortItem, CohortRow, Page, PlanView, Probe},
    vocabulary::CohortState,
};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_drafted_and_submitted() {
    let ward = Ward::open().await;
    let ids = ward.hold_many("job", 3).await;
    let mara = ward.app.responder().await;
    let mut plan = ward.plan(&ids);
    plan["canary"]["items"] = json!([ids[0], ids[1]]);
    let draft = ward.draft(&mara, plan).await;
    assert_eq!((draft.row.state, draft.row.size, draft.strata.len()), (CohortState::Draft, 3, 1));
    assert_eq!((draft.target.exchange.as_str(), draft.target.routing_key.as_str()), ("shop", "order"));
    assert_eq!(draft.target.receivers, Some(vec!["orders".to_owned()]));
    let submit = format!("/cohorts/{}/submit", draft.row.id);
    mara.act(&submit, json!({})).await.problem(409, "canary_not_inspected");
    ward.inspect(&mara, ids[0]).await;
    mara.act(&submit, json!({})).await.problem(409, "canary_not_inspected");
    ward.inspect(&mara, ids[1]).await;
    let submitted: Cohort = mara.act(&submit, json!({})).await.ok();
    assert_eq!(submitted.row.state, CohortState::InReview);
    assert!(submitted.strata[0].canary_inspected && submitted.preflight.refusals.is_empty());

    let second = mara.act(&submit, json!({})).await.problem(409, "illegal_transition");
    let legal = &second.facts.unwrap()["legal"];
    assert_eq!(legal, &json!(["approve", "request_changes", "reject", "withdraw"]));

    let plan: PlanView = mara.get(&format!("/cohorts/{}/plan", draft.row.id)).await.ok();
    assert_eq!(plan.plan_digest, submitted.plan_digest);
    assert_eq!(domain::plan::digest(plan.canonical.as_bytes()).to_string(), plan.plan_digest);
    let items: Page<CohortItem> = mara.get(&format!("/cohorts/{}/items?limit=2", draft.row.id)).await.ok();
    assert_eq!((items.items.len(), items.total.value), (2, 3));
    let rest: Page<CohortItem> =
        mara.get(&format!("/cohorts/{}/items?cursor={}", draft.row.id, items.next_cursor.unwrap())).await.ok();
    assert_eq!((rest.items.len(), rest.next_cursor), (1, None));
    let list: Page<CohortRow> = mara.get("/cohorts?state=in_review").await.ok();
    assert_eq!((list.items.len(), list.total.value), (1, 1));
}

/// The page chooses each stratum's canary among all of that stratum's items, however many come before them.
#[tokio::test(flavor = "multi_thread")]
async fn items_are_listed_by_stratum_and_pages_end() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let mut ids = ward.hold_many("job", 3).await;
    for job in ["late-0", "late-1"] {
        ids.push(ward.hold(Letter { class: "unreachable", ..Letter::of(job) }).await);
    }
    let draft = ward.draft(&mara, ward.plan(&ids)).await;
    assert_eq!(draft.strata.iter().map(|stratum| stratum.size).collect::<Vec<_>>(), [3, 2]);
    let items = format!("/cohorts/{}/items", draft.row.id);
    let first: Page<CohortItem> = mara.get(&format!("{items}?stratum=1&limit=1")).await.ok();
    assert_eq!((first.items[0].stratum, first.total.value), (1, 2));
    let cursor = first.next_cursor.unwrap();
    let second: Page<CohortItem> = mara.get(&format!("{items}?stratum=1&limit=1&cursor={cursor}")).await.ok();
    assert_eq!((second.items[0].stratum, second.next_cursor), (1, None));
    assert_ne!(second.items[0].id, first.items[0].id);
    let none: Page<CohortItem> = mara.get(&format!("{items}?stratum=2")).await.ok();
    assert_eq!((none.items.len(), none.total.value), (0, 0));
    mara.get(&format!("{items}?stratum=first")).await.problem(422, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_the_way_is_named() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let mut huge = Table::new();
    huge.push(ShortString::new("big").unwrap(), Amqp::text("x".repeat(131_000)));
    let cases = [
        ("duplicate_job", vec![Letter::of("twice"), Letter::of("twice")]),
        ("unattributed", vec![Letter { attributed: false, ..Letter::of("whose") }]),
        (
            "permanent_without_condition",
            vec![Letter { class: "schema_invalid", kind: "permanent", ..Letter::of("poison") }],
        ),
        // A13: frozen at custody; a policy that was loosened since changes nothing
        ("permanent_without_condition", vec![Letter { kind: "permanent", ..Letter::of("loosened") }]),
        (
            "headers_too_large",
            vec![Letter {
                properties: Properties { headers: Some(huge), ..Properties::default() },
                ..Letter::of("huge")
            }],
        ),
    ];
    for (code, letters) in cases {
        let mut ids = Vec::new();
        for letter in letters {
            ids.push(ward.hold(letter).await);
        }
        let draft = ward.draft(&mara, ward.plan(&ids)).await;
        ward.inspect(&mara, ids[0]).await;
        let shown: Cohort = mara.get(&format!("/cohorts/{}", draft.row.id)).await.ok();
        assert_eq!(shown.preflight.refusals.first().map(|refusal| refusal.code.as_str()), Some(code));
        let problem = mara.act(&format!("/cohorts/{}/submit", draft.row.id), json!({})).await.problem(409, code);
        assert_eq!(problem.facts.unwrap()["refusals"][0]["code"], code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cohorts_dont_overlap() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let ids = ward.hold_many("job", 2).await;
    let twin = ward.hold(Letter::of("job-1")).await;
    let first = ward.submitted(&mara, &ids).await;
    let message: Value = mara.get(&format!("/quarantine/{}", ids[1])).await.ok();
    assert_eq!(message["state"], "claimed");
    let overlapping = ward.draft(&mara, ward.plan(&[ids[0]])).await;
    mara.act(&format!("/cohorts/{}/submit", overlapping.row.id), json!({})).await.problem(409, "message_claimed");
    let same_job = ward.draft(&mara, ward.plan(&[twin])).await;
    ward.inspect(&mara, twin).await;
    let submit = format!("/cohorts/{}/submit", same_job.row.id);
    mara.act(&submit, json!({})).await.problem(409, "duplicate_job");
    let withdraw = format!("/cohorts/{}/withdraw", first.row.id);
    mara.act(&withdraw, json!({ "comment": "another way" })).await.ok::<Cohort>();
    mara.act(&submit, json!({})).await.ok::<Cohort>();
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_are_revisions_on_the_version_seen() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let ids = ward.hold_many("job", 1).await;
    let draft = ward.draft(&mara, ward.plan(&ids)).await;
    let path = format!("/cohorts/{}", draft.row.id);
    let mut edited = ward.plan(&ids);
    edited["title"] = json!("Renamed");
    let edited: Cohort = mara.change(&path, draft.row.version, edited).await.ok();
    assert_eq!((edited.row.revision, edited.row.title.as_str()), (2, "Renamed"));
    mara.change(&path, draft.row.version, ward.plan(&ids)).await.problem(412, "stale_version");
    let mut guarded = ward.plan(&ids);
    guarded["guards"] = json!({ "error_rate": {} });
    mara.change(&path, edited.row.version, guarded).await.problem(422, "guards_unavailable");
    let mut bad = ward.plan(&ids);
    bad["canary"]["wait_s"] = json!(0);
    assert_eq!(mara.act("/cohorts", bad).await.problem(422, "invalid_request").errors[0].pointer, "/canary/wait_s");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_management_api_nothing_is_submitted() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let ids = ward.hold_many("job", 1).await;
    let draft = ward.draft(&mara, ward.plan(&ids)).await;
    ward.inspect(&mara, ids[0]).await;
    ward.sql("UPDATE brokers SET management_url = 'http://127.0.0.1:9'").await;
    let submit = format!("/cohorts/{}/submit", draft.row.id);
    mara.act(&submit, json!({})).await.problem(409, "no_management_api");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_missing_is_said() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let ids = ward.hold_many("job", 1).await;
    ward.sql("UPDATE queues SET approval_policy = '{\"approvals\": 3}'").await;
    let draft = ward.draft(&mara, ward.plan(&ids)).await;
    ward.inspect(&mara, ids[0]).await;
    let submit = format!("/cohorts/{}/submit", draft.row.id);
    let problem = mara.act(&submit, json!({})).await.problem(409, "no_eligible_approver");
    assert_eq!(problem.facts.unwrap()["eligible"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_assigned_since_the_draft_is_judged_as_it_is_now() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let billing = ward.second_queue().await;
    let nobodys = Letter { attributed: false, ..Letter::of("unread") };
    let (elsewhere, here) = (ward.hold(nobodys.clone()).await, ward.hold(nobodys).await);
    let running = ward.submitted(&mara, &[ward.hold(Letter::of("job-1")).await]).await;
    let mut submits = Vec::new();
    for id in [elsewhere, here] {
        let draft = ward.draft(&mara, ward.plan(&[id])).await;
        ward.inspect(&mara, id).await;
        submits.push(format!("/cohorts/{}/submit", draft.row.id));
    }
    ward.assign(elsewhere, billing, "job-9").await;
    mara.act(&submits[0], json!({})).await.problem(409, "unattributed");
    ward.assign(here, ward.queue, "job-1").await;
    mara.act(&submits[1], json!({})).await.problem(409, "duplicate_job");
    let withdraw = format!("/cohorts/{}/withdraw", running.row.id);
    mara.act(&withdraw, json!({ "comment": "another way" })).await.ok::<Cohort>();
    mara.act(&submits[1], json!({})).await.ok::<Cohort>();
    // its own claim is by the job that it has now
    let twin = ward.draft(&mara, ward.plan(&[ward.hold(Letter::of("job-1")).await])).await;
    mara.act(&format!("/cohorts/{}/submit", twin.row.id), json!({})).await.problem(409, "duplicate_job");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_claimed_within_its_queue() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let billing = ward.second_queue().await;
    ward.submitted(&mara, &[ward.hold(Letter::of("42")).await]).await;
    let same_id = ward.hold(Letter::of("42")).await;
    ward.assign(same_id, billing, "42").await;
    let mut plan = ward.plan(&[same_id]);
    plan["queue_id"] = json!(billing);
    let other = ward.draft(&mara, plan).await;
    ward.inspect(&mara, same_id).await;
    mara.act(&format!("/cohorts/{}/submit", other.row.id), json!({})).await.ok::<Cohort>();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_proves_evidence_is_not_swapped_by_one_person() {
    let ward = Ward::open().await;
    let (mara, root) = (ward.app.responder().await, ward.app.admin().await);
    let definition = |statement: &str| {
        let sql = json!({ "kind": "sql", "database": "env:EFFECTS", "statement": statement });
        json!({ "definition": sql, "reason": "why" })
    };
    let probe: Probe = root.get("/probes/invoice").await.ok();
    let swap = definition("SELECT 'sent' AS state WHERE $1 <> ''");
    let ids = ward.hold_many("job", 1).await;
    let draft = ward.draft(&mara, ward.plan(&ids)).await;
    let put = root.put("/probes/invoice", Some(probe.version), &swap).await;
    put.problem(409, "loosening_needs_second_person");
    mara.act(&format!("/cohorts/{}/discard", draft.row.id), json!({})).await.ok::<Cohort>();
    ward.sql("UPDATE queues SET default_probe = 'invoice'").await;
    root.put("/probes/invoice", Some(probe.version), &swap).await.problem(409, "loosening_needs_second_person");
    root.put("/probes/other", None, &swap).await.ok::<Probe>();
    let queue = format!("/queues/{}", ward.queue);
    let version = root.get(&queue).await.ok::<Value>()["version"].as_i64().unwrap();
    let other = json!({ "default_probe": "other" });
    root.change(&queue, version, other).await.problem(409, "loosening_needs_second_person");
}
