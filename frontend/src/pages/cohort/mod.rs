//! cohort

use leptos::prelude::*;

#[component]
pub(crate) fn CohortPage() -> impl IntoView {
    view! { <p>"soon"</p> }
}
