//! A worker process: consumes the source queue with a few slots, does the work of its revision, answers the broker.

use std::{sync::Arc, time::Duration};

use anyhow::bail;
use futures::StreamExt as _;
use lapin::{
    Channel,
    message::Delivery,
    options::{
        BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, BasicRejectOptions,
    },
    types::FieldTable,
};
use serde_json::json;
use sqlx::PgPool;
use tokio::{sync::Mutex, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    amqp, database,
    events::EventFeed,
    invoice::Invoice,
    job::{self, Job},
    producer,
    revision::{AfterFailure, Failure, Revision},
    settings::Services,
    topology,
};

/// Between attempts to reach the broker or the database.
const BACKOFF: Duration = Duration::from_millis(500);
/// The consumer's tag; one per connection.
const TAG: &str = "worker";

/// What a worker process is started with.
#[derive(Debug, Clone)]
pub struct Worker {
    /// What it runs.
    pub revision: Revision,
    /// Its name in ledger and broker.
    pub name: String,
    /// How many messages it works on at once; the prefetch.
    pub slots: u16,
}

/// All that one execution needs.
struct Bench {
    worker: Worker,
    pool: PgPool,
    feed: EventFeed,
    /// Replacements go out one at a time.
    replacements: Mutex<Channel>,
    stop: CancellationToken,
}

impl Worker {
    /// Works until stopped; what is begun is finished. `ready` is called each time it consumes.
    ///
    /// # Errors
    /// When the database can't be opened at the start.
    pub async fn run(
        &self,
        services: &Services,
        feed: &EventFeed,
        stop: &CancellationToken,
        ready: impl Fn(),
    ) -> anyhow::Result<()> {
        let pool = database::open(&services.database_url).await?;
        while !stop.is_cancelled() {
            if let Err(error) = self.session(services, &pool, feed, stop, &ready).await {
                tracing::warn!(worker = self.name, "the worker starts anew: {error:#}");
                stop.run_until_cancelled(tokio::time::sleep(BACKOFF)).await;
            }
        }
        Ok(())
    }

    /// One connection's life.
    async fn session(
        &self,
        services: &Services,
        pool: &PgPool,
        feed: &EventFeed,
        stop: &CancellationToken,
        ready: &impl Fn(),
    ) -> anyhow::Result<()> {
        let name = format!("demo worker {} {}", self.revision, self.name);
        // two connections: a broker that blocks publishers must still get its acknowledgements
        let publishing = amqp::connect(&services.amqp_url, &format!("{name} publishes")).await?;
        let consuming = amqp::connect(&services.amqp_url, &name).await?;
        let channel = consuming.create_channel().await?;
        channel.basic_qos(self.slots, BasicQosOptions::default()).await?;
        let mut consumer = channel
            .basic_consume(topology::QUEUE.into(), TAG.into(), BasicConsumeOptions::default(), FieldTable::default())
            .await?;
        let bench = Arc::new(Bench {
            worker: self.clone(),
            pool: pool.clone(),
            feed: feed.clone(),
            replacements: Mutex::new(amqp::confirming_channel(&publishing).await?),
            stop: stop.clone(),
        });
        ready();
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(ended) = running.join_next() => ended??,
                next = consumer.next() => match next {
                    Some(delivery) => {
                        let (bench, delivery) = (Arc::clone(&bench), delivery?);
                        running.spawn(async move { bench.execute(delivery).await });
                    }
                    None => bail!("the broker cancelled the consumer"),
                },
            }
        }
        channel.basic_cancel(TAG.into(), BasicCancelOptions::default()).await?;
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        // what was delivered and not begun goes back with the connection
        consuming.close(200, "the worker ends".into()).await?;
        publishing.close(200, "the worker ends".into()).await?;
        Ok(())
    }
}

impl Bench {
    /// One delivery, from start to answer.
    async fn execute(&self, delivery: Delivery) -> anyhow::Result<()> {
        let Some(job) = Job::read(&delivery.properties) else {
            tracing::warn!("a message without a job id is dead-lettered");
            delivery.reject(BasicRejectOptions { requeue: false }).await?;
            return Ok(());
        };
        let revision = self.worker.revision;
        let begun = || database::append_execution(&self.pool, &job, revision, &self.worker.name);
        if self.persist(begun).await.is_none() {
            delivery.nack(BasicNackOptions { requeue: true, ..BasicNackOptions::default() }).await?;
            return Ok(());
        }
        self.say("attempt_started", &job, json!({ "delivery_count": delivery_count(&delivery) }));
        let began = Instant::now();
        match self.work(&delivery.data).await {
            Ok(invoice) => self.succeed(&delivery, &job, &invoice, began).await,
            Err(failure) => self.fail(&delivery, &job, &failure, began).await,
        }
    }

    /// The work itself: what the revision makes of the message, and the downstream where it got that far.
    async fn work(&self, body: &[u8]) -> Result<Invoice, Failure> {
        let judged = self.worker.revision.check(body);
        tokio::time::sleep(self.worker.revision.work(&judged)).await;
        let invoice = judged?;
        let downstream = database::knobs(&self.pool).await.map_or(0, |knobs| knobs.downstream_ms);
        tokio::time::sleep(Duration::from_millis(u64::try_from(downstream).unwrap_or(0))).await;
        Ok(invoice)
    }

    /// The durable effect first, then the word about it, then the answer to the broker.
    async fn succeed(&self, delivery: &Delivery, job: &Job, invoice: &Invoice, began: Instant) -> anyhow::Result<()> {
        let record = || database::record_invoice(&self.pool, job, invoice, self.worker.revision);
        let Some(new) = self.persist(record).await else {
            delivery.nack(BasicNackOptions { requeue: true, ..BasicNackOptions::default() }).await?;
            return Ok(());
        };
        if new {
            self.say("effect_recorded", job, json!({}));
        }
        self.say("attempt_succeeded", job, json!({ "duration_ms": milliseconds(began) }));
        delivery.ack(BasicAckOptions::default()).await?;
        self.say("acked", job, json!({ "ack_outcome": "ack" }));
        Ok(())
    }

    /// Reports the failure and does what the revision does about it.
    async fn fail(&self, delivery: &Delivery, job: &Job, failure: &Failure, began: Instant) -> anyhow::Result<()> {
        let told = json!({
            "error_class": failure.class,
            "error_text": failure.text,
            "duration_ms": milliseconds(began),
        });
        self.say("attempt_failed", job, told);
        match self.worker.revision.after_failure(job.executed_attempt(), job.max_attempts) {
            AfterFailure::DeadLetter => {
                delivery.reject(BasicRejectOptions { requeue: false }).await?;
                self.say("acked", job, json!({ "ack_outcome": "reject" }));
            }
            AfterFailure::Replace => {
                let replacement = job.replacement();
                producer::publish(&*self.replacements.lock().await, &replacement, &delivery.data).await?;
                self.say("enqueued", &replacement, json!({ "attempt": replacement.attempt }));
                delivery.ack(BasicAckOptions::default()).await?;
                self.say("acked", job, json!({ "ack_outcome": "ack" }));
            }
        }
        Ok(())
    }

    fn say(&self, kind: &str, job: &Job, mut more: serde_json::Value) {
        more["worker_version"] = self.worker.revision.as_str().into();
        self.feed.send(kind, job, more);
    }

    /// Tries until the database takes it; `None` when the worker was stopped first.
    async fn persist<T, F>(&self, attempt: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        loop {
            match attempt().await {
                Ok(taken) => return Some(taken),
                Err(error) => tracing::warn!(worker = self.worker.name, "the database didn't take it: {error}"),
            }
            self.stop.run_until_cancelled(tokio::time::sleep(BACKOFF)).await?;
        }
    }
}

/// The broker's own count, where it gives one.
fn delivery_count(delivery: &Delivery) -> Option<i64> {
    let headers = delivery.properties.headers().as_ref()?;
    headers.inner().get("x-delivery-count").and_then(job::as_integer)
}

fn milliseconds(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}
