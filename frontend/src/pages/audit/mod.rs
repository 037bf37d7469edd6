//! audit

use leptos::prelude::*;

#[component]
pub(crate) fn AuditPage() -> impl IntoView {
    view! { <p>"soon"</p> }
}
