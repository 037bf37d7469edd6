//! The document around every page.

use crate::App;
use http::{header, request::Parts};
use leptos::prelude::*;
use leptos_meta::MetaTags;

const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath fill='%23f5c400' d='M3 2h11v9H3z'/%3E%3Cpath stroke='%23888' stroke-width='1.6' d='M2.2 1v14'/%3E%3C/svg%3E";

/// The whole document. The theme is the reader's, from the cookie `lazaret_theme`, so that no page flashes.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    view! {
        <!DOCTYPE html>
        <html lang="en" data-theme=theme()>
            <head>
                <meta charset="utf-8" />
                <meta name="viewport" content="width=device-width, initial-scale=1" />
                <link rel="icon" href=ICON />
                <link rel="stylesheet" href="/pkg/lazaret.css" />
                <HydrationScripts options />
                <MetaTags />
            </head>
            <body>
                <App />
            </body>
        </html>
    }
}

fn theme() -> Option<&'static str> {
    let parts = use_context::<Parts>()?;
    let cookies = parts.headers.get(header::COOKIE)?.to_str().ok()?;
    let chosen = cookies.split(';').find_map(|pair| pair.trim().strip_prefix("lazaret_theme="))?;
    ["light", "dark"].into_iter().find(|theme| *theme == chosen)
}
