//! Deliveries as custody takes them, and what the broker says of them.

use crate::{app::custody::Taken, broker::wire};
use lapin::{Acker, message::Delivery};

/// The last delivery's acker, and all deliveries as custody takes them.
pub(super) fn split(batch: Vec<Delivery>) -> Option<(Acker, Vec<Taken>)> {
    let acker = batch.last()?.acker.clone();
    let taken = batch
        .into_iter()
        .map(|delivery| Taken {
            exchange: delivery.exchange.as_str().as_bytes().to_vec(),
            routing_key: delivery.routing_key.as_str().as_bytes().to_vec(),
            redelivered: delivery.redelivered,
            message: wire::message(&delivery.properties, delivery.data),
        })
        .collect();
    Some((acker, taken))
}

/// How often the broker says that messages of a batch were given back; a hint, since a client may have written it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Returns {
    /// The one that came back most often.
    pub(super) most: Option<i64>,
    /// The last one.
    pub(super) last: Option<i64>,
}

impl Returns {
    pub(super) fn of(taken: &[Taken]) -> Self {
        Self { most: taken.iter().filter_map(returns).max(), last: taken.last().and_then(returns) }
    }
}

fn returns(taken: &Taken) -> Option<i64> {
    let count = taken.message.properties.headers.as_ref()?.get(b"x-delivery-count")?.as_int()?;
    i64::try_from(count).ok()
}
