//! The rail of stages: where the cohort is, who moved it there and when.

use super::count_of;
use crate::{components::when, format, words};
use domain::{
    api::Cohort,
    vocabulary::{CohortState as State, ItemState},
};
use leptos::prelude::*;

/// Six places, whatever path was taken; the last is how it ended.
pub(super) fn stages(cohort: &Cohort) -> AnyView {
    let state = cohort.row.state;
    let here = place(state, cohort);
    let size = cohort.row.size;
    let canaries = i64::try_from(cohort.strata.len()).unwrap_or(0);
    let rest = (size - canaries).max(0);
    let ended = if state.is_terminal() { words::cohort(state).word } else { "completed" };
    let names = [
        "Draft".to_owned(),
        "In review".to_owned(),
        "Approved".to_owned(),
        "Canary".to_owned(),
        "Expanding".to_owned(),
        capital(ended),
    ];
    let hints = [
        format!("revision {}", cohort.row.revision),
        format!("{} of {} approvals", cohort.approvals.given, cohort.approvals.needed),
        cohort
            .row
            .generation
            .map_or_else(|| "gives a generation".to_owned(), |generation| format!("generation {generation}")),
        format::messages(canaries),
        format::messages(rest),
        String::new(),
    ];
    let steps = names.into_iter().zip(hints).enumerate().map(|(at, (name, hint))| {
        let entry = cohort.stages.iter().rev().find(|entry| place(entry.state, cohort) == at);
        let who = entry.map(|entry| {
            let who = entry.by.as_ref().map_or_else(|| "lazaret".to_owned(), |by| by.username.clone());
            view! { <small>{who}", "{when(entry.at)}</small> }
        });
        let done = at < here && entry.is_some();
        let current = at == here;
        let tone = current.then(|| words::cohort(state).tone);
        let name = if current && !state.is_terminal() { capital(words::cohort(state).word) } else { name };
        let so_far = (current && matches!(state, State::Expanding | State::Settling)).then(|| line(cohort));
        view! {
            <li class=done.then_some("done") aria-current=current.then_some("step") data-state=tone>
                {so_far}<b>{name}</b><small>{hint}</small>{who}
            </li>
        }
    });
    view! { <ol class="stages" aria-label="Stages">{steps.collect_view()}</ol> }.into_any()
}

fn line(cohort: &Cohort) -> AnyView {
    let open = count_of(cohort, ItemState::Held) + count_of(cohort, ItemState::Scheduled);
    let done = if cohort.row.size == 0 { 0 } else { (cohort.row.size - open) * 100 / cohort.row.size };
    view! {
        <svg class="so-far" aria-hidden="true"><line x1="0" y1="1" x2=format!("{done}%") y2="1"></line></svg>
    }
    .into_any()
}

fn place(state: State, cohort: &Cohort) -> usize {
    match state {
        State::Draft => 0,
        State::InReview => 1,
        State::Approved => 2,
        State::CanaryRunning | State::CanaryVerifying | State::CanaryPassed => 3,
        State::Paused | State::Aborting => {
            if cohort.stages.iter().any(|entry| entry.state == State::Expanding) {
                4
            } else {
                3
            }
        }
        State::Expanding | State::Settling => 4,
        State::CanaryFailed
        | State::Aborted
        | State::Completed
        | State::Rejected
        | State::Withdrawn
        | State::Expired => 5,
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
