//! cohorts

use leptos::prelude::*;

#[component]
pub(crate) fn CohortsPage() -> impl IntoView {
    view! { <p>"soon"</p> }
}
