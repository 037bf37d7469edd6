//! Alike messages, each group with the one canary that proves it.

use super::{
    Shown,
    fields::Fields,
    listed::{Listed, of_all},
    opened::{Parts, stratum_path},
};
use crate::{
    components::{Icon, num, state},
    format,
};
use domain::api::{CohortItem, Stratum};
use leptos::prelude::*;

/// A row per stratum.
#[component]
pub(super) fn Strata(shown: Shown, parts: Parts, fields: Fields) -> impl IntoView {
    // a draft's list is frozen: its strata stay
    let chosen = fields.canaries.get_untracked();
    let rows = shown
        .with_untracked(|cohort| cohort.strata.iter().map(|stratum| stratum.index).collect::<Vec<_>>())
        .into_iter()
        .zip(chosen)
        .enumerate()
        .map(|(at, (index, chosen))| view! { <Row shown parts at index chosen /> })
        .collect_view();
    view! {
        <section class="panel" aria-labelledby="h-strata">
            <header><h2 id="h-strata" tabindex="-1">"Strata"</h2><span class="meta">"alike: same fingerprint, same target"</span></header>
            <div class="table-box" tabindex="0" role="region" aria-label="Strata, table">
                <table class="table by-card">
                    <thead>
                        <tr>
                            <th scope="col">"Class and fingerprint"</th>
                            <th scope="col" class="end">"Items"</th>
                            <th scope="col">"Canary, exactly one"</th>
                            <th scope="col">"Payload"</th>
                            <th scope="col">"Inspected"</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
            <p class="note">"Each stratum proves itself with its own canary, one after another, before anything expands."</p>
        </section>
    }
}

#[component]
fn Row(
    shown: Shown,
    parts: Parts,
    /// Its place in the list of strata.
    at: usize,
    index: i64,
    chosen: RwSignal<String>,
) -> impl IntoView {
    let first = parts.try_update_value(|parts| parts.candidates.get_mut(at).and_then(Option::take)).flatten();
    let candidates = Listed::new(first, &[], move || shown.with_untracked(|cohort| stratum_path(cohort, index)));
    let stratum =
        Memo::new(move |_| shown.with(|cohort| cohort.strata.iter().find(|stratum| stratum.index == index).cloned()));
    let cell = move |show: fn(&Stratum) -> AnyView| move || stratum.with(|stratum| stratum.as_ref().map(show));
    let options = move || {
        let picked = chosen.get_untracked();
        candidates.answer().with(|answer| {
            let items = answer.as_ref().and_then(|answer| answer.as_ref().ok()).map(|page| page.items.as_slice());
            options(items.unwrap_or_default(), &picked)
        })
    };
    let more = move || {
        candidates.answer().with(|answer| match answer {
            Some(Ok(page)) if page.next_cursor.is_some() => candidates.show_more(of_all(page)),
            Some(Err(problem)) => view! { <span class="error" role="alert">{problem.detail.clone()}</span> }.into_any(),
            _ => ().into_any(),
        })
    };
    let label = format!("Canary of stratum {index}");
    view! {
        <tr>
            <th scope="row" class="lead">{cell(name)}</th>
            <td class="end" data-label="Items">{cell(|stratum| num(stratum.size))}</td>
            <td class="pair" data-label="Canary, exactly one">
                <select class="input" aria-label=label on:change=move |event| chosen.set(event_target_value(&event))>
                    <option value="">"choose one…"</option>
                    {options}
                </select>
                {more}
            </td>
            <td data-label="Payload">{move || {
                let chosen = chosen.get();
                (!chosen.is_empty()).then(|| view! { <a href=format!("/quarantine/{chosen}")>"Open its payload"</a> })
            }}</td>
            <td class="pair" data-label="Inspected">{cell(inspected)}</td>
        </tr>
    }
}

/// The candidates; the one that is chosen is always among them, also when its page isn't read yet.
fn options(items: &[CohortItem], picked: &str) -> AnyView {
    let known = items.iter().map(|item| {
        let value = item.quarantine_id.to_string();
        let job = item.job_id.as_ref().map_or_else(|| format::short(&value), ToString::to_string);
        (value, job)
    });
    let beyond = !picked.is_empty() && items.iter().all(|item| item.quarantine_id.to_string() != picked);
    let beyond = beyond.then(|| (picked.to_owned(), format::short(picked)));
    beyond
        .into_iter()
        .chain(known)
        .map(|(value, name)| {
            let selected = value == picked;
            view! { <option value=value selected=selected>{name}</option> }
        })
        .collect_view()
        .into_any()
}

fn name(stratum: &Stratum) -> AnyView {
    let class = stratum.error_class.clone().unwrap_or_else(|| "unclassified".to_owned());
    view! { <span class="mono">{class}</span>" "<small class="dim">{format::short(&stratum.fingerprint)}</small> }
        .into_any()
}

fn inspected(stratum: &Stratum) -> AnyView {
    if stratum.canary_inspected {
        state("well", Icon::Check, "payload opened")
    } else {
        state("poison", Icon::Lock, "not yet: open its payload first")
    }
}
