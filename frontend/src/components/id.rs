//! Ids: shortened in the middle, copied with one click, linked.

use super::{Icon, icon, use_hydrated};
use crate::format;
use leptos::prelude::*;

/// An id that links to what it names, and can be copied.
pub(crate) fn id_link(href: String, id: String) -> AnyView {
    let short = format::short(&id);
    view! { <span class="id"><a href=href title=id.clone()>{short}</a>{copy(id)}</span> }.into_any()
}

/// A button that copies `text`.
pub(crate) fn copy(text: String) -> AnyView {
    let hydrated = use_hydrated();
    let copied = RwSignal::new(false);
    let label = format!("Copy {text}");
    let press = move |_| {
        if let Some(window) = web_sys_window() {
            let _ = window.navigator().clipboard().write_text(&text);
            copied.set(true);
            set_timeout(
                move || {
                    // gone with the page: nothing to set
                    let _ = copied.try_set(false);
                },
                std::time::Duration::from_millis(1500),
            );
        }
    };
    view! {
        <button class="copy" type="button" aria-label=label disabled=move || !hydrated.get() on:click=press>
            {move || if copied.get() { icon(Icon::Check).into_any() } else { icon(Icon::Copy).into_any() }}
        </button>
    }
    .into_any()
}

fn web_sys_window() -> Option<web_sys::Window> {
    if cfg!(feature = "hydrate") { web_sys::window() } else { None }
}
