//! Cohorts: the list.

use crate::{
    api::{get, query},
    components::{HeldList, Icon, NewRows, empty, loaded, none, num, when_ago},
    format,
    live::{Reader, Topic, on_change},
    words,
};
use domain::{
    api::{CohortRow, Page},
    vocabulary::{CohortState, ItemState},
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

fn path(state: &str) -> String {
    format!("/cohorts{}", query([("state", state.to_owned()), ("limit", "100".to_owned())]))
}

/// Every cohort, newest first.
#[component]
pub(crate) fn CohortsPage() -> impl IntoView {
    let query_map = use_query_map();
    let state = Memo::new(move |_| query_map.with(|query| query.get("state")).unwrap_or_default());
    let page = Resource::new(move || state.get(), |state| get::<Page<CohortRow>>(&path(&state)));
    view! {
        <Title text="Cohorts · Lazaret" />
        <div class="page-head">
            <div class="title"><h1>"Cohorts"</h1></div>
            <p class="sub">"A cohort is a frozen list of held messages with a reason, a plan and reviews. Only an approved one moves anything."</p>
        </div>
        {loaded(page, move |page| view! { <Listing state=state.get_untracked() page /> })}
    }
}

#[component]
fn Listing(state: String, page: Page<CohortRow>) -> impl IntoView {
    let list = HeldList::new(page.items, page.next_cursor, |row: &CohortRow| row.id);
    let reader = Reader::new();
    on_change(&[Topic::Cohorts], {
        let path = path(&state);
        move || reader.read(get::<Page<CohortRow>>(&path), move |page| list.offer(page.items, page.next_cursor))
    });
    let filters = std::iter::once(("", "all"))
        .chain(CohortState::ALL.iter().map(|state| (state.as_str(), words::cohort(*state).word)))
        .map(|(value, word)| {
            let chosen = value == state;
            view! { <option value=value selected=chosen>{word}</option> }
        })
        .collect_view();
    view! {
        <form class="filters" method="get" action="/cohorts">
            <label for="state">"State"</label>
            <select class="input" id="state" name="state">{filters}</select>
            <button class="button" type="submit">"Filter"</button>
            <NewRows list />
        </form>
        {move || {
            let rows = list.rows().get();
            if rows.is_empty() {
                empty(
                    Icon::Cohort,
                    "No cohort here",
                    "A cohort is made of held messages: select them in Quarantine.",
                    view! { <a class="button" href="/quarantine?state=held">"Open Quarantine"</a> },
                )
                .into_any()
            } else {
                table(&rows).into_any()
            }
        }}
    }
}

fn table(rows: &[CohortRow]) -> AnyView {
    view! {
        <div class="table-box" tabindex="0" role="region" aria-label="Cohorts">
            <table class="table by-card">
                <thead>
                    <tr>
                        <th scope="col">"State"</th>
                        <th scope="col">"Cohort"</th>
                        <th scope="col">"Queue"</th>
                        <th scope="col" class="end">"Messages"</th>
                        <th scope="col" class="end">"Verified"</th>
                        <th scope="col" class="end">"In doubt"</th>
                        <th scope="col" class="end">"Gen"</th>
                        <th scope="col">"Drafted"</th>
                        <th scope="col">"Why it is there"</th>
                    </tr>
                </thead>
                <tbody>{rows.iter().map(row).collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn row(row: &CohortRow) -> AnyView {
    let count =
        |wanted: ItemState| row.counts.iter().filter(|one| one.state == wanted).map(|one| one.count).sum::<i64>();
    let generation = match row.generation {
        Some(generation) => num(generation).into_any(),
        None => none("not yet", "Given out on approval.").into_any(),
    };
    let twice = row.published_twice.then(|| crate::components::tag("poison", Icon::Stop, "published twice"));
    view! {
        <tr>
            <td class="o2 to-end">{words::cohort(row.state).view()}</td>
            <th scope="row" class="o1 pair"><a href=format!("/cohorts/{}", row.id)>{row.title.clone()}</a>{twice}</th>
            <td data-label="Queue">{row.queue.name.clone()}</td>
            <td class="end" data-label="Messages">{num(row.size)}</td>
            <td class="end" data-label="Verified">{num(count(ItemState::Verified))}</td>
            <td class="end" data-label="In doubt">{num(count(ItemState::InDoubt))}</td>
            <td class="end" data-label="Gen">{generation}</td>
            <td data-label="Drafted">{row.created_by.username.clone()}" "{when_ago(row.created_at)}</td>
            <td class="fill lead">{row.state_reason.as_deref().map(format::words)}</td>
        </tr>
    }
    .into_any()
}
