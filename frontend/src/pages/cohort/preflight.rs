//! What the pre-flight found, one by one, with what to do.

use crate::{
    components::{Icon, state, when},
    format,
};
use domain::api::{Cohort, Finding};
use leptos::prelude::*;

/// How many messages of a finding are listed before the rest folds away.
const SHOWN: usize = 8;

/// One line for the plan; inline, since it stands in paragraphs.
pub(super) fn summary(cohort: &Cohort) -> AnyView {
    let flight = &cohort.preflight;
    let refused = flight.refusals.len();
    let open = flight.warnings.iter().filter(|warning| !warning.accepted).count();
    let mark = match flight.at {
        None => state("unknown", Icon::Unknown, "pre-flight not run yet").into_any(),
        Some(_) if refused > 0 => {
            state("poison", Icon::Stop, format::many(format::len(refused), "refusal", "refusals")).into_any()
        }
        Some(_) if open > 0 => state("plain", Icon::Warn, format!("{} to accept", warnings(open))).into_any(),
        Some(_) if !flight.warnings.is_empty() => {
            state("plain", Icon::Warn, format!("{}, accepted by name", warnings(flight.warnings.len()))).into_any()
        }
        Some(_) => state("well", Icon::Check, "pre-flight clean").into_any(),
    };
    view! { <span>{mark}{flight.at.map(|at| view! { " "<span class="note">"read "{when(at)}</span> })}</span> }
        .into_any()
}

fn warnings(number: usize) -> String {
    format::many(format::len(number), "warning", "warnings")
}

/// Every finding. `accept` draws the box of a warning, where it may be accepted here.
pub(super) fn findings(cohort: &Cohort, accept: impl Fn(&Finding) -> AnyView) -> AnyView {
    let flight = &cohort.preflight;
    if flight.refusals.is_empty() && flight.warnings.is_empty() {
        return view! { <p>{summary(cohort)}</p> }.into_any();
    }
    let refusals = flight
        .refusals
        .iter()
        .map(|finding| one(finding, "poison", Icon::Stop, "refused", ().into_any()))
        .collect_view();
    let warnings = flight
        .warnings
        .iter()
        .map(|finding| {
            let word = if finding.accepted { "accepted" } else { "to accept" };
            one(finding, "plain", Icon::Warn, word, accept(finding))
        })
        .collect_view();
    view! { <ul class="findings">{refusals}{warnings}</ul> }.into_any()
}

fn one(finding: &Finding, tone: &'static str, glyph: Icon, word: &'static str, side: AnyView) -> AnyView {
    let link = |id: &domain::ids::QuarantineId| {
        view! { <a class="mono" href=format!("/quarantine/{id}")>{format::short(&id.to_string())}</a>" " }
    };
    let (some, rest) = finding.items.split_at(finding.items.len().min(SHOWN));
    let rest = (!rest.is_empty()).then(|| {
        let more = format!("{} more", rest.len());
        view! { <details><summary>{more}</summary>{rest.iter().map(link).collect_view()}</details> }
    });
    let items = some.iter().map(link).collect_view();
    let count = if finding.items.is_empty() { "the whole cohort".to_owned() } else { format::messages(finding.count) };
    view! {
        <li data-state=tone>
            {state(tone, glyph, word)}
            <div>
                <h3>{finding.detail.clone()}</h3>
                <ul>
                    <li><span>"code"</span><span><code>{finding.code.clone()}</code></span></li>
                    <li><span>{count}</span><span>{items}{rest}</span></li>
                </ul>
            </div>
            <div class="side">{side}</div>
        </li>
    }
    .into_any()
}
