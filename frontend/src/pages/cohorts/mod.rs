//! Cohorts: the list.

use crate::{
    api::{get, query},
    components::{HeldList, Icon, MoreRows, NewRows, empty, loaded, none, num, tag, when_ago},
    format,
    live::{Reader, Topic, on_change},
    words,
};
use domain::{
    api::{CohortRow, Page},
    ids::CohortId,
    vocabulary::{CohortState, ItemState},
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

fn path(state: &str, cursor: &str) -> String {
    let pairs = [("state", state.to_owned()), ("limit", "100".to_owned()), ("cursor", cursor.to_owned())];
    format!("/cohorts{}", query(pairs))
}

/// Every cohort, newest first.
#[component]
pub(crate) fn CohortsPage() -> impl IntoView {
    let query_map = use_query_map();
    let state = Memo::new(move |_| query_map.with(|query| query.get("state")).unwrap_or_default());
    let page = Resource::new(move || state.get(), |state| get::<Page<CohortRow>>(&path(&state, "")));
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
    let total = RwSignal::new(page.total);
    let list = HeldList::new(page.items, page.next_cursor, |row: &CohortRow| row.id);
    let reader = Reader::new();
    on_change(&[Topic::Cohorts], {
        let path = path(&state, "");
        move || {
            reader.read(get::<Page<CohortRow>>(&path), move |page| {
                total.set(page.total);
                list.offer(page.items, page.next_cursor);
            });
        }
    });
    let filters = std::iter::once(("", "all"))
        .chain(CohortState::ALL.iter().map(|state| (state.as_str(), words::cohort(*state).word)))
        .map(|(value, word)| {
            let chosen = value == state;
            view! { <option value=value selected=chosen>{word}</option> }
        })
        .collect_view();
    let shown = move || {
        let rows = format::len(list.rows().with(Vec::len));
        total.with(|total| format!("{} shown of {}", format::count(rows), format::total(total)))
    };
    let any = Memo::new(move |_| list.rows().with(|rows| !rows.is_empty()));
    let older = move |cursor: &str| {
        let page = get::<Page<CohortRow>>(&path(&state, cursor));
        async move { page.await.map(|page| (page.items, page.next_cursor)) }
    };
    view! {
        <form class="filters" method="get" action="/cohorts">
            <label for="state">"State"</label>
            <select class="input" id="state" name="state">{filters}</select>
            <button class="button" type="submit">"Filter"</button>
            <span class="dim">{shown}</span>
            <NewRows list />
        </form>
        {move || if any.get() {
            view! { <Table list /> }.into_any()
        } else {
            empty(
                Icon::Cohort,
                "No cohort here",
                "A cohort is made of held messages: select them in Quarantine.",
                view! { <a class="button" href="/quarantine?state=held">"Open Quarantine"</a> },
            )
        }}
        <MoreRows list label="Older" read=older />
    }
}

#[component]
fn Table(list: HeldList<CohortRow, CohortId>) -> impl IntoView {
    let ids = Memo::new(move |_| list.rows().with(|rows| rows.iter().map(|row| row.id).collect::<Vec<_>>()));
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
                <tbody>
                    <For each=move || ids.get() key=|id| *id let:id>
                        <Row list id />
                    </For>
                </tbody>
            </table>
        </div>
    }
}

/// One row, for good: what changes in it is set in place, so that the focus stays on its link.
#[component]
fn Row(list: HeldList<CohortRow, CohortId>, id: CohortId) -> impl IntoView {
    let row = Memo::new(move |_| list.rows().with(|rows| rows.iter().find(|row| row.id == id).cloned()));
    let cell = move |show: fn(&CohortRow) -> AnyView| move || row.with(|row| row.as_ref().map(show));
    view! {
        <tr>
            <td class="o2 to-end">{cell(|row| words::cohort(row.state).view())}</td>
            <th scope="row" class="o1 pair">
                <a href=format!("/cohorts/{id}")>{cell(|row| row.title.clone().into_any())}</a>
                {cell(|row| row.published_twice.then(|| tag("poison", Icon::Stop, "published twice")).into_any())}
            </th>
            <td data-label="Queue">{cell(|row| row.queue.name.clone().into_any())}</td>
            <td class="end" data-label="Messages">{cell(|row| num(row.size))}</td>
            <td class="end" data-label="Verified">{cell(|row| num(count(row, ItemState::Verified)))}</td>
            <td class="end" data-label="In doubt">{cell(|row| num(count(row, ItemState::InDoubt)))}</td>
            <td class="end" data-label="Gen">{cell(generation)}</td>
            <td data-label="Drafted">{cell(|row| view! { {row.created_by.username.clone()}" "{when_ago(row.created_at)} }.into_any())}</td>
            <td class="fill lead">{cell(why)}</td>
        </tr>
    }
}

fn count(row: &CohortRow, wanted: ItemState) -> i64 {
    row.counts.iter().filter(|one| one.state == wanted).map(|one| one.count).sum()
}

fn generation(row: &CohortRow) -> AnyView {
    match row.generation {
        Some(generation) => num(generation),
        None => none("not yet", "Given out on approval."),
    }
}

fn why(row: &CohortRow) -> AnyView {
    let why = row.state_reason.as_deref().map(|why| format::why(why, row.state_by.is_some()));
    view! { <span title=why.clone()>{why.clone()}</span> }.into_any()
}
