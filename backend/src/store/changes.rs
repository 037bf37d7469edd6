//! "Something changed" notes from every replica, by LISTEN.

use super::{CHANNEL, Store};
use domain::api::Changed;
use sqlx::postgres::PgListener;
use std::time::Duration;
use tokio::sync::broadcast::Sender;
use tokio_util::sync::CancellationToken;

/// Says that anything may have changed: notes were lost.
pub const EVERYTHING: &str = "all";

/// Hands on notes until `stop`. Whatever was lost while the connection was away is made good by one note for everything.
pub async fn listen(store: Store, changes: Sender<Changed>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let ended = tokio::select! {
            () = stop.cancelled() => return,
            ended = listen_once(&store, &changes) => ended,
        };
        if let Err(error) = ended {
            tracing::warn!(%error, "listening for changes failed; trying again");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}

async fn listen_once(store: &Store, changes: &Sender<Changed>) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(store.pool()).await?;
    listener.listen(CHANNEL).await?;
    // no receivers is no failure: nobody has a page open
    let everything = || drop(changes.send(Changed { topic: EVERYTHING.to_owned(), id: None }));
    everything();
    loop {
        match listener.try_recv().await? {
            // the connection was away: `recv` would hide that notes may be lost
            None => everything(),
            Some(note) => match serde_json::from_str::<Changed>(note.payload()) {
                Ok(changed) => drop(changes.send(changed)),
                Err(error) => tracing::warn!(%error, "a note that isn't one"),
            },
        }
    }
}
