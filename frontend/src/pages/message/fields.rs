//! Properties and headers, typed, with what a redrive does to each.

use crate::format;
use domain::api::{QuarantinedMessage, TypedField};
use leptos::prelude::*;

/// Both tables.
pub(super) fn fields(message: &QuarantinedMessage) -> AnyView {
    view! {
        {table("Headers", "h-headers", &message.headers, "The message has no headers.")}
        {table("Properties", "h-properties", &message.properties, "The message has no properties.")}
        <p class="note">
            "A redrive publishes the same message. What would mislead as history of the new delivery is stripped; every original stays here as evidence."
        </p>
    }.into_any()
}

fn table(title: &'static str, id: &'static str, fields: &[TypedField], none: &'static str) -> AnyView {
    let rows = fields.iter().map(row).collect_view();
    let body = if fields.is_empty() {
        view! { <p class="note">{none}</p> }.into_any()
    } else {
        view! {
            <div class="table-box" tabindex="0" role="region" aria-label=format!("{title}, table")>
                <table class="table by-card">
                    <thead>
                        <tr>
                            <th scope="col">"Name"</th>
                            <th scope="col">"Type"</th>
                            <th scope="col">"Value"</th>
                            <th scope="col">"On redrive"</th>
                            <th scope="col">"Why"</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        }
        .into_any()
    };
    view! {
        <section class="panel" aria-labelledby=id>
            <header><h2 id=id>{title}</h2><span class="meta">{fields.len()}</span></header>
            {body}
        </section>
    }
    .into_any()
}

fn row(field: &TypedField) -> AnyView {
    let value = format::json(&field.value);
    let redrive = match field.redrive.as_str() {
        "keep" => view! { <span class="dim">"kept"</span> }.into_any(),
        "strip" => view! { "stripped" }.into_any(),
        "replace" => view! { <span class="num" data-state="running">"replaced"</span> }.into_any(),
        other => other.to_owned().into_any(),
    };
    view! {
        <tr>
            <th scope="row" class="lead mono">{field.name.clone()}</th>
            <td class="mono" data-label="Type">{field.field_type.clone()}</td>
            <td class="mono wrap" data-label="Value">{value}</td>
            <td data-label="On redrive">{redrive}</td>
            <td class="dim wrap lead">{field.redrive_reason.clone().unwrap_or_default()}</td>
        </tr>
    }
    .into_any()
}
