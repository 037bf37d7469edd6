//! How many deliveries may be unacknowledged: by count, since RabbitMQ refuses a byte prefetch (RULES 2).

/// Bytes that may be on the way.
const BYTES: u64 = 64 * 1024 * 1024;
const FEWEST: u16 = 4;
const MOST: u16 = 2_000;
/// A message that was given back this often gets company of [`FEWEST`] only: on RabbitMQ 4 the twentieth loss drops it
/// where its queue dead-letters nowhere (BROKER.md, "Consuming with lapin").
const MANY_RETURNS: i64 = 8;

/// Starts small and grows by what was seen.
#[derive(Debug)]
pub(super) struct Prefetch {
    now: u16,
    largest: u64,
}

impl Prefetch {
    pub(super) const fn new() -> Self {
        Self { now: FEWEST, largest: 1 }
    }

    /// The count for the next consume.
    pub(super) const fn count(&self) -> u16 {
        self.now
    }

    /// Takes a batch's largest body and highest delivery count into account; the count that a new consume should have,
    /// where it differs enough to be worth one.
    pub(super) fn after(&mut self, largest_body: usize, returns: Option<i64>) -> Option<u16> {
        self.largest = self.largest.max(largest_body as u64);
        let fits = u16::try_from(BYTES / self.largest).unwrap_or(u16::MAX).clamp(FEWEST, MOST);
        let goal = if returns.is_some_and(|returns| returns >= MANY_RETURNS) { FEWEST } else { fits };
        // four-fold at most, so that a first large body meets few neighbours
        let next = goal.min(self.now.saturating_mul(4));
        if next == self.now {
            return None;
        }
        self.now = next;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_small_grows_and_shrinks_by_the_largest_body() {
        let mut prefetch = Prefetch::new();
        let grown: Vec<_> = (0..7).map(|_| prefetch.after(100, None)).collect();
        assert_eq!(grown, [Some(16), Some(64), Some(256), Some(1_024), Some(2_000), None, None]);
        assert_eq!(prefetch.after(1024 * 1024, None), Some(64));
        assert_eq!(prefetch.after(50 * 1024 * 1024, None), Some(4));
        assert_eq!(prefetch.after(1, None), None, "the largest seen counts");
    }

    #[test]
    fn a_message_that_came_back_often_has_little_company() {
        let mut prefetch = Prefetch::new();
        prefetch.after(1, None);
        assert_eq!(prefetch.after(1, Some(8)), Some(4));
        assert_eq!(prefetch.after(1, Some(7)), Some(16));
    }
}
