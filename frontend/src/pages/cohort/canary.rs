//! The canary of each stratum: the durable state that was found, beside what was expected.

use crate::{
    components::{Icon, fields_of, none, state, when},
    format, words,
};
use domain::api::{Canary, Cohort, ExpectationResult, ProbeSample};
use leptos::prelude::*;

/// Every canary that ran, the latest last.
pub(super) fn canaries(cohort: &Cohort) -> AnyView {
    if cohort.canaries.is_empty() {
        return view! { <p class="note">"No canary has run yet."</p> }.into_any();
    }
    let probe = cohort.draft.canary.as_ref().map(|plan| plan.probe.clone()).unwrap_or_default();
    view! { <div class="stack-tight">{cohort.canaries.iter().map(|canary| one(canary, &probe)).collect_view()}</div> }
        .into_any()
}

fn one(canary: &Canary, probe: &str) -> AnyView {
    let reason = canary.verdict_reason.as_deref().map(|why| format!(": {}", format::words(why)));
    let rows = canary.expectations.iter().map(expectation).collect_view();
    let confirmed = match canary.confirmed_at {
        Some(at) => view! { "confirmed "{when(at)} }.into_any(),
        None => view! { "not confirmed yet" }.into_any(),
    };
    let judged = match (canary.judged_at, canary.deadline_at) {
        (Some(at), _) => view! { ", judged "{when(at)} }.into_any(),
        (None, Some(at)) => view! { ", awaited until "{when(at)} }.into_any(),
        (None, None) => ().into_any(),
    };
    let attributed = match &canary.attributed_by {
        Some(by) => attribution(by).into_any(),
        None => none("not attributed", "Nothing ties the effect to this redrive yet.").into_any(),
    };
    let version = match &canary.worker_version {
        Some(version) => view! { <code>{version.clone()}</code> }.into_any(),
        None => none("unknown", "No worker event names the version that executed it.").into_any(),
    };
    view! {
        <p class="note">
            {words::verdict(canary.verdict).view()}{reason}" · "
            <a class="mono" href=format!("/quarantine/{}", canary.quarantine_id)>{format::short(&canary.quarantine_id.to_string())}</a>
            ", stratum "{canary.stratum}", started "{when(canary.started_at)}", "{confirmed}{judged}
        </p>
        <table class="compare">
            <thead>
                <tr>
                    <th scope="col">{format!("{probe}: expected")}</th>
                    <th scope="col">"Found"</th>
                    <th scope="col">"Result"</th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
        <dl class="facts">
            <div><dt>"before the publish"</dt><dd>{sample(canary.before.as_ref())}</dd></div>
            <div><dt>"last asked"</dt><dd>{sample(canary.after.as_ref())}</dd></div>
            <div><dt>"attributed by"</dt><dd>{attributed}</dd></div>
            <div><dt>"executed by"</dt><dd>{version}</dd></div>
        </dl>
    }.into_any()
}

fn attribution(by: &str) -> String {
    match by {
        "effect_recorded event" => "a worker’s effect_recorded event with this redrive’s id".to_owned(),
        "probe row" => "a row of the probe with this redrive’s id".to_owned(),
        "by exclusion" => "exclusion: no other live message of the job is known".to_owned(),
        other => format::words(other),
    }
}

fn expectation(one: &ExpectationResult) -> AnyView {
    let found = match &one.found {
        Some(value) => format::json(value).into_any(),
        None => none("nothing", "The probe’s rows have nothing there.").into_any(),
    };
    let result = match one.holds {
        Some(true) => state("well", Icon::Check, "holds").into_any(),
        Some(false) => state("poison", Icon::Stop, "differs").into_any(),
        None => state("unknown", Icon::Unknown, "no data").into_any(),
    };
    view! { <tr><th scope="row">{one.expected.clone()}</th><td>{found}</td><td>{result}</td></tr> }.into_any()
}

fn sample(sample: Option<&ProbeSample>) -> AnyView {
    let Some(sample) = sample else { return none("not asked", "The probe hasn’t been asked.").into_any() };
    match &sample.rows {
        Some(rows) if rows.is_empty() => view! { "absent: 0 rows, "{when(sample.at)} }.into_any(),
        Some(rows) => {
            let found = format::many(format::len(rows.len()), "row", "rows");
            view! { {found}", "{when(sample.at)}{rows.iter().map(fields_of).collect_view()} }.into_any()
        }
        None => {
            let why = sample.reason.clone().unwrap_or_else(|| "no answer".to_owned());
            none(format::words(&why), sample.detail.clone().unwrap_or_default()).into_any()
        }
    }
}
