//! Items of the cohort, as many as were asked for. What is shown is read again as a whole, so that no row is older than
//! the others.

use crate::{
    api::{Answer, rows},
    components::{Beside, Icon, icon, use_hydrated},
    format,
    live::Topic,
};
use domain::api::{CohortItem, Page};
use leptos::prelude::*;

/// How many items are read at first, and how many more at each press.
pub(super) const STEP: usize = 100;

/// Items under one address.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    page: Beside<Page<CohortItem>>,
    wanted: RwSignal<usize>,
    path: StoredValue<Box<dyn Fn() -> String + Send + Sync>>,
}

impl Listed {
    /// Starts with `first`, or reads; reads again when the topics change.
    pub(super) fn new(
        first: Option<Answer<Page<CohortItem>>>,
        topics: &'static [Topic],
        path: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        let wanted = RwSignal::new(STEP);
        let path = StoredValue::new(Box::new(path) as Box<dyn Fn() -> String + Send + Sync>);
        let page = Beside::new(first, topics, move || read(path, wanted));
        Self { page, wanted, path }
    }

    /// What is known now.
    pub(super) fn answer(self) -> RwSignal<Option<Answer<Page<CohortItem>>>> {
        self.page.answer()
    }

    /// Reads what the address says now, from its beginning.
    pub(super) fn restart(self) {
        self.wanted.set(STEP);
        self.page.take(read(self.path, self.wanted));
    }

    fn more(self) {
        self.wanted.update(|wanted| *wanted += STEP);
        self.page.take(read(self.path, self.wanted));
    }

    /// Shows the items, with how many of them there are and the way to more.
    pub(super) fn show(self, view: impl Fn(RwSignal<Page<CohortItem>>) -> AnyView + Send + 'static) -> impl IntoView {
        self.page.show(move |page| {
            let rest = move || page.with(|page| page.next_cursor.is_some().then(|| of_all(page)));
            view! { {view(page)}{move || rest().map(|text| self.show_more(text))} }.into_any()
        })
    }

    /// The way to more, after some words.
    pub(super) fn show_more(self, text: String) -> AnyView {
        let hydrated = use_hydrated();
        view! {
            <div class="acts more">
                <span class="dim">{text}</span>
                <button class="button" type="button" disabled=move || !hydrated.get() on:click=move |_| self.more()>
                    {icon(Icon::Down)}"Show more"
                </button>
            </div>
        }
        .into_any()
    }
}

/// `100 of 1 204`.
pub(super) fn of_all(page: &Page<CohortItem>) -> String {
    format!("{} of {}", format::count(format::len(page.items.len())), format::total(&page.total))
}

fn read(
    path: StoredValue<Box<dyn Fn() -> String + Send + Sync>>,
    wanted: RwSignal<usize>,
) -> impl Future<Output = Answer<Page<CohortItem>>> {
    rows(path.with_value(|path| untrack(path)), wanted.get_untracked())
}
