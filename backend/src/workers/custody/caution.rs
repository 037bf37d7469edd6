//! Keeps custody from driving messages over their queue's delivery limit (`domain::given_back`): what is known is
//! written before a consumer opens, so that a process that is killed at once has been counted.

use super::{deliveries::Returns, watchdog::STALLED_AFTER};
use crate::{
    app::brokers::PAGE_PATIENCE,
    broker::Management,
    error::Result,
    state::App,
    store::{self, custody::Source, leases::Lease},
};
use domain::given_back::{self, DEFAULT_LIMIT, DeliveryLimit, GivenBack, Next};
use std::time::Duration;
use tokio::time::timeout;

/// The first wait before a consumer of a queue whose consumers were cut off; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// A message that came back this often is worth a note of its own.
const WORTH_A_NOTE: i64 = 4;

/// Whether a consumer may open.
pub(super) enum Permission {
    /// It was written that it does; wait so long first.
    Granted(Duration),
    /// No; for the page.
    Refused(String),
    /// Another process owns the queue now.
    LeaseLost,
}

/// What one owner knows of one queue.
pub(super) struct Caution<'a> {
    app: &'a App,
    source: &'a Source,
    lease: &'a Lease,
    /// As it is written.
    known: GivenBack,
    /// Consumers that ended with everything acknowledged, and so gave nothing back.
    gave_nothing: bool,
    /// Asked once, when it first matters.
    limit: Option<DeliveryLimit>,
}

impl<'a> Caution<'a> {
    /// # Errors
    /// The database's.
    pub(super) async fn read(app: &'a App, source: &'a Source, lease: &'a Lease) -> Result<Self> {
        let known = store::custody::given_back(&app.store, source.id).await?;
        Ok(Self { app, source, lease, known, gave_nothing: false, limit: None })
    }

    /// Asks to open a consumer on a queue with so many ready messages and consumers.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn ask(&mut self, ready: u32, consumers: u32) -> Result<Permission> {
        let mut before = self.before();
        if ready == 0 && consumers == 0 {
            before = GivenBack::default();
        }
        let judged = if before.at_most == 0 { Next::Open } else { given_back::next(before, self.limit().await) };
        if judged != Next::Open {
            return Ok(Permission::Refused(self.why(before, judged)));
        }
        self.gave_nothing = false;
        if !self.write(GivenBack { at_most: before.at_most + 1, ..before }).await? {
            return Ok(Permission::LeaseLost);
        }
        let doubled = before.at_most.checked_sub(2).map_or(Duration::ZERO, |times| FIRST_WAIT * (1 << times.min(8)));
        Ok(Permission::Granted(doubled.min(LONGEST_WAIT)))
    }

    /// Deliveries came that were given back so often before: by others too.
    pub(super) async fn came(&mut self, returns: Returns) {
        let Some(most) = returns.most.filter(|most| *most >= WORTH_A_NOTE) else { return };
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        // a client may have written any number; what is over the limit can't have come from the broker
        let plausible = self.limit().await.assumed().is_some_and(|limit| most <= limit);
        if plausible && most > self.known.at_most {
            self.note(GivenBack { at_most: most, ..self.known }).await;
        }
    }

    /// A batch is known to be acknowledged, and all before it on its channel.
    pub(super) async fn acknowledged(&mut self, returns: Returns) {
        if given_back::is_new(returns.last) {
            self.only_by_this_consumer().await;
        }
    }

    /// The queue is empty, and everything that came is acknowledged.
    pub(super) async fn empty(&mut self) {
        self.only_by_this_consumer().await;
    }

    /// The consumer ended with everything acknowledged; written by the next one, or at the end.
    pub(super) fn ended_clean(&mut self) {
        self.gave_nothing = true;
    }

    /// No further consumer is opened.
    pub(super) async fn end(&mut self) {
        self.note(self.before()).await;
    }

    async fn only_by_this_consumer(&mut self) {
        self.note(GivenBack { at_most: 1, excused: 0 }).await;
    }

    /// What is known without a consumer that gave nothing back.
    fn before(&self) -> GivenBack {
        let at_most = self.known.at_most.saturating_sub(u32::from(self.gave_nothing));
        GivenBack { at_most, excused: self.known.excused.min(at_most) }
    }

    /// Writes what needn't be known to go on.
    async fn note(&mut self, known: GivenBack) {
        let written = timeout(STALLED_AFTER, self.write(known)).await;
        if !matches!(written, Ok(Ok(true))) {
            tracing::warn!(dead_letter_queue = self.source.name, "how often messages came back couldn't be written");
        }
    }

    /// `false`: another process owns the queue now.
    async fn write(&mut self, known: GivenBack) -> Result<bool> {
        if known == self.known {
            return Ok(true);
        }
        let written = store::custody::set_given_back(&self.app.store, self.source.id, self.lease.epoch, known).await?;
        if written {
            self.known = known;
        }
        Ok(written)
    }

    async fn limit(&mut self) -> DeliveryLimit {
        if let Some(limit) = self.limit {
            return limit;
        }
        let limit = timeout(PAGE_PATIENCE, delivery_limit(self.app, self.source)).await.ok().flatten();
        let limit = limit.unwrap_or(DeliveryLimit::Unknown);
        self.limit = Some(limit);
        limit
    }

    fn why(&self, known: GivenBack, judged: Next) -> String {
        let limit = match self.limit {
            Some(DeliveryLimit::At(limit)) => format!("the queue's delivery limit is {limit}"),
            _ => format!("the queue's delivery limit can't be asked; {DEFAULT_LIMIT} is assumed"),
        };
        let way_out = match judged {
            Next::Never => "raise the limit, since the next time may be a message's last",
            Next::Open | Next::Ask => "mend the cause, then switch custody off and on",
        };
        format!(
            "cut_off: custody was cut off {} times over the same messages before they were safe, and {limit}; nothing is taken any more: {way_out}",
            known.at_most
        )
    }
}

/// `None` where the broker can't be asked.
async fn delivery_limit(app: &App, source: &Source) -> Option<DeliveryLimit> {
    let address = store::broker_addresses::of(app.store.pool(), source.broker_id).await.ok()?;
    let management = Management::for_broker(&app.http, &address).ok()?;
    let (queue, overview) =
        tokio::try_join!(management.queue(&source.vhost, &source.name), management.overview()).ok()?;
    Some(queue?.delivery_limit(&overview))
}
