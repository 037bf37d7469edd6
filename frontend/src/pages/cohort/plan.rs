//! The plan as clauses: what an approval covers.

use super::preflight::summary;
use crate::{components::num, format};
use domain::api::{Attribution, Cohort, ConditionFixed, ConditionKind, ExpectOp, Expectation, OnRed};
use leptos::prelude::*;

/// The clauses.
pub(super) fn plan(cohort: &Cohort) -> AnyView {
    let draft = &cohort.draft;
    let strata = cohort
        .strata
        .iter()
        .map(|stratum| {
            let class = stratum.error_class.clone().unwrap_or_else(|| "unclassified".to_owned());
            view! { <span>{class}" "{num(stratum.size)}</span> }
        })
        .collect_view();
    view! {
        <ol class="plan">
            {clause("Items", view! {
                <p>{num(cohort.row.size)}" messages of "<code>{cohort.row.queue.name.clone()}</code>". The list is frozen."</p>
                <div class="specs">{strata}</div>
                <p>{summary(cohort)}</p>
            })}
            {clause("Reason", view! { <p>"“"{draft.reason.clone()}"” — "{cohort.row.created_by.username.clone()}</p> })}
            {clause("What changed", condition(draft.condition_fixed.as_ref()))}
            {clause("Target", target(cohort))}
            {clause("Generation", generation(cohort))}
            {clause("Canary", canary(cohort))}
            {clause("Expansion", expansion(cohort))}
            {clause("Guards", view! { <p>"No guards: nothing but the plan’s own limits, the freeze and a person stops this replay."</p> })}
        </ol>
    }.into_any()
}

fn clause(name: &'static str, body: impl IntoView) -> AnyView {
    view! { <li><h3>{name}</h3><div>{body}</div></li> }.into_any()
}

pub(super) const fn condition_word(kind: ConditionKind) -> &'static str {
    match kind {
        ConditionKind::WorkerVersion => "worker version",
        ConditionKind::Downstream => "downstream",
        ConditionKind::Configuration => "configuration",
        ConditionKind::Data => "data",
    }
}

fn condition(fixed: Option<&ConditionFixed>) -> AnyView {
    let text = match fixed {
        Some(fixed) => {
            let version = fixed
                .min_worker_version
                .as_ref()
                .map(|version| format!(" Workers at least {version}."))
                .unwrap_or_default();
            format!(
                "Condition fixed, {}: {}.{version} Payloads are not corrected.",
                condition_word(fixed.kind),
                fixed.reference
            )
        }
        None => "Nothing is stated to be fixed, and payloads are not corrected.".to_owned(),
    };
    view! { <p>{text}" "<span class="note">"A permanent class needs a condition fixed."</span></p> }.into_any()
}

fn target(cohort: &Cohort) -> AnyView {
    let target = &cohort.target;
    let exchange = if target.exchange.is_empty() {
        "The default exchange".to_owned()
    } else {
        format!("Exchange {}", target.exchange)
    };
    let default = if target.is_default { "the default target" } else { "chosen by the author" };
    let receivers = match &target.receivers {
        Some(receivers) => format!("received by {}", receivers.join(", ")),
        None => "who else receives it isn’t known: the management API doesn’t answer".to_owned(),
    };
    view! {
        <p>{exchange}" → "<code>{target.routing_key.clone()}</code>", "{default}"."</p>
        <div class="specs"><span>{receivers}</span></div>
    }
    .into_any()
}

fn generation(cohort: &Cohort) -> AnyView {
    let text = match cohort.row.generation {
        Some(generation) => format!("{generation}. "),
        None => "Given out on approval, above every earlier one. ".to_owned(),
    };
    view! { <p>{text}<code>"attempt"</code>" is not reset."</p> }.into_any()
}

fn canary(cohort: &Cohort) -> AnyView {
    let Some(plan) = cohort.draft.canary.clone() else {
        return view! { <p>"No canary is planned yet: a plan without one can’t be submitted."</p> }.into_any();
    };
    let items = plan
        .items
        .iter()
        .map(|id| view! { <a class="mono" href=format!("/quarantine/{id}")>{format::short(&id.to_string())}</a>" " })
        .collect_view();
    let expected = plan.expect.iter().map(|one| view! { <li><code>{expectation(one)}</code></li> }).collect_view();
    let attributed = match plan.attribution {
        Attribution::RedriveId => "by this redrive’s id",
        Attribution::ByExclusion => "by exclusion: no other live message of the job is known",
    };
    view! {
        <p>{items}"one after another; then up to "{plan.wait_s}" s for probe "<code>{plan.probe.clone()}</code>":"</p>
        <ul>{expected}</ul>
        <div class="specs">
            <span>"attributed "{attributed}</span>
            <span>"at most "{num(plan.max_canaries)}" per stratum"</span>
            <span>"valid "<span class="num">{plan.valid_s}<span class="unit">"s"</span></span></span>
        </div>
    }
    .into_any()
}

/// `/0/status eq "issued"`.
pub(super) fn expectation(one: &Expectation) -> String {
    let op = match one.op {
        ExpectOp::Eq => "=",
        ExpectOp::Gte => "≥",
        ExpectOp::Exists => "exists",
    };
    match (&one.value, &one.from_evidence) {
        (_, Some(pointer)) => format!("{} {op} the message’s {pointer}", one.pointer),
        (Some(value), None) => format!("{} {op} {value}", one.pointer),
        (None, None) => format!("{} {op}", one.pointer),
    }
}

fn expansion(cohort: &Cohort) -> AnyView {
    let Some(plan) = cohort.draft.expansion.clone() else {
        return view! { <p>"No expansion is planned yet."</p> }.into_any();
    };
    let red = match plan.on_red {
        OnRed::Halve => "halve once, then pause",
        OnRed::Pause => "pause at once",
    };
    view! {
        <div class="specs">
            <span>"start "<span class="num">{format::rate(plan.start_per_s)}<span class="unit">"/s"</span></span></span>
            <span>"step "<span class="num">"×"{format::rate(plan.step_factor)}</span>" every "<span class="num">{plan.step_s}<span class="unit">"s"</span></span></span>
            <span>"at most "<span class="num">{format::rate(plan.max_per_s)}<span class="unit">"/s"</span></span></span>
            <span>"in flight of this replay ≤ "{num(plan.max_in_flight)}</span>
            <span>"verified "<span class="num">{plan.verify_sample_percent}<span class="unit">"%"</span></span></span>
            <span>"on red "{red}</span>
        </div>
        <p class="note">"Capacity isn’t configured: headroom is unknown, and the plan’s own limit binds."</p>
    }
    .into_any()
}
