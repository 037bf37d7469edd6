//! One cohort: its stages, its plan and review, its items, its replay, its history.

mod acts;
mod canary;
mod doubt;
mod editor;
mod expectations;
mod fields;
mod history;
mod items;
mod listed;
mod opened;
mod plan;
mod preflight;
mod replay;
mod review;
#[cfg(test)]
mod sample;
mod stages;
mod strata;
mod unsaved;

use crate::{
    api::get,
    components::{Icon, id_link, loaded, num, tag, when_ago},
    format,
    live::{Reader, Topic, on_change},
    words,
};
use domain::{
    api::Cohort,
    vocabulary::{CohortState, ItemState},
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::{use_params_map, use_query_map};
pub(crate) use unsaved::UnsavedDrafts;
use {
    acts::Acts,
    opened::{Opened, open},
    stages::stages,
};

/// The cohort that a page shows; acts put their answer here at once.
#[derive(Clone, Copy)]
pub(crate) struct Shown(RwSignal<Cohort>, Reader);

impl Shown {
    fn get(self) -> Cohort {
        self.0.get()
    }

    fn with<T>(self, read: impl FnOnce(&Cohort) -> T) -> T {
        self.0.with(read)
    }

    fn with_untracked<T>(self, read: impl FnOnce(&Cohort) -> T) -> T {
        self.0.with_untracked(read)
    }

    /// Takes a newer reading; an older answer that was late doesn't undo a newer one.
    fn take(self, fresh: Cohort) {
        if self.0.try_with_untracked(|shown| *shown != fresh && shown.row.version <= fresh.row.version).unwrap_or(false)
        {
            self.0.set(fresh);
        }
    }

    /// Reads it again.
    fn reread(self) {
        let path = self.with_untracked(|cohort| format!("/cohorts/{}", cohort.row.id));
        self.1.read(get::<Cohort>(&path), move |fresh| self.take(fresh));
    }
}

/// The page of one cohort.
#[component]
pub(crate) fn CohortPage() -> impl IntoView {
    let params = use_params_map();
    let query = use_query_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).unwrap_or_default());
    let opened = Resource::new(
        move || id.get(),
        move |id| {
            let param = |name: &str| query.with_untracked(|query| query.get(name)).unwrap_or_default();
            open(&id, param("tab"), param("item_state"))
        },
    );
    loaded(opened, |opened| view! { <CohortView opened /> })
}

#[component]
fn CohortView(opened: Opened) -> impl IntoView {
    let id = opened.cohort.row.id;
    let title = format!("{} · Lazaret", opened.cohort.row.title);
    let shown = Shown(RwSignal::new(opened.cohort.clone()), Reader::new());
    let parts = StoredValue::new(opened);
    on_change(&[Topic::Cohorts, Topic::Freeze], move || shown.reread());
    let query = use_query_map();
    let tab = Memo::new(move |_| {
        let asked = query.with(|query| query.get("tab")).unwrap_or_default();
        shown.with_untracked(|cohort| opened::tab(&asked, cohort))
    });
    let draft = Memo::new(move |_| shown.with(|cohort| cohort.row.state == CohortState::Draft));
    let unsaved = UnsavedDrafts::of_context();
    Effect::new(move |_| {
        if !draft.get() {
            unsaved.forget(id);
        }
    });
    view! {
        <Title text=title />
        {move || head(&shown.get())}
        <Acts shown />
        {move || shown.with(stages)}
        <nav class="tabs" aria-label="Cohort">
            {[("plan", ""), ("items", "Items"), ("replay", "Replay"), ("history", "History")].into_iter().map(|(name, label)| {
                let href = format!("/cohorts/{id}?tab={name}");
                let current = move || (tab.get() == name).then_some("page");
                let count = (name == "items").then_some(move || view! { <small>{shown.with(|cohort| format::count(cohort.row.size))}</small> });
                let label = move || match name {
                    "plan" if draft.get() => "Draft",
                    "plan" => "Plan and review",
                    _ => label,
                };
                view! { <a href=href aria-current=current data-noscroll="">{label}{count}</a> }
            }).collect_view()}
        </nav>
        {move || match (tab.get(), draft.get()) {
            ("items", _) => view! { <items::Items shown parts /> }.into_any(),
            ("replay", _) => view! { <replay::ReplayView shown parts /> }.into_any(),
            ("history", _) => view! { <history::History shown /> }.into_any(),
            (_, true) => view! { <editor::Editor shown parts /> }.into_any(),
            (_, false) => view! { <review::PlanAndReview shown parts /> }.into_any(),
        }}
    }
}

/// Whether anything was started.
fn has_replay(state: CohortState, stages: &[domain::api::StageEntry]) -> bool {
    state.holds_lane() || stages.iter().any(|stage| stage.state == CohortState::CanaryRunning)
}

fn count_of(cohort: &Cohort, state: ItemState) -> i64 {
    cohort.row.counts.iter().filter(|one| one.state == state).map(|one| one.count).sum()
}

fn head(cohort: &Cohort) -> AnyView {
    let row = &cohort.row;
    let doubt = count_of(cohort, ItemState::InDoubt);
    let doubt = (doubt > 0).then(|| tag("doubt", Icon::Doubt, format!("{} in doubt", format::count(doubt))));
    let twice = row.published_twice.then(|| tag("poison", Icon::Stop, "published twice"));
    let badge = words::cohort(row.state);
    let word = match row.state {
        CohortState::Draft => format!("draft, revision {}", row.revision),
        _ => badge.word.to_owned(),
    };
    let reason = row.state_reason.as_deref().map(|why| match &row.state_by {
        Some(by) => format!(" {}: {}", by.username, format::why(why, true)),
        None => format!(" {}", format::sentence(&format::words(why))),
    });
    let generation = row.generation.map(|generation| view! { " Generation "{num(generation)}"." });
    let moved = if has_replay(row.state, &cohort.stages) { None } else { Some(" Nothing has moved.") };
    let target = if cohort.target.exchange.is_empty() {
        cohort.target.routing_key.clone()
    } else {
        format!("{} / {}", cohort.target.exchange, cohort.target.routing_key)
    };
    view! {
        <div class="page-head">
            <nav class="crumbs" aria-label="Breadcrumb">
                <a href="/cohorts">"Cohorts"</a>
                <a href=format!("/quarantine?queue={}", row.queue.id)>{row.queue.name.clone()}</a>
            </nav>
            <div class="title">
                <h1>{row.title.clone()}</h1>
                {tag(badge.tone, badge.icon, word)}
                {doubt}
                {twice}
                {id_link(format!("/cohorts/{}", row.id), row.id.to_string())}
            </div>
            <p class="sub">
                "Drafted by "{row.created_by.username.clone()}" at "{when_ago(row.created_at)}". "
                {num(row.size)}" of "<code>{row.queue.name.clone()}</code>", to "<code>{target}</code>"."
                {generation}{moved}{reason}
            </p>
        </div>
    }
    .into_any()
}
