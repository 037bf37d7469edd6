//! Ids: shortened in the middle, copied with one click, linked.

use super::{Icon, icon, use_hydrated};
use crate::format;
use leptos::prelude::*;

/// An id that links to what it names, and can be copied.
pub(crate) fn id_link(href: String, id: String) -> AnyView {
    let short = format::short(&id);
    view! { <span class="id"><a href=href title=id.clone()>{short}</a>{copy(id)}</span> }.into_any()
}

/// What became of copying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    Not,
    Done,
    /// The browser lets no page copy here, as on plain http: the whole text is shown, to be marked and copied by hand.
    Refused,
}

/// A button that copies `text`.
pub(crate) fn copy(text: String) -> AnyView {
    let hydrated = use_hydrated();
    let copied = RwSignal::new(Copied::Not);
    let label = format!("Copy {text}");
    let whole = text.clone();
    let press = move |_| {
        let copying = to_clipboard(&text);
        leptos::task::spawn_local(async move {
            let outcome = if copying.await { Copied::Done } else { Copied::Refused };
            // gone with the page: nothing to set
            let _ = copied.try_set(outcome);
            if outcome == Copied::Done {
                let back = move || {
                    let _ = copied.try_set(Copied::Not);
                };
                set_timeout(back, std::time::Duration::from_millis(1500));
            }
        });
    };
    view! {
        <button class="copy" type="button" aria-label=label disabled=move || !hydrated.get() on:click=press>
            {move || if copied.get() == Copied::Done { icon(Icon::Check) } else { icon(Icon::Copy) }}
        </button>
        <span class="by-hand" role="status">
            {move || match copied.get() {
                Copied::Not => ().into_any(),
                Copied::Done => view! { <span class="vh">"Copied"</span> }.into_any(),
                Copied::Refused => view! { "Copy by hand: "<code>{whole.clone()}</code> }.into_any(),
            }}
        </span>
    }
    .into_any()
}

/// Whether the text is in the clipboard now.
#[cfg(feature = "hydrate")]
fn to_clipboard(text: &str) -> impl Future<Output = bool> + use<> {
    let navigator = web_sys::window().map(|window| window.navigator());
    // absent on plain http, whatever its type says
    let clipboard = navigator.filter(|navigator| {
        js_sys::Reflect::get(navigator, &"clipboard".into()).is_ok_and(|clipboard| clipboard.is_object())
    });
    let promise = clipboard.map(|navigator| navigator.clipboard().write_text(text));
    async move {
        match promise {
            Some(promise) => wasm_bindgen_futures::JsFuture::from(promise).await.is_ok(),
            None => false,
        }
    }
}

#[cfg(not(feature = "hydrate"))]
fn to_clipboard(_: &str) -> impl Future<Output = bool> + use<> {
    std::future::ready(false)
}
