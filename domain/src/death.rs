//! What a dead letter says of its deaths: `x-death`, `x-first-death-*`, `x-last-death-*`, in any shape.
//!
//! Brokers write `x-death` newest first, one entry per (queue, reason), `count` merged, `time` that of the pair's
//! *first* death (BROKER.md, "Dead-lettering"). Clients may send anything under these names, so that nothing here is
//! taken for granted: what can't be read is `None`. Linear in the size of the headers.

use std::collections::HashMap;

use crate::amqp::{Table, Value};

/// The deaths of one message, as its headers tell them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Deaths {
    /// The shape that `x-death` came in.
    pub shape: Shape,
    /// The readable entries, in the order they arrived: the broker's is newest first.
    pub entries: Vec<Death>,
    /// `x-first-death-queue`.
    pub first_queue: Option<Vec<u8>>,
    /// `x-first-death-reason`.
    pub first_reason: Option<Vec<u8>>,
    /// `x-first-death-exchange`.
    pub first_exchange: Option<Vec<u8>>,
    /// `x-last-death-queue` (from RabbitMQ 3.13).
    pub last_queue: Option<Vec<u8>>,
    /// `x-last-death-reason` (from RabbitMQ 3.13).
    pub last_reason: Option<Vec<u8>>,
}

/// The shape that `x-death` came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shape {
    /// No such header.
    #[default]
    Missing,
    /// A list, as brokers write it; also an empty one.
    List,
    /// One table where the list should be.
    SingleTable,
    /// Anything else.
    Unreadable,
}

/// One entry of `x-death`; what is missing or of an impossible type is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Death {
    /// The queue that the message died in.
    pub queue: Option<Vec<u8>>,
    /// `rejected`, `expired`, `maxlen`, `delivery_limit` from brokers.
    pub reason: Option<Vec<u8>>,
    /// The exchange that it had been published to; empty means the default exchange.
    pub exchange: Option<Vec<u8>>,
    /// The primary routing key first, then those of CC.
    pub routing_keys: Vec<Vec<u8>>,
    /// Seconds since 1970 of the *first* death of this queue and reason.
    pub time: Option<u64>,
    /// How often it died there for this reason.
    pub count: Option<u64>,
    /// The expiration that the broker took off.
    pub original_expiration: Option<Vec<u8>>,
}

/// Which queue a dead letter belongs to, and by which fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belongs<'a> {
    /// `x-last-death-queue` names it.
    LastDeath(&'a [u8]),
    /// The newest entry of `x-death` names it.
    NewestEntry(&'a [u8]),
    /// Nothing does: held, not redrivable until a person assigns it.
    Unattributed,
}

/// Where the message was first published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The exchange; empty means the default exchange.
    pub exchange: &'a [u8],
    /// The primary routing key.
    pub routing_key: &'a [u8],
}

/// How often a message died in one queue for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total<'a> {
    /// The queue, where named.
    pub queue: Option<&'a [u8]>,
    /// The reason, where named.
    pub reason: Option<&'a [u8]>,
    /// The sum of the counts; an entry without a readable count stands for one death.
    pub count: u64,
    /// False where an entry had no readable count: the true number may be higher.
    pub exact: bool,
}

impl Deaths {
    /// Reads the deaths out of a message's headers. Of equal keys the first counts, as it does for the broker.
    pub fn read(headers: &Table) -> Self {
        let text = |name: &str| headers.get(name.as_bytes()).and_then(text);
        let (shape, entries) = match headers.get(b"x-death") {
            None => (Shape::Missing, Vec::new()),
            Some(Value::Array(items)) => (Shape::List, items.iter().filter_map(Death::read).collect()),
            Some(table @ Value::Table(_)) => (Shape::SingleTable, Death::read(table).into_iter().collect()),
            Some(_) => (Shape::Unreadable, Vec::new()),
        };
        Self {
            shape,
            entries,
            first_queue: text("x-first-death-queue"),
            first_reason: text("x-first-death-reason"),
            first_exchange: text("x-first-death-exchange"),
            last_queue: text("x-last-death-queue"),
            last_reason: text("x-last-death-reason"),
        }
    }

    /// The queue that this dead letter belongs to (RULES 1): never the *first* death's, since a message that expired
    /// in a retry queue first doesn't belong to that.
    pub fn belongs_to(&self) -> Belongs<'_> {
        if let Some(queue) = &self.last_queue {
            return Belongs::LastDeath(queue);
        }
        match self.entries.first().and_then(|newest| newest.queue.as_deref()) {
            Some(queue) => Belongs::NewestEntry(queue),
            None => Belongs::Unattributed,
        }
    }

    /// The reason of the newest death.
    pub fn reason(&self) -> Option<&[u8]> {
        self.last_reason.as_deref().or_else(|| self.entries.first()?.reason.as_deref())
    }

    /// The entry of the newest death: the one that `x-last-death-*` selects, else the first of the list.
    pub fn newest(&self) -> Option<&Death> {
        match (&self.last_queue, &self.last_reason) {
            (Some(queue), Some(reason)) => {
                self.entries.iter().find(|d| d.queue.as_ref() == Some(queue) && d.reason.as_ref() == Some(reason))
            }
            _ => self.entries.first(),
        }
    }

    /// The entry of the very first death: the one that `x-first-death-queue` and `x-first-death-reason` select. Where
    /// those headers are missing, the only entry is it; of several, none is.
    pub fn first(&self) -> Option<&Death> {
        match (&self.first_queue, &self.first_reason) {
            (Some(queue), Some(reason)) => {
                self.entries.iter().find(|d| d.queue.as_ref() == Some(queue) && d.reason.as_ref() == Some(reason))
            }
            (Some(queue), None) => only(self.entries.iter().filter(|d| d.queue.as_ref() == Some(queue))),
            (None, _) => only(self.entries.iter()),
        }
    }

    /// The original exchange and routing key, from the entry of the first death; `None` is unknown.
    pub fn origin(&self) -> Option<Origin<'_>> {
        let first = self.first()?;
        let exchange = first.exchange.as_deref().or(self.first_exchange.as_deref())?;
        Some(Origin { exchange, routing_key: first.routing_keys.first()? })
    }

    /// Deaths by (queue, reason), in the order they first appear.
    pub fn totals(&self) -> Vec<Total<'_>> {
        let mut totals: Vec<Total<'_>> = Vec::new();
        let mut places = HashMap::new();
        for death in &self.entries {
            let (queue, reason) = (death.queue.as_deref(), death.reason.as_deref());
            let place = *places.entry((queue, reason)).or_insert_with(|| {
                totals.push(Total { queue, reason, count: 0, exact: true });
                totals.len() - 1
            });
            let total = &mut totals[place];
            total.count = total.count.saturating_add(death.count.unwrap_or(1));
            total.exact &= death.count.is_some();
        }
        totals
    }
}

impl Death {
    fn read(value: &Value) -> Option<Self> {
        let Value::Table(table) = value else { return None };
        let field = |name: &str| table.get(name.as_bytes());
        let routing_keys = match field("routing-keys") {
            Some(Value::Array(keys)) => keys.iter().filter_map(text).collect(),
            Some(one) => text(one).into_iter().collect(),
            None => Vec::new(),
        };
        Some(Self {
            queue: field("queue").and_then(text),
            reason: field("reason").and_then(text),
            exchange: field("exchange").and_then(text),
            routing_keys,
            time: field("time").and_then(whole),
            count: field("count").and_then(whole),
            original_expiration: field("original-expiration").and_then(text),
        })
    }
}

fn text(value: &Value) -> Option<Vec<u8>> {
    value.as_bytes().map(<[u8]>::to_vec)
}

fn whole(value: &Value) -> Option<u64> {
    value.as_int().and_then(|n| n.try_into().ok())
}

fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::amqp::{ShortString, strategy};

    fn table(fields: &[(&str, Value)]) -> Table {
        fields.iter().map(|(key, value)| (ShortString::new(*key).unwrap(), value.clone())).collect()
    }

    fn entry(queue: &str, reason: &str, count: Value) -> Value {
        Value::Table(table(&[
            ("queue", Value::text(queue)),
            ("reason", Value::text(reason)),
            ("exchange", Value::text(format!("ex-{queue}"))),
            ("routing-keys", Value::Array(vec![Value::text(format!("key-{queue}")), Value::text("cc")])),
            ("time", Value::Timestamp(100)),
            ("count", count),
        ]))
    }

    fn deaths(fields: &[(&str, Value)]) -> Deaths {
        Deaths::read(&table(fields))
    }

    #[test]
    fn shapes_of_x_death() {
        let one = entry("q", "rejected", Value::I64(1));
        let cases = [
            (None, Shape::Missing, 0),
            (Some(Value::Array(vec![])), Shape::List, 0),
            (Some(Value::Array(vec![one.clone(), Value::text("noise"), Value::Void])), Shape::List, 1),
            (Some(one), Shape::SingleTable, 1),
            (Some(Value::text("dead")), Shape::Unreadable, 0),
            (Some(Value::I32(7)), Shape::Unreadable, 0),
            (Some(Value::Table(Table::new())), Shape::SingleTable, 1),
        ];
        for (value, shape, entries) in cases {
            let headers = value.map(|v| table(&[("x-death", v)])).unwrap_or_default();
            let read = Deaths::read(&headers);
            assert_eq!((read.shape, read.entries.len()), (shape, entries), "{headers:?}");
        }
    }

    #[test]
    fn a_message_that_expired_in_a_retry_queue_first_belongs_to_where_it_died_last() {
        let history = Value::Array(vec![
            entry("orders", "rejected", Value::I64(2)),
            entry("orders.retry", "expired", Value::I64(2)),
        ]);
        let first =
            [("x-first-death-queue", Value::text("orders.retry")), ("x-first-death-reason", Value::text("expired"))];
        // RabbitMQ 3.10 doesn't name the last death; the newest entry does
        let read = deaths(&[("x-death", history.clone()), first[0].clone(), first[1].clone()]);
        assert_eq!(read.belongs_to(), Belongs::NewestEntry(b"orders"));
        assert_eq!(read.reason(), Some(&b"rejected"[..]));
        // the origin is the first death's entry, not [0]
        assert_eq!(read.origin(), Some(Origin { exchange: b"ex-orders.retry", routing_key: b"key-orders.retry" }));

        let read = deaths(&[("x-death", history), ("x-last-death-queue", Value::text("billing"))]);
        assert_eq!(read.belongs_to(), Belongs::LastDeath(b"billing"));
        // two entries and nothing that says which was first: unknown
        assert_eq!(read.origin(), None);
    }

    #[test]
    fn the_default_exchange_is_an_origin() {
        let death = Value::Table(table(&[
            ("queue", Value::text("q")),
            ("exchange", Value::text("")),
            ("routing-keys", Value::Array(vec![Value::text("q")])),
        ]));
        let read = deaths(&[("x-death", Value::Array(vec![death]))]);
        assert_eq!(read.origin(), Some(Origin { exchange: b"", routing_key: b"q" }));
    }

    #[test]
    fn nothing_readable_is_unattributed() {
        for value in [Value::Array(vec![]), Value::text("x"), Value::Table(Table::new())] {
            let read = deaths(&[("x-death", value)]);
            assert_eq!(read.belongs_to(), Belongs::Unattributed);
            assert_eq!(read.origin(), None);
        }
    }

    #[test]
    fn counts_of_any_width() {
        let cases = [
            (Value::I64(3), Some(3)),
            (Value::I32(3), Some(3)),
            (Value::U8(3), Some(3)),
            (Value::I16(-3), None),
            (Value::text("3"), None),
            (Value::Void, None),
        ];
        for (count, want) in cases {
            let read = deaths(&[("x-death", Value::Array(vec![entry("q", "rejected", count)]))]);
            assert_eq!(read.entries[0].count, want);
            assert_eq!(read.totals()[0].exact, want.is_some());
        }
    }

    #[test]
    fn totals_of_five_thousand_bounces_over_forty_queues() {
        let bounces = (0..5_000).map(|n| entry(&format!("q{}", n % 40), "expired", Value::I64(1))).collect();
        let read = deaths(&[("x-death", Value::Array(bounces))]);
        let totals = read.totals();
        assert_eq!(totals.len(), 40);
        assert!(totals.iter().all(|total| total.count == 125 && total.exact));
        assert_eq!(totals[0].queue, Some(&b"q0"[..]));
    }

    proptest! {
        #[test]
        fn any_headers_are_read(value in strategy::value(), mut headers in strategy::table()) {
            headers.push(ShortString::new("x-death").unwrap(), value);
            let read = Deaths::read(&headers);
            let _ = (read.belongs_to(), read.origin(), read.reason(), read.newest(), read.totals());
        }
    }
}
