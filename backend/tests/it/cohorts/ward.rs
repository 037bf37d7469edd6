//! A watched queue at the real broker, with dead letters in the vault, and a plan for them.

use crate::harness::{Person, TestApp, Vhost};
use domain::{amqp::Properties, api::Cohort, ids::QuarantineId};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) struct Ward {
    pub(crate) app: TestApp,
    pub(crate) vhost: Vhost,
    pub(crate) queue: Uuid,
    dead_letter_queue: Uuid,
    batch: Uuid,
}

/// What a dead letter of a test is like.
#[derive(Clone)]
pub(crate) struct Letter {
    pub(crate) job: String,
    pub(crate) class: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) attributed: bool,
    pub(crate) properties: Properties,
}

impl Letter {
    pub(crate) fn of(job: &str) -> Self {
        Self {
            job: job.to_owned(),
            class: "timeout",
            kind: "transient",
            attributed: true,
            properties: Properties::default(),
        }
    }
}

impl Ward {
    /// Queue `orders` behind exchange `shop`; what dies goes through `shop.dlx` to `orders.dlq`.
    pub(crate) async fn open() -> Self {
        let app = TestApp::start().await;
        let vhost = app.vhost().await;
        let v = vhost.path_segment();
        let put = |path: String, body: Value| manage(&vhost, Method::PUT, path, body);
        let dead = json!({ "durable": true, "arguments": { "x-dead-letter-exchange": "shop.dlx", "x-dead-letter-routing-key": "dead" } });
        put(format!("/api/exchanges/{v}/shop"), json!({ "type": "direct", "durable": true })).await;
        put(format!("/api/exchanges/{v}/shop.dlx"), json!({ "type": "direct", "durable": true })).await;
        put(format!("/api/queues/{v}/orders"), dead).await;
        put(format!("/api/queues/{v}/orders.dlq"), json!({ "durable": true })).await;
        let bind = |path: String, key: &str| manage(&vhost, Method::POST, path, json!({ "routing_key": key }));
        bind(format!("/api/bindings/{v}/e/shop/q/orders"), "order").await;
        bind(format!("/api/bindings/{v}/e/shop.dlx/q/orders.dlq"), "dead").await;
        let (broker, dead_letter_queue, queue, batch) =
            (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
        let owner = app.owner();
        sqlx::query(
            "INSERT INTO brokers (id, name, amqp_url, management_url, credentials) VALUES ($1, 'b', $2, $3, $4)",
        )
        .bind(broker)
        .bind(vhost.amqp_address())
        .bind(vhost.management_address())
        .bind(vhost.credentials())
        .execute(owner)
        .await
        .unwrap();
        sqlx::query("INSERT INTO dead_letter_queues (id, broker_id, vhost, name, custody) VALUES ($1, $2, $3, 'orders.dlq', 'drain')")
            .bind(dead_letter_queue).bind(broker).bind(&vhost.name).execute(owner).await.unwrap();
        sqlx::query(
            "INSERT INTO queues (id, broker_id, vhost, name, dead_letter_queue_id, headers, retry_policy, slo, approval_policy)
             VALUES ($1, $2, $3, 'orders', $4, '{}', $5, '{}', '{\"approvals\": 1}')",
        )
            .bind(queue).bind(broker).bind(&vhost.name).bind(dead_letter_queue)
            .bind(json!({ "permanent_classes": ["schema_invalid"], "transient_classes": ["timeout"] }))
            .execute(owner).await.unwrap();
        sqlx::query("INSERT INTO freezes (scope, queue_id) VALUES ($1, $1)").bind(queue).execute(owner).await.unwrap();
        sqlx::query("INSERT INTO custody_batches (id, dead_letter_queue_id, epoch, channel, rows_stored) VALUES ($1, $2, 1, $1, 1)")
            .bind(batch).bind(dead_letter_queue).execute(owner).await.unwrap();
        sqlx::query("INSERT INTO probes (name, definition) VALUES ('invoice', $1)")
            .bind(
                json!({ "kind": "sql", "database": "env:EFFECTS", "statement": "SELECT 1", "redrive_id_column": null }),
            )
            .execute(owner)
            .await
            .unwrap();
        Self { app, vhost, queue, dead_letter_queue, batch }
    }

    /// A second watched queue, `billing`, fed by the default exchange; what dies there dies as in `orders`.
    pub(crate) async fn second_queue(&self) -> Uuid {
        let dead = json!({ "durable": true, "arguments": { "x-dead-letter-exchange": "shop.dlx", "x-dead-letter-routing-key": "dead" } });
        manage(&self.vhost, Method::PUT, format!("/api/queues/{}/billing", self.vhost.path_segment()), dead).await;
        let id = Uuid::now_v7();
        sqlx::query(
            "INSERT INTO queues (id, broker_id, vhost, name, dead_letter_queue_id, headers, retry_policy, slo, approval_policy)
             SELECT $1, broker_id, vhost, 'billing', dead_letter_queue_id, headers, retry_policy, slo, approval_policy
               FROM queues WHERE id = $2",
        )
        .bind(id)
        .bind(self.queue)
        .execute(self.app.owner())
        .await
        .unwrap();
        sqlx::query("INSERT INTO freezes (scope, queue_id) VALUES ($1, $1)")
            .bind(id)
            .execute(self.app.owner())
            .await
            .unwrap();
        id
    }

    /// Says whose a message is, and of which job, as an assignment does.
    pub(crate) async fn assign(&self, message: QuarantineId, queue: Uuid, job: &str) {
        sqlx::query("UPDATE quarantine SET queue_id = $2, job_id = $3 WHERE id = $1")
            .bind(message.0)
            .bind(queue)
            .bind(job.as_bytes())
            .execute(self.app.owner())
            .await
            .unwrap();
    }

    /// Puts a dead letter into the vault.
    pub(crate) async fn hold(&self, letter: Letter) -> QuarantineId {
        let id = Uuid::now_v7();
        let owner = self.app.owner();
        let fingerprint = format!("print of {}", letter.class);
        sqlx::query(
            "INSERT INTO quarantine (id, dead_letter_queue_id, queue_id, batch_id, original_exchange, original_routing_key, exchange,
               routing_key, redelivered, job_id, message_id, error_class, kind, policy_version, fingerprint, fingerprint_version,
               size_bytes, commitment)
             VALUES ($1, $2, $3, $4, 'shop', 'order', 'shop.dlx', 'dead', false, $5, $6, $7, $8, 1, $9, 1, 2, $10)",
        )
            .bind(id).bind(self.dead_letter_queue).bind(letter.attributed.then_some(self.queue)).bind(self.batch)
            .bind(letter.job.as_bytes()).bind(id.as_bytes().as_slice()).bind(letter.class).bind(letter.kind).bind(fingerprint)
            .bind(vec![7_u8; 32]).execute(owner).await.unwrap();
        sqlx::query(
            "INSERT INTO payloads (quarantine_id, body, properties, headers, commitment_key, sha256, match_hash)
             VALUES ($1, '{}', $2, $3, $4, $4, $4)",
        )
        .bind(id)
        .bind(letter.properties.encode_list())
        .bind(letter.properties.headers.as_ref().map(domain::amqp::Table::encode))
        .bind(vec![7_u8; 32])
        .execute(owner)
        .await
        .unwrap();
        QuarantineId(id)
    }

    /// So many plain ones, each of a job of its own.
    pub(crate) async fn hold_many(&self, prefix: &str, many: usize) -> Vec<QuarantineId> {
        let mut ids = Vec::new();
        for n in 0..many {
            ids.push(self.hold(Letter::of(&format!("{prefix}-{n}"))).await);
        }
        ids
    }

    /// A sound plan whose canary is the first of `ids`.
    pub(crate) fn plan(&self, ids: &[QuarantineId]) -> Value {
        let at = |minutes: i64| {
            (lazaret::clock::Clock::System.now() + time::Duration::minutes(minutes))
                .format(&time::format_description::well_known::Rfc3339)
                .unwrap()
        };
        json!({
            "queue_id": self.queue, "title": "Timeouts of the morning", "reason": "the downstream is back",
            "selection": { "ids": ids }, "accept_warnings": [],
            "canary": { "items": [ids[0]], "probe": "invoice", "expect": [{ "pointer": "/0/state", "op": "eq", "value": "sent" }],
                "wait_s": 30, "max_canaries": 2, "valid_s": 600, "attribution": "redrive_id" },
            "expansion": { "start_per_s": 1, "max_per_s": 5, "step_factor": 1.5, "step_s": 10, "max_in_flight": 10, "on_red": "pause",
                "verify_sample_percent": 50 },
            "guards": {}, "expires_at": at(30), "run_by": at(60),
        })
    }

    /// Opens the payload, as the person who drafts would.
    pub(crate) async fn inspect(&self, who: &Person, id: QuarantineId) {
        who.act(&format!("/quarantine/{id}/reveal"), json!({ "reason": "the canary" })).await.ok::<Value>();
    }

    /// Drafts a plan.
    pub(crate) async fn draft(&self, who: &Person, plan: Value) -> Cohort {
        who.act("/cohorts", plan).await.is(201).ok()
    }

    /// A submitted cohort over these messages.
    pub(crate) async fn submitted(&self, who: &Person, ids: &[QuarantineId]) -> Cohort {
        let cohort = self.draft(who, self.plan(ids)).await;
        self.inspect(who, ids[0]).await;
        who.act(&format!("/cohorts/{}/submit", cohort.row.id), json!({})).await.ok()
    }

    /// A cohort that `jon` approved.
    pub(crate) async fn approved(&self, who: &Person, ids: &[QuarantineId]) -> Cohort {
        let cohort = self.submitted(who, ids).await;
        let jon = self.app.approver().await;
        approve(&jon, &cohort).await.ok()
    }

    /// Runs a statement as the owner.
    pub(crate) async fn sql(&self, statement: &'static str) {
        sqlx::query(statement).execute(self.app.owner()).await.unwrap();
    }
}

/// Approves what is shown.
pub(crate) async fn approve(who: &Person, cohort: &Cohort) -> crate::harness::Reply {
    let body = json!({ "plan_digest": cohort.plan_digest, "comment": "read it" });
    who.act(&format!("/cohorts/{}/approve", cohort.row.id), body).await
}

async fn manage(vhost: &Vhost, method: Method, path: String, body: Value) {
    vhost.manage(method, &path, Some(body)).await;
}
