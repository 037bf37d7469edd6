//! Custody of every dead-letter queue that is to be drained: one owner each, by lease (DESIGN 6).

mod drain;
mod owner;
mod prefetch;

use crate::{
    state::App,
    store::{
        custody::{self, Source},
        leases::{self, Duty, Lease},
    },
};
use domain::ids::DeadLetterQueueId;
use std::{collections::HashSet, time::Duration};
use tokio::task::JoinSet;

/// How often queues without an owner are looked for: with the lease's length, how soon a dead owner is replaced.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Takes the leases that are free and drains under them, until the process is asked to stop; then returns once every
/// owner has stored and acknowledged what it held.
pub async fn supervise(app: App) {
    let mut owned: HashSet<DeadLetterQueueId> = HashSet::new();
    let mut owners: JoinSet<DeadLetterQueueId> = JoinSet::new();
    while !app.shutdown.is_cancelled() {
        match take_free(&app, &owned).await {
            Ok(taken) => {
                for (source, lease) in taken {
                    owned.insert(source.id);
                    let app = app.clone();
                    owners.spawn(async move {
                        let id = source.id;
                        owner::own(app, source, lease).await;
                        id
                    });
                }
            }
            Err(error) => tracing::warn!(%error, "dead-letter queues without an owner can't be looked for"),
        }
        tokio::select! {
            () = app.shutdown.cancelled() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            Some(ended) = owners.join_next() => forget(&mut owned, ended),
        }
    }
    while let Some(ended) = owners.join_next().await {
        forget(&mut owned, ended);
    }
}

fn forget(owned: &mut HashSet<DeadLetterQueueId>, ended: Result<DeadLetterQueueId, tokio::task::JoinError>) {
    match ended {
        Ok(id) => {
            owned.remove(&id);
        }
        // which one isn't known: each lease that runs is refused to us, so that asking for all again is safe
        Err(error) => {
            tracing::error!(%error, "an owner of a dead-letter queue failed by a defect");
            owned.clear();
        }
    }
}

async fn take_free(app: &App, owned: &HashSet<DeadLetterQueueId>) -> crate::error::Result<Vec<(Source, Lease)>> {
    let mut taken = Vec::new();
    for source in custody::to_drain(&app.store).await? {
        if owned.contains(&source.id) {
            continue;
        }
        let (subject, owner) = (source.id.0, app.config.process_name.clone());
        let lease = app
            .store
            .tx(move |tx| Box::pin(async move { leases::grant(tx, Duty::Custody, subject, &owner).await }))
            .await?;
        if let Some(lease) = lease {
            tracing::info!(dead_letter_queue = source.name, epoch = lease.epoch, "custody taken");
            taken.push((source, lease));
        }
    }
    Ok(taken)
}
