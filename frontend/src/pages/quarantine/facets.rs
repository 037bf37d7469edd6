//! The facets: filters with how many rows each would leave. A plain form, so that they work without scripts too.

use super::{View, query::Filters};
use crate::{api::encode, components::num, format};
use domain::api::Facet;
use leptos::prelude::*;

/// The heading of a filter.
pub(super) fn heading(name: &str) -> &'static str {
    match name {
        "queue" => "Queue",
        "error_class" => "Error class",
        "fingerprint" => "Fingerprint",
        "state" => "State",
        "worker_version" => "Worker version",
        "kind" => "Kind",
        _ => "Filter",
    }
}

/// What a person calls a value.
pub(super) fn label(facets: &[Facet], name: &str, value: &str) -> String {
    facets
        .iter()
        .find(|facet| facet.name == name)
        .and_then(|facet| facet.values.iter().find(|one| one.value == value))
        .map_or_else(|| plain(name, value), |one| one.label.clone())
}

fn plain(name: &str, value: &str) -> String {
    match (name, value) {
        (_, "") => "none".to_owned(),
        ("state" | "kind", word) => format::words(word),
        ("fingerprint" | "queue", id) => format::short(id),
        (_, other) => other.to_owned(),
    }
}

/// Every facet that the API counts.
#[component]
pub(super) fn Facets(view: View, go: Callback<Filters>) -> impl IntoView {
    let names = Memo::new(move |_| {
        view.facets.with(|facets| facets.iter().map(|facet| facet.name.clone()).collect::<Vec<_>>())
    });
    view! {
        <form class="facets" aria-label="Filters" method="get" action="/quarantine" on:submit=|event| event.prevent_default()>
            <For each=move || names.get() key=|name| name.clone() let:name>
                <Values view go name />
            </For>
            <input type="hidden" name="q" value=move || view.filters.with(|filters| filters.q.clone()) />
            <noscript><button class="button" type="submit">"Apply the filters"</button></noscript>
        </form>
    }
}

#[component]
fn Values(view: View, go: Callback<Filters>, name: String) -> impl IntoView {
    let name = StoredValue::new(name);
    // chosen values stay listed when nothing matches them any more, so that they can be let go of
    let values = Memo::new(move |_| {
        let name = name.get_value();
        let counted = view.facets.with(|facets| {
            facets.iter().find(|facet| facet.name == name).map(|facet| facet.values.clone()).unwrap_or_default()
        });
        let mut values: Vec<(String, String)> =
            counted.iter().map(|value| (value.value.clone(), value.label.clone())).collect();
        for chosen in view.filters.get().values(&name) {
            if values.iter().all(|(value, _)| *value != chosen) {
                values.push((chosen.clone(), plain(&name, &chosen)));
            }
        }
        values
    });
    view! {
        <fieldset>
            <legend>{heading(&name.get_value())}</legend>
            <For each=move || values.get() key=|(value, _)| value.clone() let((value, label))>
                <One view go name value label />
            </For>
        </fieldset>
    }
}

#[component]
fn One(view: View, go: Callback<Filters>, name: StoredValue<String>, value: String, label: String) -> impl IntoView {
    let value = StoredValue::new(value);
    let chosen = Memo::new(move |_| view.filters.with(|filters| filters.has(&name.get_value(), &value.get_value())));
    let count = Memo::new(move |_| {
        view.facets.with(|facets| {
            facets
                .iter()
                .find(|facet| facet.name == name.get_value())
                .and_then(|facet| facet.values.iter().find(|one| one.value == value.get_value()))
                .map_or(0, |one| one.count)
        })
    });
    let toggled = move || view.filters.get().toggled(&name.get_value(), &value.get_value());
    let text = if label.is_empty() {
        plain(&name.get_value(), &value.get_value())
    } else {
        plain_state(&name.get_value(), label)
    };
    view! {
        <label>
            <input
                type="checkbox"
                name=name.get_value()
                value=value.get_value()
                checked=chosen.get_untracked()
                prop:checked=chosen
                on:change=move |_| go.run(untrack(toggled))
            />
            <span title=text.clone()>{text.clone()}</span>
            {move || num(count.get())}
        </label>
    }
}

fn plain_state(name: &str, label: String) -> String {
    if matches!(name, "state" | "kind") { format::words(&label) } else { label }
}

/// The link that filters for one value only.
pub(super) fn only(name: &str, value: &str) -> String {
    format!("/quarantine?{name}={}", encode(value))
}
