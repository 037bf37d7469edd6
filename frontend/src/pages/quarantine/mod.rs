//! Quarantine: what the vault holds, filtered by address, and the selection that a cohort is made of.

mod facets;
mod make_cohort;
mod query;
mod rows;

use crate::{
    api::get,
    components::{HeldList, NewRows, banner, loaded},
    format,
    live::{Reader, Topic, on_change},
};
use domain::{
    api::{Facet, Problem, QuarantinePage as Listed, QuarantineRow, Total},
    ids::QuarantineId,
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::{use_navigate, use_query_map};
use query::Filters;
use std::collections::BTreeSet;
use {facets::Facets, make_cohort::PickBar, rows::Rows};

/// What is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Picked {
    /// These rows.
    Rows(BTreeSet<QuarantineId>),
    /// Everything that matches the filters, as of when the cohort is made.
    Everything,
}

/// What the page shows, in signals: filters change the address, the address changes these.
#[derive(Clone, Copy)]
struct View {
    filters: Memo<Filters>,
    list: HeldList<QuarantineRow, QuarantineId>,
    total: RwSignal<Total>,
    facets: RwSignal<Vec<Facet>>,
    picked: RwSignal<Picked>,
    failed: RwSignal<Option<Problem>>,
    busy: RwSignal<bool>,
    reader: Reader,
}

/// The list.
#[component]
pub(crate) fn QuarantinePage() -> impl IntoView {
    let query = use_query_map();
    let filters = Memo::new(move |_| query.with(Filters::from_query));
    // once: later filters change what is shown in place, so that focus stays in the facet that was pressed
    let first = Resource::new(|| (), move |()| get::<Listed>(&list_path(&filters.get_untracked())));
    view! {
        <Title text="Quarantine · Lazaret" />
        {loaded(first, move |page| view! { <Listing filters page /> })}
    }
}

fn list_path(filters: &Filters) -> String {
    format!("/quarantine{}", filters.to_query())
}

#[component]
fn Listing(filters: Memo<Filters>, page: Listed) -> impl IntoView {
    let view = View {
        filters,
        list: HeldList::new(page.items, page.next_cursor, |row| row.id),
        total: RwSignal::new(page.total),
        facets: RwSignal::new(page.facets),
        picked: RwSignal::new(Picked::Rows(BTreeSet::new())),
        failed: RwSignal::new(None),
        busy: RwSignal::new(false),
        reader: Reader::new(),
    };
    Effect::new(move |before: Option<Filters>| {
        let now = view.filters.get();
        if before.is_some_and(|before| before != now) {
            view.picked.set(Picked::Rows(BTreeSet::new()));
            view.show(&now);
        }
        now
    });
    on_change(&[Topic::Quarantine, Topic::Cohorts], move || view.refresh());

    let navigate = use_navigate();
    let go = move |next: Filters| {
        let options = leptos_router::NavigateOptions { scroll: false, ..Default::default() };
        navigate(&format!("/quarantine{}", next.to_query()), options);
    };
    let go = StoredValue::new(go);
    let go = Callback::new(move |next: Filters| go.with_value(|go| go(next)));
    view! {
        <div class="page-head">
            <div class="title"><h1>"Quarantine"</h1></div>
            <p class="sub">
                {move || view.total.with(matching)}
                " What is held is evidence: nothing here moves until a cohort is approved."
            </p>
        </div>
        <div class="split-facets">
            <Facets view go />
            <div aria-busy=move || view.busy.get().then_some("true")>
                <SearchBar view go />
                {move || view.failed.get().map(|problem| view! {
                    <p class="note">"The filters above couldn’t be applied: the rows below are those of before."</p>
                    {banner(&problem)}
                })}
                <Rows view />
                <PickBar view />
            </div>
        </div>
    }
}

impl View {
    /// Shows what the filters say: the person asked.
    fn show(self, filters: &Filters) {
        let answer = get::<Listed>(&list_path(filters));
        let asked = filters.clone();
        self.busy.set(true);
        leptos::task::spawn_local(async move {
            let answer = answer.await;
            if self.filters.try_get_untracked().as_ref() != Some(&asked) {
                return; // gone, or filtered on
            }
            self.busy.set(false);
            match answer {
                Ok(page) => {
                    self.failed.set(None);
                    self.total.set(page.total);
                    self.facets.set(page.facets);
                    self.list.replace(page.items, page.next_cursor);
                }
                Err(problem) => self.failed.set(Some(problem)),
            }
        });
    }

    /// Looks again: counts change in place, rows hold still.
    fn refresh(self) {
        let asked = self.filters.get_untracked();
        self.reader.read(get::<Listed>(&list_path(&asked)), move |page| {
            if self.filters.get_untracked() == asked {
                self.total.set(page.total);
                self.facets.set(page.facets);
                self.list.offer(page.items, page.next_cursor);
            }
        });
    }
}

fn matching(total: &Total) -> String {
    format!("{} {}.", format::total(total), if total.value == 1 { "message matches" } else { "messages match" })
}

/// Text search, chosen filters as chips, and what came meanwhile. The form works without scripts too.
#[component]
fn SearchBar(view: View, go: Callback<Filters>) -> impl IntoView {
    let text = RwSignal::new(view.filters.get_untracked().q);
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        go.run(view.filters.get_untracked().searching(text.get_untracked().trim().to_owned()));
    };
    let hidden = move || {
        let pairs = view.filters.get().pairs;
        pairs.into_iter().map(|(name, value)| view! { <input type="hidden" name=name value=value /> }).collect_view()
    };
    let chips = move || {
        let filters = view.filters.get();
        let facets = view.facets.get();
        filters
            .pairs
            .iter()
            .map(|(name, value)| {
                let label = facets::label(&facets, name, value);
                let without = filters.toggled(name, value);
                let href = format!("/quarantine{}", without.to_query());
                let remove = format!("Remove filter {}: {label}", facets::heading(name));
                view! {
                    <span class="chip">
                        {facets::heading(name).to_lowercase()}": "{label}
                        <a class="copy" href=href aria-label=remove>{crate::components::icon(crate::components::Icon::Close)}</a>
                    </span>
                }
            })
            .collect_view()
    };
    let shown = move || {
        let rows = format::len(view.list.rows().with(Vec::len));
        format!("{} shown of {}", format::count(rows), view.total.with(format::total))
    };
    view! {
        <form class="filters" method="get" action="/quarantine" role="search" on:submit=submit>
            <label class="vh" for="search">"Search text"</label>
            <input
                class="input"
                id="search"
                name="q"
                type="search"
                placeholder="Search job, message, error text"
                value=view.filters.get_untracked().q
                prop:value=text
                on:input=move |event| text.set(event_target_value(&event))
            />
            {hidden}
            <button class="button" type="submit">"Search"</button>
            {chips}
            <span class="dim">{shown}</span>
            <NewRows list=view.list />
        </form>
    }
}
