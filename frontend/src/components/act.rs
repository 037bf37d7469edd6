//! Buttons that act. One that may not be pressed is shown disabled, with its reason.

use super::{Icon, icon};
use leptos::prelude::*;

/// Whether the page's code has arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hydrated(pub(crate) RwSignal<bool>);

/// Whether the page's code has arrived: before that, only links and plain forms work.
pub(crate) fn use_hydrated() -> Signal<bool> {
    use_context::<Hydrated>().map_or_else(|| Signal::stored(false), |hydrated| hydrated.0.into())
}

/// A button that opens an act, or says why it can't be pressed.
#[component]
pub(crate) fn ActButton(
    /// What it does; ends in `…` where a dialog follows.
    #[prop(into)]
    label: Signal<String>,
    /// `primary`, `danger` or nothing.
    #[prop(optional)]
    kind: &'static str,
    /// Why it can't be pressed.
    #[prop(into)]
    why_not: Signal<Option<String>>,
    /// Pressed.
    on_press: impl Fn() + 'static,
) -> impl IntoView {
    let hydrated = use_hydrated();
    let class = format!("button {kind}");
    let waking = move || (!hydrated.get()).then_some("Needs the page’s code, which isn’t here yet.");
    view! {
        <span class="act">
            <button
                class=class
                type="button"
                disabled=move || !hydrated.get() || why_not.get().is_some()
                title=waking
                aria-description=move || why_not.get()
                on:click=move |_| on_press()
            >
                {label}
            </button>
            {move || why_not.get().map(|why| view! { <span class="why">{icon(Icon::Lock)}{why}</span> })}
        </span>
    }
}
