//! Live pages: one stream of "changed" notes per window; what is shown is read again when its topic changed. A page is
//! live only while its stream is open *and* what it shows could be read: either failure is told, with the age.

use crate::{
    api::Answer,
    clock::{Clock, use_clock},
};
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

/// The stream of this window, and which readings failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Live {
    /// How the stream is.
    pub(crate) connection: RwSignal<Connection>,
    ticks: [RwSignal<u32>; 5],
    blind: RwSignal<Vec<Blind>>,
    next_reader: StoredValue<usize>,
}

/// A reading that failed: what it shows is as of then.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Blind {
    reader: usize,
    as_of: OffsetDateTime,
    why: String,
}

impl Live {
    fn new() -> Self {
        Self {
            connection: RwSignal::new(Connection::Connecting),
            ticks: std::array::from_fn(|_| RwSignal::new(0)),
            blind: RwSignal::new(Vec::new()),
            next_reader: StoredValue::new(0),
        }
    }

    /// Makes the stream available to every page, and opens it in the browser.
    pub(crate) fn provide() {
        let live = Self::new();
        provide_context(live);
        #[cfg(feature = "hydrate")]
        stream::open(live);
    }

    /// Since when something on the page couldn't be read again, and why.
    pub(crate) fn blind(self) -> Option<(OffsetDateTime, String)> {
        self.blind.with(|blind| blind.iter().min_by_key(|one| one.as_of).map(|one| (one.as_of, one.why.clone())))
    }

    /// Rises whenever one of the topics changed.
    fn changed(self, topics: &[Topic]) -> u32 {
        topics.iter().fold(0, |sum, topic| sum.wrapping_add(self.ticks[*topic as usize].get()))
    }
}

/// The stream of this window.
pub(crate) fn use_live() -> Live {
    use_context::<Live>().unwrap_or_else(Live::new)
}

/// Something that a page reads again and again; the frame tells while its last try failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader {
    live: Live,
    clock: Clock,
    id: usize,
    as_of: RwSignal<OffsetDateTime>,
    /// How often it was asked, and the latest of these whose answer was taken.
    turns: StoredValue<(u32, u32)>,
}

impl Reader {
    /// What is shown is as of now: the page was rendered with it.
    pub(crate) fn new() -> Self {
        let (live, clock) = (use_live(), use_clock());
        let id = live.next_reader.get_value();
        live.next_reader.set_value(id + 1);
        let reader =
            Self { live, clock, id, as_of: RwSignal::new(clock.now_untracked()), turns: StoredValue::new((0, 0)) };
        on_cleanup(move || reader.forget());
        reader
    }

    /// Reads, and hands over what was read while the page that asked is still there, and unless a later reading was faster.
    pub(crate) fn read<T: 'static>(
        self,
        answer: impl Future<Output = Answer<T>> + 'static,
        take: impl FnOnce(T) + 'static,
    ) {
        let turn = self.next_turn();
        leptos::task::spawn_local(async move {
            let answer = answer.await;
            if !self.is_due(turn) {
                return;
            }
            let failed = answer.as_ref().err().map(|problem| problem.detail.as_str());
            let told = self.told(failed);
            if let (true, Ok(fresh)) = (told, answer) {
                take(fresh);
            }
        });
    }

    fn next_turn(self) -> u32 {
        let (asked, taken) = self.turns.get_value();
        self.turns.set_value((asked + 1, taken));
        asked + 1
    }

    /// Whether no later answer was taken before; then this one is.
    fn is_due(self, turn: u32) -> bool {
        let Some((asked, taken)) = self.turns.try_get_value() else { return false };
        if turn > taken {
            self.turns.set_value((asked, turn));
        }
        turn > taken
    }

    /// Notes how a try went; whether the page that asked is still there.
    pub(crate) fn told(self, failed: Option<&str>) -> bool {
        let Some(as_of) = self.as_of.try_get_untracked() else { return false };
        match failed {
            Some(why) => {
                let blind = Blind { reader: self.id, as_of, why: why.to_owned() };
                if self.live.blind.with_untracked(|all| !all.contains(&blind)) {
                    self.live.blind.update(|all| {
                        all.retain(|one| one.reader != self.id);
                        all.push(blind);
                    });
                }
            }
            None => {
                self.as_of.set(self.clock.now_untracked());
                self.forget();
            }
        }
        true
    }

    fn forget(self) {
        let listed = self.live.blind.try_with_untracked(|all| all.iter().any(|one| one.reader == self.id));
        if listed == Some(true) {
            self.live.blind.update(|all| all.retain(|one| one.reader != self.id));
        }
    }
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
/// last value, and the frame tells how old it is.
pub(crate) fn keep_fresh<T, F>(value: RwSignal<T>, topics: &'static [Topic], read: impl Fn() -> F + 'static)
where
    T: Clone + PartialEq + Send + Sync + 'static,
    F: Future<Output = Answer<T>> + 'static,
{
    let reader = Reader::new();
    on_change(topics, move || {
        reader.read(read(), move |fresh| {
            if value.try_get_untracked().is_some_and(|shown| shown != fresh) {
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

    /// What couldn't be read is tried again this often.
    const AGAIN: Duration = Duration::from_secs(5);

    /// A stream that hasn't opened by then is lost.
    const OPENS_WITHIN: Duration = Duration::from_secs(5);

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
        let rendered = clock.now_untracked();
        set_timeout(
            move || {
                if live.connection.try_get_untracked() == Some(Connection::Connecting) {
                    live.connection.set(Connection::Lost { since: rendered });
                }
            },
            OPENS_WITHIN,
        );
        if let Ok(timer) = set_interval_with_handle(
            move || {
                if live.blind.try_with_untracked(|blind| !blind.is_empty()) == Some(true) {
                    mark([true; 5]);
                }
            },
            AGAIN,
        ) {
            on_cleanup(move || timer.clear());
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use time::{Duration, macros::datetime};

    const START: OffsetDateTime = datetime!(2026-12-02 03:00:00 UTC);

    fn page() -> (Live, RwSignal<OffsetDateTime>) {
        let (live, now) = (Live::new(), RwSignal::new(START));
        provide_context(live);
        provide_context(Clock::of(now));
        (live, now)
    }

    #[test]
    fn the_page_is_blind_since_the_oldest_reading_that_failed() {
        Owner::new().with(|| {
            let (live, now) = page();
            let (one, other) = (Reader::new(), Reader::new());
            let after = |seconds| now.set(START + Duration::seconds(seconds));
            assert_eq!(live.blind(), None);

            after(9);
            one.told(None);
            after(10);
            one.told(Some("no database"));
            assert_eq!(live.blind(), Some((START + Duration::seconds(9), "no database".to_owned())));
            other.told(Some("no answer"));
            assert_eq!(live.blind(), Some((START, "no answer".to_owned())), "it was never read since the rendering");

            other.told(None);
            one.told(Some("no database"));
            assert_eq!(live.blind().map(|(as_of, _)| as_of), Some(START + Duration::seconds(9)));
            one.told(None);
            assert_eq!(live.blind(), None);
        });
    }

    #[test]
    fn an_answer_that_was_overtaken_is_not_taken() {
        Owner::new().with(|| {
            page();
            let reader = Reader::new();
            let (first, second, third) = (reader.next_turn(), reader.next_turn(), reader.next_turn());
            assert!(reader.is_due(second));
            assert!(!reader.is_due(first), "a later question was answered");
            assert!(reader.is_due(third));
        });
    }

    #[test]
    fn a_reading_that_left_the_page_is_not_missed() {
        Owner::new().with(|| {
            let (live, _) = page();
            let part = Owner::new();
            let reader = part.with(Reader::new);
            reader.told(Some("no answer"));
            assert!(live.blind().is_some());
            part.cleanup();
            assert_eq!(live.blind(), None);
            assert!(!reader.told(Some("late")), "nobody is there to be told");
            assert_eq!(live.blind(), None);
        });
    }
}
