//! The rows, and which of them are picked.

use super::{Picked, View, facets::only};
use crate::{
    api::get,
    components::{Icon, MoreRows, empty, none, optional, state, use_hydrated, when},
    format, words,
};
use domain::{
    api::{QuarantinePage, QuarantineRow},
    ids::QuarantineId,
    vocabulary::QuarantineState,
};
use leptos::prelude::*;

/// The table, or what would fill it.
#[component]
pub(super) fn Rows(view: View) -> impl IntoView {
    let any = Memo::new(move |_| view.list.rows().with(|rows| !rows.is_empty()));
    let hydrated = use_hydrated();
    let pickable = move || {
        view.list.rows().with(|rows| {
            rows.iter().filter(|row| row.state == QuarantineState::Held).map(|row| row.id).collect::<Vec<_>>()
        })
    };
    let all = Memo::new(move |_| {
        let held = pickable();
        !held.is_empty()
            && view.picked.with(|picked| match picked {
                Picked::Everything => true,
                Picked::Rows(ids) => held.iter().all(|id| ids.contains(id)),
            })
    });
    let pick_all = move |_| {
        let next = if all.get_untracked() { Default::default() } else { untrack(pickable).into_iter().collect() };
        view.picked.set(Picked::Rows(next));
    };
    let more = move |cursor: &str| {
        let path = format!("/quarantine{}", view.filters.get_untracked().with("cursor", cursor));
        let page = get::<QuarantinePage>(&path);
        async move { page.await.map(|page| (page.items, page.next_cursor)) }
    };
    // in a list of one queue its name would be in every row
    let mixed = Memo::new(move |_| {
        view.list.rows().with(|rows| {
            let queue = |row: &QuarantineRow| row.queue.as_ref().map(|queue| queue.id);
            rows.iter().any(|row| queue(row).is_none() || Some(queue(row)) != rows.first().map(queue))
        })
    });
    move || {
        if !any.get() {
            return nothing(view).into_any();
        }
        view! {
            <div class="table-box" tabindex="0" role="region" aria-label="Quarantined messages">
                <table class="table by-card picks">
                    <thead>
                        <tr>
                            <th>
                                <input type="checkbox" aria-label="Select all held rows shown" disabled=move || !hydrated.get() prop:checked=all on:change=pick_all />
                            </th>
                            <th scope="col">"State"</th>
                            {move || mixed.get().then(|| view! { <th scope="col">"Queue"</th> })}
                            <th scope="col">"Job"</th>
                            <th scope="col">"Message"</th>
                            <th scope="col">"Dead-lettered"</th>
                            <th scope="col">"Class"</th>
                            <th scope="col">"Error text"</th>
                            <th scope="col">"Version"</th>
                            <th scope="col" class="end">"Att."</th>
                            <th scope="col" class="end">"Deliv."</th>
                            <th scope="col" class="end">"Gen"</th>
                            <th scope="col" class="end">"Size"</th>
                        </tr>
                    </thead>
                    <tbody>
                        <For each=move || view.list.rows().get() key=|row| (row.id, row.state, row.cohort.as_ref().map(|cohort| cohort.id)) let:row>
                            <Row view row mixed />
                        </For>
                    </tbody>
                </table>
            </div>
            <MoreRows list=view.list label="Show more" read=more />
        }
        .into_any()
    }
}

#[component]
fn Row(view: View, row: QuarantineRow, mixed: Memo<bool>) -> impl IntoView {
    let id = row.id;
    let hydrated = use_hydrated();
    let held = row.state == QuarantineState::Held;
    let picked = Memo::new(move |_| {
        view.picked.with(|picked| match picked {
            Picked::Everything => held,
            Picked::Rows(ids) => ids.contains(&id),
        })
    });
    let name = row.job_id.as_ref().map_or_else(|| format::short(&id.to_string()), ToString::to_string);
    let why = (!held).then_some("Only held messages go into a cohort.");
    let label = match why {
        Some(why) => format!("Select {name}. {why}"),
        None => format!("Select {name}"),
    };
    view! {
        <tr aria-selected=move || picked.get().then_some("true")>
            <td>
                <input
                    type="checkbox"
                    aria-label=label
                    title=why
                    disabled=move || !hydrated.get() || !held
                    prop:checked=picked
                    on:change=move |_| toggle(view, id)
                />
            </td>
            {cells(&row, mixed)}
        </tr>
    }
}

fn toggle(view: View, id: QuarantineId) {
    view.picked.update(|picked| match picked {
        Picked::Rows(ids) => {
            if !ids.remove(&id) {
                ids.insert(id);
            }
        }
        // letting one of everything go means: the rows shown, but that one
        Picked::Everything => {
            let shown = view.list.rows().with_untracked(|rows| {
                rows.iter().filter(|row| row.state == QuarantineState::Held && row.id != id).map(|row| row.id).collect()
            });
            *picked = Picked::Rows(shown);
        }
    });
}

fn cells(row: &QuarantineRow, mixed: Memo<bool>) -> AnyView {
    let message = format!("/quarantine/{}", row.id);
    let job = match &row.job_id {
        Some(job) => {
            let job = job.to_string();
            view! { <a class="mono" href=message.clone() title=job.clone()>{format::short(&job)}</a> }.into_any()
        }
        None => view! { <a href=message.clone()>{none("no job id", "The message names no job.")}</a> }.into_any(),
    };
    let message_id = row.message_id.as_ref().map_or_else(|| row.id.to_string(), ToString::to_string);
    let class = match &row.error_class {
        Some(class) => view! { <a class="mono" href=only("error_class", class)>{class.clone()}</a> }.into_any(),
        None => none("unclassified", "No header or event names a class.").into_any(),
    };
    let text = row.error_text.clone().unwrap_or_default();
    let version = match &row.worker_version {
        Some(version) => view! { <span class="mono">{version.clone()}</span> }.into_any(),
        None => none("unknown", "Neither the message nor an event names the worker version.").into_any(),
    };
    let (size, unit) = format::bytes(row.size_bytes);
    let cohort = row.cohort.as_ref().map(|cohort| {
        view! { " "<a href=format!("/cohorts/{}", cohort.id) title=cohort.title.clone()><small>{format::short(&cohort.id.to_string())}</small></a> }
    });
    let twin = row.possible_duplicate_of.map(|other| {
        let href = format!("/quarantine/{other}");
        view! { " "<a href=href>{state("doubt", Icon::Doubt, "possible duplicate")}</a> }
    });
    let queue = row.queue.as_ref().map(|queue| queue.name.clone());
    let queue = move || {
        mixed.get().then(|| match &queue {
            Some(name) => view! { <td data-label="Queue">{name.clone()}</td> }.into_any(),
            None => {
                view! { <td data-label="Queue">{none("unattributed", "No watched queue claims it.")}</td> }.into_any()
            }
        })
    };
    let died = match row.dead_lettered_at {
        Some(at) => when(at),
        None => view! {
            {none("unknown", "The broker’s x-death names no time.")}" "<small class="dim">"arrived "{when(row.arrived_at)}</small>
        }
        .into_any(),
    };
    view! {
        <td class="o2 to-end">{words::quarantine(row.state).view()}{cohort}{twin}</td>
        {queue}
        <th scope="row" class="o1 pair">{job}</th>
        <td data-label="Message"><a class="mono" href=message title=message_id.clone()>{format::short(&message_id)}</a></td>
        <td data-label="Dead-lettered">{died}</td>
        <td class="o3 pair">{class}</td>
        <td class="fill o3" title=text.clone()>{text.clone()}</td>
        <td class="pair" data-label="Version">{version}</td>
        <td class="end" data-label="Attempt">{optional(row.attempt, "absent in the message")}</td>
        <td class="end" data-label="Deliveries">{optional(row.delivery_count, "the broker gives none")}</td>
        <td class="end" data-label="Generation">{optional(row.redrive_generation, "not in the message: no redrive had sent it when it died")}</td>
        <td class="end" data-label="Size"><span class="num">{size}<span class="unit">{unit}</span></span></td>
    }.into_any()
}

fn nothing(view: View) -> AnyView {
    let filters = view.filters.get();
    let clear = (!filters.is_empty()).then(|| view! { <a class="button" href="/quarantine">"Clear all filters"</a> });
    let (heading, text) = if filters.is_empty() {
        ("Nothing is held", "No dead letter of the watched queues is in the vault. Custody drains them as they come.")
    } else {
        ("Nothing matches", "The vault may hold other messages: these filters leave none of them.")
    };
    empty(Icon::Flag, heading, text, clear)
}
