//! The hand-over: `publishing` is written first, and only where cohort, lease and freezes allow it at that moment.

use crate::{
    error::{Error, Result},
    store::{
        Tx,
        cohorts::items::{self, Step},
    },
};
use domain::{
    amqp::{Message, Properties},
    ids::{AppName, BrokerId, CohortId, ItemId, QuarantineId, RedriveId},
    vocabulary::{CohortState, ItemState},
};
use sqlx::PgPool;
use uuid::Uuid;

/// A scheduled item with its message as the vault has it.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The item.
    pub item: ItemId,
    /// Its dead letter.
    pub quarantine_id: QuarantineId,
    /// Its place in the plan.
    pub position: i32,
    /// The job.
    pub job_id: Option<AppName>,
    /// The message; `None` when its payload was erased or can't be read back.
    pub message: Option<Message>,
}

/// Which of the scheduled items.
#[derive(Debug, Clone, Copy)]
pub enum Which {
    /// This one.
    One(ItemId),
    /// The next in the plan's order, at most so many.
    Next(i64),
}

/// Scheduled items with their messages.
///
/// # Errors
/// The database's.
pub async fn candidates(pool: &PgPool, cohort: CohortId, which: Which) -> Result<Vec<Candidate>> {
    let (only, limit) = match which {
        Which::One(item) => (Some(item.0), 1),
        Which::Next(limit) => (None, limit),
    };
    Ok(sqlx::query!(
        r#"SELECT i.id, i.quarantine_id, i.position, i.job_id, p.body AS "body?", p.properties AS "properties?", p.headers
           FROM cohort_items i LEFT JOIN payloads p ON p.quarantine_id = i.quarantine_id
           WHERE i.cohort_id = $1 AND i.state = 'scheduled' AND ($2::uuid IS NULL OR i.id = $2)
           ORDER BY i.position LIMIT $3"#,
        cohort.0,
        only,
        limit,
    )
    .fetch_all(pool)
    .await?
    .into_iter()
    .map(|row| Candidate {
        item: ItemId(row.id),
        quarantine_id: QuarantineId(row.quarantine_id),
        position: row.position,
        job_id: row.job_id.map(AppName),
        message: row.body.zip(row.properties).and_then(|(body, properties)| {
            Some(Message { body, properties: Properties::decode(&properties, row.headers.as_deref()).ok()? })
        }),
    })
    .collect())
}

/// What is to be handed over, under whom.
#[derive(Debug, Clone)]
pub struct HandOver {
    /// Whose items.
    pub cohort: CohortId,
    /// The broker that numbers them.
    pub broker: BrokerId,
    /// The owner's epoch.
    pub epoch: i64,
    /// The owner.
    pub owner: String,
    /// Its connection's name.
    pub connection: String,
    /// The state in which the owner decided this.
    pub state: CohortState,
    /// The freeze rows that cover it.
    pub freeze_scopes: Vec<Uuid>,
    /// Items with the redrive ids that their messages will carry, in the order of the hand-over.
    pub items: Vec<(ItemId, RedriveId)>,
    /// Whether they are the running stratum's canary.
    pub canary: bool,
}

/// Writes `publishing` for those items, in one statement that share-locks cohort, lease and freezes and checks them: a
/// pause, an abort, a freeze or a takeover that committed before is seen; one that comes after waits for this and finds
/// the items listed. Gives the items that may be sent now: all or none.
///
/// # Errors
/// The database's.
pub async fn record(tx: &mut Tx, hand: HandOver) -> Result<Vec<ItemId>> {
    let ids: Vec<Uuid> = hand.items.iter().map(|(item, _)| item.0).collect();
    let redrives: Vec<Uuid> = hand.items.iter().map(|(_, redrive)| redrive.0).collect();
    let expected = i64::try_from(hand.freeze_scopes.len()).map_err(|error| Error::Internal(error.into()))?;
    let recorded = sqlx::query_scalar!(
        r#"WITH cohort AS (
             SELECT generation FROM cohorts WHERE id = $1 AND state = $2 FOR SHARE
           ), lease AS (
             SELECT 1 FROM leases WHERE duty = 'replay' AND subject = $1 AND epoch = $3 AND owner = $4
               AND NOT EXISTS (SELECT FROM cohort_epochs WHERE cohort_id = $1 AND CASE WHEN epoch = $3
                 THEN stopped_at IS NOT NULL OR closed_at IS NOT NULL ELSE stopped_at IS NULL AND closed_at IS NULL END)
               FOR SHARE OF leases
           ), covering AS (
             SELECT count(*) AS found, count(*) FILTER (WHERE frozen) AS frozen
             FROM (SELECT frozen FROM freezes WHERE scope = ANY($5) FOR SHARE) AS locked
           ), numbered AS (
             UPDATE brokers SET publish_number = publish_number + cardinality($7::uuid[])
             FROM cohort, lease, covering WHERE brokers.id = $6 AND covering.frozen = 0 AND covering.found = $11
             RETURNING publish_number - cardinality($7::uuid[]) AS before
           )
           UPDATE cohort_items AS item
           SET state = 'publishing', state_reason = NULL, redrive_id = hand.redrive, generation = cohort.generation,
             publish_number = numbered.before + hand.place, epoch = $3, connection = $9, published_at = clock_timestamp(),
             canary = item.canary OR $10
           FROM cohort, lease, covering, numbered,
             unnest($7::uuid[], $8::uuid[]) WITH ORDINALITY AS hand (id, redrive, place)
           WHERE item.id = hand.id AND item.cohort_id = $1 AND item.state = 'scheduled'
           RETURNING item.id"#,
        hand.cohort.0,
        hand.state.as_str(),
        hand.epoch,
        hand.owner,
        &hand.freeze_scopes,
        hand.broker.0,
        &ids,
        &redrives,
        hand.connection,
        hand.canary,
        expected,
    )
    .fetch_all(&mut **tx)
    .await?;
    if recorded.len() != ids.len() {
        if recorded.is_empty() {
            return Ok(Vec::new());
        }
        // nothing is sent of a batch that isn't whole: the transaction is undone
        return Err(Error::Internal(anyhow::anyhow!("some items of a batch weren't scheduled any more")));
    }
    let step = Step::new("hand_over", "written before it is handed to the broker").under(hand.epoch);
    for item in &recorded {
        items::record_step(tx, ItemId(*item), Some(ItemState::Scheduled), ItemState::Publishing, step).await?;
    }
    crate::store::notify(tx, "cohorts", Some(hand.cohort.0)).await?;
    Ok(recorded.into_iter().map(ItemId).collect())
}

/// An answer of the broker for an item of this epoch. Where the item is `publishing` no more (a takeover swept it), a
/// confirm is late evidence: against people's `not_published` it is a contradiction.
///
/// # Errors
/// The database's.
pub async fn settle(tx: &mut Tx, cohort: CohortId, item: ItemId, to: ItemState, step: Step<'_>) -> Result<()> {
    if items::move_item(tx, item, &[ItemState::Publishing], to, step).await? || to != ItemState::Confirmed {
        return Ok(());
    }
    let mut late = Step::new("late_confirm", "the broker's confirm came after its owner was replaced");
    late.epoch = step.epoch;
    if items::move_item(tx, item, &[ItemState::InDoubt], ItemState::Confirmed, late).await? {
        return Ok(());
    }
    let state =
        sqlx::query_scalar!("SELECT state FROM cohort_items WHERE id = $1", item.0).fetch_one(&mut **tx).await?;
    if state == ItemState::ResolvedNotPublished.as_str() {
        super::evidence::published_twice(tx, cohort, item).await?;
    }
    Ok(())
}
