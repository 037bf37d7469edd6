//! What a plan and its pre-flight are made from: the frozen items as the vault has them now.

use super::super::Tx;
use crate::error::{Error, Result};
use anyhow::Context as _;
use domain::{
    amqp::Properties,
    ids::{ItemId, QuarantineId, QueueId},
    vocabulary::{Kind, QuarantineState},
};
use domain::{api::ProbeDefinition, ids::CohortId};
use sqlx::PgConnection;

/// One item as a plan names it.
#[derive(Debug, Clone)]
pub struct PlannedItem {
    /// The item.
    pub item_id: ItemId,
    /// The dead letter.
    pub quarantine_id: QuarantineId,
    /// What proves its bytes.
    pub commitment: [u8; 32],
    /// Its stratum, from 0.
    pub stratum: i64,
    /// The group key.
    pub fingerprint: String,
}

/// The frozen items, in the plan's order.
///
/// # Errors
/// The database's.
pub async fn planned_items(db: &mut PgConnection, cohort: CohortId) -> Result<Vec<PlannedItem>> {
    let rows = sqlx::query!(
        "SELECT item.id, item.quarantine_id, item.stratum, evidence.commitment, evidence.fingerprint
         FROM cohort_items AS item JOIN quarantine AS evidence ON evidence.id = item.quarantine_id
         WHERE item.cohort_id = $1 ORDER BY item.position",
        cohort.0
    )
    .fetch_all(db)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(PlannedItem {
                item_id: ItemId(row.id),
                quarantine_id: QuarantineId(row.quarantine_id),
                commitment: row
                    .commitment
                    .try_into()
                    .map_err(|_| Error::Internal(anyhow::anyhow!("a short commitment")))?,
                stratum: i64::from(row.stratum),
                fingerprint: row.fingerprint,
            })
        })
        .collect()
}

/// One item as its pre-flight needs it.
#[derive(Debug, Clone)]
pub struct ItemFacts {
    /// The dead letter.
    pub id: QuarantineId,
    /// Whose; `None` is unattributed.
    pub queue_id: Option<QueueId>,
    /// Its job.
    pub job_id: Option<Vec<u8>>,
    /// The class.
    pub error_class: Option<String>,
    /// Frozen at custody.
    pub kind: Kind,
    /// Derived, now.
    pub state: QuarantineState,
    /// Where it was published first.
    pub original: Option<(Vec<u8>, Vec<u8>)>,
    /// The row that it may be a second delivery of.
    pub possible_duplicate_of: Option<QuarantineId>,
    /// Whether another delivery of what may be the same message is an item of another cohort that was submitted once.
    pub pair_used_before: bool,
    /// An unsettled item elsewhere stands for it whose outcome is unknown.
    pub in_doubt_elsewhere: bool,
    /// Another message of its job began or ended an attempt lately.
    pub job_has_live_message: bool,
    /// Body size, bytes.
    pub size_bytes: i64,
}

/// How long ago an event of a job's other message counts as lately.
const LATELY: &str = "10 minutes";

/// Facts of every item, in the plan's order.
///
/// # Errors
/// The database's.
pub async fn item_facts(tx: &mut Tx, cohort: CohortId) -> Result<Vec<ItemFacts>> {
    let rows = sqlx::query!(
        r#"SELECT evidence.id, evidence.queue_id, evidence.job_id, evidence.error_class, evidence.kind, evidence.disposition,
             evidence.original_exchange, evidence.original_routing_key, evidence.possible_duplicate_of, evidence.size_bytes,
             EXISTS (SELECT FROM cohort_items AS other WHERE other.quarantine_id = evidence.id
               AND other.cohort_id <> $1 AND other.state IN ('in_doubt', 'publishing')) AS "in_doubt_elsewhere!",
             EXISTS (SELECT FROM quarantine AS pair
               JOIN cohort_items AS other ON other.quarantine_id = pair.id
               JOIN cohorts ON cohorts.id = other.cohort_id AND cohorts.submitted_at IS NOT NULL
               WHERE coalesce(evidence.possible_duplicate_of, evidence.id) IN (pair.id, pair.possible_duplicate_of)
                 AND pair.id <> evidence.id
                 AND other.cohort_id <> $1) AS "pair_used_before!",
             EXISTS (SELECT FROM events WHERE events.job_id = evidence.job_id AND events.queue_id = evidence.queue_id
               AND events.kind IN ('enqueued', 'attempt_started', 'attempt_failed', 'attempt_succeeded')
               AND events.message_id IS DISTINCT FROM evidence.message_id
               AND events.received_at > clock_timestamp() - $2::text::interval
               AND NOT EXISTS (SELECT FROM quarantine AS held
                 WHERE held.job_id = events.job_id AND held.message_id = events.message_id)) AS "job_has_live_message!"
           FROM cohort_items AS item JOIN quarantine AS evidence ON evidence.id = item.quarantine_id
           WHERE item.cohort_id = $1 ORDER BY item.position"#,
        cohort.0,
        LATELY
    )
    .fetch_all(&mut **tx)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(ItemFacts {
                id: QuarantineId(row.id),
                queue_id: row.queue_id.map(QueueId),
                job_id: row.job_id,
                error_class: row.error_class,
                kind: row.kind.parse().context("a stored kind")?,
                state: row.disposition.parse().context("a stored disposition")?,
                original: row.original_exchange.zip(row.original_routing_key),
                possible_duplicate_of: row.possible_duplicate_of.map(QuarantineId),
                pair_used_before: row.pair_used_before,
                in_doubt_elsewhere: row.in_doubt_elsewhere,
                job_has_live_message: row.job_has_live_message,
                size_bytes: row.size_bytes,
            })
        })
        .collect()
}

/// Properties of some dead letters, as they arrived; those whose payload was erased are absent.
///
/// # Errors
/// The database's, or stored bytes that can't be decoded.
pub async fn properties(tx: &mut Tx, evidence: &[QuarantineId]) -> Result<Vec<(QuarantineId, Properties)>> {
    let ids: Vec<uuid::Uuid> = evidence.iter().map(|id| id.0).collect();
    let rows =
        sqlx::query!("SELECT quarantine_id, properties, headers FROM payloads WHERE quarantine_id = ANY($1)", &ids)
            .fetch_all(&mut **tx)
            .await?;
    rows.into_iter()
        .map(|row| {
            let properties =
                Properties::decode(&row.properties, row.headers.as_deref()).context("stored properties")?;
            Ok((QuarantineId(row.quarantine_id), properties))
        })
        .collect()
}

/// The exchange and key that every item was published with first, where they are all the same and text.
///
/// # Errors
/// The database's.
pub async fn common_original(db: &mut PgConnection, cohort: CohortId) -> Result<Option<(String, String)>> {
    let rows = sqlx::query!(
        "SELECT DISTINCT evidence.original_exchange, evidence.original_routing_key
         FROM cohort_items AS item JOIN quarantine AS evidence ON evidence.id = item.quarantine_id
         WHERE item.cohort_id = $1 LIMIT 2",
        cohort.0
    )
    .fetch_all(db)
    .await?;
    let text = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(match <[_; 1]>::try_from(rows) {
        Ok([row]) => text(row.original_exchange).zip(text(row.original_routing_key)),
        Err(_) => None,
    })
}

/// Which of these dead letters a person revealed since custody.
///
/// # Errors
/// The database's.
pub async fn inspected(db: &mut PgConnection, evidence: &[QuarantineId]) -> Result<Vec<QuarantineId>> {
    let ids: Vec<String> = evidence.iter().map(ToString::to_string).collect();
    let rows = sqlx::query_scalar!(
        r#"SELECT DISTINCT subject_id AS "id!" FROM audit_entries
           WHERE subject_kind = 'quarantine' AND subject_id = ANY($1)
             AND action = 'quarantine.reveal' AND actor_kind = 'person' AND result = 'done'"#,
        &ids
    )
    .fetch_all(db)
    .await?;
    rows.iter()
        .map(|id| id.parse().map_err(|_| Error::Internal(anyhow::anyhow!("an audit subject that is no id"))))
        .collect()
}

/// A watched queue as a plan needs it, with the ways to its broker.
#[derive(Debug, Clone)]
pub struct SourceQueue {
    /// Identity.
    pub id: QueueId,
    /// Its cluster.
    pub broker_id: domain::ids::BrokerId,
    /// Virtual host.
    pub vhost: String,
    /// Name.
    pub name: String,
    /// Classes, now.
    pub retry_policy: domain::api::RetryPolicy,
    /// The policy's version now.
    pub policy_version: i64,
    /// Who must agree.
    pub approval_policy: domain::api::ApprovalPolicy,
    /// The broker's addresses.
    pub address: crate::broker::Address,
}

/// Reads a watched queue.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn source_queue(db: &mut PgConnection, id: QueueId) -> Result<SourceQueue> {
    let row = sqlx::query!(
        "SELECT queues.id, queues.broker_id, queues.vhost, queues.name, queues.retry_policy, queues.policy_version,
           queues.approval_policy, brokers.amqp_url, brokers.management_url, brokers.credentials
         FROM queues JOIN brokers ON brokers.id = queues.broker_id WHERE queues.id = $1",
        id.0
    )
    .fetch_optional(db)
    .await?
    .ok_or(Error::NotFound { what: "queue" })?;
    Ok(SourceQueue {
        id: QueueId(row.id),
        broker_id: domain::ids::BrokerId(row.broker_id),
        vhost: row.vhost,
        name: row.name,
        retry_policy: serde_json::from_value(row.retry_policy).context("a stored retry policy")?,
        policy_version: row.policy_version,
        approval_policy: serde_json::from_value(row.approval_policy).context("a stored approval policy")?,
        address: crate::broker::Address {
            amqp_url: row.amqp_url,
            management_url: row.management_url,
            credentials: row.credentials,
        },
    })
}

/// Locks a queue's policies, its broker's address and a probe against change until the transaction ends.
///
/// # Errors
/// The database's.
pub async fn lock_for_share(tx: &mut Tx, queue: QueueId, probe: Option<&str>) -> Result<()> {
    sqlx::query!(
        "SELECT queues.id FROM queues JOIN brokers ON brokers.id = queues.broker_id WHERE queues.id = $1 FOR SHARE",
        queue.0
    )
    .fetch_all(&mut **tx)
    .await?;
    sqlx::query!("SELECT name FROM probes WHERE name = $1 FOR SHARE", probe).fetch_all(&mut **tx).await?;
    Ok(())
}

/// A probe's definition now.
///
/// # Errors
/// The database's.
pub async fn probe(db: &mut PgConnection, name: &str) -> Result<Option<ProbeDefinition>> {
    let definition =
        sqlx::query_scalar!("SELECT definition FROM probes WHERE name = $1", name).fetch_optional(db).await?;
    Ok(definition.map(serde_json::from_value).transpose().context("a stored probe")?)
}

/// The kinds frozen at custody, each with its class, over all items.
///
/// # Errors
/// The database's.
pub async fn kinds(db: &mut PgConnection, cohort: CohortId) -> Result<Vec<(Kind, Option<String>)>> {
    sqlx::query!(
        "SELECT DISTINCT evidence.kind, evidence.error_class
         FROM cohort_items AS item JOIN quarantine AS evidence ON evidence.id = item.quarantine_id WHERE item.cohort_id = $1",
        cohort.0
    )
    .fetch_all(db)
    .await?
    .into_iter()
    .map(|row| Ok((row.kind.parse().context("a stored kind")?, row.error_class)))
    .collect()
}
