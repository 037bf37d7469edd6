//! The items: every message of the cohort, with its state here.

use super::{
    Shown,
    listed::Listed,
    opened::{Parts, items_path},
};
use crate::{
    components::{none, num, when},
    format,
    live::Topic,
    words,
};
use domain::{
    api::{CohortItem, Page},
    vocabulary::ItemState,
};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

/// In the order of the plan; filtered by `?item_state=`.
#[component]
pub(super) fn Items(shown: Shown, parts: Parts) -> impl IntoView {
    let id = shown.with_untracked(|cohort| cohort.row.id);
    let query = use_query_map();
    let state = Memo::new(move |_| query.with(|query| query.get("item_state")).unwrap_or_default());
    let first = parts.try_update_value(|parts| parts.items.take()).flatten();
    let path = move || shown.with_untracked(|cohort| items_path(cohort, &state.get_untracked()));
    let items = Listed::new(first, &[Topic::Cohorts], path);
    Effect::new(move |before: Option<String>| {
        let now = state.get();
        if before.is_some_and(|before| before != now) {
            items.restart();
        }
        now
    });
    let states = move || {
        shown.with(|cohort| {
            let all = view! { <a href=format!("/cohorts/{id}?tab=items") aria-current=(state.get().is_empty()).then_some("true") data-noscroll="">"all"</a> };
            let each = cohort.row.counts.iter().filter(|one| one.count > 0).map(|one| {
                let word = one.state.as_str();
                let current = (state.get() == word).then_some("true");
                view! { <a href=format!("/cohorts/{id}?tab=items&item_state={word}") aria-current=current data-noscroll="">{words::item(one.state).word}" "{format::count(one.count)}</a> }
            }).collect_view();
            view! { {all}{each} }
        })
    };
    view! {
        <div class="filters"><div class="segmented" role="group" aria-label="State">{states}</div></div>
        {items.show(|page| view! { <Listing page /> }.into_any())}
    }
}

#[component]
fn Listing(page: RwSignal<Page<CohortItem>>) -> impl IntoView {
    view! {
        <div class="table-box" tabindex="0" role="region" aria-label="Items">
            <table class="table by-card">
                <thead>
                    <tr>
                        <th scope="col" class="end">"#"</th>
                        <th scope="col">"State"</th>
                        <th scope="col">"Job"</th>
                        <th scope="col">"Message"</th>
                        <th scope="col" class="end">"Stratum"</th>
                        <th scope="col">"Redrive id"</th>
                        <th scope="col" class="end">"Epoch"</th>
                        <th scope="col">"Published"</th>
                        <th scope="col">"Confirmed"</th>
                        <th scope="col">"Why"</th>
                    </tr>
                </thead>
                <tbody>
                    <For each=move || page.get().items key=|item| (item.id, item.state, item.confirmed_at) let:item>{row(&item)}</For>
                </tbody>
            </table>
        </div>
    }
}

fn row(item: &CohortItem) -> AnyView {
    let message = format!("/quarantine/{}", item.quarantine_id);
    let job = match &item.job_id {
        Some(job) => format::short(&job.to_string()).into_any(),
        None => none("no job id", "The message names no job.").into_any(),
    };
    let canary = item.canary.then(|| view! { " "<small>"canary"</small> });
    let time = |at: Option<domain::api::Timestamp>, word: &'static str| match at {
        Some(at) => when(at).into_any(),
        None => view! { <span class="dim">{word}</span> }.into_any(),
    };
    let redrive = item.redrive_id.map(|id| format::short(&id.to_string()));
    view! {
        <tr>
            <td class="end" data-label="#">{num(item.position + 1)}</td>
            <td class="o2 to-end">{words::item(item.state).view()}</td>
            <th scope="row" class="o1 pair mono"><a href=message.clone()>{job}</a>{canary}</th>
            <td data-label="Message"><a class="mono" href=message>{format::short(&item.quarantine_id.to_string())}</a></td>
            <td class="end" data-label="Stratum">{num(item.stratum)}</td>
            <td class="mono" data-label="Redrive id">{redrive}</td>
            <td class="end" data-label="Epoch">{item.epoch.map(num)}</td>
            <td data-label="Published">{time(item.published_at, if item.state == ItemState::Held { "never" } else { "not yet" })}</td>
            <td data-label="Confirmed">{time(item.confirmed_at, "no")}</td>
            <td class="fill lead">{item.state_reason.as_deref().map(format::words)}</td>
        </tr>
    }.into_any()
}
