//! Owners of a replay: fencing, generation, lane (RULES 3 and 7).

use crate::ids::CohortId;
use crate::recheck::Lane;

/// How an epoch that a cohort had stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch {
    /// Its number; rises at each takeover and each restart.
    pub number: i64,
    /// It said *stopped*: nothing unsent, every publish answered. It never writes `publishing` again.
    pub stopped: bool,
    /// Its publish connection was closed at the broker and is seen gone.
    pub seen_gone: bool,
}

/// Whether nothing may go out any more: every epoch stopped, or its connection is seen gone. A cohort that never had
/// an epoch published nothing.
pub fn fenced(epochs: &[Epoch]) -> bool {
    unfenced(epochs).next().is_none()
}

/// The epochs of which something may still go out.
pub fn unfenced(epochs: &[Epoch]) -> impl Iterator<Item = &Epoch> {
    epochs.iter().filter(|epoch| !epoch.stopped && !epoch.seen_gone)
}

/// Whether `epoch` may write `publishing`: it is the newest, hasn't stopped, and every older one is fenced.
pub fn may_publish(epochs: &[Epoch], epoch: i64) -> bool {
    let newest = epochs.iter().max_by_key(|e| e.number);
    let alive = newest.is_some_and(|e| e.number == epoch && !e.stopped && !e.seen_gone);
    alive && unfenced(epochs).all(|e| e.number == epoch)
}

/// What a generation has to rise above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GenerationFacts {
    /// The source queue's counter.
    pub source: i64,
    /// The target queue's counter.
    pub target: i64,
    /// The highest generation that our own redrive ids carry on the items. A header that no cohort owns doesn't count.
    pub on_items: i64,
    /// The highest generation of every earlier item of the items' jobs.
    pub of_jobs: i64,
}

/// The generation to allocate, to be written to both counters: it rises strictly; gaps are allowed, reuse isn't.
/// `None` at the end of the numbers.
pub fn next_generation(facts: GenerationFacts) -> Option<i64> {
    let highest = facts.source.max(facts.target).max(facts.on_items).max(facts.of_jobs).max(0);
    highest.checked_add(1)
}

/// How the lane stands for `cohort`, given the cohort that holds it.
pub fn lane(holder: Option<CohortId>, cohort: CohortId) -> Lane {
    match holder {
        None => Lane::Free,
        Some(holder) if holder == cohort => Lane::Ours,
        Some(_) => Lane::Taken,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn epoch(number: i64, stopped: bool, seen_gone: bool) -> Epoch {
        Epoch { number, stopped, seen_gone }
    }

    #[test]
    fn fencing() {
        assert!(fenced(&[]));
        assert!(fenced(&[epoch(1, true, false), epoch(2, false, true)]));
        assert!(!fenced(&[epoch(1, false, false), epoch(2, true, true)]));
    }

    #[test]
    fn only_the_newest_publishes_and_only_when_the_rest_is_fenced() {
        let cases = [
            (vec![], 1, false),
            (vec![epoch(1, false, false)], 1, true),
            (vec![epoch(1, true, false)], 1, false),
            (vec![epoch(1, false, true)], 1, false),
            (vec![epoch(1, false, false), epoch(2, false, false)], 2, false),
            (vec![epoch(1, false, true), epoch(2, false, false)], 2, true),
            (vec![epoch(1, false, true), epoch(2, false, false)], 1, false),
            (vec![epoch(2, false, false), epoch(1, true, false)], 2, true),
        ];
        for (epochs, number, want) in cases {
            assert_eq!(may_publish(&epochs, number), want, "{epochs:?} {number}");
        }
    }

    #[test]
    fn lanes() {
        let (a, b) = (CohortId(Uuid::from_u128(1)), CohortId(Uuid::from_u128(2)));
        assert_eq!([lane(None, a), lane(Some(a), a), lane(Some(b), a)], [Lane::Free, Lane::Ours, Lane::Taken]);
    }

    proptest! {
        #[test]
        fn generations_rise_above_everything(source in 0..1_000_i64, target in 0..1_000_i64, on_items in 0..1_000_i64, of_jobs in 0..1_000_i64) {
            let next = next_generation(GenerationFacts { source, target, on_items, of_jobs }).unwrap();
            prop_assert!([source, target, on_items, of_jobs].into_iter().all(|n| n < next));
            prop_assert!([source, target, on_items, of_jobs].into_iter().any(|n| n + 1 == next));
        }
    }

    #[test]
    fn generations_end_without_wrapping() {
        assert_eq!(next_generation(GenerationFacts::default()), Some(1));
        assert_eq!(next_generation(GenerationFacts { of_jobs: i64::MAX, ..GenerationFacts::default() }), None);
    }
}
