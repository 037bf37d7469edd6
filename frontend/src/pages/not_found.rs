//! No page has this address.

use crate::components::{Icon, empty};
use leptos::prelude::*;
use leptos_meta::Title;

/// 404, with ways on.
#[component]
pub(crate) fn NotFoundPage() -> impl IntoView {
    crate::components::set_status(404);
    view! {
        <Title text="Not found · Lazaret" />
        <main id="main" class="page">
            <h1 class="vh">"Not found"</h1>
            {empty(
                Icon::Search,
                "No page has this address",
                "It was never here, or the link was cut short. Nothing happened.",
                view! { <a class="button" href="/">"Go to Watch"</a><a class="button" href="/quarantine">"Go to Quarantine"</a> },
            )}
        </main>
    }
}
