//! What admins set: people, brokers, queues, probes; and the freeze switch.

use crate::harness::TestApp;
use domain::{
    api::{AuditEntry, Broker, FreezeResult, Freezes, Page, Probe, Queue, Session, Topology, User},
    vocabulary::Action,
};
use reqwest::Method;
use serde_json::json;

const NEW_PASSWORD: &str = "a long enough password";

async fn declare(vhost: &crate::harness::Vhost, name: &str) {
    let path = format!("/api/queues/{}/{name}", vhost.path_segment());
    vhost.manage(Method::PUT, &path, Some(json!({ "durable": true }))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_and_its_queue_come_under_watch() {
    let app = TestApp::start().await;
    let (root, vhost) = (app.admin().await, app.vhost().await);
    let broker = app.register_broker(&vhost).await;
    let shown: Broker = root.get(&format!("/brokers/{broker}")).await.ok();
    assert!(shown.product_version.is_some(), "the management API was asked");
    declare(&vhost, "orders").await;
    let body = json!({ "broker_id": broker, "vhost": vhost.name, "name": "orders", "dead_letter_queue": "orders.dlq" });
    let problem = root.act("/queues", &body).await.problem(422, "invalid_request");
    assert_eq!(problem.errors[0].pointer, "/dead_letter_queue");
    declare(&vhost, "orders.dlq").await;
    let topology: Topology = root.get(&format!("/brokers/{broker}/topology")).await.ok();
    assert!(topology.queues.iter().any(|queue| queue.vhost == vhost.name && queue.name == "orders"));
    let before = app.audit_count().await;
    let queue: Queue = root.act("/queues", &body).await.ok();
    assert_eq!(app.audit_count().await, before + 1);
    assert_eq!((queue.policy_version, queue.held, queue.frozen.is_none()), (1, 0, true));
    assert_eq!(queue.readings.healthy_age_s.value, None);
    assert_eq!(queue.readings.healthy_age_s.reason.as_deref(), Some("no_event_feed"));
    root.act("/queues", &body).await.problem(409, "queue_exists");
    let listed: Page<Queue> = app.viewer().await.get("/queues").await.ok();
    assert_eq!(listed.items.len(), 1);

    let path = format!("/queues/{}", queue.id);
    let policy = json!({ "retry_policy": { "permanent_classes": ["schema_invalid"] } });
    root.send(
        root.request(Method::PATCH, &format!("/api/v1{path}"))
            .header("origin", &app.base_url)
            .header("idempotency-key", "k")
            .json(&policy),
    )
    .await
    .problem(428, "version_required");
    let changed: Queue = root.change(&path, queue.version, &policy).await.ok();
    assert_eq!((changed.policy_version, changed.version), (2, 2));
    root.change(&path, queue.version, &policy).await.problem(412, "stale_version");
    let both = json!({ "retry_policy": { "permanent_classes": ["a"], "transient_classes": ["a"] } });
    root.change(&path, changed.version, both).await.problem(422, "invalid_request");
    root.change(&path, changed.version, json!({ "default_probe": "none" })).await.problem(422, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_is_loud_and_each_switch_has_its_own_right() {
    let app = TestApp::start().await;
    let (mara, jon, root) = (app.responder().await, app.approver().await, app.admin().await);
    let reason = json!({ "reason": "the downstream is down" });
    let frozen: FreezeResult = jon.act("/freeze", &reason).await.ok();
    assert!(frozen.frozen && frozen.publishing.is_empty());
    let freezes: Freezes = app.viewer().await.get("/freeze").await.ok();
    assert_eq!(freezes.all.unwrap().by.username, "jon");
    mara.act("/unfreeze", &reason).await.problem(403, "missing_permission");
    root.act("/unfreeze", json!({ "reason": " " })).await.problem(422, "invalid_request");
    root.act("/unfreeze", &reason).await.is(200);
    root.act("/unfreeze", &reason).await.problem(409, "not_frozen");
    mara.act(&format!("/queues/{}/freeze", uuid::Uuid::nil()), &reason).await.problem(404, "not_found");
    let trail: Page<AuditEntry> = mara.get("/audit?subject=freeze&limit=2").await.ok();
    assert_eq!(trail.items.len(), 2);
    assert_eq!(trail.items[0].code.as_deref(), Some("not_frozen"));
    let next: Page<AuditEntry> =
        mara.get(&format!("/audit?subject=freeze&limit=2&cursor={}", trail.next_cursor.unwrap())).await.ok();
    assert_eq!(next.items[0].action, Action::Unfrozen);
    let one: AuditEntry = mara.get(&format!("/audit/{}", next.items[0].id)).await.ok();
    assert_eq!(one, next.items[0]);
    mara.get("/audit?cursor=x").await.problem(400, "bad_cursor");
    mara.get("/audit?action=no.such").await.problem(422, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_change_at_once() {
    let app = TestApp::start().await;
    let root = app.admin().await;
    let new = json!({ "username": "Nina", "password": NEW_PASSWORD, "roles": ["viewer"] });
    let nina: User = root.act("/users", &new).await.ok();
    assert_eq!(nina.username, "nina");
    root.act("/users", &new).await.problem(409, "username_taken");
    root.act("/users", json!({ "username": "x", "password": "short", "roles": ["viewer"] }))
        .await
        .problem(422, "invalid_request");
    root.act("/users", json!({ "username": "bot", "password": NEW_PASSWORD, "roles": ["approver"], "machine": true }))
        .await
        .problem(422, "invalid_request");
    let person = app.nobody();
    person.post("/session", json!({ "username": "nina", "password": NEW_PASSWORD })).await.is(201);
    let path = format!("/users/{}", nina.id);
    let changed: User = root.change(&path, nina.version, json!({ "roles": ["responder"] })).await.ok();
    assert_eq!(person.get("/session").await.ok::<Session>().roles, changed.roles, "on the next request");
    root.change(&path, changed.version, json!({ "disabled": true })).await.is(200);
    person.get("/session").await.problem(401, "no_session");
    person
        .post("/session", json!({ "username": "nina", "password": NEW_PASSWORD }))
        .await
        .problem(401, "wrong_credentials");
    let own = format!("/users/{}", app.id_of("root").await);
    root.change(&own, 1, json!({ "disabled": true })).await.problem(409, "last_admin");

    let mara = app.responder().await;
    let password = json!({ "password": "another password" });
    root.act(&format!("/users/{}/password", app.id_of("mara").await), password).await.is(200);
    mara.get("/session").await.problem(401, "no_session");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_is_defined_once_and_changed_by_version() {
    let app = TestApp::start().await;
    let root = app.admin().await;
    let definition = json!({ "kind": "sql", "database": "env:SHOP", "statement": "SELECT 1 WHERE $1 <> ''" });
    let body = json!({ "definition": definition, "reason": "the invoice is the effect" });
    let probe: Probe = root.put("/probes/invoice", None, &body).await.ok();
    root.put("/probes/invoice", None, &body).await.problem(428, "version_required");
    root.put("/probes/invoice", Some(probe.version + 1), &body).await.problem(412, "stale_version");
    assert_eq!(root.put("/probes/invoice", Some(probe.version), &body).await.ok::<Probe>().version, 2);
    root.put("/probes/Invoice", None, &body).await.problem(422, "invalid_request");
    let mut secret = body.clone();
    secret["definition"]["database"] = json!("postgres://u:p@h/d");
    let problem = root.put("/probes/other", None, &secret).await.problem(422, "invalid_request");
    assert!(!format!("{problem:?}").contains("u:p"), "a secret isn't repeated");
}
