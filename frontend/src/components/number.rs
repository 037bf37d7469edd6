//! Numbers with unit, age and source; unknowns as a dash with their reason, never as 0.

use crate::{clock::use_clock, format};
use domain::api::Reading;
use leptos::prelude::*;

/// A count.
pub(crate) fn num(value: i64) -> AnyView {
    view! { <span class="num">{format::count(value)}</span> }.into_any()
}

/// An unknown: the dash, a short reason beside it and a longer one on hover.
pub(crate) fn none(reason: impl Into<String>, title: impl Into<String>) -> AnyView {
    let title = title.into();
    let tip = title.clone();
    view! {
        <span class="none told" tabindex="0" title=title>
            "—"<small>{reason.into()}</small><span class="tip">{tip}</span>
        </span>
    }
    .into_any()
}

/// A counter of a message, which may be absent from it.
pub(crate) fn optional(value: Option<i64>, absent: &'static str) -> AnyView {
    match value {
        Some(value) => num(value).into_any(),
        None => view! { <span class="none told" tabindex="0" title=absent>"—"<span class="tip">{absent}</span></span> }
            .into_any(),
    }
}

/// A live reading.
pub(crate) fn reading(reading: &Reading, unit: &'static str) -> AnyView {
    let source = format::words(&reading.source);
    match reading.value {
        Some(value) => {
            let as_of = reading.as_of;
            let clock = use_clock();
            let title = move || match as_of {
                Some(at) => format!("{source}, {}", format::relative(at, clock.now())),
                None => source.clone(),
            };
            let tip = title.clone();
            view! {
                <span class="num told" tabindex="0" title=title>
                    {format::reading(value)}{(!unit.is_empty()).then(|| view! { <span class="unit">{unit}</span> })}
                    <span class="tip">{tip}</span>
                </span>
            }
            .into_any()
        }
        None => {
            let (short, long) = why_unknown(reading.reason.as_deref());
            none(short, format!("{long} (source: {source})")).into_any()
        }
    }
}

/// What a feed or an interface doesn't tell: the dash, with the reason's code in words.
pub(crate) fn unknown(reason: &str) -> AnyView {
    let (short, long) = why_unknown(Some(reason));
    none(short, long)
}

/// A reading's reason, short and in a sentence.
fn why_unknown(reason: Option<&str>) -> (String, String) {
    let (short, long) = match reason {
        Some("no_event_feed") => ("no events", "No worker events come from this queue."),
        Some("no_management_api") => ("no API", "The broker's management API doesn't answer."),
        Some("stale") => ("stale", "The last reading is too old to be used."),
        Some("no_samples") => ("no samples", "Nothing was measured in the window: a rate of nothing."),
        Some(other) => return (format::words(other), format!("Unknown: {}.", format::words(other))),
        None => ("unknown", "No reading."),
    };
    (short.to_owned(), long.to_owned())
}
