//! Owning a replay: lease, epoch, fences, and the one publish connection of the epoch (RULES 3 and 5).

use crate::{
    actor::Actor,
    broker::{self, Address, Management, publisher::Publisher},
    error::Result,
    state::App,
    store::{
        audit, leases,
        replays::epochs::{self, Grant},
    },
};
use domain::{ids::CohortId, vocabulary::Action};
use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How long a connection that is closed at the broker may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// How long the management API may take to list our own connection: it collects every 5 s by default. Waited for once an
/// epoch, since a connection that isn't listed yet couldn't be fenced by whoever takes over.
const LISTED_WITHIN: Duration = Duration::from_secs(12);

/// This process's hold on one replay.
pub(super) struct Owner {
    app: App,
    cohort: CohortId,
    name: String,
    answer_within: Duration,
    held: Option<Held>,
    /// The same lease, for the renewal that runs beside a step.
    renewed: Arc<Mutex<Option<leases::Lease>>>,
}

struct Held {
    lease: leases::Lease,
    publisher: Option<Publisher>,
    /// A publisher of this epoch went with answers missing: what it sent may still land.
    unanswered: bool,
}

/// Why nothing may be handed over now.
pub(super) enum NotReady {
    /// Another process owns the replay.
    Elsewhere,
    /// Something is missing; it goes on by itself.
    Halted(String),
}

impl Owner {
    pub(super) fn new(app: App, cohort: CohortId, name: String, answer_within: Duration) -> Self {
        Self { app, cohort, name, answer_within, held: None, renewed: Arc::default() }
    }

    /// The epoch; 0 without one.
    pub(super) fn epoch(&self) -> i64 {
        self.held.as_ref().map_or(0, |held| held.lease.epoch)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Renews the lease, also one that is granted meanwhile, for as long as it is polled.
    pub(super) fn renewing(&self) -> impl Future<Output = Infallible> + Send + use<> {
        let (store, renewed) = (self.app.store.clone(), self.renewed.clone());
        async move {
            loop {
                let lease = renewed.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(lease) = lease
                    // a lost lease shows at the next write under it
                    && let Err(error) = leases::renew(&store, &lease).await
                {
                    tracing::warn!(%error, "a replay's lease couldn't be renewed");
                }
                tokio::time::sleep(leases::RENEW_EVERY).await;
            }
        }
    }

    fn set(&mut self, held: Option<Held>) -> Option<Held> {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = held.as_ref().map(|held| held.lease.clone());
        std::mem::replace(&mut self.held, held)
    }

    /// Holds the lease, taking it under a new epoch where it is free: older epochs' unanswered publishes are in doubt then.
    /// `false`: another process has it.
    pub(super) async fn hold(&mut self) -> Result<bool> {
        if let Some(held) = &self.held {
            if leases::renew(&self.app.store, &held.lease).await? {
                return Ok(true);
            }
            tracing::warn!(cohort = %self.cohort, epoch = held.lease.epoch, "the replay was taken over by another process");
            self.let_go().await;
        }
        let (cohort, name) = (self.cohort, self.name.clone());
        let granted = self
            .app
            .store
            .tx(move |tx| {
                Box::pin(async move {
                    let Some(grant) = epochs::grant(tx, cohort, &name).await? else { return Ok(None) };
                    if let Grant { taken_from: Some(from), lease, swept } = &grant {
                        let entry = audit::Entry::new(Action::CohortTakenOver, "cohort", cohort)
                            .before(serde_json::json!({ "owner": from }))
                            .after(serde_json::json!({ "owner": name, "epoch": lease.epoch, "in_doubt": swept }))
                            .because("the owner before didn't renew its lease");
                        audit::done(tx, &Actor::system(), entry).await?;
                    }
                    Ok(Some(grant.lease))
                })
            })
            .await?;
        self.set(granted.map(|lease| Held { lease, publisher: None, unanswered: false }));
        Ok(self.held.is_some())
    }

    /// A publisher that may be used: the lease is held, every older epoch is fenced, and the epoch's own connection stands
    /// and is listed at the broker, so that whoever takes over finds it. An epoch whose connection was lost is given up.
    pub(super) async fn publisher(
        &mut self,
        management: &Management,
        address: &Address,
        vhost: &str,
    ) -> Result<Result<&mut Publisher, NotReady>> {
        if self.held.as_ref().is_some_and(|held| held.publisher.as_ref().is_some_and(|p| !p.usable())) {
            self.retire().await;
        }
        if !self.hold().await? {
            return Ok(Err(NotReady::Elsewhere));
        }
        if !self.fence_others(management).await? {
            return Ok(Err(NotReady::Halted("older_epoch_not_fenced".to_owned())));
        }
        let Some(held) = &mut self.held else { return Ok(Err(NotReady::Elsewhere)) };
        if held.publisher.is_none() {
            let name = epochs::connection_name(self.cohort, held.lease.epoch);
            let connection = match broker::connect(address, vhost, &name).await {
                Ok(connection) => connection,
                Err(error) => return Ok(Err(NotReady::Halted(format!("broker_unreachable: {error}")))),
            };
            let publisher = match Publisher::open(connection, name.clone(), self.answer_within).await {
                Ok(publisher) => publisher,
                Err(error) => return Ok(Err(NotReady::Halted(format!("broker_unreachable: {error}")))),
            };
            let deadline = tokio::time::Instant::now() + LISTED_WITHIN;
            loop {
                match management.connections_named(&name).await {
                    Ok(listed) if !listed.is_empty() => break,
                    Ok(_) if tokio::time::Instant::now() < deadline => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    Ok(_) => {
                        publisher.close().await;
                        return Ok(Err(NotReady::Halted("own_connection_not_listed".to_owned())));
                    }
                    Err(error) => {
                        publisher.close().await;
                        return Ok(Err(NotReady::Halted(format!("no_management_api: {error}"))));
                    }
                }
            }
            held.publisher = Some(publisher);
        }
        match &mut held.publisher {
            Some(publisher) => Ok(Ok(publisher)),
            None => Ok(Err(NotReady::Elsewhere)),
        }
    }

    /// Closes every older epoch's connection at the broker and sees it gone; `false` when one couldn't be.
    pub(super) async fn fence_others(&self, management: &Management) -> Result<bool> {
        let own = self.epoch();
        for (epoch, connection) in epochs::unfenced(self.app.store.pool(), self.cohort).await? {
            if epoch == own {
                continue;
            }
            match management.close_and_see_gone(&connection, "Lazaret: the replay has a new owner", GONE_WITHIN).await {
                Ok(true) => epochs::closed(self.app.store.pool(), self.cohort, epoch).await?,
                Ok(false) => return Ok(false),
                Err(error) => {
                    tracing::warn!(cohort = %self.cohort, epoch, %error, "an older epoch can't be fenced");
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Ends the own epoch: its connection is closed, and it says *stopped* where every publish was answered. Where one
    /// wasn't, it stays unfenced until the broker has closed its connection and it is seen gone. The lease is kept.
    pub(super) async fn stop_epoch(&mut self) -> Result<()> {
        let Some(held) = &mut self.held else { return Ok(()) };
        if let Some(publisher) = held.publisher.take() {
            held.unanswered |= !publisher.all_answered();
            publisher.close().await;
        }
        if !held.unanswered {
            epochs::stop(self.app.store.pool(), self.cohort, held.lease.epoch).await?;
        }
        Ok(())
    }

    /// The publisher that stands, made by [`publisher`](Self::publisher).
    pub(super) fn standing(&mut self) -> Option<&mut Publisher> {
        self.held.as_mut()?.publisher.as_mut()
    }

    /// Fences the own epoch, which publishes nothing more: by *stopped*, else by its connection seen gone.
    pub(super) async fn fence_own(&mut self, management: &Management) -> Result<bool> {
        self.stop_epoch().await?;
        let own = self.epoch();
        let unfenced = epochs::unfenced(self.app.store.pool(), self.cohort).await?;
        let Some((_, connection)) = unfenced.into_iter().find(|(epoch, _)| *epoch == own) else { return Ok(true) };
        let gone = management.close_and_see_gone(&connection, "Lazaret: the replay ended", GONE_WITHIN).await;
        if matches!(gone, Ok(true)) {
            epochs::closed(self.app.store.pool(), self.cohort, own).await?;
        }
        Ok(matches!(gone, Ok(true)))
    }

    /// Gives the replay up in good order.
    pub(super) async fn retire(&mut self) {
        if let Err(error) = self.stop_epoch().await {
            tracing::warn!(cohort = %self.cohort, %error, "an epoch's stop couldn't be written; its connection will be closed");
        }
        if let Some(held) = self.set(None)
            && let Err(error) = leases::release(&self.app.store, &held.lease).await
        {
            tracing::warn!(cohort = %self.cohort, %error, "a lease couldn't be given back; it runs out");
        }
    }

    /// The lease is another's: the connection is closed, and nothing more is written under this epoch.
    async fn let_go(&mut self) {
        if let Some(Held { publisher: Some(publisher), .. }) = self.set(None) {
            publisher.close().await;
        }
    }
}
