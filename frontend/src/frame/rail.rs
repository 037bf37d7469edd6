//! The rail: the pages that there are.

use crate::components::{Icon, icon, wordmark};
use leptos::prelude::*;
use leptos_router::hooks::use_location;

const PAGES: [(&str, Icon, &str); 4] = [
    ("/", Icon::Watch, "Watch"),
    ("/quarantine", Icon::Flag, "Quarantine"),
    ("/cohorts", Icon::Cohort, "Cohorts"),
    ("/audit", Icon::Audit, "Audit"),
];

/// The main navigation.
#[component]
pub(crate) fn Rail() -> impl IntoView {
    let path = use_location().pathname;
    let links = PAGES.map(|(href, glyph, name)| {
        let current = move || {
            let path = path.get();
            let here = if href == "/" { path == "/" } else { path == href || path.starts_with(&format!("{href}/")) };
            here.then_some("page")
        };
        view! { <li><a href=href aria-current=current>{icon(glyph)}{name}</a></li> }
    });
    view! {
        <nav class="rail" aria-label="Main">
            {wordmark()}
            <ul>{links.into_iter().collect_view()}</ul>
            <p class="foot">"Lazaret "{env!("CARGO_PKG_VERSION")}<br />"times are UTC"</p>
        </nav>
    }
}
