//! What the last act did: one line at the head of the page, told to everyone, which stays until it is put away.

use super::{Icon, icon};
use leptos::prelude::*;

/// The last act that was done, in words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done(RwSignal<Option<String>>);

impl Done {
    /// Makes the line available to every page.
    pub(crate) fn provide() {
        provide_context(Self(RwSignal::new(None)));
    }

    /// The line of this window.
    pub(crate) fn of_context() -> Self {
        use_context::<Self>().unwrap_or_else(|| Self(RwSignal::new(None)))
    }

    /// Tells of an act.
    pub(crate) fn tell(self, what: String) {
        self.0.set(Some(what));
    }
}

/// The line.
#[component]
pub(crate) fn DoneLine() -> impl IntoView {
    let done = Done::of_context();
    view! {
        <div class="done" role="status">
            {move || done.0.get().map(|what| view! {
                <p class="banner" data-state="well">
                    {icon(Icon::Check)}
                    <span><b>"Done. "</b>{what}" "<a href="/audit">"See the audit log"</a></span>
                    <button class="copy" type="button" aria-label="Put this line away" on:click=move |_| done.0.set(None)>{icon(Icon::Close)}</button>
                </p>
            })}
        </div>
    }
}
