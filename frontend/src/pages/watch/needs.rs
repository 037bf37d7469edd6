//! Needs you: what waits for a person, most urgent first.

use super::Watched;
use crate::{
    components::{Badge, Icon, ago},
    format, words,
};
use domain::{
    api::{CohortRow, Timestamp},
    vocabulary::{CohortState, CustodyState, ItemState},
};
use leptos::prelude::*;

/// One thing that waits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Need {
    badge: Badge,
    title: String,
    detail: String,
    href: String,
    go: &'static str,
    since: Option<Timestamp>,
}

/// What waits, most urgent first.
pub(super) fn of(watched: &Watched) -> Vec<Need> {
    let mut needs = Vec::new();
    for dlq in watched.dead_letter_queues.iter().filter(|dlq| dlq.state == CustodyState::Stopped) {
        needs.push(Need {
            badge: words::custody(dlq.state),
            title: format!("Custody of {} has stopped", dlq.name),
            detail: dlq.state_reason.clone().map_or_else(|| "no reason is known".to_owned(), |why| format::words(&why)),
            href: "#queues".to_owned(),
            go: "See the queue",
            since: Some(dlq.state_since),
        });
    }
    let cohorts = &watched.cohorts;
    let twice = cohorts.iter().filter(|cohort| cohort.published_twice).map(|cohort| {
        let badge = Badge { tone: "poison", icon: Icon::Stop, word: "twice" };
        need(cohort, badge, "was published twice", "Open replay", "replay")
    });
    let doubt = cohorts.iter().filter_map(|cohort| {
        let many = in_doubt(cohort);
        (many > 0).then(|| {
            let mut need = need(cohort, words::item(ItemState::InDoubt), "", "Settle it", "replay");
            need.detail =
                format!("{} in doubt: published, outcome unknown; never published again", format::messages(many));
            need
        })
    });
    let by_state = |wanted: CohortState, detail: &'static str, go: &'static str, tab: &'static str| {
        cohorts
            .iter()
            .filter(move |cohort| cohort.state == wanted)
            .map(move |cohort| need(cohort, words::cohort(wanted), detail, go, tab))
    };
    needs.extend(twice);
    needs.extend(doubt);
    needs.extend(by_state(CohortState::Aborting, "is aborting: old owners aren’t fenced yet", "Open replay", "replay"));
    needs.extend(by_state(CohortState::Paused, "is paused; a person resumes it", "Open replay", "replay"));
    needs.extend(by_state(
        CohortState::CanaryVerifying,
        "canary is out; its effect is awaited",
        "Open canary",
        "replay",
    ));
    needs.extend(by_state(CohortState::CanaryPassed, "canary passed; the rest waits for a person", "Expand", "replay"));
    needs.extend(by_state(CohortState::Approved, "approved; the canary waits for a person", "Start canary", "replay"));
    needs.extend(by_state(CohortState::InReview, "waits for a review", "Review", ""));
    needs
}

fn need(cohort: &CohortRow, badge: Badge, detail: &'static str, go: &'static str, tab: &'static str) -> Need {
    let tab = if tab.is_empty() { String::new() } else { format!("?tab={tab}") };
    let reason = cohort.state_reason.as_deref().map(|why| format!(": {}", format::why(why, cohort.state_by.is_some())));
    let reason = reason.unwrap_or_default();
    Need {
        badge,
        title: format!("{}: {} of {}", cohort.title, format::messages(cohort.size), cohort.queue.name),
        detail: format!("{detail}{reason}; drafted by {}", cohort.created_by.username),
        href: format!("/cohorts/{}{tab}", cohort.id),
        go,
        since: Some(cohort.state_since),
    }
}

fn in_doubt(cohort: &CohortRow) -> i64 {
    cohort.counts.iter().filter(|count| count.state == ItemState::InDoubt).map(|count| count.count).sum()
}

/// The list.
#[component]
pub(super) fn Needs(needs: Memo<Vec<Need>>) -> impl IntoView {
    view! {
        <section class="panel" aria-labelledby="h-needs">
            <header><h2 id="h-needs">"Needs you"</h2><span class="age">"most urgent first"</span></header>
            {move || {
                let needs = needs.get();
                if needs.is_empty() {
                    view! { <p class="note">"Nothing waits: no review, no canary result, nothing in doubt, custody holds."</p> }.into_any()
                } else {
                    view! { <ul class="needs">{needs.into_iter().map(row).collect_view()}</ul> }.into_any()
                }
            }}
        </section>
    }
}

fn row(need: Need) -> AnyView {
    let Need { badge, title, detail, href, go, since } = need;
    view! {
        <li>
            {badge.view()}
            <span class="what"><a href=href.clone()><b>{title}</b></a>" "<span>{detail}</span></span>
            <span class="go"><a href=href>{go}</a></span>
            {since.map(ago)}
        </li>
    }
    .into_any()
}
