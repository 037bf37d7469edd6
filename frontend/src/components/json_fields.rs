//! JSON as a person reads it: its fields by name, and what differs between two.

use super::none;
use crate::format;
use leptos::prelude::*;
use serde_json::Value;

/// A list of every field with its value.
pub(crate) fn fields_of(value: &Value) -> AnyView {
    let rows = format::flat(value)
        .into_iter()
        .map(|(path, value)| view! { <div><dt>{named(&path)}</dt><dd class="wrap">{value}</dd></div> })
        .collect_view();
    view! { <dl class="facts fields-of">{rows}</dl> }.into_any()
}

/// What an act changed, field by field.
pub(crate) fn differences(before: Option<&Value>, after: Option<&Value>) -> AnyView {
    if before.is_none() && after.is_none() {
        return none("nothing", "The act changed no record of its subject.").into_any();
    }
    let changed = format::differences(before, after);
    if changed.is_empty() {
        return view! { <p class="note">"Nothing differs before and after."</p> }.into_any();
    }
    let side = |value: Option<String>| match value {
        Some(value) => view! { {value} }.into_any(),
        None => view! { <span class="dim">"absent"</span> }.into_any(),
    };
    let rows = changed
        .into_iter()
        .map(|(path, before, after)| {
            view! {
                <li>
                    <span class="name">{named(&path)}</span>
                    <del>{side(before)}</del>
                    <ins>{side(after)}</ins>
                </li>
            }
        })
        .collect_view();
    view! { <ul class="diff-fields">{rows}</ul> }.into_any()
}

/// `draft.canary.wait_s` → `draft, canary, wait s`.
fn named(path: &str) -> String {
    path.split('.').map(format::words).collect::<Vec<_>>().join(", ")
}
