//! Custody: deliveries become evidence (RULES 1, 2). Nothing here can fail for what a message holds: what can't be
//! understood is stored and marked.

use crate::{
    app::evidence,
    clock::new_id,
    error::{Error, Result},
    state::App,
    store::{
        self, Tx,
        custody::{Batch, NewPayload, NewRow, ReportedFailure, Source, Watched},
        leases::{self, Lease},
    },
};
use domain::{
    amqp::{Message, Table, visible},
    canonical,
    death::{Belongs, Deaths},
    fingerprint::{self, Basis, Failure, Fingerprint},
    headers::SelfReport,
    ids::{QuarantineId, RedriveId},
    keyed::{Hash32, InstallationKey, RowKey},
    kind,
    vocabulary::Kind,
};
use sha2::{Digest as _, Sha256};
use sqlx::Acquire as _;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};
use time::OffsetDateTime;
use uuid::Uuid;

/// The longest class that is kept, bytes; the message itself keeps all of it.
const CLASS_LIMIT: usize = 200;
/// The longest error text that is kept beside the payload, bytes.
const TEXT_LIMIT: usize = 8_192;

/// One delivery, as the broker handed it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Body, properties, headers.
    pub message: Message,
    /// The exchange that brought it to the dead-letter queue.
    pub exchange: Vec<u8>,
    /// The key that brought it there.
    pub routing_key: Vec<u8>,
    /// The broker's hint.
    pub redelivered: bool,
}

/// What this process knows, under one epoch: rows whose ack was never sent because their channel went first. The broker
/// still holds each of their messages, and will deliver it again.
#[derive(Debug, Default)]
pub struct Unsent(HashMap<Hash32, VecDeque<Uuid>>);

impl Unsent {
    /// The ack of these rows was never sent.
    pub fn add(&mut self, rows: impl IntoIterator<Item = (Hash32, Uuid)>) {
        for (hash, row) in rows {
            self.0.entry(hash).or_default().push_back(row);
        }
    }

    /// Whether none is awaited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, hash: &Hash32) -> Option<Uuid> {
        let rows = self.0.get_mut(hash)?;
        let row = rows.pop_front();
        if rows.is_empty() {
            self.0.remove(hash);
        }
        row
    }
}

/// A batch on its way into the vault: decided once, so that it can be tried again as it is.
#[derive(Debug, Clone)]
pub struct Intake {
    batch: Batch,
    /// New rows.
    fresh: Arc<Vec<Fresh>>,
    /// Rows that absorb a delivery.
    absorbed: Vec<(Hash32, Uuid)>,
}

#[derive(Debug)]
struct Fresh {
    id: Uuid,
    taken: Taken,
    match_hash: Hash32,
    row_key: RowKey,
    commitment: Hash32,
}

impl Intake {
    /// Decides what becomes of each delivery: absorbed, one for one, where this process knows that it must come again;
    /// else a row.
    #[must_use]
    pub fn new(
        app: &App,
        source: &Source,
        lease: &Lease,
        channel: Uuid,
        taken: Vec<Taken>,
        unsent: &mut Unsent,
    ) -> Self {
        let key = InstallationKey(*app.installation_key);
        let (mut fresh, mut absorbed) = (Vec::with_capacity(taken.len()), Vec::new());
        for taken in taken {
            let match_hash = canonical::match_hash(&key, &taken.message);
            if let Some(row) = unsent.take(&match_hash) {
                absorbed.push((match_hash, row));
                continue;
            }
            let row_key = RowKey(rand::random());
            let commitment = canonical::commitment(&row_key, &taken.message);
            fresh.push(Fresh { id: new_id(), taken, match_hash, row_key, commitment });
        }
        let batch = Batch {
            id: new_id(),
            source: source.id,
            epoch: lease.epoch,
            channel,
            rows: i32::try_from(fresh.len()).unwrap_or(i32::MAX),
        };
        Self { batch, fresh: Arc::new(fresh), absorbed }
    }

    /// The batch's id.
    #[must_use]
    pub fn batch_id(&self) -> Uuid {
        self.batch.id
    }

    /// The rows that stand for its deliveries: if its ack turns out never to have been sent, they absorb again.
    pub fn rows(&self) -> impl Iterator<Item = (Hash32, Uuid)> {
        self.fresh.iter().map(|fresh| (fresh.match_hash, fresh.id)).chain(self.absorbed.iter().copied())
    }

    /// Stores it in one transaction under the lease. May be called again after any failure.
    ///
    /// # Errors
    /// `lease_lost`; the database's.
    pub async fn store(&self, app: &App, source: &Source, lease: &Lease) -> Result<()> {
        match self.store_as(app, source, lease, Care::Together).await {
            // one row that the database refuses must not hold up its neighbours
            Err(error) if store::custody::is_about_values(&error) => {
                tracing::error!(error = %error_chain(&error), batch = %self.batch.id, "a batch holds a row that can't be stored as it is; storing each by itself");
                self.store_as(app, source, lease, Care::Each).await
            }
            other => other,
        }
    }

    async fn store_as(&self, app: &App, source: &Source, lease: &Lease, care: Care) -> Result<()> {
        let (intake, source, lease) = (self.clone(), source.clone(), lease.clone());
        let key = InstallationKey(*app.installation_key);
        app.store
            .tx(move |tx| {
                Box::pin(async move {
                    // a stop or a change of prefetch may have given up waiting for an earlier batch, whose messages come
                    // again: its rows must be seen as suspects
                    leases::hold(tx, &lease).await?;
                    if !store::custody::insert_batch(tx, &intake.batch).await? {
                        return Ok(());
                    }
                    let watched = store::custody::watched(tx, source.broker_id, &source.vhost).await?;
                    let rows = rows(tx, &key, &intake, &watched).await?;
                    insert(tx, &key, &intake, &rows, care).await?;
                    let absorbed: Vec<Uuid> = intake.absorbed.iter().map(|(_, row)| *row).collect();
                    if !absorbed.is_empty() {
                        store::custody::insert_absorptions(tx, &intake.batch, &absorbed).await?;
                    }
                    for row in &rows {
                        if let Some(redrive) = row.redrive_id {
                            evidence::dead_letter_arrived(tx, QuarantineId(row.id), RedriveId(redrive)).await?;
                        }
                    }
                    store::notify(tx, "quarantine", None).await?;
                    Ok(())
                })
            })
            .await
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    Together,
    Each,
}

async fn rows(tx: &mut Tx, key: &InstallationKey, intake: &Intake, watched: &[Watched]) -> Result<Vec<NewRow>> {
    let mut read: Vec<Reading<'_>> = intake.fresh.iter().map(|fresh| Reading::of(fresh, watched)).collect();
    let to_learn = read.iter().filter(|reading| reading.class.is_none()).filter_map(|reading| reading.queue);
    store::events::line_up(tx, to_learn.map(|queue| queue.id).collect::<Vec<_>>()).await?;
    let unclassified = || read.iter().filter(|reading| reading.queue.is_some() && reading.class.is_none());
    let jobs: Vec<Vec<u8>> = unclassified().filter_map(|reading| reading.report.job_id.clone()).collect();
    let messages: Vec<Vec<u8>> = unclassified().filter_map(|reading| reading.report.message_id.clone()).collect();
    if !jobs.is_empty() || !messages.is_empty() {
        let failures = store::custody::reported_failures(tx, &jobs, &messages).await?;
        read.iter_mut().for_each(|reading| reading.learn(&failures));
    }
    let hashes: Vec<Vec<u8>> = intake.fresh.iter().map(|fresh| fresh.match_hash.as_bytes().to_vec()).collect();
    let mut suspects: HashMap<Hash32, VecDeque<QuarantineId>> = HashMap::new();
    for (hash, row) in store::custody::suspects(tx, intake.batch.source, intake.batch.channel, &hashes).await? {
        suspects.entry(hash).or_default().push_back(row);
    }
    Ok(read
        .iter()
        .map(|reading| {
            // one original each while there are enough, so that pairs are told apart
            let original = suspects.get_mut(&reading.fresh.match_hash).and_then(|rows| {
                let row = rows.pop_front()?;
                rows.push_back(row);
                Some(row)
            });
            reading.row(key, &intake.batch, original)
        })
        .collect())
}

async fn insert(tx: &mut Tx, key: &InstallationKey, intake: &Intake, rows: &[NewRow], care: Care) -> Result<()> {
    let payloads: Vec<NewPayload> = intake.fresh.iter().map(Fresh::payload).collect();
    if care == Care::Together {
        store::custody::insert_rows(tx, &rows.iter().collect::<Vec<_>>()).await?;
        store::custody::insert_payloads(tx, &payloads.iter().collect::<Vec<_>>()).await?;
        return Ok(());
    }
    for ((row, payload), fresh) in rows.iter().zip(&payloads).zip(intake.fresh.iter()) {
        let mut attempt = tx.begin().await?;
        match store::custody::insert_rows(&mut attempt, &[row]).await {
            Ok(()) => attempt.commit().await?,
            Err(error) => {
                attempt.rollback().await?;
                tracing::error!(%error, row = %row.id, "a message is stored without what it says of itself");
                store::custody::insert_rows(tx, &[&fresh.bare_row(key, &intake.batch)]).await?;
            }
        }
        store::custody::insert_payloads(tx, &[payload]).await?;
    }
    Ok(())
}

/// What a delivery says, under the mapping of the queue that it belongs to.
struct Reading<'a> {
    fresh: &'a Fresh,
    queue: Option<&'a Watched>,
    deaths: Deaths,
    report: SelfReport,
    class: Option<String>,
    text: Option<Vec<u8>>,
    source: Option<&'static str>,
    worker_version: Option<String>,
}

impl<'a> Reading<'a> {
    fn of(fresh: &'a Fresh, watched: &'a [Watched]) -> Self {
        let properties = &fresh.taken.message.properties;
        let deaths = properties.headers.as_ref().map(Deaths::read).unwrap_or_default();
        let queue = match deaths.belongs_to() {
            Belongs::LastDeath(name) | Belongs::NewestEntry(name) => {
                watched.iter().find(|queue| queue.name.as_bytes() == name)
            }
            Belongs::Unattributed => None,
        };
        let report = queue.map(|queue| queue.headers.clone()).unwrap_or_default().read(properties);
        let class = report.error_class.as_deref().map(class_of);
        Self {
            fresh,
            queue,
            deaths,
            source: class.is_some().then_some("header"),
            class,
            text: report.error_text.clone(),
            worker_version: report.worker_version.as_deref().map(|version| short_text(version, CLASS_LIMIT)),
            report,
        }
    }

    /// Takes class and text from the latest failure that a worker reported for this very message, where the message
    /// itself names no class.
    fn learn(&mut self, failures: &[ReportedFailure]) {
        let Some(queue) = self.queue.filter(|_| self.class.is_none()) else { return };
        let Some(failure) = failures.iter().find(|failure| {
            failure.queue_id == queue.id && failure.redrive_id == self.report.redrive_id && self.is_of(failure)
        }) else {
            return;
        };
        self.class = failure.error_class.as_deref().map(|class| class_of(class.as_bytes()));
        self.source = Some("event");
        if self.text.is_none() {
            self.text = failure.error_text.clone().map(String::into_bytes);
        }
        if self.worker_version.is_none() {
            self.worker_version =
                failure.worker_version.as_deref().map(|text| short_text(text.as_bytes(), CLASS_LIMIT));
        }
    }

    fn is_of(&self, failure: &ReportedFailure) -> bool {
        match (&self.report.message_id, &failure.message_id) {
            (Some(mine), Some(theirs)) => mine == theirs,
            _ => self.report.job_id.as_ref() == Some(&failure.job_id),
        }
    }

    fn row(&self, key: &InstallationKey, batch: &Batch, original: Option<QuarantineId>) -> NewRow {
        let judged = judge(key, self.queue, self.class.as_deref(), self.text.as_deref(), self.deaths.reason());
        let report = &self.report;
        let newest = self.deaths.newest();
        let origin = self.deaths.origin();
        NewRow {
            queue_id: self.queue.map(|queue| queue.id.0),
            died_on: match self.deaths.belongs_to() {
                Belongs::LastDeath(name) | Belongs::NewestEntry(name) => Some(name.to_vec()),
                Belongs::Unattributed => None,
            },
            death_reason: self.deaths.reason().map(|reason| short_text(reason, CLASS_LIMIT)),
            dead_lettered_at: newest.and_then(|death| death.time).and_then(instant),
            original_exchange: origin.map(|origin| origin.exchange.to_vec()),
            original_routing_key: origin.map(|origin| origin.routing_key.to_vec()),
            delivery_count: report.delivery_count.map(saturate),
            job_id: report.job_id.clone(),
            message_id: report.message_id.clone(),
            idempotency_key: report.idempotency_key.clone(),
            parent_message_id: report.parent_message_id.clone(),
            attempt: report.attempt,
            max_attempts: report.max_attempts.or_else(|| self.queue.and_then(|queue| queue.retry_policy.max_attempts)),
            enqueued_at: enqueued_at(report),
            redrive_generation: report.redrive_generation.map(saturate),
            redrive_id: report.redrive_id,
            error_class: self.class.clone(),
            error_text: self.text.as_deref().map(|text| short_text(text, TEXT_LIMIT)),
            error_source: self.source,
            worker_version: self.worker_version.clone(),
            kind: judged.kind.as_str(),
            policy_version: self.queue.map(|queue| queue.policy_version),
            fingerprint: judged.fingerprint.hash.to_string(),
            normalised_text: judged.normalised_text(),
            possible_duplicate_of: original.map(|row| row.0),
            ..self.fresh.bare_row(key, batch)
        }
    }
}

impl Fresh {
    /// The row with nothing but what custody itself knows.
    fn bare_row(&self, key: &InstallationKey, batch: &Batch) -> NewRow {
        let properties = &self.taken.message.properties;
        let short = |text: &Option<domain::amqp::ShortString>| text.as_ref().map(|t| short_text(t.as_bytes(), 255));
        NewRow {
            id: self.id,
            dead_letter_queue_id: batch.source.0,
            queue_id: None,
            batch_id: batch.id,
            died_on: None,
            death_reason: None,
            dead_lettered_at: None,
            original_exchange: None,
            original_routing_key: None,
            exchange: self.taken.exchange.clone(),
            routing_key: self.taken.routing_key.clone(),
            redelivered: self.taken.redelivered,
            delivery_count: None,
            job_id: None,
            message_id: None,
            correlation_id: properties
                .correlation_id
                .as_ref()
                .map(|id| id.as_bytes().to_vec())
                .filter(|id| !id.is_empty()),
            idempotency_key: None,
            parent_message_id: None,
            attempt: None,
            max_attempts: None,
            enqueued_at: None,
            redrive_generation: None,
            redrive_id: None,
            error_class: None,
            error_text: None,
            error_source: None,
            worker_version: None,
            kind: Kind::Permanent.as_str(),
            policy_version: None,
            fingerprint: fingerprint::fingerprint(key, Failure::default()).hash.to_string(),
            fingerprint_version: fingerprint::VERSION.into(),
            normalised_text: None,
            size_bytes: i64::try_from(self.taken.message.body.len()).unwrap_or(i64::MAX),
            content_type: short(&properties.content_type),
            content_encoding: short(&properties.content_encoding),
            commitment: self.commitment.as_bytes().to_vec(),
            possible_duplicate_of: None,
        }
    }

    fn payload(&self) -> NewPayload {
        let message = &self.taken.message;
        NewPayload {
            quarantine_id: self.id,
            body: message.body.clone(),
            properties: message.properties.encode_list(),
            headers: message.properties.headers.as_ref().map(Table::encode),
            commitment_key: self.row_key.0,
            sha256: Sha256::digest(&message.body).into(),
            match_hash: self.match_hash,
        }
    }
}

/// What a class and a text amount to, by a queue's policy.
pub(crate) struct Judged {
    pub(crate) kind: Kind,
    pub(crate) fingerprint: Fingerprint,
}

impl Judged {
    pub(crate) fn normalised_text(&self) -> Option<String> {
        match &self.fingerprint.basis {
            Basis::Text(text) => Some(visible(text)),
            Basis::Reason | Basis::Unclassified => None,
        }
    }
}

/// Judges a failure: its kind by the policy, its group by the installation's key.
pub(crate) fn judge(
    key: &InstallationKey,
    queue: Option<&Watched>,
    class: Option<&str>,
    text: Option<&[u8]>,
    death_reason: Option<&[u8]>,
) -> Judged {
    let id = queue.map(|queue| queue.id.to_string()).unwrap_or_default();
    let failure = Failure { queue: id.as_bytes(), class: class.map(str::as_bytes), text, death_reason };
    Judged {
        kind: queue.map_or(Kind::Permanent, |queue| kind::judge(&queue.retry_policy, class)),
        fingerprint: fingerprint::fingerprint(key, failure),
    }
}

/// A class as it is kept and compared.
pub(crate) fn class_of(bytes: &[u8]) -> String {
    short_text(bytes, CLASS_LIMIT)
}

/// An error text as it is kept.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    short_text(bytes, TEXT_LIMIT)
}

/// At most `limit` bytes as text with controls visible, bytes that aren't UTF-8 replaced.
fn short_text(bytes: &[u8], limit: usize) -> String {
    let mut cut = bytes.len().min(limit);
    // not in the middle of a character
    while cut < bytes.len() && cut > 0 && bytes[cut] & 0xc0 == 0x80 {
        cut -= 1;
    }
    visible(&String::from_utf8_lossy(&bytes[..cut]))
}

/// When a message says that it was enqueued, where that can be true.
pub(crate) fn enqueued_at(report: &SelfReport) -> Option<OffsetDateTime> {
    report.enqueued_at.filter(|at| at.plausible).and_then(|at| instant_ms(at.unix_ms))
}

fn saturate(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Whole seconds since 1970, where they can be an instant of this era.
fn instant(seconds: u64) -> Option<OffsetDateTime> {
    instant_ms(i64::try_from(seconds).ok()?.checked_mul(1_000)?)
}

fn instant_ms(ms: i64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000)
        .ok()
        .filter(|at| (1970..2100).contains(&at.year()))
}

fn error_chain(error: &Error) -> String {
    match error {
        Error::Internal(cause) => format!("{cause:#}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_shows_its_controls() {
        assert_eq!(short_text("aé".as_bytes(), 2), "a");
        assert_eq!(short_text(b"a\0b", 10), "a\\u{0}b");
        assert_eq!(short_text(b"caf\xe9", 10), "caf\u{fffd}");
        assert_eq!(short_text(&[0x80; 8], 4), "");
    }

    #[test]
    fn an_absorption_is_one_for_one() {
        let (hash, first, second) = (Hash32([1; 32]), Uuid::from_u128(1), Uuid::from_u128(2));
        let mut unsent = Unsent::default();
        unsent.add([(hash, first), (hash, second)]);
        assert_eq!((unsent.take(&hash), unsent.take(&hash), unsent.take(&hash)), (Some(first), Some(second), None));
        assert!(unsent.is_empty());
    }

    #[test]
    fn impossible_times_are_unknown() {
        assert_eq!(instant(0).unwrap(), OffsetDateTime::UNIX_EPOCH);
        for bad in [u64::MAX, 1 << 62, 99_999_999_999_999] {
            assert_eq!(instant(bad), None);
        }
    }
}
