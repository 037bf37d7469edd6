//! How often custody may be cut off over the same messages before it stops by itself (RULES 2; BROKER.md, "Dead-lettering").
//!
//! A quorum queue drops a message that came back more often than its delivery limit. Each consumer of ours that ends
//! without an acknowledgement gives back what it was handed, so the number of consumers since the queue's head was last
//! seen to be new is a bound on how often any message on it came back through us. It is written before each consumer
//! opens: a process that is killed at once is counted too.

/// What a quorum queue of RabbitMQ 4 has by itself; what is assumed where nothing is known.
pub const DEFAULT_LIMIT: u32 = 20;

/// How often a message may come back before the broker takes it off the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryLimit {
    /// As often as it likes.
    Unlimited,
    /// Once more, and it is gone.
    At(u32),
    /// The broker couldn't be asked: [`DEFAULT_LIMIT`] is assumed.
    Unknown,
}

impl DeliveryLimit {
    /// The number to keep away from.
    #[must_use]
    pub const fn assumed(self) -> Option<u32> {
        match self {
            Self::Unlimited => None,
            Self::At(limit) => Some(limit),
            Self::Unknown => Some(DEFAULT_LIMIT),
        }
    }
}

/// What custody knows of the messages on a dead-letter queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GivenBack {
    /// No message came back through custody more often.
    pub at_most: u32,
    /// How many of these a person excused by switching custody on again.
    pub excused: u32,
}

/// Whether another consumer may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It may.
    Open,
    /// Not until a person switches custody off and on, or the limit is raised.
    Ask,
    /// Not under this limit, whoever asks: the next return may be a message's last.
    Never,
}

/// Judges whether another consumer may open: two fifths of the limit at a time, and never the last two. One of them is
/// for the return that RabbitMQ 4 counts for the dead-lettering itself.
#[must_use]
pub fn next(known: GivenBack, limit: DeliveryLimit) -> Next {
    let Some(limit) = limit.assumed() else { return Next::Open };
    let (at_a_time, ever) = ((limit * 2 / 5).max(1), limit.saturating_sub(2).max(1));
    if known.at_most >= ever {
        Next::Never
    } else if known.at_most.saturating_sub(known.excused) >= at_a_time {
        Next::Ask
    } else {
        Next::Open
    }
}

/// Whether a delivery was never given back by us: RabbitMQ 4 counts the dead-lettering itself. Returned messages go
/// before new ones, so once such a one is acknowledged, with all before it, none that came back is left.
#[must_use]
pub const fn is_new(delivery_count: Option<i64>) -> bool {
    matches!(delivery_count, None | Some(i64::MIN..=1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known(at_most: u32, excused: u32) -> GivenBack {
        GivenBack { at_most, excused }
    }

    #[test]
    fn it_asks_early_and_never_takes_the_last_returns() {
        for (limit, at_most, excused, want) in [
            (DeliveryLimit::At(20), 0, 0, Next::Open),
            (DeliveryLimit::At(20), 7, 0, Next::Open),
            (DeliveryLimit::At(20), 8, 0, Next::Ask),
            (DeliveryLimit::At(20), 8, 8, Next::Open),
            (DeliveryLimit::At(20), 16, 8, Next::Ask),
            (DeliveryLimit::At(20), 17, 16, Next::Open),
            (DeliveryLimit::At(20), 18, 18, Next::Never),
            (DeliveryLimit::At(3), 0, 0, Next::Open),
            (DeliveryLimit::At(3), 1, 1, Next::Never),
            (DeliveryLimit::At(0), 0, 0, Next::Open),
            (DeliveryLimit::At(0), 1, 0, Next::Never),
            (DeliveryLimit::Unknown, 8, 0, Next::Ask),
            (DeliveryLimit::Unlimited, 1_000_000, 0, Next::Open),
        ] {
            assert_eq!(next(known(at_most, excused), limit), want, "{limit:?}, {at_most} of which {excused}");
        }
    }

    #[test]
    fn the_broker_counts_the_dead_lettering_itself() {
        assert!(is_new(None) && is_new(Some(0)) && is_new(Some(1)));
        assert!(!is_new(Some(2)));
    }

    proptest! {
        /// However often people excuse it, no message comes back more often than the limit lets it, its dead-lettering
        /// counted as one.
        #[test]
        fn nothing_is_dropped(limit in 3_u32..200, excuses in proptest::collection::vec(any::<bool>(), 0..400)) {
            let mut known = GivenBack::default();
            for excuse in excuses {
                match next(known, DeliveryLimit::At(limit)) {
                    Next::Open => known.at_most += 1,
                    Next::Ask if excuse => known.excused = known.at_most,
                    Next::Ask | Next::Never => {}
                }
                prop_assert!(1 + known.at_most < limit);
            }
        }
    }
}
