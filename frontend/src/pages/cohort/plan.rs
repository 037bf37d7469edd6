//! The plan as clauses: what an approval covers.

use super::preflight::summary;
use crate::{
    components::{none, num, when_ago},
    format,
};
use domain::api::{Attribution, Cohort, ConditionFixed, ConditionKind, ExpectOp, Expectation, OnRed, Timestamp};
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
                <p>{format::messages(cohort.row.size)}" of "<code>{cohort.row.queue.name.clone()}</code>". The list is frozen."</p>
                <div class="specs">{strata}</div>
                <p>{summary(cohort)}</p>
            })}
            {clause("Reason", view! { <p>"“"{draft.reason.clone()}"” — "{cohort.row.created_by.username.clone()}</p> })}
            {clause("What changed", condition(draft.condition_fixed.as_ref()))}
            {clause("Target", target(cohort))}
            {clause("Generation", generation(cohort))}
            {clause("Canary", canary(cohort))}
            {clause("Expansion", expansion(cohort))}
            {clause("Limits in time", deadlines(cohort))}
            {clause("Expiration", view! { <p>{expiration(cohort)}</p> })}
            {clause("Accepted by name", accepted(cohort))}
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

fn deadlines(cohort: &Cohort) -> AnyView {
    let at = |at: Option<Timestamp>| match at {
        Some(at) => when_ago(at),
        None => none("not stated", "A plan without it can’t be submitted."),
    };
    view! { <p>"May be started until "{at(cohort.draft.expires_at)}"; aborts by itself at "{at(cohort.draft.run_by)}"."</p> }
        .into_any()
}

fn expiration(cohort: &Cohort) -> &'static str {
    if cohort.draft.restore_expiration {
        "Each message gets its expiration back, as it was before the death: it may expire again before it is worked on."
    } else {
        "No message gets its expiration back: none expires before it is worked on."
    }
}

fn accepted(cohort: &Cohort) -> AnyView {
    let warnings = &cohort.draft.accept_warnings;
    if warnings.is_empty() {
        return view! { <p>"No warning is accepted."</p> }.into_any();
    }
    let codes = warnings.iter().map(|code| view! { <li><code>{code.clone()}</code></li> }).collect_view();
    view! { <p>"These warnings of the pre-flight are accepted:"</p><ul>{codes}</ul> }.into_any()
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

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::pages::cohort::{review, sample};
    use domain::{ids::QueueId, plan::Facts};
    use serde_json::Value;

    /// A piece of what the plan's clauses say of each part that the digest covers, for the sample.
    const CLAUSES: [(&str, &str); 11] = [
        ("target", "order.created"),
        ("items", "2 messages"),
        ("condition_fixed", "release 2026.12.2"),
        ("corrections", "Payloads are not corrected"),
        ("restore_expiration", "gets its expiration back, as it was"),
        ("accepted_warnings", "possible_duplicate"),
        ("canary", "/0/amount_cents"),
        ("expansion", "×1.5"),
        ("guards", "No guards"),
        ("expires_at", "03:30:00.000 UTC"),
        ("run_by", "04:45:00.000 UTC"),
    ];

    /// The same for the parts that stand beside the plan, under "What the digest covers".
    const BESIDE: [(&str, &str); 6] = [
        ("format", "lazaret.plan.v1"),
        ("cohort", "0000-0000-0000-00000000000c"),
        ("queue", "0000-0000-0000-000000000009"),
        ("lane", "the lane of orders"),
        ("probe", "SELECT amount_cents FROM invoices"),
        ("verification_sample", "verification sample"),
    ];

    #[test]
    fn the_approver_is_shown_everything_that_the_digest_covers() {
        Owner::new().with(|| {
            let cohort = sample::cohort();
            let probe = sample::probe();
            let facts = Facts {
                cohort: cohort.row.id,
                queue: QueueId(uuid::Uuid::from_u128(9)),
                lane: "the lane of orders",
                target: ("shop", "order.created"),
                draft: &cohort.draft,
                items: &sample::items(),
                probe: Some(&probe),
                verification_sample: &[1],
            };
            let canonical = String::from_utf8(domain::plan::build(&facts).unwrap().canonical).unwrap();
            // without the marks that hydration needs
            let clauses = plan(&cohort).to_html().replace("<!>", "");
            let beside = review::covered(&canonical).to_html().replace("<!>", "");
            let Value::Object(parts) = serde_json::from_str(&canonical).unwrap() else { panic!("an object") };
            // always null: capacity isn't configured yet
            for part in parts.keys().filter(|part| *part != "capacity") {
                let piece =
                    |of: &[(&str, &'static str)]| of.iter().find(|(known, _)| known == part).map(|(_, piece)| *piece);
                let (page, piece) = match (piece(&CLAUSES), piece(&BESIDE)) {
                    (Some(piece), _) => (&clauses, piece),
                    (None, Some(piece)) => (&beside, piece),
                    (None, None) => panic!("{part} has no place on the page"),
                };
                assert!(page.contains(piece), "{part}: no {piece:?} in {page}");
            }
        });
    }
}
