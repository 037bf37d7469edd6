//! Takes orders and publishes their invoices, at the rate of the knob.

use std::time::Duration;

use anyhow::bail;
use lapin::{Channel, Confirmation, options::BasicPublishOptions};
use serde_json::json;
use sqlx::PgPool;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{amqp, clock, database, events::EventFeed, invoice::Invoice, job::Job, settings::Services, topology};

/// The budget that every job is given.
pub const MAX_ATTEMPTS: i64 = 5;
/// Which order of a fresh demo is the poisoned one; not a large one, so that no check hides behind the other.
const POISONED_ORDER: i64 = 10;
/// How often the knob is read.
const KNOB_EVERY: Duration = Duration::from_millis(500);
/// How long the broker may take to confirm; after that the outcome is unknown and the connection is given up.
const CONFIRM_WITHIN: Duration = Duration::from_secs(10);
/// Between attempts to reach the broker.
const BACKOFF: Duration = Duration::from_secs(1);

/// Publishes until stopped; a lost broker or database is waited for.
///
/// # Errors
/// When the database can't be opened at the start.
pub async fn run(services: &Services, feed: &EventFeed, stop: &CancellationToken) -> anyhow::Result<()> {
    let pool = database::open(&services.database_url).await?;
    while !stop.is_cancelled() {
        if let Err(error) = session(services, &pool, feed, stop).await {
            tracing::warn!("the producer starts anew: {error:#}");
            stop.run_until_cancelled(tokio::time::sleep(BACKOFF)).await;
        }
    }
    Ok(())
}

/// One connection's life.
async fn session(services: &Services, pool: &PgPool, feed: &EventFeed, stop: &CancellationToken) -> anyhow::Result<()> {
    let connection = amqp::connect(&services.amqp_url, "demo producer").await?;
    let channel = amqp::confirming_channel(&connection).await?;
    let mut knobs_read_at = Instant::now();
    let mut knobs = database::knobs(pool).await?;
    let mut next_at = Instant::now();
    while !stop.is_cancelled() {
        if knobs_read_at.elapsed() >= KNOB_EVERY {
            knobs = database::knobs(pool).await?;
            knobs_read_at = Instant::now();
        }
        let Some(interval) =
            u32::try_from(knobs.arrival_per_s).ok().and_then(|rate| Duration::from_secs(1).checked_div(rate))
        else {
            stop.run_until_cancelled(tokio::time::sleep(KNOB_EVERY)).await;
            next_at = Instant::now();
            continue;
        };
        stop.run_until_cancelled(tokio::time::sleep_until(next_at)).await;
        // a producer that was held up doesn't make up for it with a burst
        next_at = (next_at + interval).max(Instant::now());
        if !stop.is_cancelled() {
            take_order(&channel, pool, feed).await?;
        }
    }
    connection.close(200, "the producer ends".into()).await?;
    Ok(())
}

/// Publishes the next order's invoice and, once the broker has it, notes it as accepted.
///
/// # Errors
/// When the outcome of the publish is unknown: such an order counts as never taken.
pub async fn take_order(channel: &Channel, pool: &PgPool, feed: &EventFeed) -> anyhow::Result<Job> {
    let number = database::next_order(pool).await?;
    let poisoned = number >= POISONED_ORDER && !database::poison_is_out(pool).await?;
    let invoice = Invoice::of_order(number);
    let job = Job {
        job_id: invoice.job_id(),
        message_id: Uuid::now_v7().to_string(),
        parent_message_id: None,
        attempt: 1,
        max_attempts: MAX_ATTEMPTS,
        idempotency_key: invoice.idempotency_key(),
        enqueued_at: Some(clock::now()),
        redrive_id: None,
        redrive_generation: None,
    };
    let body = if poisoned { invoice.poisoned_body()? } else { invoice.body()? };
    publish(channel, &job, &body).await?;
    database::accept(pool, &job, poisoned).await?;
    let origin = json!({ "producer": "shop", "attempt": null });
    feed.send("accepted", &job, origin.clone());
    feed.send("enqueued", &job, origin);
    Ok(job)
}

/// Publishes one message and waits for the broker's word; only one is outstanding on the channel, so that a return can
/// belong to no other.
///
/// # Errors
/// When the broker didn't take it or didn't say.
pub async fn publish(channel: &Channel, job: &Job, body: &[u8]) -> anyhow::Result<()> {
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let publishing = async {
        let (exchange, key) = (topology::EXCHANGE.into(), topology::ROUTING_KEY.into());
        channel.basic_publish(exchange, key, options, body, job.properties()?).await?.await.map_err(anyhow::Error::from)
    };
    match tokio::time::timeout(CONFIRM_WITHIN, publishing).await? {
        Ok(Confirmation::Ack(None)) => Ok(()),
        Ok(other) => bail!("the broker did not take message {}: {other:?}", job.message_id),
        Err(error) => Err(error),
    }
}
