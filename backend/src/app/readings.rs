//! Live readings of a queue: each with source and age, or with the reason why it is unknown. Never a made-up 0.

use crate::store::readings::FromEvents;
use domain::api::{ClassRate, QueueReadings, Reading, Thousandths};
use time::{Duration, OffsetDateTime};

/// A feed that was silent for longer says nothing of now.
const FEED_ALIVE: Duration = Duration::minutes(10);

/// Puts together what the broker and the workers say.
#[must_use]
pub fn of(
    broker: Result<&crate::broker::management::Queue, &'static str>,
    events: &FromEvents,
    now: OffsetDateTime,
) -> QueueReadings {
    let count = |value: Option<i64>| value.and_then(|value| i32::try_from(value).ok()).map(f64::from);
    let managed = |value: Option<f64>, why| Reading {
        value,
        source: "management".to_owned(),
        as_of: value.map(|_| now.into()),
        reason: value.is_none().then_some(why),
    };
    let from_broker = |read: &dyn Fn(&crate::broker::management::Queue) -> Option<f64>| match broker {
        Ok(queue) => managed(read(queue), "no_samples".to_owned()),
        Err(why) => managed(None, why.to_owned()),
    };
    let silent = silence(events);
    let told = |value: Option<f64>| {
        let value = if silent.is_some() { None } else { value };
        Reading {
            value,
            source: "events".to_owned(),
            as_of: value.and(events.now).map(Into::into),
            reason: value.is_none().then(|| silent.unwrap_or("no_samples").to_owned()),
        }
    };
    QueueReadings {
        ready: from_broker(&|queue| count(queue.messages_ready)),
        unacknowledged: from_broker(&|queue| count(queue.messages_unacknowledged)),
        // a queue that nothing was published to has no such series yet: the broker says nothing, which isn't 0
        arrival_per_s: from_broker(&|queue| queue.rate("publish")),
        // a live feed with no unfinished job: nothing waits
        healthy_age_s: told(Some(events.healthy_age_s.unwrap_or(0.0).max(0.0))),
        in_flight: told(count(Some(events.in_flight))),
        retries_by_class: events
            .failures
            .iter()
            .map(|(class, count)| ClassRate { error_class: class.clone(), per_s: Thousandths(count * 1_000 / 60) })
            .collect(),
        retries_by_class_reason: silent.filter(|_| events.failures.is_empty()).map(str::to_owned),
        consuming_versions_reason: events.versions.is_empty().then(|| silent.unwrap_or("no_samples").to_owned()),
        consuming_versions: events.versions.clone(),
    }
}

fn silence(events: &FromEvents) -> Option<&'static str> {
    match (events.last_event_at, events.now) {
        (None, _) => Some("no_event_feed"),
        (Some(last), Some(now)) if now - last > FEED_ALIVE => Some("stale"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_feed_says_nothing_of_failures() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(1);
        let retries = |last_event_at, failures: Vec<(String, i64)>| {
            let events = FromEvents { last_event_at, now: Some(now), failures, ..FromEvents::default() };
            let readings = of(Err("no_management_api"), &events, now);
            (readings.retries_by_class.len(), readings.retries_by_class_reason)
        };
        assert_eq!(retries(None, vec![]), (0, Some("no_event_feed".to_owned())));
        assert_eq!(retries(Some(now - Duration::minutes(11)), vec![]), (0, Some("stale".to_owned())));
        assert_eq!(retries(Some(now - Duration::minutes(9)), vec![]), (0, None), "a live feed: none failed");
        assert_eq!(retries(Some(now), vec![("timeout".to_owned(), 6)]), (1, None));
    }
}
