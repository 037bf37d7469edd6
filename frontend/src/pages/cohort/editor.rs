//! The draft: what will be asked of the reviewers. Saved as a whole, under the version that was seen.

use super::{
    Shown, UnsavedDrafts,
    expectations::Expectations,
    fields::Fields,
    opened::Parts,
    preflight::{findings, summary},
    review::reviewer,
    strata::Strata,
};
use crate::{
    api::{Acting, Method, act, new_key},
    clock::use_clock,
    components::{ActButton, Icon, banner, icon},
    format,
    frame::use_me,
};
use domain::{
    api::{Cohort, FieldError, Finding, Problem},
    vocabulary::Permission,
};
use leptos::prelude::*;

/// What went wrong with the last save, at its fields.
#[derive(Clone, Copy)]
struct Errors(RwSignal<Vec<FieldError>>);

impl Errors {
    fn at(self, pointer: &'static str) -> Option<String> {
        self.0.with(|errors| {
            errors.iter().find(|error| error.pointer.starts_with(pointer)).map(|error| error.detail.clone())
        })
    }
}

/// Where each part of a draft is typed: its pointer's beginning, the field's id and label.
const PLACES: [(&str, &str, &str); 21] = [
    ("/title", "draft-title", "Title"),
    ("/reason", "draft-reason", "Reason"),
    ("/condition_fixed/reference", "draft-reference", "Reference"),
    ("/condition_fixed/min_worker_version", "draft-version", "Workers at least"),
    ("/condition_fixed", "draft-condition", "Condition fixed"),
    ("/canary/probe", "draft-probe", "Probe"),
    ("/canary/wait_s", "draft-wait", "Wait up to"),
    ("/canary/max_canaries", "draft-canaries", "Canaries at most"),
    ("/canary/valid_s", "draft-valid", "A pass is valid"),
    ("/canary/attribution", "draft-exclusion", "Attribution"),
    ("/canary/expect", "h-proof", "What the probe’s rows must show"),
    ("/canary/items", "h-strata", "Canaries"),
    ("/expansion/start_per_s", "draft-start", "Start"),
    ("/expansion/max_per_s", "draft-max", "At most"),
    ("/expansion/step_factor", "draft-factor", "Step"),
    ("/expansion/step_s", "draft-step", "every"),
    ("/expansion/max_in_flight", "draft-in-flight", "In flight"),
    ("/expansion/verify_sample_percent", "draft-verify", "Verify"),
    ("/expansion/on_red", "draft-red", "When a guard is red"),
    ("/expires_at", "draft-expires", "May be started until"),
    ("/run_by", "draft-run-by", "Aborts by itself at"),
];

fn place(pointer: &str) -> Option<(&'static str, &'static str)> {
    PLACES.iter().find(|(begins, ..)| pointer.starts_with(begins)).map(|(_, id, label)| (*id, *label))
}

/// Every field that needs another look, each a way to it.
fn to_mend(errors: Errors) -> impl IntoView {
    move || {
        let errors = errors.0.get();
        (!errors.is_empty()).then(|| {
            let fields = errors
                .iter()
                .map(|error| {
                    let detail = error.detail.clone();
                    match place(&error.pointer) {
                        Some((id, label)) => {
                            let go = move |event: leptos::ev::MouseEvent| {
                                event.prevent_default();
                                focus(id);
                            };
                            view! { <li><a href=format!("#{id}") on:click=go>{label}</a>": "{detail}</li> }.into_any()
                        }
                        None => view! { <li><code>{error.pointer.clone()}</code>": "{detail}</li> }.into_any(),
                    }
                })
                .collect_view();
            view! {
                <div class="banner" data-state="poison" role="alert">
                    {icon(Icon::Stop)}
                    <div><p><b>"Not saved. "</b>{bad_fields(errors.len())}</p><ul>{fields}</ul></div>
                </div>
            }
        })
    }
}

fn bad_fields(number: usize) -> String {
    format::many(format::len(number), "field needs another look", "fields need another look")
}

fn focus(id: &str) {
    #[cfg(feature = "hydrate")]
    {
        use wasm_bindgen::JsCast as _;
        let found = document().get_element_by_id(id);
        if let Some(field) = found.and_then(|found| found.dyn_into::<web_sys::HtmlElement>().ok()) {
            field.scroll_into_view();
            // refused only by an element that can't have it
            let _ = field.focus();
        }
    }
    #[cfg(not(feature = "hydrate"))]
    let _ = id;
}

/// The form.
#[component]
pub(super) fn Editor(shown: Shown, parts: Parts) -> impl IntoView {
    let clock = use_clock();
    let unsaved = UnsavedDrafts::of_context();
    let id = shown.with_untracked(|cohort| cohort.row.id);
    let fields = shown.with_untracked(|cohort| Fields::of(cohort, clock));
    let back = unsaved.put_back(id, fields);
    let dirty = Memo::new(move |_| fields.is_unsaved());
    Effect::new(move |_| unsaved.keep(id, fields));
    let errors = Errors(RwSignal::new(Vec::new()));
    let problem = RwSignal::new(None::<Problem>);
    let busy = RwSignal::new(false);
    let saved = RwSignal::new(false);
    let lacks = use_me().and_then(|me| me.lacks(Permission::Respond));
    let why_not = Signal::derive(move || lacks.clone().or_else(|| busy.get().then(|| "being saved".to_owned())));
    let refuse = move |bad: Vec<FieldError>| {
        let first = bad.first().and_then(|error| place(&error.pointer));
        errors.0.set(bad);
        if let Some((id, _)) = first {
            focus(id);
        }
    };
    let save = move || {
        saved.set(false);
        problem.set(None);
        errors.0.set(Vec::new());
        let draft = match fields.read() {
            Ok(draft) => draft,
            Err(bad) => return refuse(bad),
        };
        busy.set(true);
        let typed = untrack(|| fields.typed());
        let (path, version) =
            shown.with_untracked(|cohort| (format!("/cohorts/{}", cohort.row.id), fields.version(cohort)));
        let acting = Acting { key: new_key(), version: Some(version) };
        let answer = act::<_, Cohort>(Method::Patch, &path, Some(&draft), acting);
        leptos::task::spawn_local(async move {
            let answer = answer.await;
            if busy.try_set(false).is_some() {
                if answer.is_ok() {
                    unsaved.forget(id);
                }
                return;
            }
            match answer {
                Ok(cohort) => {
                    saved.set(true);
                    fields.saved(&cohort, typed);
                    shown.take(cohort);
                }
                Err(refused) if refused.errors.is_empty() => problem.set(Some(refused)),
                Err(refused) => refuse(refused.errors),
            }
        });
    };
    let standing = move || match (errors.0.with(Vec::len), dirty.get(), saved.get()) {
        (bad @ 1.., ..) => format!("not saved: {}", bad_fields(bad)),
        (0, true, _) => "not saved yet: changes count when they are saved".to_owned(),
        (0, false, true) => "saved; the pre-flight above is of what was saved".to_owned(),
        (0, false, false) => "changes count when they are saved".to_owned(),
    };
    let back = back.then(|| {
        view! {
            <p class="banner" data-state="plain" role="status">
                {icon(Icon::Audit)}
                <span>"What you typed here before is back. "<b>"It isn’t saved."</b></span>
            </p>
        }
    });
    view! {
        <div class="stack">
            {back}
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
            {to_mend(errors)}
            {move || problem.get().map(|problem| banner(&problem))}
            <div class="foot-bar">
                <p>
                    {move || shown.with(summary)}
                    <small role="status">{standing}</small>
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
                    <input class="input" id="draft-title" maxlength="200" aria-describedby="draft-title-error" aria-invalid=move || errors.at("/title").map(|_| "true") value=fields.title.get_untracked() prop:value=fields.title on:input=move |event| fields.title.set(event_target_value(&event)) />
                    <span class="error" id="draft-title-error">{move || errors.at("/title")}</span>
                </div>
                <div class="field full">
                    <label for="draft-reason">"Reason"</label>
                    <textarea class="input" id="draft-reason" maxlength="2000" aria-describedby="draft-reason-error" aria-invalid=move || errors.at("/reason").map(|_| "true") prop:value=fields.reason on:input=move |event| fields.reason.set(event_target_value(&event))>{fields.reason.get_untracked()}</textarea>
                    <span class="error" id="draft-reason-error">{move || errors.at("/reason")}</span>
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
            <header><h2 id="h-proof" tabindex="-1">"How the canary’s effect is proved"</h2><span class="meta">"absent before, as expected after, this redrive’s"</span></header>
            <div class="fields">
                {field("Probe", "draft-probe", fields.probe, "", (errors, "/canary/probe"))}
                {field("Wait up to", "draft-wait", fields.wait, "s", (errors, "/canary/wait_s"))}
                {field("Canaries at most", "draft-canaries", fields.max_canaries, "per stratum", (errors, "/canary/max_canaries"))}
                {field("A pass is valid", "draft-valid", fields.valid, "s", (errors, "/canary/valid_s"))}
                <div class="field">
                    <span class="label">"Attribution"</span>
                    <label class="check">
                        <input type="checkbox" id="draft-exclusion" prop:checked=fields.by_exclusion on:change=move |event| fields.by_exclusion.set(event_target_checked(&event)) />
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
                    <span class="hint">"Part of the plan; without effect while there are no guards."</span>
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
