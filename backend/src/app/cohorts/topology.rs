//! What the target looks like at the broker now: one reading of a virtual host, from which targets are resolved and
//! judged. Read before the transaction that acts; the database isn't kept waiting for a broker.

use crate::{
    broker::{
        Management, ManagementError,
        management::{Binding, Exchange, Queue},
        routing::{self, Receivers},
    },
    error::Error,
    state::App,
    store::cohorts::facts::SourceQueue,
};
use domain::{
    api::{Draft, ResolvedTarget},
    preflight::{self, TargetFacts},
    refusal::Code,
};
use std::collections::BTreeSet;

/// Exchanges, bindings and queues of one virtual host.
#[derive(Debug, Clone)]
pub struct Topology {
    exchanges: Vec<Exchange>,
    bindings: Vec<Binding>,
    queues: Vec<Queue>,
}

/// A reading, or why there is none.
#[derive(Debug, Clone)]
pub enum Reading {
    /// What is there.
    Read(Topology),
    /// The management API gave none, and why.
    Unreachable(String),
    /// The act doesn't depend on it, so the broker wasn't asked: what rests on it is unknown.
    NotAsked,
}

impl Reading {
    /// What is there.
    ///
    /// # Errors
    /// 409 `no_management_api` where the broker gave nothing.
    pub fn topology(&self) -> Result<&Topology, Error> {
        let why = match self {
            Self::Read(topology) => return Ok(topology),
            Self::Unreachable(why) => why,
            Self::NotAsked => "it wasn't asked",
        };
        let detail = format!("Topology and fencing come from the broker's management API, which can't be used: {why}.");
        Err(Error::refused(Code::NoManagementApi.as_str(), detail))
    }
}

/// Reads the virtual host of a queue.
pub async fn read(app: &App, queue: &SourceQueue) -> Reading {
    match read_now(app, queue).await {
        Ok(topology) => Reading::Read(topology),
        Err(error) => Reading::Unreachable(error.to_string()),
    }
}

async fn read_now(app: &App, queue: &SourceQueue) -> Result<Topology, ManagementError> {
    let management = Management::for_broker(&app.http, &queue.address)?;
    let vhost = Some(queue.vhost.as_str());
    let (exchanges, bindings, queues) =
        tokio::try_join!(management.exchanges(vhost), management.bindings(vhost), management.queues(vhost))?;
    Ok(Topology { exchanges, bindings, queues })
}

/// Where a draft's messages go: as it says, else by the default of RULES 6. `original` is what they were published with
/// first, where that is one exchange and key for all. Without a reading the default is the queue itself, which is
/// always only that queue.
#[must_use]
pub fn resolve(
    reading: &Reading,
    draft: &Draft,
    source: &SourceQueue,
    original: Option<(String, String)>,
) -> ResolvedTarget {
    let is_default = draft.target.is_none();
    let (exchange, routing_key) = match &draft.target {
        Some(target) => (target.exchange.clone(), target.routing_key.clone()),
        None => {
            let only_the_source = match (reading, &original) {
                (Reading::Read(topology), Some((exchange, key))) => {
                    topology.receivers(exchange, key).are_exactly(&source.name)
                }
                _ => false,
            };
            let original = original.as_ref().map(|(exchange, key)| (exchange.as_str(), key.as_str()));
            preflight::default_target(&source.name, original, only_the_source)
        }
    };
    let receivers = reading.topology().ok().map(|topology| {
        let receivers = topology.receivers(&exchange, &routing_key);
        let undecided = receivers.undecided.iter().map(|exchange| format!("? (by exchange {exchange})"));
        receivers.queues.iter().cloned().chain(undecided).collect()
    });
    ResolvedTarget { exchange, routing_key, receivers, is_default }
}

impl Topology {
    /// Who would get a message now.
    #[must_use]
    pub fn receivers(&self, exchange: &str, key: &str) -> Receivers {
        let names: BTreeSet<String> = self.queues.iter().map(|queue| queue.name.clone()).collect();
        routing::receivers(exchange, key, &self.exchanges, &self.bindings, &names)
    }

    /// The queue whose lane a replay to this target takes: the source where it is among the receivers, else the first.
    #[must_use]
    pub fn lane_queue(&self, exchange: &str, key: &str, source: &str) -> String {
        let receivers = self.receivers(exchange, key).queues;
        if receivers.contains(source) {
            return source.to_owned();
        }
        receivers.into_iter().next().unwrap_or_else(|| source.to_owned())
    }

    /// The facts that a pre-flight judges a target by.
    #[must_use]
    pub fn facts(&self, exchange: &str, key: &str, source: &str) -> TargetFacts {
        let receivers = self.receivers(exchange, key);
        let on_the_way: Vec<&Queue> =
            self.queues.iter().filter(|queue| receivers.queues.contains(&queue.name)).collect();
        let named = |bad: &dyn Fn(&Queue) -> bool| -> BTreeSet<String> {
            on_the_way.iter().filter(|queue| bad(queue)).map(|queue| queue.name.clone()).collect()
        };
        TargetFacts {
            source_queue: source.to_owned(),
            missing: self.missing(exchange, key),
            drop_head: named(&|queue| {
                queue.text_setting("overflow").unwrap_or("drop-head") == "drop-head"
                    && (queue.setting("max-length").is_some() || queue.setting("max-length-bytes").is_some())
            }),
            low_delivery_limit: named(&|queue| {
                queue.setting("delivery-limit").and_then(serde_json::Value::as_i64).is_some_and(|limit| limit <= 1)
            }),
            // other receivers, which a reviewer accepted by name, keep their own rules
            second_death_unroutable: on_the_way
                .iter()
                .filter(|queue| exchange.is_empty() || queue.name == source)
                .filter_map(|queue| Some((queue.name.clone(), self.second_death_lost(queue, key)?)))
                .collect(),
            receivers: receivers.queues,
            undecided: receivers.undecided,
            alternate: receivers.alternate,
            delayed: receivers.delayed,
        }
    }

    fn missing(&self, exchange: &str, key: &str) -> Option<String> {
        if exchange.is_empty() {
            let there = self.queues.iter().any(|queue| queue.name == key);
            return (!there).then(|| format!("There is no queue `{key}`."));
        }
        match self.exchanges.iter().find(|candidate| candidate.name == exchange) {
            None => Some(format!("There is no exchange `{exchange}`.")),
            Some(found) if found.internal => Some(format!("Clients may not publish to the exchange `{exchange}`.")),
            Some(_) => None,
        }
    }

    /// Why a message published with `key` would vanish if it died on this queue again.
    fn second_death_lost(&self, queue: &Queue, key: &str) -> Option<String> {
        let Some(exchange) = queue.text_setting("dead-letter-exchange") else {
            return Some("it has no dead-letter exchange".to_owned());
        };
        let key = queue.text_setting("dead-letter-routing-key").unwrap_or(key);
        let receivers = self.receivers(exchange, key);
        if receivers.no_exchange {
            Some(format!("its dead-letter exchange `{exchange}` isn't there"))
        } else if receivers.queues.is_empty() {
            Some(format!("its dead-letter exchange `{exchange}` has no route for the key `{key}`"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn topology(queue_arguments: serde_json::Value) -> Topology {
        let read = |value| serde_json::from_value(value).unwrap();
        Topology {
            exchanges: vec![
                read(json!({ "name": "orders", "type": "direct" })),
                read(json!({ "name": "orders.dlx", "type": "direct" })),
                read(json!({ "name": "inner", "type": "direct", "internal": true })),
            ],
            bindings: vec![
                serde_json::from_value(json!({ "source": "orders", "destination": "q", "destination_type": "queue", "routing_key": "k" })).unwrap(),
                serde_json::from_value(json!({ "source": "orders.dlx", "destination": "q.dlq", "destination_type": "queue", "routing_key": "k" })).unwrap(),
            ],
            queues: vec![
                serde_json::from_value(json!({ "name": "q", "type": "quorum", "arguments": queue_arguments })).unwrap(),
                serde_json::from_value(json!({ "name": "q.dlq", "type": "quorum" })).unwrap(),
            ],
        }
    }

    #[test]
    fn a_second_death_needs_a_way() {
        let dlx = |key: Option<&str>| match key {
            None => json!({ "x-dead-letter-exchange": "orders.dlx" }),
            Some(key) => json!({ "x-dead-letter-exchange": "orders.dlx", "x-dead-letter-routing-key": key }),
        };
        let lost = |arguments, exchange: &str, key: &str| {
            !topology(arguments).facts(exchange, key, "q").second_death_unroutable.is_empty()
        };
        assert!(!lost(dlx(None), "orders", "k"), "it dies with the key it came with");
        assert!(lost(dlx(None), "", "q"), "sent straight to the queue it would die with the queue's name as its key");
        assert!(!lost(dlx(Some("k")), "", "q"));
        assert!(lost(json!({}), "", "q"));
        assert!(lost(json!({ "x-dead-letter-exchange": "gone" }), "", "q"));
    }

    #[test]
    fn targets_that_are_not_there() {
        let missing = |exchange: &str, key: &str| topology(json!({})).facts(exchange, key, "q").missing.is_some();
        assert!(!missing("orders", "k") && !missing("", "q"));
        assert!(missing("", "gone") && missing("gone", "k") && missing("inner", "k"));
    }
}
