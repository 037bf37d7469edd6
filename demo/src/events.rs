//! The way of worker events to Lazaret: `POST /api/v1/events`, in batches, from a thread of its own.
//!
//! Work never waits for it. While Lazaret is away events wait here, up to a limit; the same `event_id` sent again is
//! the same event, so a batch whose answer was lost is simply sent again.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::{clock, job::Job, settings::EventFeedSettings, topology};

/// How many events go in one request; Lazaret takes 1 000.
const BATCH: usize = 500;
/// How long the first event of a batch waits for company.
const LINGER: Duration = Duration::from_millis(150);
/// How many events wait while Lazaret is away; then the oldest go.
const WAITING: usize = 50_000;
/// How long the end of the process waits for the last ones.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Between attempts to reach Lazaret.
const BACKOFF: Duration = Duration::from_millis(500);

/// Takes events; clones feed the same thread.
#[derive(Debug, Clone)]
pub struct EventFeed {
    sender: Option<Sender<Value>>,
    thread: Arc<Option<JoinHandle<()>>>,
}

impl EventFeed {
    /// Starts the thread; without an address it takes events and drops them.
    #[must_use]
    pub fn start(settings: &EventFeedSettings) -> Self {
        let Some(url) = settings.lazaret_url.clone() else {
            return Self { sender: None, thread: Arc::new(None) };
        };
        let client = Client::new(url, settings.lazaret_user.clone(), settings.lazaret_password.clone());
        let (sender, receiver) = channel();
        let thread = std::thread::spawn(move || forward(&client, &receiver));
        Self { sender: Some(sender), thread: Arc::new(Some(thread)) }
    }

    /// Sends what happened to `job`; `more` is merged into it, nulls are left out.
    pub fn send(&self, kind: &str, job: &Job, more: Value) {
        let Some(sender) = &self.sender else { return };
        let at = clock::now().format(&Rfc3339).unwrap_or_default();
        let mut event = json!({
            "event_id": Uuid::now_v7(),
            "kind": kind,
            "at": at,
            "queue": topology::QUEUE,
            "job_id": job.job_id,
            "message_id": job.message_id,
            "attempt": job.executed_attempt(),
            "max_attempts": job.max_attempts,
            "idempotency_key": job.idempotency_key,
            "parent_message_id": job.parent_message_id,
            "enqueued_at": job.enqueued_at.and_then(|at| at.format(&Rfc3339).ok()),
            "redrive_id": job.redrive_id,
            "redrive_generation": job.redrive_generation,
        });
        if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
            event.extend(more);
            event.retain(|_, value| !value.is_null());
        }
        // a closed channel means that the thread has ended with the process
        drop(sender.send(event));
    }

    /// Lets go of this handle; the last one waits until what is left was sent, within a limit.
    pub fn finish(self) {
        drop(self.sender);
        if let Ok(Some(thread)) = Arc::try_unwrap(self.thread)
            && thread.join().is_err()
        {
            tracing::error!("the event thread panicked");
        }
    }
}

/// Collects and sends until every feed is gone, and then what is left.
fn forward(client: &Client, receiver: &Receiver<Value>) {
    let mut waiting = VecDeque::new();
    while collect(receiver, &mut waiting) {
        if let Err(error) = send_first(client, &mut waiting) {
            tracing::warn!("events wait: {error:#}");
            std::thread::sleep(BACKOFF);
            waiting.extend(receiver.try_iter());
            let too_many = waiting.len().saturating_sub(WAITING);
            if too_many > 0 {
                waiting.drain(..too_many);
                tracing::warn!(dropped = too_many, "events were dropped: lazaret is away for long");
            }
        }
    }
    let give_up_at = Instant::now() + LAST_WORDS;
    while !waiting.is_empty() && Instant::now() < give_up_at {
        if send_first(client, &mut waiting).is_err() {
            std::thread::sleep(BACKOFF);
        }
    }
    if !waiting.is_empty() {
        tracing::warn!(left = waiting.len(), "lazaret did not take the last events");
    }
}

/// Waits for an event, then a moment for company; false when every feed is gone.
fn collect(receiver: &Receiver<Value>, waiting: &mut VecDeque<Value>) -> bool {
    if waiting.is_empty() {
        let Ok(first) = receiver.recv() else { return false };
        waiting.push_back(first);
    }
    let until = Instant::now() + LINGER;
    while waiting.len() < BATCH {
        match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(event) => waiting.push_back(event),
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}

/// Sends the oldest batch; it goes from the list when Lazaret has answered for it.
fn send_first(client: &Client, waiting: &mut VecDeque<Value>) -> anyhow::Result<()> {
    let batch: Vec<&Value> = waiting.iter().take(BATCH).collect();
    let sent = batch.len();
    client.post(&batch)?;
    waiting.drain(..sent);
    Ok(())
}

/// A session of the machine account.
struct Client {
    agent: ureq::Agent,
    url: String,
    username: String,
    password: String,
}

impl Client {
    fn new(url: String, username: String, password: String) -> Self {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(10)))
            .http_status_as_error(false)
            .build()
            .new_agent();
        Self { agent, url: url.trim_end_matches('/').to_owned(), username, password }
    }

    /// Posts a batch, signing in first where the session is missing or over.
    fn post(&self, batch: &[&Value]) -> anyhow::Result<()> {
        let body = json!({ "events": batch });
        let mut answer = self.request("/api/v1/events", &body)?;
        if answer.0 == 401 {
            let (status, text) =
                self.request("/api/v1/session", &json!({ "username": self.username, "password": self.password }))?;
            if status >= 300 {
                bail!("signing in as {} was answered {status}: {text}", self.username);
            }
            answer = self.request("/api/v1/events", &body)?;
        }
        match answer {
            (202, text) => {
                let receipt: Value = serde_json::from_str(&text).unwrap_or_default();
                if let Some(first) = receipt["rejected"].as_array().and_then(|rejected| rejected.first()) {
                    tracing::warn!(%first, "lazaret rejected events");
                }
                Ok(())
            }
            // it will never take these: keeping them would block the rest
            (status @ (400 | 413 | 422), text) => {
                tracing::error!("a batch of {} events was refused with {status}: {text}", batch.len());
                Ok(())
            }
            (status, text) => bail!("events were answered {status}: {text}"),
        }
    }

    fn request(&self, path: &str, body: &Value) -> anyhow::Result<(u16, String)> {
        let mut answer = self
            .agent
            .post(format!("{}{path}", self.url))
            .header("origin", &self.url)
            .send_json(body)
            .with_context(|| format!("{} can't be reached", self.url))?;
        let text = answer.body_mut().read_to_string()?;
        Ok((answer.status().as_u16(), text))
    }
}
