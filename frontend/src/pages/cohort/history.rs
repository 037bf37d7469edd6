//! The history: every stage that was entered, and the way to the audit entries.

use super::Shown;
use crate::{
    components::{toned, when},
    format, words,
};
use domain::api::StageEntry;
use leptos::prelude::*;

/// Newest first.
#[component]
pub(super) fn History(shown: Shown) -> impl IntoView {
    let id = shown.with_untracked(|cohort| cohort.row.id);
    view! {
        <section class="panel" aria-labelledby="h-history">
            <header>
                <h2 id="h-history">"Stages"</h2>
                <span class="meta"><a href=format!("/audit?subject={id}")>"Its audit entries"</a></span>
            </header>
            <ol class="trail timed">{move || shown.with(|cohort| cohort.stages.iter().rev().map(entry).collect_view())}</ol>
        </section>
    }
}

fn entry(entry: &StageEntry) -> AnyView {
    let badge = words::cohort(entry.state);
    let who = entry.by.as_ref().map_or_else(|| "lazaret".to_owned(), |by| by.username.clone());
    let reason = entry.reason.as_deref().map(|why| format::why(why, entry.by.is_some()));
    view! {
        <li>
            {when(entry.at)}
            {toned(badge.tone, badge.icon)}
            <p>{badge.word}", by "{who}<small>{reason}</small></p>
        </li>
    }
    .into_any()
}
