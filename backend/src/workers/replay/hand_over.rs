//! Handing messages over: made ready, recorded as `publishing`, then sent, then answered.

use super::{
    owner::NotReady,
    run::{Run, Stepped},
};
use crate::{
    broker::{
        parcel::{Limits, Parcel},
        publisher::Answer,
    },
    error::Result,
    store::{
        cohorts::items::{self, Step},
        replays::{
            Running,
            publishing::{self, Candidate, HandOver, Which},
        },
    },
};
use domain::{
    ids::{ItemId, RedriveId},
    strip::{self, Choices, Marks},
    vocabulary::ItemState,
};
use std::collections::HashMap;

/// What became of a batch.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// How many were sent.
    pub(super) sent: usize,
    /// How many of them no queue would get.
    pub(super) returned: usize,
    /// How many the target refused.
    pub(super) nacked: usize,
}

/// A batch, or why nothing was sent.
pub(super) enum Outcome {
    /// Sent and answered (or in doubt).
    Handed(Handed),
    /// Nothing was sent.
    Not(Stepped),
}

impl Run {
    /// Hands over what `which` names, as far as the database allows it at that moment. Messages that can't be sent are
    /// refused with their reason.
    pub(super) async fn hand_over(&mut self, running: &Running, which: Which, canary: bool) -> Result<Outcome> {
        let (management, seen) = match self.look(running).await {
            Ok(looked) => looked,
            Err(error) => return Ok(Outcome::Not(Stepped::Halted(format!("no_management_api: {error}")))),
        };
        if seen.no_exchange {
            return Ok(Outcome::Not(Stepped::Halted("target_exchange_missing".to_owned())));
        }
        // connection first: an epoch that can't publish records nothing
        match self.owner.publisher(&management, &running.address, &running.vhost).await? {
            Ok(publisher) if publisher.blocked() => {
                return Ok(Outcome::Not(Stepped::Halted("broker_blocked".to_owned())));
            }
            Ok(_) => {}
            Err(NotReady::Elsewhere) => return Ok(Outcome::Not(Stepped::Elsewhere)),
            Err(NotReady::Halted(reason)) => return Ok(Outcome::Not(Stepped::Halted(reason))),
        }
        let parcels = self.make_ready(running, which).await?;
        if parcels.is_empty() {
            return Ok(Outcome::Handed(Handed::default()));
        }
        let epoch = self.owner.epoch();
        let hand = HandOver {
            cohort: self.cohort,
            broker: running.broker_id,
            epoch,
            owner: self.owner.name().to_owned(),
            connection: crate::store::replays::epochs::connection_name(self.cohort, epoch),
            state: running.state,
            freeze_scopes: running.freeze_scopes.clone(),
            items: parcels.iter().map(|(item, parcel)| (*item, RedriveId(parcel.redrive_id))).collect(),
            canary,
        };
        let recorded = self.app.store.tx(move |tx| Box::pin(async move { publishing::record(tx, hand).await })).await?;
        if recorded.is_empty() {
            // paused, aborted, frozen or taken over meanwhile; the next step reads which
            return Ok(Outcome::Not(Stepped::Idle));
        }
        let items: HashMap<uuid::Uuid, ItemId> =
            parcels.iter().map(|(item, parcel)| (parcel.redrive_id, *item)).collect();
        let sent = parcels.len();
        let batch = parcels.into_iter().map(|(_, parcel)| parcel).collect();
        let answers = match self.owner.standing() {
            Some(publisher) => publisher.publish(batch).await,
            None => Vec::new(),
        };
        let mut handed = Handed { sent, ..Handed::default() };
        let cohort = self.cohort;
        let mut settled = Vec::with_capacity(answers.len());
        for (redrive, answer) in answers {
            let Some(item) = items.get(&redrive) else { continue };
            let (to, cause, reason) = match answer {
                Answer::Confirmed => (ItemState::Confirmed, "the broker confirmed it".to_owned(), None),
                Answer::Returned { reason } => {
                    handed.returned += 1;
                    (ItemState::Returned, format!("no queue would get it: {reason}"), Some("unroutable"))
                }
                Answer::Nacked if seen.nack_is_sure => {
                    handed.nacked += 1;
                    (ItemState::Nacked, "the target queue refused it".to_owned(), Some("target_refused"))
                }
                Answer::Nacked => {
                    handed.nacked += 1;
                    (ItemState::InDoubt, "refused, but some queue may have it".to_owned(), Some("nacked_fan_out"))
                }
                Answer::InDoubt { cause } => (ItemState::InDoubt, cause, Some("no_answer")),
            };
            settled.push((*item, to, cause, reason));
        }
        self.app
            .store
            .tx(move |tx| {
                Box::pin(async move {
                    for (item, to, cause, reason) in settled {
                        let mut step = Step::new("confirm", &cause).under(epoch);
                        step.state_reason = reason;
                        publishing::settle(tx, cohort, item, to, step).await?;
                    }
                    Ok(())
                })
            })
            .await?;
        Ok(Outcome::Handed(handed))
    }

    /// Items of the own epoch are `publishing` between two steps: their answers couldn't be recorded (the database was
    /// away). The epoch is given up; the next one puts them in doubt.
    pub(super) async fn unrecorded(&mut self) -> Result<Stepped> {
        tracing::warn!(cohort = %self.cohort, epoch = self.owner.epoch(), "the broker's answers weren't recorded; the epoch ends");
        self.owner.retire().await;
        Ok(Stepped::Idle)
    }

    /// The messages as they will be sent, with new redrive ids; refused are those that can't be.
    async fn make_ready(&self, running: &Running, which: Which) -> Result<Vec<(ItemId, Parcel)>> {
        let candidates = publishing::candidates(self.app.store.pool(), self.cohort, which).await?;
        let mut ready = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            match parcel(running, candidate) {
                Ok(made) => ready.push(made),
                Err((item, code, detail)) => self.refuse(item, code, &detail).await?,
            }
        }
        Ok(ready)
    }

    /// The pre-flight at the last moment says no.
    pub(super) async fn refuse(&self, item: ItemId, code: &'static str, detail: &str) -> Result<()> {
        let detail = detail.to_owned();
        self.app
            .store
            .tx(move |tx| {
                Box::pin(async move {
                    let step = Step::new("rule", &detail).because(code);
                    items::move_item(tx, item, &[ItemState::Scheduled], ItemState::Refused, step).await?;
                    Ok(())
                })
            })
            .await
    }
}

fn parcel(running: &Running, candidate: Candidate) -> Result<(ItemId, Parcel), (ItemId, &'static str, String)> {
    let Candidate { item, message, .. } = candidate;
    let no = |code, detail: String| (item, code, detail);
    let mut message = message.ok_or_else(|| no("payload_erased", "its payload isn't in the vault".to_owned()))?;
    let redrive_id = crate::clock::new_id();
    let marks = Marks { generation: running.generation.unsigned_abs(), redrive_id };
    let choices = Choices { restore_expiration: running.draft.restore_expiration };
    message.properties = strip::redrive(&message.properties, choices, marks).properties;
    Parcel::new(redrive_id, running.exchange.as_bytes(), running.routing_key.as_bytes(), message, Limits::DEFAULT)
        .map(|parcel| (item, parcel))
        .map_err(|error| no(error.code(), error.to_string()))
}
