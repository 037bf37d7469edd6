//! The four counters, never merged, each with who counts it.

use crate::{components::none, format};
use domain::api::QuarantinedMessage;
use leptos::prelude::*;

/// Side by side.
pub(super) fn counters(message: &QuarantinedMessage) -> AnyView {
    let row = &message.row;
    let job = match &row.job_id {
        Some(job) => big(job.to_string(), None),
        None => none("absent", "The message names no job.").into_any(),
    };
    let attempt = match row.attempt {
        Some(attempt) => big(format::count(attempt), row.max_attempts.map(|max| format!("of {}", format::count(max)))),
        None => none("absent", "The message carries no attempt.").into_any(),
    };
    let delivery = match row.delivery_count {
        Some(count) => big(format::count(count), None),
        None => none("not given", "The broker gives no delivery count here (classic queue).").into_any(),
    };
    let generation = match row.redrive_generation {
        Some(generation) => big(format::count(generation), None),
        None => none("not in the message", "No redrive had sent this message when it died.").into_any(),
    };
    let who = message.lineage.last().and_then(|step| step.cohort.clone()).map(|cohort| {
        view! { ", cohort "<a href=format!("/cohorts/{}", cohort.id)>{cohort.title}</a> }
    });
    view! {
        <dl class="counters">
            <div><dt>"job_id"</dt><dd>{job}<small>"identity, set by the producer"</small></dd></div>
            <div><dt>"attempt"</dt><dd>{attempt}<small>"counted by the application"</small></dd></div>
            <div><dt>"delivery_count"</dt><dd>{delivery}<small>"counted by the broker, this message"</small></dd></div>
            <div><dt>"redrive_generation"</dt><dd>{generation}<small>"written by Lazaret"{who}</small></dd></div>
        </dl>
    }
    .into_any()
}

fn big(value: String, unit: Option<String>) -> AnyView {
    view! { <span class="num big">{value}{unit.map(|unit| view! { <span class="unit">{unit}</span> })}</span> }
        .into_any()
}
