//! Custody of every dead-letter queue that is to be drained: one owner each, by lease (DESIGN 6).

mod caution;
mod deliveries;
mod drain;
mod owner;
mod prefetch;
mod reasons;
mod watchdog;

use crate::{
    state::App,
    store::{
        custody::{self, Source},
        leases::{self, Duty, Lease},
    },
};
use domain::ids::DeadLetterQueueId;
use futures::StreamExt as _;
use std::{collections::HashSet, time::Duration};
use tokio::{task::JoinSet, time::timeout};

/// How often queues without an owner are looked for: with the lease's length, how soon a dead owner is replaced.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long one lease may be asked for.
const GRANTED_WITHIN: Duration = Duration::from_secs(2);
/// How many leases are asked for at once: each takes a connection of the pool.
const GRANTS_AT_ONCE: usize = 4;

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

/// Takes what is free; a dead-letter queue whose lease can't be asked for keeps no other waiting.
async fn take_free(app: &App, owned: &HashSet<DeadLetterQueueId>) -> crate::error::Result<Vec<(Source, Lease)>> {
    let mut free = custody::to_drain(&app.store).await?;
    free.retain(|source| !owned.contains(&source.id));
    let granted = free.into_iter().map(async |source| {
        let lease = timeout(GRANTED_WITHIN, grant(app, &source)).await;
        (source, lease)
    });
    let mut taken = Vec::new();
    let mut granted = futures::stream::iter(granted).buffer_unordered(GRANTS_AT_ONCE);
    while let Some((source, lease)) = granted.next().await {
        match lease {
            Ok(Ok(Some(lease))) => {
                tracing::info!(dead_letter_queue = source.name, epoch = lease.epoch, "custody taken");
                taken.push((source, lease));
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::warn!(%error, dead_letter_queue = source.name, "its lease can't be asked for"),
            // granted after all, it runs out by itself
            Err(_) => tracing::warn!(dead_letter_queue = source.name, "its lease isn't granted in time"),
        }
    }
    Ok(taken)
}

async fn grant(app: &App, source: &Source) -> crate::error::Result<Option<Lease>> {
    let (subject, owner) = (source.id.0, app.config.process_name.clone());
    app.store.tx(move |tx| Box::pin(async move { leases::grant(tx, Duty::Custody, subject, &owner).await })).await
}
