//! Live pages: one stream of "changed" notes per window; what is shown is read again when its topic changed.

use leptos::prelude::*;
use time::OffsetDateTime;

/// What a note can be about; the `topic` of `GET /stream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    Queues,
    Quarantine,
    Cohorts,
    Audit,
    Freeze,
}

impl Topic {
    #[cfg_attr(not(feature = "hydrate"), expect(dead_code, reason = "only browsers stream"))]
    const ALL: [Self; 5] = [Self::Queues, Self::Quarantine, Self::Cohorts, Self::Audit, Self::Freeze];

    #[cfg_attr(not(feature = "hydrate"), expect(dead_code, reason = "only browsers stream"))]
    const fn as_str(self) -> &'static str {
        match self {
            Self::Queues => "queues",
            Self::Quarantine => "quarantine",
            Self::Cohorts => "cohorts",
            Self::Audit => "audit",
            Self::Freeze => "freeze",
        }
    }
}

/// How the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connection {
    /// Before the first answer; also all that a page without scripts knows.
    Connecting,
    /// Notes arrive.
    #[cfg_attr(not(feature = "hydrate"), expect(dead_code, reason = "only browsers stream"))]
    Live,
    /// Lost; tried again without end.
    #[cfg_attr(not(feature = "hydrate"), expect(dead_code, reason = "only browsers stream"))]
    Lost {
        /// Until when the page was live, by the page's clock.
        since: OffsetDateTime,
    },
}

/// The stream of this window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Live {
    /// How the stream is.
    pub(crate) connection: RwSignal<Connection>,
    ticks: [RwSignal<u32>; 5],
}

impl Live {
    /// Makes the stream available to every page, and opens it in the browser.
    pub(crate) fn provide() {
        let live = Self {
            connection: RwSignal::new(Connection::Connecting),
            ticks: std::array::from_fn(|_| RwSignal::new(0)),
        };
        provide_context(live);
        #[cfg(feature = "hydrate")]
        stream::open(live);
    }

    /// Rises whenever one of the topics changed.
    fn changed(self, topics: &[Topic]) -> u32 {
        topics.iter().fold(0, |sum, topic| sum.wrapping_add(self.ticks[*topic as usize].get()))
    }
}

/// The stream of this window.
pub(crate) fn use_live() -> Live {
    use_context::<Live>().unwrap_or_else(|| Live {
        connection: RwSignal::new(Connection::Connecting),
        ticks: std::array::from_fn(|_| RwSignal::new(0)),
    })
}

/// Calls `read` whenever one of the topics changed. It isn't called for what the page starts with.
pub(crate) fn on_change(topics: &'static [Topic], read: impl Fn() + 'static) {
    let live = use_live();
    Effect::new(move |before: Option<u32>| {
        let tick = live.changed(topics);
        if before.is_some_and(|before| before != tick) {
            untrack(&read);
        }
        tick
    });
}

/// Keeps `value` fresh: when one of the topics changed, what `read` answers takes its place. A failed read leaves the
/// last value; the live indicator tells of a lost connection.
pub(crate) fn keep_fresh<T, F>(value: RwSignal<T>, topics: &'static [Topic], read: impl Fn() -> F + 'static)
where
    T: Clone + PartialEq + Send + Sync + 'static,
    F: Future<Output = crate::api::Answer<T>> + 'static,
{
    on_change(topics, move || {
        let answer = read();
        leptos::task::spawn_local(async move {
            if let Ok(fresh) = answer.await
                && value.try_get_untracked().is_some_and(|shown| shown != fresh)
            {
                value.try_set(fresh);
            }
        });
    });
}

#[cfg(feature = "hydrate")]
mod stream {
    use super::{Connection, Live, Topic};
    use crate::clock::use_clock;
    use codee::string::JsonSerdeCodec;
    use domain::api::Changed;
    use leptos::prelude::*;
    use leptos_use_event_source::{
        ReconnectLimit, UseEventSourceOnEventReturn, UseEventSourceOptions, UseEventSourceReturn,
        use_event_source_with_options,
    };
    use std::time::Duration;
    use wasm_bindgen::JsCast as _;

    /// A burst of notes is one read: they are gathered for this long.
    const GATHER: Duration = Duration::from_millis(250);

    pub(super) fn open(live: Live) {
        let topics = Topic::ALL.map(|topic| format!("topics={}", topic.as_str())).join("&");
        let pending = StoredValue::new([false; 5]);
        let scheduled = StoredValue::new(false);
        let mark = move |which: [bool; 5]| {
            pending.update_value(|pending| {
                for (at, one) in which.into_iter().enumerate() {
                    pending[at] |= one;
                }
            });
            if scheduled.get_value() {
                return;
            }
            scheduled.set_value(true);
            set_timeout(
                move || {
                    scheduled.set_value(false);
                    let due = pending.get_value();
                    pending.set_value([false; 5]);
                    for (at, tick) in live.ticks.iter().enumerate().filter(|(at, _)| due[*at]) {
                        debug_assert!(at < 5);
                        tick.update(|tick| *tick = tick.wrapping_add(1));
                    }
                },
                GATHER,
            );
        };
        let on_event = move |event: &web_sys::Event| {
            if let Some(message) = event.dyn_ref::<web_sys::MessageEvent>() {
                let note = message.data().as_string().and_then(|data| serde_json::from_str::<Changed>(&data).ok());
                match note {
                    Some(note) => mark(Topic::ALL.map(|topic| topic.as_str() == note.topic)),
                    // a note that can't be read means that something changed
                    None => mark([true; 5]),
                }
            }
            UseEventSourceOnEventReturn::IgnoreProcessingMessage
        };
        let options = UseEventSourceOptions::default()
            .reconnect_limit(ReconnectLimit::Infinite)
            .reconnect_interval(2000)
            .named_events(["changed".to_owned()])
            .on_event(on_event);
        let UseEventSourceReturn { ready_state, .. } =
            use_event_source_with_options::<Changed, JsonSerdeCodec>(format!("/api/v1/stream?{topics}"), options);
        let clock = use_clock();
        Effect::new(move |_| {
            use leptos_use_event_source::ConnectionReadyState as State;
            match ready_state.get() {
                State::Open => {
                    live.connection.set(Connection::Live);
                    // what changed while nobody listened
                    mark([true; 5]);
                }
                State::Connecting | State::Closing => {}
                State::Closed => {
                    if live.connection.get_untracked() == Connection::Live {
                        live.connection.set(Connection::Lost { since: clock.now_untracked() });
                    }
                }
            }
        });
    }
}
