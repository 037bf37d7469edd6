//! What went wrong: a banner that stays and names the request, or a page of its own.

use super::{Icon, fields_of, icon};
use crate::format;
use domain::api::Problem;
use leptos::prelude::*;
use leptos_meta::Title;

/// A refusal or failure beside what was tried.
pub(crate) fn banner(problem: &Problem) -> AnyView {
    let errors = problem
        .errors
        .iter()
        .map(|error| view! { <li>{spoken(&error.pointer)}": "{error.detail.clone()}</li> })
        .collect_view();
    let facts = problem.facts.as_ref().map(fields_of);
    view! {
        <div class="banner" data-state="poison" role="alert">
            {icon(Icon::Stop)}
            <div>
                <p><b>{problem.title.clone()}". "</b>{problem.detail.clone()}" "<code>{problem.code.clone()}</code>{request(problem)}</p>
                <ul>{errors}</ul>
                {facts}
            </div>
        </div>
    }.into_any()
}

/// In place of a page.
pub(crate) fn problem_page(problem: &Problem) -> AnyView {
    set_status(problem.status);
    let (glyph, heading) = match problem.status {
        401 => (Icon::Key, "Log in to see this"),
        403 => (Icon::Lock, "You may not see this"),
        404 => (Icon::Search, "Not found"),
        0 | 502..=504 => (Icon::Off, "The server doesn’t answer"),
        _ => (Icon::Stop, "This can’t be shown"),
    };
    let next = match problem.status {
        401 => view! { <a class="button" href="/login" rel="external">"Log in"</a> }.into_any(),
        _ => view! { <a class="button" href="/">"Back to Watch"</a> }.into_any(),
    };
    view! {
        <Title text=format!("{heading} · Lazaret") />
        <div class="empty">
            {icon(glyph)}
            <h1>{heading}</h1>
            <p>{problem.detail.clone()}</p>
            <div class="acts">{next}</div>
            <small>{(problem.status > 0).then(|| format!("{} · ", problem.status))}<code>{problem.code.clone()}</code>{request(problem)}</small>
        </div>
    }.into_any()
}

/// `/expansion/start_per_s` → `expansion, start per s`.
fn spoken(pointer: &str) -> String {
    pointer.trim_start_matches('/').split('/').map(format::words).collect::<Vec<_>>().join(", ")
}

fn request(problem: &Problem) -> impl IntoView + use<> {
    (!problem.request_id.is_empty()).then(|| {
        let id = problem.request_id.clone();
        view! { " · request "<code title=id.clone()>{format::short(&id)}</code> }
    })
}

/// The page's HTTP status is that of what it tells.
pub(crate) fn set_status(status: u16) {
    #[cfg(feature = "ssr")]
    if let (Some(response), Ok(status)) =
        (use_context::<leptos_axum::ResponseOptions>(), http::StatusCode::from_u16(status))
        && status != http::StatusCode::UNAUTHORIZED
        && status.as_u16() >= 400
    {
        response.set_status(status);
    }
    #[cfg(not(feature = "ssr"))]
    let _ = status;
}
