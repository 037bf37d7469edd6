//! The draft: what will be asked of the reviewers. Saved as a whole, under the version that was seen.

use super::{
    Shown,
    expectations::Expectations,
    fields::Fields,
    opened::{Parts, items_path},
    preflight::{findings, summary},
    review::reviewer,
};
use crate::{
    api::{Acting, Method, act, get, new_key},
    clock::use_clock,
    components::{ActButton, Beside, Icon, banner, num, state},
    format,
    frame::use_me,
};
use domain::{
    api::{Cohort, CohortItem, FieldError, Finding, Page, Problem},
    vocabulary::Permission,
};
use leptos::prelude::*;

/// What went wrong with the last save: at its fields, and as a whole.
#[derive(Clone, Copy)]
struct Errors(RwSignal<Vec<FieldError>>);

impl Errors {
    fn at(self, pointer: &'static str) -> Option<String> {
        self.0.with(|errors| {
            errors.iter().find(|error| error.pointer.starts_with(pointer)).map(|error| error.detail.clone())
        })
    }
}

/// The form.
#[component]
pub(super) fn Editor(shown: Shown, parts: Parts) -> impl IntoView {
    let clock = use_clock();
    let fields = StoredValue::new(shown.with_untracked(|cohort| Fields::of(cohort, clock)));
    let fields = fields.get_value();
    let errors = Errors(RwSignal::new(Vec::new()));
    let problem = RwSignal::new(None::<Problem>);
    let busy = RwSignal::new(false);
    let saved = RwSignal::new(false);
    let lacks = use_me().and_then(|me| me.lacks(Permission::Respond));
    let why_not = Signal::derive(move || lacks.clone().or_else(|| busy.get().then(|| "being saved".to_owned())));
    let save = move || {
        saved.set(false);
        problem.set(None);
        let draft = match fields.read() {
            Ok(draft) => draft,
            Err(bad) => {
                errors.0.set(bad);
                return;
            }
        };
        errors.0.set(Vec::new());
        busy.set(true);
        let (path, version) =
            shown.with_untracked(|cohort| (format!("/cohorts/{}", cohort.row.id), fields.version(cohort)));
        let acting = Acting { key: new_key(), version: Some(version) };
        let answer = act::<_, Cohort>(Method::Patch, &path, Some(&draft), acting);
        leptos::task::spawn_local(async move {
            let answer = answer.await;
            if busy.try_set(false).is_some() {
                return;
            }
            match answer {
                Ok(cohort) => {
                    saved.set(true);
                    fields.saved(&cohort);
                    shown.take(cohort);
                }
                Err(refused) => {
                    errors.0.set(refused.errors.clone());
                    problem.set(Some(refused));
                }
            }
        });
    };
    view! {
        <div class="stack">
            <Selection shown />
            <Strata shown parts fields />
            <section class="panel" aria-labelledby="h-preflight">
                <header><h2 id="h-preflight">"Pre-flight"</h2><span class="meta">"run at each save and at submit"</span></header>
                {move || shown.with(|cohort| findings(cohort, |finding| accept(finding, fields)))}
            </section>
            {what_changed(fields, errors)}
            {canary(fields, errors)}
            <div class="split-even">
                {expansion(fields, errors)}
                <div class="stack">
                    {limits(fields, errors)}
                    <section class="panel" aria-labelledby="h-who">
                        <header>
                            <h2 id="h-who">"Who may approve"</h2>
                            <span class="meta">{move || shown.with(|cohort| format!("{} needed", cohort.approvals.needed))}</span>
                        </header>
                        <div class="review"><ul class="who">{move || shown.with(|cohort| cohort.reviewers.iter().map(reviewer).collect_view())}</ul></div>
                    </section>
                    <section class="panel" aria-labelledby="h-guards">
                        <header><h2 id="h-guards">"Guards"</h2></header>
                        <p class="note">"No guards: they aren’t built yet. The plan’s limits, the freeze and a person stop a replay."</p>
                    </section>
                </div>
            </div>
            {move || problem.get().map(|problem| banner(&problem))}
            <div class="foot-bar">
                <p>
                    {move || shown.with(summary)}
                    <small role="status">{move || if saved.get() { "saved; the pre-flight above is of what was saved" } else { "changes count when they are saved" }}</small>
                </p>
                <div class="acts"><ActButton label="Save the draft" kind="primary" why_not on_press=save /></div>
            </div>
        </div>
    }
}

#[component]
fn Selection(shown: Shown) -> impl IntoView {
    view! {
        <section class="panel" aria-labelledby="h-selection">
            <header><h2 id="h-selection">"Selection"</h2><span class="meta">"frozen as a list; later arrivals are not added"</span></header>
            <p class="note">
                {move || shown.with(|cohort| format!("{} of {}. ", format::messages(cohort.row.size), cohort.row.queue.name))}
                <a href=move || shown.with(|cohort| format!("/cohorts/{}?tab=items", cohort.row.id))>"See each"</a>
            </p>
        </section>
    }
}

/// Alike messages, each with the one canary that proves them.
#[component]
fn Strata(shown: Shown, parts: Parts, fields: Fields) -> impl IntoView {
    // candidates to choose from: the first items of the cohort
    let first = parts.try_update_value(|parts| parts.items.take()).flatten();
    let items =
        Beside::<Page<CohortItem>>::new(
            first,
            &[],
            move || get(&shown.with_untracked(|cohort| items_path(cohort, ""))),
        );
    let rows = move |items: Vec<CohortItem>| {
        shown.with(|cohort| {
            cohort
                .strata
                .iter()
                .zip(fields.canaries.get())
                .map(|(stratum, chosen)| {
                    let class = stratum.error_class.clone().unwrap_or_else(|| "unclassified".to_owned());
                    let options = items
                        .iter()
                        .filter(|item| item.stratum == stratum.index)
                        .map(|item| {
                            let value = item.quarantine_id.to_string();
                            let job = item.job_id.as_ref().map_or_else(|| format::short(&value), ToString::to_string);
                            let selected = chosen.get_untracked() == value;
                            view! { <option value=value.clone() selected=selected>{job}</option> }
                        })
                        .collect_view();
                    let inspected = if stratum.canary_inspected {
                        state("well", Icon::Check, "payload opened").into_any()
                    } else {
                        state("poison", Icon::Lock, "not yet: open its payload first").into_any()
                    };
                    let label = format!("Canary of stratum {}", stratum.index);
                    view! {
                        <tr>
                            <th scope="row" class="lead"><span class="mono">{class}</span>" "<small class="dim">{format::short(&stratum.fingerprint)}</small></th>
                            <td class="end" data-label="Items">{num(stratum.size)}</td>
                            <td class="pair" data-label="Canary, exactly one">
                                <select class="input" aria-label=label on:change=move |event| chosen.set(event_target_value(&event))>
                                    <option value="">"choose one…"</option>
                                    {options}
                                </select>
                            </td>
                            <td data-label="Payload">{move || {
                                let chosen = chosen.get();
                                (!chosen.is_empty()).then(|| view! { <a href=format!("/quarantine/{chosen}")>"Open its payload"</a> })
                            }}</td>
                            <td class="pair" data-label="Inspected">{inspected}</td>
                        </tr>
                    }
                })
                .collect_view()
        })
    };
    view! {
        <section class="panel" aria-labelledby="h-strata">
            <header><h2 id="h-strata">"Strata"</h2><span class="meta">"alike: same fingerprint, same target"</span></header>
            {items.show(move |page| {
                let rows = move || rows(page.get().items);
                view! {
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
                }
                .into_any()
            })}
            <p class="note">"Each stratum proves itself with its own canary, one after another, before anything expands."</p>
        </section>
    }
}

fn accept(finding: &Finding, fields: Fields) -> AnyView {
    let code = finding.code.clone();
    let chosen = {
        let code = code.clone();
        move || fields.accepted.with(|accepted| accepted.contains(&code))
    };
    let toggle = {
        let code = code.clone();
        move |_| {
            fields.accepted.update(|accepted| {
                if accepted.contains(&code) { accepted.retain(|one| *one != code) } else { accepted.push(code.clone()) }
            })
        }
    };
    let many = if finding.items.is_empty() { "the whole cohort".to_owned() } else { format::messages(finding.count) };
    view! { <label class="check"><input type="checkbox" prop:checked=chosen on:change=toggle /><span>"I accept "<code>{code}</code>" for "{many}</span></label> }
        .into_any()
}

/// A text field with its unit and its error.
fn field(
    label: &'static str,
    id: &'static str,
    value: RwSignal<String>,
    unit: &'static str,
    (errors, pointer): (Errors, &'static str),
) -> AnyView {
    let error = move || errors.at(pointer);
    let kind = if matches!(id, "draft-expires" | "draft-run-by") { "datetime-local" } else { "text" };
    let error_id = format!("{id}-error");
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <span class="with-unit">
                <input class="input mono" type=kind id=id aria-describedby=error_id.clone() aria-invalid=move || error().map(|_| "true") prop:value=value value=value.get_untracked() on:input=move |event| value.set(event_target_value(&event)) />
                <span class="unit">{unit}</span>
            </span>
            <span class="error" id=error_id>{error}</span>
        </div>
    }.into_any()
}

fn what_changed(fields: Fields, errors: Errors) -> AnyView {
    let kinds = [
        ("", "nothing is stated"),
        ("worker_version", "worker version"),
        ("downstream", "downstream"),
        ("configuration", "configuration"),
        ("data", "data"),
    ];
    let options = kinds
        .map(|(value, word)| view! { <option value=value selected=fields.condition.get_untracked() == value>{word}</option> })
        .into_iter()
        .collect_view();
    view! {
        <section class="panel" aria-labelledby="h-why">
            <header><h2 id="h-why">"Why, and what changed"</h2><span class="meta">"needed for a permanent kind; said for a transient one"</span></header>
            <div class="fields">
                <div class="field full">
                    <label for="draft-title">"Title"</label>
                    <input class="input" id="draft-title" maxlength="200" value=fields.title.get_untracked() prop:value=fields.title on:input=move |event| fields.title.set(event_target_value(&event)) />
                    <span class="error">{move || errors.at("/title")}</span>
                </div>
                <div class="field full">
                    <label for="draft-reason">"Reason"</label>
                    <textarea class="input" id="draft-reason" maxlength="2000" prop:value=fields.reason on:input=move |event| fields.reason.set(event_target_value(&event))>{fields.reason.get_untracked()}</textarea>
                    <span class="error">{move || errors.at("/reason")}</span>
                </div>
                <div class="field">
                    <label for="draft-condition">"Condition fixed"</label>
                    <select class="input" id="draft-condition" on:change=move |event| fields.condition.set(event_target_value(&event))>{options}</select>
                </div>
                {field("Reference", "draft-reference", fields.reference, "", (errors, "/condition_fixed/reference"))}
                {field("Workers at least", "draft-version", fields.min_version, "", (errors, "/condition_fixed/min_worker_version"))}
            </div>
        </section>
    }.into_any()
}

fn canary(fields: Fields, errors: Errors) -> AnyView {
    view! {
        <section class="panel" aria-labelledby="h-proof">
            <header><h2 id="h-proof">"How the canary’s effect is proved"</h2><span class="meta">"absent before, as expected after, this redrive’s"</span></header>
            <div class="fields">
                {field("Probe", "draft-probe", fields.probe, "", (errors, "/canary/probe"))}
                {field("Wait up to", "draft-wait", fields.wait, "s", (errors, "/canary/wait_s"))}
                {field("Canaries at most", "draft-canaries", fields.max_canaries, "per stratum", (errors, "/canary/max_canaries"))}
                {field("A pass is valid", "draft-valid", fields.valid, "s", (errors, "/canary/valid_s"))}
                <div class="field">
                    <span class="label">"Attribution"</span>
                    <label class="check">
                        <input type="checkbox" prop:checked=fields.by_exclusion on:change=move |event| fields.by_exclusion.set(event_target_checked(&event)) />
                        "by exclusion, where no redrive id comes back"
                    </label>
                </div>
            </div>
            <Expectations lines=fields.expect />
            <span class="error">{move || errors.at("/canary/expect").or_else(|| errors.at("/canary/items"))}</span>
        </section>
    }.into_any()
}

fn expansion(fields: Fields, errors: Errors) -> AnyView {
    view! {
        <section class="panel" aria-labelledby="h-expansion">
            <header><h2 id="h-expansion">"Expansion"</h2></header>
            <div class="fields">
                {field("Start", "draft-start", fields.start, "/s", (errors, "/expansion/start_per_s"))}
                {field("At most", "draft-max", fields.max, "/s", (errors, "/expansion/max_per_s"))}
                {field("Step", "draft-factor", fields.factor, "×", (errors, "/expansion/step_factor"))}
                {field("every", "draft-step", fields.step, "s", (errors, "/expansion/step_s"))}
                {field("In flight", "draft-in-flight", fields.in_flight, "messages", (errors, "/expansion/max_in_flight"))}
                {field("Verify", "draft-verify", fields.verify, "%", (errors, "/expansion/verify_sample_percent"))}
                <div class="field">
                    <label for="draft-red">"When a guard is red"</label>
                    <select class="input" id="draft-red" on:change=move |event| fields.on_red.set(event_target_value(&event))>
                        <option value="halve" selected=fields.on_red.get_untracked() == "halve">"halve, then pause"</option>
                        <option value="pause" selected=fields.on_red.get_untracked() == "pause">"pause at once"</option>
                    </select>
                </div>
            </div>
        </section>
    }.into_any()
}

fn limits(fields: Fields, errors: Errors) -> AnyView {
    view! {
        <section class="panel" aria-labelledby="h-limits">
            <header><h2 id="h-limits">"Limits in time"</h2></header>
            <div class="fields">
                {field("May be started until", "draft-expires", fields.expires, "UTC", (errors, "/expires_at"))}
                {field("Aborts by itself at", "draft-run-by", fields.run_by, "UTC", (errors, "/run_by"))}
                <div class="field">
                    <span class="label">"Expiration"</span>
                    <label class="check">
                        <input type="checkbox" prop:checked=fields.restore_expiration on:change=move |event| fields.restore_expiration.set(event_target_checked(&event)) />
                        "put back as it was before the death"
                    </label>
                </div>
            </div>
        </section>
    }
    .into_any()
}
