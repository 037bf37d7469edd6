//! One connection's life: consume, store, commit, then acknowledge (DESIGN 6). Never the other way round.

use super::{owner, prefetch::Prefetch};
use crate::{
    app::custody::{Intake, Taken, Unsent},
    broker::{BrokerError, connect, wire},
    error::Error,
    state::App,
    store::{self, custody::Source, leases::Lease},
};
use domain::vocabulary::CustodyState;
use futures::StreamExt as _;
use lapin::{
    Acker, Channel, Consumer,
    message::Delivery,
    options::{BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicQosOptions, QueueDeclareOptions},
    types::FieldTable,
};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long a batch waits for more once it has one.
const GATHER: Duration = Duration::from_millis(5);
/// The most that one transaction stores, bytes of bodies.
const BATCH_BYTES: usize = 32 * 1024 * 1024;
/// How long a synchronous answer may take before the channel counts as lost.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long nothing may come before the channel is asked whether it lives.
const QUIET: Duration = Duration::from_secs(5);
/// How long a stop waits for what is unacknowledged to be stored.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// How long until a batch that the database didn't take is tried again.
const STORE_AGAIN: Duration = Duration::from_millis(500);

/// How a connection's life ended.
pub(super) enum Ended {
    /// Custody was to stop, and everything taken was stored and acknowledged, or went back to the queue.
    Stopped,
    /// Another process owns the queue now.
    LeaseLost,
    /// At once again: the consumer was cancelled by the broker, say.
    Again,
    /// The channel, the connection or the queue was lost.
    Lost {
        /// For the page.
        reason: String,
        /// Something was stored meanwhile, so that the next try need not wait long.
        drained: bool,
    },
}

/// Connects, drains until something ends it, and closes.
pub(super) async fn drain(
    app: &App,
    source: &Source,
    lease: &Lease,
    unsent: &mut Unsent,
    stop: &CancellationToken,
) -> Ended {
    let mut drained = false;
    let ended = match connected(app, source, lease, unsent, stop, &mut drained).await {
        Ok(ended) => return ended,
        Err(error) => error,
    };
    Ended::Lost { reason: why(&ended), drained }
}

fn why(error: &BrokerError) -> String {
    match error.reply_code() {
        Some(404) => "queue_missing: the broker has no such queue; it isn't made by Lazaret".to_owned(),
        Some(403) => "access_refused: the broker lets these credentials not read the queue".to_owned(),
        Some(405) => "queue_locked: another connection has the queue for itself".to_owned(),
        Some(406) => format!("precondition_failed: {error}"),
        _ if error.is_unreadable_frame() => {
            "unreadable_message: the next message holds a short string that isn't UTF-8, which the client library can't read".to_owned()
        }
        _ => format!("broker_unreachable: {error}"),
    }
}

async fn connected(
    app: &App,
    source: &Source,
    lease: &Lease,
    unsent: &mut Unsent,
    stop: &CancellationToken,
    drained: &mut bool,
) -> Result<Ended, BrokerError> {
    let address = match store::broker_addresses::of(app.store.pool(), source.broker_id).await {
        Ok(address) => address,
        Err(error) => return Ok(Ended::Lost { reason: database(&error), drained: false }),
    };
    let name = format!("lazaret custody {} epoch {} of {}", source.name, lease.epoch, app.config.process_name);
    let connection = tokio::select! {
        () = stop.cancelled() => return Ok(Ended::Stopped),
        connection = connect(&address, &source.vhost, &name) => connection?,
    };
    let mut prefetch = Prefetch::new();
    let ended = loop {
        let mut session = Session {
            app,
            source,
            lease,
            unsent,
            stop,
            queue: queue_name(&source.name)?,
            channel: answer(connection.create_channel()).await?,
            channel_id: Uuid::new_v4(),
            prefetch: &mut prefetch,
            last_tag: 0,
            ended: None,
            drained,
        };
        match session.run().await {
            // another prefetch wants another channel: a delivery that crosses its consumer's cancel is dropped by the
            // client library, and a later `ack(multiple)` on that channel would cover it unstored
            Ok(Life::Resized) => answer(session.channel.close(200, "another prefetch".into())).await?,
            Ok(Life::Over(ended)) => break Ok(ended),
            Err(error) => break Err(error),
        }
    };
    // what isn't acknowledged goes back to the queue; the broker may be gone already
    let _ = timeout(STOP_WITHIN, connection.close(200, "custody ends".into())).await;
    ended
}

/// How a channel's life ended.
enum Life {
    /// Everything taken is stored and acknowledged; the next channel has another prefetch.
    Resized,
    Over(Ended),
}

struct Session<'a> {
    app: &'a App,
    source: &'a Source,
    lease: &'a Lease,
    unsent: &'a mut Unsent,
    stop: &'a CancellationToken,
    queue: lapin::types::ShortString,
    channel: Channel,
    /// Names this channel in the batches.
    channel_id: Uuid,
    prefetch: &'a mut Prefetch,
    /// The newest delivery that is acknowledged: tags count up by one on a channel.
    last_tag: u64,
    /// The consumer's end, met while a batch was gathered: the stream tells it once.
    ended: Option<Result<(), lapin::Error>>,
    drained: &'a mut bool,
}

/// What happened next.
enum Next {
    Batch(Vec<Delivery>),
    Quiet,
    Stop,
    /// The broker ended the consumer, or we did.
    Cancelled,
}

impl Session<'_> {
    async fn run(&mut self) -> Result<Life, BrokerError> {
        // passively: a queue that is gone is not for us to make
        self.backlog().await?;
        let mut consumer = self.consume().await?;
        owner::state(self.app, self.source, self.lease, CustodyState::Draining, None).await;
        let mut quiet_with_backlog = 0;
        loop {
            match self.next(&mut consumer).await? {
                Next::Batch(batch) => {
                    quiet_with_backlog = 0;
                    match self.take(batch).await? {
                        Stored::LeaseLost => return Ok(Life::Over(Ended::LeaseLost)),
                        Stored::Stopped => return Ok(Life::Over(Ended::Stopped)),
                        Stored::Acked { resize: false } => {}
                        Stored::Acked { resize: true } => {
                            return Ok(match self.finish(consumer).await? {
                                Ended::Stopped => Life::Resized,
                                other => Life::Over(other),
                            });
                        }
                    }
                }
                Next::Quiet => {
                    // a channel that answers and holds messages back is as dead as one that doesn't answer
                    quiet_with_backlog = if self.backlog().await? == 0 { 0 } else { quiet_with_backlog + 1 };
                    if quiet_with_backlog == 2 {
                        let reason = "stalled: the queue has messages and none comes".to_owned();
                        return Ok(Life::Over(Ended::Lost { reason, drained: *self.drained }));
                    }
                }
                Next::Stop => return self.finish(consumer).await.map(Life::Over),
                Next::Cancelled => {
                    // the queue was deleted, or its leader moved: the passive declare of the next life tells which
                    self.backlog().await?;
                    return Ok(Life::Over(Ended::Again));
                }
            }
        }
    }

    /// How many messages are ready; proves that the channel and the queue are there, and that everything sent before
    /// on the channel was processed.
    async fn backlog(&self) -> Result<u32, BrokerError> {
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let queue = answer(self.channel.queue_declare(self.queue.clone(), passive, FieldTable::default())).await?;
        Ok(queue.message_count())
    }

    async fn consume(&self) -> Result<Consumer, BrokerError> {
        answer(self.channel.basic_qos(self.prefetch.count(), BasicQosOptions::default())).await?;
        let consuming = self.channel.basic_consume(
            self.queue.clone(),
            format!("lazaret-{}", self.lease.epoch).into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        );
        answer(consuming).await
    }

    async fn cancel(&self, consumer: &Consumer) -> Result<(), BrokerError> {
        answer(self.channel.basic_cancel(consumer.tag(), BasicCancelOptions::default())).await
    }

    /// The next batch: what is there, and what comes within a moment.
    async fn next(&mut self, consumer: &mut Consumer) -> Result<Next, BrokerError> {
        if let Some(ended) = self.ended.take() {
            return Ok(ended.map(|()| Next::Cancelled)?);
        }
        let first = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Ok(Next::Stop),
            first = timeout(QUIET, consumer.next()) => match first {
                Err(_) => return Ok(Next::Quiet),
                Ok(None) => return Ok(Next::Cancelled),
                Ok(Some(first)) => first?,
            },
        };
        Ok(Next::Batch(self.gather(first, consumer).await))
    }

    async fn gather(&mut self, first: Delivery, consumer: &mut Consumer) -> Vec<Delivery> {
        let until = Instant::now() + GATHER;
        let most = usize::from(self.prefetch.count() / 2).max(1);
        let mut bytes = first.data.len();
        let mut batch = vec![first];
        while batch.len() < most && bytes < BATCH_BYTES {
            match timeout_at(until, consumer.next()).await {
                Err(_) => break,
                // told at the next read, once this batch is safe
                Ok(None) => {
                    self.ended = Some(Ok(()));
                    break;
                }
                Ok(Some(Err(error))) => {
                    self.ended = Some(Err(error));
                    break;
                }
                Ok(Some(Ok(delivery))) => {
                    bytes += delivery.data.len();
                    batch.push(delivery);
                }
            }
        }
        batch
    }

    /// Stores a batch, commits, acknowledges, and learns whether the ack was processed.
    async fn take(&mut self, batch: Vec<Delivery>) -> Result<Stored, BrokerError> {
        let largest = batch.iter().map(|delivery| delivery.data.len()).max().unwrap_or_default();
        // `ack(multiple)` covers every lower tag: each of them must be in this batch or acknowledged before
        let newest = self.last_tag + batch.len() as u64;
        if batch.iter().zip(self.last_tag + 1..).any(|(delivery, tag)| delivery.delivery_tag != tag) {
            return Err(BrokerError::ChannelLost);
        }
        let Some((acker, taken)) = split(batch) else { return Ok(Stored::Acked { resize: false }) };
        let returns = taken.iter().filter_map(returns).max();
        let intake = Intake::new(self.app, self.source, self.lease, self.channel_id, taken, self.unsent);
        if let Some(ended) = self.store(&intake).await {
            return Ok(ended);
        }
        *self.drained = true;
        // the last delivery's own acker: a remembered tag could name another channel's delivery
        match acker.ack(BasicAckOptions { multiple: true }).await {
            // nothing was sent, since the channel went first: the broker still holds every one of them
            Ok(false) => {
                self.unsent.add(intake.rows());
                return Err(BrokerError::ChannelLost);
            }
            // whether it was sent isn't known
            Err(error) => return Err(error.into()),
            Ok(true) => self.last_tag = newest,
        }
        self.backlog().await?;
        if let Err(error) = store::custody::mark_acked(&self.app.store, intake.batch_id()).await {
            tracing::warn!(%error, "that a batch's ack was processed couldn't be written; its rows stay suspects");
        }
        metrics::counter!("lazaret_custody_batches_total").increment(1);
        Ok(Stored::Acked { resize: self.prefetch.after(largest, returns).is_some() })
    }

    /// Stores, however long the database is away; `Some`: it won't be, since another owns the queue now or we are to stop.
    async fn store(&self, intake: &Intake) -> Option<Stored> {
        let mut said = false;
        loop {
            let error = match intake.store(self.app, self.source, self.lease).await {
                Ok(()) => break,
                Err(Error::Refused { code: "lease_lost", .. }) => return Some(Stored::LeaseLost),
                Err(error) => error,
            };
            tracing::warn!(error = database(&error), dead_letter_queue = self.source.name, "a batch isn't stored yet");
            if !said {
                owner::state(self.app, self.source, self.lease, CustodyState::Stopped, Some(database(&error))).await;
                said = true;
            }
            // asked to stop: unstored deliveries go back to the queue with the channel
            tokio::select! {
                () = self.stop.cancelled() => return Some(Stored::Stopped),
                () = tokio::time::sleep(STORE_AGAIN) => {}
            }
        }
        if said {
            owner::state(self.app, self.source, self.lease, CustodyState::Draining, None).await;
        }
        None
    }

    /// Takes no more, and stores and acknowledges what is here already.
    async fn finish(&mut self, mut consumer: Consumer) -> Result<Ended, BrokerError> {
        let until = Instant::now() + STOP_WITHIN;
        self.cancel(&consumer).await?;
        while self.ended.is_none()
            && let Ok(Some(first)) = timeout_at(until, consumer.next()).await
        {
            let batch = self.gather(first?, &mut consumer).await;
            match timeout_at(until, self.take(batch)).await {
                Ok(Ok(Stored::Acked { .. })) => {}
                Ok(Ok(Stored::LeaseLost)) => return Ok(Ended::LeaseLost),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(Stored::Stopped)) | Err(_) => break,
            }
        }
        Ok(Ended::Stopped)
    }
}

/// How a batch ended.
enum Stored {
    /// Committed, acknowledged, and known to be so.
    Acked {
        /// Another prefetch fits better.
        resize: bool,
    },
    LeaseLost,
    /// Asked to stop before the database took it.
    Stopped,
}

/// A synchronous call's answer, within a bounded time.
async fn answer<T>(call: impl Future<Output = lapin::Result<T>>) -> Result<T, BrokerError> {
    match timeout(ANSWER_WITHIN, call).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(BrokerError::Timeout(ANSWER_WITHIN)),
    }
}

fn queue_name(name: &str) -> Result<lapin::types::ShortString, BrokerError> {
    lapin::types::ShortString::try_new(name).map_err(|_| BrokerError::QueueName(name.len()))
}

/// The last delivery's acker, and all deliveries as custody takes them.
fn split(batch: Vec<Delivery>) -> Option<(Acker, Vec<Taken>)> {
    let acker = batch.last()?.acker.clone();
    let taken = batch
        .into_iter()
        .map(|delivery| Taken {
            exchange: delivery.exchange.as_str().as_bytes().to_vec(),
            routing_key: delivery.routing_key.as_str().as_bytes().to_vec(),
            redelivered: delivery.redelivered,
            message: wire::message(&delivery.properties, delivery.data),
        })
        .collect();
    Some((acker, taken))
}

/// How often the broker says that the message was given back; a hint, since a client may have written it.
fn returns(taken: &Taken) -> Option<i64> {
    let count = taken.message.properties.headers.as_ref()?.get(b"x-delivery-count")?.as_int()?;
    i64::try_from(count).ok()
}

fn database(error: &Error) -> String {
    match error {
        Error::Unavailable { detail, .. } => format!("database_unavailable: {detail}"),
        Error::Internal(cause) => format!("database_error: {cause:#}"),
        other => format!("database_error: {other}"),
    }
}
