//! Lazaret's pages: rendered on the server, readable without scripts, hydrated in the browser. They talk only to
//! `/api/v1`, through [`api`].

#![recursion_limit = "512"]
#![expect(unreachable_pub, reason = "`#[component]` makes its props type `pub` whatever the component is")]

pub mod api;
mod app;
mod clock;
mod components;
mod format;
mod frame;
mod live;
mod pages;
#[cfg(feature = "ssr")]
mod shell;
mod words;

pub use app::App;
pub use clock::RenderedAt;
pub use pages::FormKey;
#[cfg(feature = "ssr")]
pub use shell::shell;

/// Wakes the page: the browser's entry point.
#[cfg(feature = "hydrate")]
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_body(App);
}
