//! Times: absolute UTC, relative beside it where it helps, both on hover.

use crate::{clock::use_clock, format};
use domain::api::Timestamp;
use leptos::prelude::*;

/// A time.
pub(crate) fn when(at: Timestamp) -> AnyView {
    let clock = use_clock();
    let title = move || format!("{}, {}", format::full(at), format::relative(at, clock.now()));
    let text = format::clock(at, clock.now_untracked());
    view! { <time class="when" datetime=at.to_rfc3339() title=title>{text}</time> }.into_any()
}

/// A time with how long ago, or in how long.
pub(crate) fn when_ago(at: Timestamp) -> AnyView {
    let clock = use_clock();
    let text = format::clock(at, clock.now_untracked());
    let relative = Memo::new(move |_| format::relative(at, clock.now()));
    view! { <time class="when" datetime=at.to_rfc3339() title=format::full(at)>{text}" "<small>{relative}</small></time> }.into_any()
}

/// Only how long ago; the time itself on hover.
pub(crate) fn ago(at: Timestamp) -> AnyView {
    let clock = use_clock();
    let relative = Memo::new(move |_| format::relative(at, clock.now()));
    view! { <time class="age" datetime=at.to_rfc3339() title=format::full(at)>{relative}</time> }.into_any()
}
