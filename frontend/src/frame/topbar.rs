//! The top bar: whether the page is live, the freeze switch, the clock, the theme, the person.

use super::{freeze::FreezeSwitch, use_me};
use crate::{
    clock::use_clock,
    components::{Icon, icon, use_hydrated, wordmark},
    live::{Connection, use_live},
};
use leptos::prelude::*;
use time::macros::format_description;

/// The bar above every page.
#[component]
pub(crate) fn TopBar() -> impl IntoView {
    let clock = use_clock();
    let live = use_live();
    let hydrated = use_hydrated();
    let now = move || clock.now().format(format_description!("[hour]:[minute]:[second]")).unwrap_or_default();
    let standing = Memo::new(move |_| match (live.connection.get(), live.blind()) {
        (Connection::Live, None) => ("well", "live"),
        (Connection::Live, Some(_)) => ("unknown", "not up to date"),
        (Connection::Connecting, _) => ("unknown", "not live yet"),
        (Connection::Lost { .. }, _) => ("unknown", "connection lost"),
    });
    let person = use_me().map(|me| {
        let roles = me.0.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ");
        view! { <span class="person"><b>{me.0.user.username.clone()}</b><small>{roles}</small></span> }
    });
    view! {
        <header class="topbar">
            {wordmark()}
            <div class="right">
                <span class="live" data-state=move || standing.get().0><i></i>{move || standing.get().1}</span>
                <FreezeSwitch />
                <span class="clock"><time>{now}</time>" "<abbr title="All times are UTC">"UTC"</abbr></span>
                <button class="copy theme" type="button" aria-label="Switch theme" disabled=move || !hydrated.get() on:click=|_| switch_theme()>
                    {icon(Icon::Theme)}
                </button>
                {person}
                <form method="post" action="/logout"><button class="button" type="submit">"Log out"</button></form>
            </div>
        </header>
    }
}

/// Light or dark, kept in a cookie so that the server renders the next page with it.
fn switch_theme() {
    #[cfg(feature = "hydrate")]
    {
        use wasm_bindgen::JsCast as _;
        let Some(window) = web_sys::window() else { return };
        let Some(document) = window.document().and_then(|document| document.dyn_into::<web_sys::HtmlDocument>().ok())
        else {
            return;
        };
        let Some(root) = document.document_element() else { return };
        let dark = match root.get_attribute("data-theme").as_deref() {
            Some(theme) => theme == "dark",
            None => {
                window.match_media("(prefers-color-scheme: dark)").ok().flatten().is_some_and(|query| query.matches())
            }
        };
        let theme = if dark { "light" } else { "dark" };
        let _ = root.set_attribute("data-theme", theme);
        let _ = document.set_cookie(&format!("lazaret_theme={theme}; path=/; max-age=31536000; samesite=lax"));
    }
}
