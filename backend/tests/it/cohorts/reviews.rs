//! Four eyes, by every door that there is.

use super::ward::{Ward, approve};
use domain::{
    api::{Broker, Cohort, Page},
    ids::UserId,
    vocabulary::{CohortState, Role},
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a1_the_author_never_approves() {
    let ward = Ward::open().await;
    ward.app.hire("both", &[Role::Responder, Role::Approver, Role::Admin]).await;
    let author = ward.app.sign_in("both").await;
    let ids = ward.hold_many("job", 1).await;
    let cohort = ward.submitted(&author, &ids).await;
    approve(&author, &cohort).await.problem(409, "self_approval");
    // a second tab, and the name in another case, are the same person
    approve(&ward.app.sign_in("both").await, &cohort).await.problem(409, "self_approval");
    let refused: i64 =
        sqlx::query_scalar("SELECT count(*) FROM audit_entries WHERE code = 'self_approval' AND subject_id = $1")
            .bind(cohort.row.id.to_string())
            .fetch_one(ward.app.owner())
            .await
            .unwrap();
    assert!(refused >= 1);
    let shown: Cohort = author.get(&format!("/cohorts/{}", cohort.row.id)).await.ok();
    let me = shown.reviewers.iter().find(|reviewer| reviewer.user.username == "both").unwrap();
    assert_eq!((me.eligible, me.reason.as_deref()), (false, Some("self_approval")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a2_who_edited_any_revision_doesnt_approve() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    ward.app.hire("both", &[Role::Responder, Role::Approver]).await;
    let editor = ward.app.sign_in("both").await;
    let ids = ward.hold_many("job", 1).await;
    let draft = ward.draft(&mara, ward.plan(&ids)).await;
    let path = format!("/cohorts/{}", draft.row.id);
    let edited: Cohort = editor.change(&path, draft.row.version, ward.plan(&ids)).await.ok();
    mara.change(&path, edited.row.version, ward.plan(&ids)).await.ok::<Cohort>();
    ward.inspect(&mara, ids[0]).await;
    let cohort: Cohort = mara.act(&format!("{path}/submit"), json!({})).await.ok();
    approve(&editor, &cohort).await.problem(409, "self_approval");
    approve(&ward.app.approver().await, &cohort).await.ok::<Cohort>();
}

#[tokio::test(flavor = "multi_thread")]
async fn a4_an_approval_of_another_plan_is_none() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let a = ward.submitted(&mara, &ward.hold_many("a", 1).await).await;
    let b = ward.submitted(&mara, &ward.hold_many("b", 1).await).await;
    let jon = ward.app.approver().await;
    let body = json!({ "plan_digest": a.plan_digest, "comment": "read it" });
    jon.act(&format!("/cohorts/{}/approve", b.row.id), body).await.problem(409, "plan_digest_mismatch");
}

#[tokio::test(flavor = "multi_thread")]
async fn a7_one_person_counts_once() {
    let ward = Ward::open().await;
    ward.sql("UPDATE queues SET approval_policy = '{\"approvals\": 2}'").await;
    let mara = ward.app.responder().await;
    let cohort = ward.submitted(&mara, &ward.hold_many("job", 1).await).await;
    let (jon, again) = (ward.app.approver().await, ward.app.approver().await);
    let (one, two) = tokio::join!(approve(&jon, &cohort), approve(&again, &cohort));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    let done: Cohort = approve(&ward.app.second_approver().await, &cohort).await.ok();
    assert_eq!((done.row.state, done.row.generation, done.approvals.given), (CohortState::Approved, Some(1), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a8_one_wins_and_the_other_is_told() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let cohort = ward.submitted(&mara, &ward.hold_many("job", 1).await).await;
    let (jon, lee) = (ward.app.approver().await, ward.app.second_approver().await);
    let reject = format!("/cohorts/{}/reject", cohort.row.id);
    let (one, two) = tokio::join!(approve(&jon, &cohort), lee.act(&reject, json!({ "comment": "no" })));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);

    let other = ward.submitted(&mara, &ward.hold_many("other", 1).await).await;
    let withdraw = format!("/cohorts/{}/withdraw", other.row.id);
    mara.act(&withdraw, json!({ "comment": "not now" })).await.ok::<Cohort>();
    approve(&jon, &other).await.problem(409, "illegal_transition");
}

/// Records that `by` made the account, so many hours ago.
async fn made(ward: &Ward, user: UserId, by: UserId, hours_ago: i32) {
    sqlx::query(
        "INSERT INTO user_changes (id, user_id, changed_by, what, at)
         VALUES ($1, $1, $2, 'created', now() - make_interval(hours => $3))",
    )
    .bind(user.0)
    .bind(by.0)
    .bind(hours_ago)
    .execute(ward.app.owner())
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a12_an_account_made_or_changed_by_the_author_is_tainted() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let author = ward.app.id_of("mara").await;
    let puppet = ward.app.hire("puppet", &[Role::Approver]).await;
    made(&ward, puppet, author, 0).await;
    let cohort = ward.submitted(&mara, &ward.hold_many("job", 1).await).await;
    approve(&ward.app.sign_in("puppet").await, &cohort).await.problem(409, "tainted_approver");

    // nor by an account in between: mara made zed's, zed makes yara's
    let (zed, yara) = (ward.app.hire("zed", &[Role::Admin]).await, ward.app.hire("yara", &[Role::Approver]).await);
    made(&ward, zed, author, 0).await;
    made(&ward, yara, zed, 0).await;
    approve(&ward.app.sign_in("yara").await, &cohort).await.problem(409, "tainted_approver");
    // what was done to an account after it made another one doesn't reach that one
    let xen = ward.app.hire("xen", &[Role::Approver]).await;
    made(&ward, xen, zed, 1).await;
    approve(&ward.app.sign_in("xen").await, &cohort).await.ok::<Cohort>();
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_make_a_new_revision_without_approvals() {
    let ward = Ward::open().await;
    ward.sql("UPDATE queues SET approval_policy = '{\"approvals\": 2}'").await;
    let mara = ward.app.responder().await;
    let ids = ward.hold_many("job", 1).await;
    let cohort = ward.submitted(&mara, &ids).await;
    let jon = ward.app.approver().await;
    approve(&jon, &cohort).await.ok::<Cohort>();
    let path = format!("/cohorts/{}", cohort.row.id);
    let lee = ward.app.second_approver().await;
    let back: Cohort = lee.act(&format!("{path}/request-changes"), json!({ "comment": "slower" })).await.ok();
    assert_eq!((back.row.state, back.row.revision, back.approvals.given), (CohortState::Draft, 2, 0));
    let mut slower = ward.plan(&ids);
    slower["expansion"]["max_per_s"] = json!(2);
    mara.change(&path, back.row.version, slower).await.ok::<Cohort>();
    mara.act(&format!("{path}/submit"), json!({})).await.ok::<Cohort>();
    let plan: domain::api::PlanView = jon.get(&format!("{path}/plan")).await.ok();
    assert_eq!(plan.changes_since_revision, Some(1));
    assert!(plan.changes.iter().any(|change| change.pointer == "/expansion/max_per_s_thousandths"));
    approve(&jon, &cohort).await.problem(409, "plan_digest_mismatch");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_approval_spends_its_generation() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let cohort = ward.submitted(&mara, &ward.hold_many("job", 1).await).await;
    let jon = ward.app.approver().await;
    let approved: Cohort = approve(&jon, &cohort).await.ok();
    assert_eq!(approved.row.generation, Some(1));
    let revoked: Cohort = jon.act(&format!("/cohorts/{}/revoke", cohort.row.id), json!({})).await.ok();
    assert_eq!((revoked.row.state, revoked.row.generation), (CohortState::InReview, None));
    let again: Cohort = approve(&jon, &cohort).await.ok();
    assert_eq!(again.row.generation, Some(2), "a generation is never used twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_needs_a_recent_sign_in() {
    let ward = Ward::open().await;
    let mara = ward.app.responder().await;
    let cohort = ward.submitted(&mara, &ward.hold_many("job", 1).await).await;
    let jon = ward.app.approver().await;
    // six minutes pass for jon's session
    let (owner, user) = (ward.app.owner(), ward.app.id_of("jon").await);
    let data: Vec<u8> =
        sqlx::query_scalar("SELECT data FROM sessions WHERE user_id = $1").bind(user.0).fetch_one(owner).await.unwrap();
    let mut data: serde_json::Value = serde_json::from_slice(&data).unwrap();
    let signed_in = data.get_mut(lazaret::store::sessions::SIGNED_IN).unwrap();
    let mut aged: lazaret::store::sessions::SignedIn = serde_json::from_value(signed_in.clone()).unwrap();
    aged.confirmed_at -= time::Duration::minutes(6);
    *signed_in = serde_json::to_value(aged).unwrap();
    sqlx::query("UPDATE sessions SET data = $2 WHERE user_id = $1")
        .bind(user.0)
        .bind(serde_json::to_vec(&data).unwrap())
        .execute(owner)
        .await
        .unwrap();
    approve(&jon, &cohort).await.problem(403, "reauthentication_required");
    jon.post("/session/confirm", json!({ "password": crate::harness::PASSWORD })).await.is(200);
    approve(&jon, &cohort).await.ok::<Cohort>();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_submitted_goes_to_no_other_broker() {
    let ward = Ward::open().await;
    let (root, mara) = (ward.app.admin().await, ward.app.responder().await);
    let ids = ward.hold_many("job", 1).await;
    let broker = root.get("/brokers").await.ok::<Page<Broker>>().items.remove(0);
    let path = format!("/brokers/{}", broker.id);
    let elsewhere = json!({ "amqp_url": "amqp://127.0.0.2:5672", "management_url": "http://127.0.0.2:15672" });
    let cohort = ward.submitted(&mara, &ids).await;
    root.change(&path, broker.version, &elsewhere).await.problem(409, "broker_in_use");
    approve(&ward.app.approver().await, &cohort).await.ok::<Cohort>();
    root.change(&path, broker.version, &elsewhere).await.problem(409, "broker_in_use");
    // the same place with other credentials is no other broker, and an ended cohort holds nothing
    let rotated: Broker = root.change(&path, broker.version, json!({ "credentials": "env:ROTATED" })).await.ok();
    mara.act(&format!("/cohorts/{}/withdraw", cohort.row.id), json!({ "comment": "not today" })).await.ok::<Cohort>();
    root.change(&path, rotated.version, &elsewhere).await.ok::<Broker>();
}
