//! Where the message has been: custody, and every redrive of its lineage.

use super::mark;
use crate::{
    components::{Icon, id_link, none, optional, when, when_ago},
    format, words,
};
use domain::{
    api::{LineageStep, QuarantinedMessage},
    vocabulary::ItemState,
};
use leptos::prelude::*;

/// The trail, oldest first.
#[component]
pub(super) fn Custody(message: RwSignal<QuarantinedMessage>) -> impl IntoView {
    view! {
        <section class="panel" aria-labelledby="h-custody">
            <header><h2 id="h-custody">"Custody"</h2></header>
            {move || message.with(trail)}
        </section>
    }
}

fn trail(message: &QuarantinedMessage) -> AnyView {
    let custody = &message.custody;
    let died = message.row.dead_lettered_at.map(|at| view! { <small>{when(at)}</small> });
    let reason = message.broker.reason.clone().map(|reason| view! { <small>"reason "<code>{reason}</code></small> });
    let acked = match custody.acked_at {
        Some(at) => view! { <small>{when(at)}</small> }.into_any(),
        None => view! { <small>"not proved yet: a restart may deliver it again"</small> }.into_any(),
    };
    let absorbed = (custody.absorbed > 0).then(|| {
        view! {
            <li>{mark("plain", Icon::Redrive)}<p>{format::many(custody.absorbed, "redelivery", "redeliveries")}" absorbed"<small>"the same delivery again, before its ack was sent"</small></p></li>
        }
    });
    let assigned = custody.assigned_by.clone().map(|by| {
        view! { <li>{mark("plain", Icon::Person)}<p>"Given to its queue by "{by.username}</p></li> }
    });
    let inspected = message
        .inspected_by
        .iter()
        .map(|seen| {
            view! { <li>{mark("plain", Icon::Key)}<p>"Payload revealed by "{seen.by.username.clone()}<small>{when_ago(seen.at)}</small></p></li> }
        })
        .collect_view();
    let redrives = message
        .lineage
        .iter()
        .filter(|step| step.quarantine_id == message.row.id)
        .map(|step| {
            let badge = step.state.map_or(words::item(ItemState::Scheduled), words::item);
            let at = step.published_at.map(|at| view! { <small>{when_ago(at)}</small> });
            let cohort = step
                .cohort
                .clone()
                .map(|cohort| view! { <a href=format!("/cohorts/{}", cohort.id)>{cohort.title}</a> });
            view! { <li>{mark(badge.tone, badge.icon)}<p>"Redriven: "{badge.word}" "{cohort}{at}</p></li> }
        })
        .collect_view();
    view! {
        <ol class="trail">
            <li>{mark("plain", Icon::Dlq)}<p>{custody.dead_letter_queue_name.clone()}{died}{reason}</p></li>
            <li>
                {mark("held", Icon::Flag)}
                <p>"Vault row committed"<small>{when(message.row.arrived_at)}", epoch "{custody.epoch}</small></p>
            </li>
            <li>{mark("plain", Icon::Ack)}<p>"Acked on the DLQ"{acked}</p></li>
            {absorbed}
            {assigned}
            {inspected}
            {redrives}
        </ol>
    }
    .into_any()
}

/// Every redrive of this message and of those it descends from.
pub(super) fn lineage(message: &QuarantinedMessage) -> AnyView {
    if message.lineage.is_empty() {
        return view! { <p class="note">"Never redriven: no cohort has published this message, nor one that it descends from."</p> }
            .into_any();
    }
    let rows = message.lineage.iter().map(step).collect_view();
    view! {
        <div class="table-box" tabindex="0" role="region" aria-label="Lineage">
            <table class="table by-card">
                <thead>
                    <tr>
                        <th scope="col">"Outcome"</th>
                        <th scope="col" class="end">"Gen"</th>
                        <th scope="col">"Dead letter"</th>
                        <th scope="col">"Cohort"</th>
                        <th scope="col">"Redrive id"</th>
                        <th scope="col">"Published"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn step(step: &LineageStep) -> AnyView {
    let state = match step.state {
        Some(state) => words::item(state).view().into_any(),
        None => none("unowned", "A redrive header that no cohort owns: shown and ignored.").into_any(),
    };
    let cohort = match step.cohort.clone() {
        Some(cohort) => view! { <a href=format!("/cohorts/{}", cohort.id)>{cohort.title}</a> }.into_any(),
        None => none("none", "No cohort owns it.").into_any(),
    };
    let redrive = match step.redrive_id {
        Some(id) => view! { <span class="mono">{id.to_string()}</span> }.into_any(),
        None => none("absent", "No redrive id.").into_any(),
    };
    let published = match step.published_at {
        Some(at) => when(at).into_any(),
        None => none("not yet", "Not handed to the broker.").into_any(),
    };
    view! {
        <tr>
            <td class="lead">{state}</td>
            <td class="end" data-label="Generation">{optional(step.redrive_generation, "none")}</td>
            <td data-label="Dead letter">{id_link(format!("/quarantine/{}", step.quarantine_id), step.quarantine_id.to_string())}</td>
            <td data-label="Cohort">{cohort}</td>
            <td data-label="Redrive id">{redrive}</td>
            <td data-label="Published">{published}</td>
        </tr>
    }.into_any()
}
