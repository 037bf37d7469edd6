//! Where the messages go, as the management API shows it now: without it nothing is published.

use super::run::Run;
use crate::{
    broker::{Management, ManagementError},
    store::replays::Running,
};
use std::time::Duration;
use tokio::time::Instant;

/// How old a look at the target may be.
const FRESH: Duration = Duration::from_secs(2);

/// What was last seen of the target.
#[derive(Debug, Clone, Default)]
pub(super) struct Target {
    seen: Option<(Seen, Instant)>,
}

/// What the broker says of the target.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The exchange isn't there: a publish would close the channel.
    pub(super) no_exchange: bool,
    /// A nack means that nothing was stored: one queue, and none that dead-letters what it refuses.
    pub(super) nack_is_sure: bool,
    /// Ready and unacknowledged on the target queue; `None`: not sampled.
    pub(super) messages: Option<i64>,
}

impl Run {
    /// The management client and a fresh look at the target.
    pub(super) async fn look(&mut self, running: &Running) -> Result<(Management, Seen), ManagementError> {
        let management = Management::for_broker(&self.app.http, &running.address)?;
        if let Some((seen, at)) = &self.target.seen
            && at.elapsed() < FRESH
        {
            return Ok((management, seen.clone()));
        }
        let receivers = management.receivers(&running.vhost, &running.exchange, &running.routing_key).await?;
        let queue = management.queue(&running.vhost, &running.target_queue).await?;
        let one = receivers.queues.len() == 1 && receivers.undecided.is_empty();
        let dead_letters_refused =
            queue.as_ref().is_some_and(|queue| queue.text_setting("overflow") == Some("reject-publish-dlx"));
        let seen = Seen {
            no_exchange: receivers.no_exchange,
            nack_is_sure: one && !dead_letters_refused,
            messages: queue.and_then(|queue| queue.messages),
        };
        self.target.seen = Some((seen.clone(), Instant::now()));
        Ok((management, seen))
    }
}
