//! A watched queue with its dead-letter queue on the real broker, and ways to die on it.

use crate::harness::{Person, Reply, TestApp, Vhost, eventually};
use domain::{
    api::{DeadLetterQueue, QuarantinePage, QuarantineRow, QuarantinedMessage},
    ids::{DeadLetterQueueId, QuarantineId, QueueId},
};
use lapin::{
    BasicProperties, Channel, Connection,
    options::{
        BasicGetOptions, BasicPublishOptions, BasicRejectOptions, ConfirmSelectOptions, QueueDeclareOptions,
        QueuePurgeOptions,
    },
    types::{AMQPValue, FieldTable, LongString},
};
use serde_json::json;

/// See the module's head.
pub(crate) struct Fixture {
    pub(crate) app: TestApp,
    pub(crate) vhost: Vhost,
    pub(crate) viewer: Person,
    pub(crate) admin: Person,
    pub(crate) queue: QueueId,
    pub(crate) dlq: DeadLetterQueueId,
    pub(crate) dlq_name: String,
    pub(crate) broker: uuid::Uuid,
    pub(crate) channel: Channel,
    _connection: Connection,
}

pub(crate) fn header(key: &str, value: &str) -> (String, AMQPValue) {
    (key.to_owned(), AMQPValue::LongString(LongString::from(value)))
}

pub(crate) fn table(fields: impl IntoIterator<Item = (String, AMQPValue)>) -> FieldTable {
    let mut table = FieldTable::default();
    for (key, value) in fields {
        table.insert(key.as_str().into(), value);
    }
    table
}

/// Properties of an application's usual message.
pub(crate) fn job(id: &str) -> BasicProperties {
    BasicProperties::default()
        .with_message_id(format!("m-{id}").as_str().into())
        .with_headers(table([header("job-id", id), header("attempt", "1")]))
}

impl Fixture {
    /// Queue `orders` and its dead-letter queue; custody is off, no duty runs.
    pub(crate) async fn new() -> Self {
        Self::on(TestApp::start().await, "orders").await
    }

    /// The same, and custody drains.
    pub(crate) async fn draining() -> Self {
        let fixture = Self::on(TestApp::start_with_workers().await, "orders").await;
        fixture.switch("drain").await;
        fixture.is("draining").await;
        fixture
    }

    pub(crate) async fn on(app: TestApp, name: &str) -> Self {
        let vhost = app.vhost().await;
        let connection = vhost.connect().await;
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        let dlq_name = format!("{name}.dlq");
        let (broker, dlq) = (uuid::Uuid::now_v7(), uuid::Uuid::now_v7());
        let owner = app.owner();
        sqlx::query(
            "INSERT INTO brokers (id, name, amqp_url, management_url, credentials) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(broker)
        .bind(&vhost.name)
        .bind(vhost.amqp_address())
        .bind(vhost.management_address())
        .bind(vhost.credentials())
        .execute(owner)
        .await
        .unwrap();
        sqlx::query("INSERT INTO dead_letter_queues (id, broker_id, vhost, name) VALUES ($1, $2, $3, $4)")
            .bind(dlq)
            .bind(broker)
            .bind(&vhost.name)
            .bind(&dlq_name)
            .execute(owner)
            .await
            .unwrap();
        let (viewer, admin) = (app.viewer().await, app.admin().await);
        let mut fixture = Self {
            app,
            vhost,
            viewer,
            admin,
            queue: QueueId(uuid::Uuid::nil()),
            dlq: DeadLetterQueueId(dlq),
            dlq_name,
            broker,
            channel,
            _connection: connection,
        };
        fixture.declare_dlq().await;
        fixture.queue = fixture.watch(name).await;
        fixture
    }

    pub(crate) async fn declare_dlq(&self) {
        self.declare(&self.dlq_name, table([header("x-queue-type", "quorum")])).await;
    }

    async fn declare(&self, name: &str, arguments: FieldTable) {
        let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        self.channel.queue_declare(name.into(), durable, arguments).await.unwrap();
    }

    /// Declares a queue that dead-letters to ours, and watches it.
    pub(crate) async fn watch(&self, name: &str) -> QueueId {
        let arguments = table([
            header("x-queue-type", "quorum"),
            header("x-dead-letter-exchange", ""),
            header("x-dead-letter-routing-key", &self.dlq_name),
        ]);
        self.declare(name, arguments).await;
        let id = uuid::Uuid::now_v7();
        let (headers, policy) = (
            json!({"job_id": "job-id", "attempt": "attempt", "error_class": "error-class", "error_text": "error-text",
                   "worker_version": "worker-version"}),
            json!({"permanent_classes": ["schema_invalid"], "transient_classes": ["timeout"]}),
        );
        sqlx::query(
            "INSERT INTO queues (id, broker_id, vhost, name, dead_letter_queue_id, headers, retry_policy, slo, approval_policy)
             VALUES ($1, $2, $3, $4, $5, $6, $7, '{}', '{\"approvals\": 1}')",
        )
        .bind(id)
        .bind(self.broker)
        .bind(&self.vhost.name)
        .bind(name)
        .bind(self.dlq.0)
        .bind(&headers)
        .bind(&policy)
        .execute(self.app.owner())
        .await
        .unwrap();
        sqlx::query("INSERT INTO queue_policies (queue_id, policy_version, retry_policy) VALUES ($1, 1, $2)")
            .bind(id)
            .bind(&policy)
            .execute(self.app.owner())
            .await
            .unwrap();
        QueueId(id)
    }

    /// Switches custody through the API.
    pub(crate) async fn switch(&self, custody: &str) {
        let seen = self.dead_letter_queue().await.version;
        let body = json!({"custody": custody, "reason": "a test"});
        self.admin.change(&format!("/dead-letter-queues/{}", self.dlq), seen, body).await.is(200);
    }

    pub(crate) async fn dead_letter_queue(&self) -> DeadLetterQueue {
        self.viewer.get(&format!("/dead-letter-queues/{}", self.dlq)).await.ok()
    }

    /// Waits until custody's state is so; gives the queue.
    pub(crate) async fn is(&self, state: &str) -> DeadLetterQueue {
        eventually(&format!("custody is {state}"), || async {
            Some(self.dead_letter_queue().await).filter(|queue| queue.state.as_str() == state)
        })
        .await
    }

    /// Publishes and waits for the confirm.
    pub(crate) async fn publish(&self, queue: &str, properties: BasicProperties, body: &[u8]) {
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let confirm = self.channel.basic_publish("".into(), queue.into(), options, body, properties).await.unwrap();
        assert!(confirm.await.unwrap().is_ack());
    }

    /// A message of `orders` that a worker rejects.
    pub(crate) async fn die(&self, properties: BasicProperties, body: &[u8]) {
        self.die_on("orders", properties, body).await;
    }

    pub(crate) async fn die_on(&self, queue: &str, properties: BasicProperties, body: &[u8]) {
        self.publish(queue, properties, body).await;
        let got = eventually("the message is there", || async {
            self.channel.basic_get(queue.into(), BasicGetOptions::default()).await.unwrap()
        })
        .await;
        got.reject(BasicRejectOptions { requeue: false }).await.unwrap();
    }

    /// Ready messages on the dead-letter queue.
    pub(crate) async fn ready(&self) -> u32 {
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let channel = self.vhost.connect().await;
        let queue = channel.create_channel().await.unwrap();
        queue
            .queue_declare(self.dlq_name.as_str().into(), passive, FieldTable::default())
            .await
            .unwrap()
            .message_count()
    }

    /// What custody left on the dead-letter queue, ready or not, once its consumer is gone.
    pub(crate) async fn purged(&self) -> u32 {
        self.channel.queue_purge(self.dlq_name.as_str().into(), QueuePurgeOptions::default()).await.unwrap()
    }

    pub(crate) async fn total(&self, query: &str) -> i64 {
        self.viewer.get(&format!("/quarantine{query}")).await.ok::<QuarantinePage>().total.value
    }

    /// Waits for so many rows, oldest first.
    pub(crate) async fn stored(&self, n: i64) -> Vec<QuarantineRow> {
        let page = eventually(&format!("{n} rows"), || async {
            let page: QuarantinePage = self.viewer.get("/quarantine?limit=200").await.ok();
            Some(page).filter(|page| page.total.value >= n)
        })
        .await;
        assert_eq!(page.total.value, n);
        page.items.into_iter().rev().collect()
    }

    pub(crate) async fn message(&self, id: QuarantineId) -> QuarantinedMessage {
        self.viewer.get(&format!("/quarantine/{id}")).await.ok()
    }

    /// Reveals and downloads.
    pub(crate) async fn body(&self, id: QuarantineId) -> Vec<u8> {
        let mara = self.app.responder().await;
        mara.act(&format!("/quarantine/{id}/reveal"), json!({"reason": "to look"})).await.is(200);
        let reply: Reply = mara.get(&format!("/quarantine/{id}/payload")).await.is(200);
        reply.body
    }

    /// Closes every connection of custody's at the broker; how many.
    pub(crate) async fn cut(&self) -> usize {
        let connections = self.vhost.manage(reqwest::Method::GET, "/api/connections", None).await;
        let ours: Vec<String> = connections
            .as_array()
            .unwrap()
            .iter()
            .filter(|c| c["vhost"] == self.vhost.name.as_str())
            .filter(|c| c["user_provided_name"].as_str().is_some_and(|name| name.starts_with("lazaret custody")))
            .map(|c| c["name"].as_str().unwrap().to_owned())
            .collect();
        for name in &ours {
            let name = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
            self.vhost.manage(reqwest::Method::DELETE, &format!("/api/connections/{name}"), None).await;
        }
        ours.len()
    }
}
