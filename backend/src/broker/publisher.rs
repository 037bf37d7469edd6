//! Publishing under one epoch: a connection of its own, mandatory, confirmed; outcomes matched to the right message.

use super::parcel::Parcel;
use domain::headers::REDRIVE_ID;
use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use lapin::{
    Channel, Confirmation, Connection,
    message::BasicReturnMessage,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    types::AMQPValue,
};
use std::{collections::HashMap, time::Duration};
use tokio::time::Instant;
use uuid::Uuid;

/// At most this many publishes of a cohort are without an answer (RULES 5).
pub const MAX_UNANSWERED: usize = 64;
/// How long a connection may take to close in good order.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// The publisher of one (cohort, epoch). It is never reopened: once [`usable`](Self::usable) is false, only a new epoch goes on.
#[derive(Debug)]
pub struct Publisher {
    connection: Connection,
    channel: Channel,
    name: String,
    answer_within: Duration,
    unanswered: bool,
}

/// What became of one publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The broker took it: a confirm, and no return.
    Confirmed,
    /// No queue would get it.
    Returned {
        /// The broker's words.
        reason: String,
    },
    /// The broker refused it; with several queues behind the target some may have it all the same.
    Nacked,
    /// Sent or not, taken or not: unknown.
    InDoubt {
        /// What was lost.
        cause: String,
    },
}

/// Why no publisher could be opened.
#[derive(Debug, thiserror::Error)]
#[error("the publish channel couldn't be opened: {0}")]
pub struct OpenError(String);

/// What lapin said of one publish, before returns are matched.
enum Told {
    /// An ack when no return was waiting: any return of this message has been handed out before.
    Acked,
    /// An ack that carried some message's return; its own may still be waiting.
    AckedWithReturn,
    Nacked,
    Lost(String),
}

impl Publisher {
    /// Takes a fresh connection into confirm mode.
    ///
    /// # Errors
    /// No channel, or no confirm mode: without it an ack proves nothing.
    pub async fn open(connection: Connection, name: String, answer_within: Duration) -> Result<Self, OpenError> {
        let wrong = |error: lapin::Error| OpenError(error.to_string());
        let channel = connection.create_channel().await.map_err(wrong)?;
        channel.confirm_select(ConfirmSelectOptions::default()).await.map_err(wrong)?;
        if !channel.status().confirm() {
            return Err(OpenError("the broker didn't switch confirms on".to_owned()));
        }
        Ok(Self { connection, channel, name, answer_within, unanswered: false })
    }

    /// The connection's name at the broker.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether every publish so far was answered and the channel still stands.
    #[must_use]
    pub fn usable(&self) -> bool {
        !self.unanswered && self.channel.status().connected() && self.connection.status().connected()
    }

    /// Whether each publish got its answer: only then may the epoch say *stopped*.
    #[must_use]
    pub const fn all_answered(&self) -> bool {
        !self.unanswered
    }

    /// Whether the broker has told this connection to stop writing (memory or disk alarm).
    #[must_use]
    pub fn blocked(&self) -> bool {
        self.connection.status().blocked()
    }

    /// Publishes a batch of at most [`MAX_UNANSWERED`] and waits for every answer, in the order of the batch.
    ///
    /// lapin hands a return to whichever confirm resolves next (BROKER.md), so returns are matched by the redrive id that
    /// they carry. A confirm without a return is sure at once: every return that came before it was handed out already.
    /// One that carried another message's return is sure only when all are answered, since its own might still wait.
    pub async fn publish(&mut self, batch: Vec<Parcel>) -> Vec<(Uuid, Answer)> {
        debug_assert!(batch.len() <= MAX_UNANSWERED, "the caller bounds the batch");
        let deadline = Instant::now() + self.answer_within;
        let ids: Vec<Uuid> = batch.iter().map(|parcel| parcel.redrive_id).collect();
        let mut told: HashMap<Uuid, Told> = HashMap::with_capacity(batch.len());
        let mut returned: HashMap<Uuid, String> = HashMap::new();
        let mut waiting: FuturesUnordered<BoxFuture<'_, (Uuid, lapin::Result<Confirmation>)>> = FuturesUnordered::new();

        for parcel in batch {
            let id = parcel.redrive_id;
            if let Some(lost) =
                told.values().find_map(|t| if let Told::Lost(cause) = t { Some(cause.clone()) } else { None })
            {
                told.insert(id, Told::Lost(lost));
                continue;
            }
            let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
            let sent = self.channel.basic_publish(
                parcel.exchange,
                parcel.routing_key,
                options,
                &parcel.body,
                parcel.properties,
            );
            match tokio::time::timeout_at(deadline, sent).await {
                Ok(Ok(confirm)) => waiting.push(async move { (id, confirm.await) }.boxed()),
                Ok(Err(error)) => drop(told.insert(id, Told::Lost(error.to_string()))),
                Err(_) => drop(told.insert(id, Told::Lost(self.silence()))),
            }
        }
        while let Ok(Some((id, outcome))) = tokio::time::timeout_at(deadline, waiting.next()).await {
            told.insert(id, self.hear(outcome, &mut returned));
        }
        // what resolved before a loss may still lie in the set
        while let Some(Some((id, outcome))) = waiting.next().now_or_never() {
            told.insert(id, self.hear(outcome, &mut returned));
        }
        drop(waiting);

        let all_answered =
            ids.iter().all(|id| matches!(told.get(id), Some(Told::Acked | Told::AckedWithReturn | Told::Nacked)));
        if !all_answered {
            self.unanswered = true;
        }
        ids.into_iter().map(|id| (id, self.answer(id, &told, &returned, all_answered))).collect()
    }

    fn answer(
        &self,
        id: Uuid,
        told: &HashMap<Uuid, Told>,
        returned: &HashMap<Uuid, String>,
        all_answered: bool,
    ) -> Answer {
        if let Some(reason) = returned.get(&id) {
            return Answer::Returned { reason: reason.clone() };
        }
        match told.get(&id) {
            Some(Told::Acked) => Answer::Confirmed,
            Some(Told::AckedWithReturn) if all_answered => Answer::Confirmed,
            Some(Told::AckedWithReturn) => {
                Answer::InDoubt { cause: "confirmed, but whether it was returned got lost with the channel".to_owned() }
            }
            Some(Told::Nacked) => Answer::Nacked,
            Some(Told::Lost(cause)) => Answer::InDoubt { cause: cause.clone() },
            None => Answer::InDoubt { cause: self.silence() },
        }
    }

    fn hear(&self, outcome: lapin::Result<Confirmation>, returned: &mut HashMap<Uuid, String>) -> Told {
        let (told, carried) = match outcome {
            Ok(Confirmation::Ack(None)) => (Told::Acked, None),
            Ok(Confirmation::Ack(carried)) => (Told::AckedWithReturn, carried),
            Ok(Confirmation::Nack(carried)) => (Told::Nacked, carried),
            Ok(Confirmation::NotRequested) => (Told::Lost("the channel isn't in confirm mode".to_owned()), None),
            Err(error) => (Told::Lost(error.to_string()), None),
        };
        if let Some(message) = carried {
            match redrive_id_of(&message) {
                Some(id) => drop(returned.insert(id, format!("{} {}", message.reply_code, message.reply_text))),
                None => tracing::error!(connection = self.name, "a returned message carries no redrive id"),
            }
        }
        told
    }

    fn silence(&self) -> String {
        let blocked = if self.blocked() { "; the broker blocks the connection" } else { "" };
        format!("no answer within {} s{blocked}", self.answer_within.as_secs())
    }

    /// Closes the connection, so that the broker forgets it. A broker that blocks it would let this wait for ever: then it is
    /// dropped, and whoever must know it gone closes it at the broker.
    pub async fn close(self) {
        match tokio::time::timeout(CLOSE_WITHIN, self.connection.close(200, "stopped".into())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(connection = self.name, %error, "the publish connection was gone already")
            }
            Err(_) => tracing::warn!(connection = self.name, "the publish connection didn't close in time"),
        }
    }
}

fn redrive_id_of(message: &BasicReturnMessage) -> Option<Uuid> {
    let headers = message.delivery.properties.headers().as_ref()?;
    match headers.inner().get(REDRIVE_ID)? {
        AMQPValue::LongString(text) => Uuid::try_parse_ascii(text.as_bytes()).ok(),
        _ => None,
    }
}
