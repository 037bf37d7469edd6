//! What is selected, and making a cohort of it.

use super::{Picked, View, query::Filters};
use crate::{
    api::{Acting, Method, act},
    components::{ActButton, ActDialog, Answered, Asked, Outcome, use_hydrated},
    format,
    frame::use_me,
};
use domain::{
    api::{Cohort, Draft, NewCohort, QuarantineRow, Selection, SelectionFilter, TotalRelation},
    ids::QueueId,
    vocabulary::{Permission, QuarantineState},
};
use leptos::prelude::*;
use leptos_router::hooks::use_navigate;

/// The bar under the table.
#[component]
pub(super) fn PickBar(view: View) -> impl IntoView {
    let open = RwSignal::new(false);
    let hydrated = use_hydrated();
    let lacks = use_me().and_then(|me| me.lacks(Permission::Respond));
    let many = Memo::new(move |_| selected(view));
    let queue = Memo::new(move |_| queue_of(view));
    let why_not = Signal::derive(move || {
        lacks
            .clone()
            .or_else(|| (many.get() == 0).then(|| "select held messages first".to_owned()))
            .or_else(|| queue.get().err().map(str::to_owned))
    });
    let label = Signal::derive(move || match many.get() {
        0 => "Make cohort…".to_owned(),
        many => format!("Make cohort of {}…", format::count(many)),
    });
    let everything = Memo::new(move |_| view.picked.with(|picked| *picked == Picked::Everything));
    let words = move || {
        if everything.get() {
            format!("{} selected: everything that matches", format::count(many.get()))
        } else {
            format!("{} selected", format::messages(many.get()))
        }
    };
    let switch = move || {
        let total = view.total.get();
        let counted = total.relation == TotalRelation::Eq;
        let total = total.value;
        if everything.get() {
            Some(("Select none instead".to_owned(), Picked::Rows(Default::default())))
        } else if only_held(&view.filters.get()) && counted && total > many.get() {
            Some((format!("Select everything that matches, {}", format::count(total)), Picked::Everything))
        } else {
            None
        }
    };
    let hint = move || {
        if everything.get() {
            "The list is frozen when the cohort is made; later arrivals are not added."
        } else if view.total.with(|total| total.relation == TotalRelation::Gte) {
            "More match than the 10 000 that a cohort takes: filter further to select everything that matches."
        } else if only_held(&view.filters.get()) {
            "Held messages of one queue can go into one cohort."
        } else {
            "To select everything that matches, filter for one queue and state held."
        }
    };
    let title = RwSignal::new(String::new());
    let asked = move || {
        let many = many.get_untracked();
        title.set(suggestion(view));
        Asked {
            title: format!("Make a cohort of {}", format::messages(many)),
            reason_label: "Reason",
            count: None,
            version: None,
            button: format!("Draft a cohort of {}", format::messages(many)),
            danger: false,
        }
    };
    let navigate = use_navigate();
    let navigate = StoredValue::new(navigate);
    let on_submit = move |answered: Answered| {
        let Answered { reason, acting: Acting { key, .. }, .. } = answered;
        let queue_id = queue.get_untracked();
        let title = title.get_untracked();
        Box::pin(async move {
            let Ok(queue_id) = queue_id else { return Ok(Outcome::Done) };
            let new = NewCohort { queue_id, selection: selection(view), draft: blank(title, reason) };
            let cohort: Cohort = act(Method::Post, "/cohorts", Some(&new), Acting { key, version: None }).await?;
            navigate.with_value(|navigate| navigate(&format!("/cohorts/{}", cohort.row.id), Default::default()));
            Ok(Outcome::Done)
        }) as _
    };
    view! {
        <div class="pickbar" role="region" aria-label="Selection">
            <p>
                <b>{words}</b>
                <small>
                    {hint}" "
                    {move || switch().map(|(label, next)| view! {
                        <button class="button" type="button" disabled=move || !hydrated.get() on:click=move |_| view.picked.set(next.clone())>{label}</button>
                    })}
                </small>
            </p>
            <div class="acts"><ActButton label kind="primary" why_not on_press=move || open.set(true) /></div>
        </div>
        <ActDialog open asked on_submit>
            <p class="lead">"This drafts a cohort and freezes its list. Nothing moves, and nobody is asked yet."</p>
            <div class="field">
                <label for="cohort-title">"Title"</label>
                <input class="input" id="cohort-title" maxlength="200" required prop:value=title on:input=move |event| title.set(event_target_value(&event)) />
            </div>
        </ActDialog>
    }
}

/// How many messages are selected.
fn selected(view: View) -> i64 {
    view.picked.with(|picked| match picked {
        Picked::Rows(ids) => i64::try_from(ids.len()).unwrap_or(i64::MAX),
        Picked::Everything => view.total.get().value,
    })
}

/// Everything that matches can be named by a cohort only if the filters are those that a cohort takes.
fn only_held(filters: &Filters) -> bool {
    filters.values("state") == [QuarantineState::Held.as_str()]
        && filters.values("queue").len() == 1
        && !filters.values("queue").contains(&String::new())
        && filters.values("kind").is_empty()
}

/// The one queue of the selection, or why there isn't one.
fn queue_of(view: View) -> Result<QueueId, &'static str> {
    let ids = match view.picked.get() {
        Picked::Everything => {
            let queue = view.filters.get().values("queue").first().and_then(|queue| queue.parse().ok());
            return queue.ok_or("filter for one queue");
        }
        Picked::Rows(ids) => ids,
    };
    view.list.rows().with(|rows| {
        let mut queues =
            rows.iter().filter(|row| ids.contains(&row.id)).map(|row| row.queue.as_ref().map(|queue| queue.id));
        match queues.next() {
            None => Err("select held messages first"),
            Some(None) => Err("an unattributed message must be assigned to a queue first"),
            Some(Some(first)) if queues.all(|queue| queue == Some(first)) => Ok(first),
            Some(Some(_)) => Err("a cohort takes messages of one queue"),
        }
    })
}

fn selection(view: View) -> Selection {
    match view.picked.get_untracked() {
        Picked::Rows(ids) => Selection::Ids { ids: ids.into_iter().collect() },
        Picked::Everything => {
            let filters = view.filters.get_untracked();
            Selection::Filter {
                filter: SelectionFilter {
                    error_class: filters.values("error_class"),
                    fingerprint: filters.values("fingerprint"),
                    worker_version: filters.values("worker_version"),
                    q: (!filters.q.is_empty()).then(|| filters.q.clone()),
                    dead_lettered_from: None,
                    dead_lettered_to: None,
                },
            }
        }
    }
}

/// A title that says what the rows have in common.
fn suggestion(view: View) -> String {
    let filters = view.filters.get_untracked();
    let row = |find: fn(&QuarantineRow) -> Option<String>| {
        view.list.rows().with_untracked(|rows| rows.first().and_then(find))
    };
    let class = filters.values("error_class").first().cloned().or_else(|| row(|row| row.error_class.clone()));
    let version = filters.values("worker_version").first().cloned().or_else(|| row(|row| row.worker_version.clone()));
    match (class, version) {
        (Some(class), Some(version)) if !class.is_empty() => format!("{class} from {version}"),
        (Some(class), None) if !class.is_empty() => class,
        _ => "Held messages".to_owned(),
    }
}

fn blank(title: String, reason: String) -> Draft {
    Draft {
        title: if title.trim().is_empty() { "Held messages".to_owned() } else { title.trim().to_owned() },
        reason,
        condition_fixed: None,
        target: None,
        accept_warnings: Vec::new(),
        canary: None,
        expansion: None,
        guards: serde_json::Map::new(),
        restore_expiration: false,
        expires_at: None,
        run_by: None,
    }
}
