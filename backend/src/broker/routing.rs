//! Which queues would get a message published to an exchange with a key: computed from bindings, as the broker does.

use super::management::{Binding, Exchange};
use std::collections::BTreeSet;

/// Who would get a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Receivers {
    /// The queues.
    pub queues: BTreeSet<String>,
    /// Exchanges on the way whose routing can't be told from bindings alone (`headers`, plug-in types): others than
    /// the queues above may get it, so that the set is a lower bound.
    pub undecided: BTreeSet<String>,
    /// Exchanges on the way that have an alternate exchange: an unroutable message would vanish there without return.
    pub alternate: BTreeSet<String>,
    /// Exchanges on the way that delay.
    pub delayed: BTreeSet<String>,
    /// The first exchange doesn't exist: a publish closes the channel.
    pub no_exchange: bool,
}

impl Receivers {
    /// Whether exactly this queue would get it, for sure.
    #[must_use]
    pub fn are_exactly(&self, queue: &str) -> bool {
        !self.no_exchange && self.undecided.is_empty() && self.queues.len() == 1 && self.queues.contains(queue)
    }
}

/// Who would get a message published to `exchange` with `key`, in one virtual host. `exchanges` and `bindings` are
/// that host's; `queues` its queues' names, for the default exchange.
#[must_use]
pub fn receivers(
    exchange: &str,
    key: &str,
    exchanges: &[Exchange],
    bindings: &[Binding],
    queues: &BTreeSet<String>,
) -> Receivers {
    let mut found = Receivers::default();
    if exchange.is_empty() {
        found.queues.extend(queues.get(key).cloned());
        return found;
    }
    found.no_exchange = !exchanges.iter().any(|e| e.name == exchange);
    let mut seen = BTreeSet::from([exchange.to_owned()]);
    let mut todo = vec![exchange.to_owned()];
    while let Some(name) = todo.pop() {
        let Some(here) = exchanges.iter().find(|e| e.name == name) else { continue };
        if here.alternate_exchange.is_some() {
            found.alternate.insert(name.clone());
        }
        if here.is_delayed() {
            found.delayed.insert(name.clone());
        }
        for binding in bindings.iter().filter(|b| b.source == name) {
            match matches(here.routing_type(), &binding.routing_key, key) {
                Some(true) if binding.destination_type == "queue" => {
                    found.queues.insert(binding.destination.clone());
                }
                Some(true) => {
                    if seen.insert(binding.destination.clone()) {
                        todo.push(binding.destination.clone());
                    }
                }
                Some(false) => {}
                None => {
                    found.undecided.insert(name.clone());
                }
            }
        }
    }
    found
}

/// Whether a binding takes a key; `None` where the exchange's type doesn't tell.
fn matches(exchange_type: &str, binding_key: &str, key: &str) -> Option<bool> {
    match exchange_type {
        "fanout" => Some(true),
        "direct" => Some(binding_key == key),
        "topic" => Some(topic(binding_key, key)),
        _ => None,
    }
}

/// AMQP topic matching: `*` is one word, `#` any number. One pass over a row of states, so that no pattern is slow.
fn topic(pattern: &str, key: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('.').collect();
    // an empty key has no word, as the broker splits it
    let words: Vec<&str> = if key.is_empty() { Vec::new() } else { key.split('.').collect() };
    let pattern = if pattern == [""] { Vec::new() } else { pattern };
    // states[i]: the first i parts of the pattern match the words so far
    let mut states = vec![false; pattern.len() + 1];
    states[0] = true;
    let skip_hashes = |states: &mut Vec<bool>| {
        for (i, part) in pattern.iter().enumerate() {
            if states[i] && *part == "#" {
                states[i + 1] = true;
            }
        }
    };
    skip_hashes(&mut states);
    for word in words {
        let mut next = vec![false; pattern.len() + 1];
        for (i, part) in pattern.iter().enumerate().filter(|(i, _)| states[*i]) {
            match *part {
                "#" => next[i] = true,
                "*" => next[i + 1] = true,
                literal if literal == word => next[i + 1] = true,
                _ => {}
            }
        }
        states = next;
        skip_hashes(&mut states);
    }
    states[pattern.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(name: &str, exchange_type: &str) -> Exchange {
        Exchange { name: name.into(), exchange_type: exchange_type.into(), ..Exchange::default() }
    }

    fn binding(source: &str, kind: &str, destination: &str, key: &str) -> Binding {
        Binding {
            source: source.into(),
            destination_type: kind.into(),
            destination: destination.into(),
            routing_key: key.into(),
            ..Binding::default()
        }
    }

    #[test]
    fn topic_keys_match_as_the_broker_matches_them() {
        let cases = [
            ("#", "", true),
            ("#", "a.b", true),
            ("*", "", false),
            ("*", "a", true),
            ("a.*", "a", false),
            ("a.#", "a", true),
            ("a.#.b", "a.b", true),
            ("a.#.b", "a.x.y.b", true),
            ("a.#.b", "a.x.y", false),
            ("#.#", "a", true),
            ("a.*.c", "a.b.c", true),
            ("a.*.c", "a.b.b.c", false),
            ("", "", true),
            ("", "a", false),
            ("a.b", "a.b", true),
        ];
        for (pattern, key, want) in cases {
            assert_eq!(topic(pattern, key), want, "{pattern} {key}");
        }
    }

    #[test]
    fn receivers_follow_exchanges_and_survive_cycles() {
        let exchanges =
            [exchange("d", "direct"), exchange("t", "topic"), exchange("f", "fanout"), exchange("h", "headers")];
        let bindings = [
            binding("d", "queue", "q1", "k"),
            binding("d", "queue", "q2", "other"),
            binding("d", "exchange", "f", "k"),
            binding("f", "queue", "q3", ""),
            binding("f", "exchange", "d", ""),
            binding("t", "exchange", "h", "k.#"),
            binding("h", "queue", "q4", ""),
        ];
        let queues = BTreeSet::from(["q1".to_owned()]);
        let of = |exchange: &str, key: &str| receivers(exchange, key, &exchanges, &bindings, &queues);
        assert_eq!(of("d", "k").queues, BTreeSet::from(["q1".to_owned(), "q3".to_owned()]));
        assert!(of("d", "other").are_exactly("q2"));
        assert!(of("", "q1").are_exactly("q1"));
        assert_eq!(of("", "gone"), Receivers::default());
        assert!(of("gone", "k").no_exchange);
        assert_eq!(of("t", "k.x").undecided, BTreeSet::from(["h".to_owned()]));
    }
}
