//! The time now, as the server has it: pages judge ages by the server's clock, also after hydration.

use leptos::prelude::*;
use time::OffsetDateTime;

/// The server's time when a page was rendered; handed in at the edge.
#[derive(Debug, Clone, Copy)]
pub struct RenderedAt(pub OffsetDateTime);

/// Now, by the server's clock; ticks every second in the browser.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(RwSignal<OffsetDateTime>);

impl Clock {
    /// Starts at the time that the page was rendered at.
    pub(crate) fn provide() {
        let rendered =
            SharedValue::new(|| use_context::<RenderedAt>().map_or(0, |at| at.0.unix_timestamp_nanos() / 1_000_000))
                .into_inner();
        let now = RwSignal::new(from_millis(rendered));
        provide_context(Self(now));

        #[cfg(feature = "hydrate")]
        {
            // what the two clocks differ by; the way of the page itself adds some hundred milliseconds
            #[expect(clippy::cast_possible_truncation, reason = "milliseconds of this millennium")]
            let browser = || js_sys::Date::now() as i128;
            let ahead = rendered - browser();
            set_interval(move || now.set(from_millis(browser() + ahead)), std::time::Duration::from_secs(1));
        }
    }

    /// One that a test sets.
    #[cfg(test)]
    pub(crate) const fn of(now: RwSignal<OffsetDateTime>) -> Self {
        Self(now)
    }

    /// Now, tracked.
    pub(crate) fn now(self) -> OffsetDateTime {
        self.0.get()
    }

    /// Now, untracked.
    pub(crate) fn now_untracked(self) -> OffsetDateTime {
        self.0.get_untracked()
    }
}

/// The clock of this page.
pub(crate) fn use_clock() -> Clock {
    use_context::<Clock>().unwrap_or_else(|| Clock(RwSignal::new(OffsetDateTime::UNIX_EPOCH)))
}

fn from_millis(millis: i128) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(millis * 1_000_000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
