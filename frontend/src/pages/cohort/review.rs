//! Plan and review: what one approves, by digest; who may and who may not; the form, which also posts without scripts.

use super::{Shown, opened::Parts, plan::plan, preflight::findings};
use crate::{
    api::{Acting, Answer, Method, act, get, new_key},
    components::{Badge, Beside, Done, Icon, banner, fields_of, icon, toned, use_hydrated, when, when_ago},
    format,
    live::Topic,
    words,
};
use domain::{
    api::{Approve, Cohort, Comment, ConfirmSession, PlanView, Problem, Reviewer},
    vocabulary::{CohortCommand as Command, CohortState},
};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use serde_json::Value;

/// The plan, and beside it the review while there is one.
#[component]
pub(super) fn PlanAndReview(shown: Shown, parts: Parts) -> impl IntoView {
    // another plan is another review: what was typed for the old one doesn't count for it
    let in_review = Memo::new(move |_| {
        shown.with(|cohort| (cohort.row.state == CohortState::InReview).then(|| cohort.plan_digest.clone()))
    });
    let refused = use_query_map().with_untracked(|query| query.get("refused"));
    let refused = refused.map(|code| {
        view! {
            <p class="banner" data-state="poison" role="alert">
                {icon(Icon::Stop)}
                <span><b>"Your review was not taken. "</b>{why_refused(&code)}" "<code>{code.clone()}</code></span>
            </p>
        }
    });
    view! {
        {refused}
        <div class="split wide">
            <section class="panel" aria-labelledby="h-plan">
                <header>
                    <h2 id="h-plan">"The plan"</h2>
                    <span class="meta">{move || shown.with(|cohort| format!("revision {}", cohort.row.revision))}</span>
                </header>
                {move || shown.with(plan)}
                {move || shown.with(|cohort| findings(cohort, |_| ().into_any()))}
            </section>
            <div class="stack">
                {move || in_review.get().map(|digest| view! { <ReviewPanel shown digest /> })}
                <Canonical shown parts />
                {move || shown.with(reviews)}
            </div>
        </div>
    }
}

fn why_refused(code: &str) -> String {
    match code {
        "count_mismatch" => "The typed count isn’t the number of messages.".to_owned(),
        "plan_digest_mismatch" => "The plan changed since you saw it: look again.".to_owned(),
        "stale_version" => "The cohort changed since you saw it: look again.".to_owned(),
        "self_approval" => "You touched this plan: another person must approve it.".to_owned(),
        "reauthentication_required" => {
            "An approval needs a sign-in of the last five minutes: type your password.".to_owned()
        }
        "wrong_credentials" => "The password is wrong.".to_owned(),
        other => format::sentence(&format::words(other)),
    }
}

#[component]
fn ReviewPanel(
    shown: Shown,
    /// What is shown beside it, and all that an approval from here covers.
    digest: String,
) -> impl IntoView {
    let hydrated = use_hydrated();
    let (id, size) = shown.with_untracked(|cohort| (cohort.row.id, cohort.row.size));
    // rises with a colleague's approval of the same plan; that the plan is the same is the digest's to say
    let version = Memo::new(move |_| shown.with(|cohort| cohort.row.version));
    let comment = RwSignal::new(String::new());
    let typed = RwSignal::new(String::new());
    let password = RwSignal::new(String::new());
    let busy = RwSignal::new(false);
    let problem = RwSignal::new(None::<Problem>);
    let told = Done::of_context();
    // one key for one intention: another decision is another intention
    let keys = StoredValue::new([new_key(), new_key(), new_key(), new_key()]);
    let act_of =
        move |command: Command| shown.with(|cohort| cohort.acts.iter().find(|act| act.command == command).cloned());
    let why_not = move |command: Command| {
        let act = act_of(command)?;
        // signing in again is done right here
        (!act.allowed && act.reason.as_deref() != Some("reauthentication_required"))
            .then(|| act.detail.or(act.reason).unwrap_or_else(|| "not now".to_owned()))
    };
    let submit = {
        let digest = digest.clone();
        move |event: leptos::ev::SubmitEvent| {
            event.prevent_default();
            if busy.get_untracked() {
                return;
            }
            let decision = submitter(&event);
            let typed: String = typed.get_untracked().chars().filter(char::is_ascii_digit).collect();
            if decision == Command::Approve && size > 1 && typed.parse() != Ok(size) {
                problem.set(Some(local("count_mismatch", "The typed count isn’t the number of messages.")));
                return;
            }
            busy.set(true);
            problem.set(None);
            let [confirm_key, approve_key, changes_key, reject_key] = keys.get_value();
            let password = password.get_untracked();
            let comment = comment.get_untracked().trim().to_owned();
            let digest = digest.clone();
            let version = version.get_untracked();
            leptos::task::spawn_local(async move {
                let done: Answer<()> = async {
                    if !password.is_empty() {
                        let confirm = ConfirmSession { password };
                        let acting = Acting { key: confirm_key, version: None };
                        act::<_, serde::de::IgnoredAny>(Method::Post, "/session/confirm", Some(&confirm), acting)
                            .await?;
                    }
                    let path = |segment: &str| format!("/cohorts/{id}/{segment}");
                    let acting = |key: String| Acting { key, version: Some(version) };
                    let answer: Answer<serde::de::IgnoredAny> = match decision {
                        Command::RequestChanges => {
                            act(Method::Post, &path("request-changes"), Some(&Comment { comment }), acting(changes_key))
                                .await
                        }
                        Command::Reject => {
                            act(Method::Post, &path("reject"), Some(&Comment { comment }), acting(reject_key)).await
                        }
                        _ => {
                            let body = Approve { plan_digest: digest, comment };
                            act(Method::Post, &path("approve"), Some(&body), acting(approve_key)).await
                        }
                    };
                    answer.map(|_| ())
                }
                .await;
                if busy.try_set(false).is_some() {
                    return;
                }
                match done {
                    Ok(()) => {
                        told.tell(format!("Your review: {}.", words::decision(decision).word));
                        shown.reread();
                    }
                    Err(refused) => {
                        // a refusal is final for its key: the next press is a new intention
                        keys.set_value([new_key(), new_key(), new_key(), new_key()]);
                        problem.set(Some(refused));
                        shown.reread();
                    }
                }
            });
        }
    };
    let form_key = use_context::<crate::FormKey>().map(|key| key.0).unwrap_or_default();
    let tail = digest.get(digest.len().saturating_sub(4)..).unwrap_or_default().to_owned();
    let approve = format!("Approve plan …{tail} for {}", format::messages(size));
    let expires = shown.with_untracked(|cohort| cohort.draft.expires_at);
    view! {
        <section class="panel boxed review-panel" aria-labelledby="h-review">
            <header>
                <h2 id="h-review">"Your review"</h2>
                <span class="meta">{expires.map(|at| view! { "expires "{when_ago(at)} })}</span>
            </header>
            <form class="review" method="post" action=format!("/cohorts/{id}/review") on:submit=submit>
                <input type="hidden" name="plan_digest" value=digest.clone() />
                <input type="hidden" name="version" value=version />
                <input type="hidden" name="size" value=size />
                <input type="hidden" name="idempotency_key" value=form_key />
                <div class="review-body">
                    <div>
                        <h3>"You approve exactly this digest"</h3>
                        <p class="digest">{format::grouped(&digest)}</p>
                    </div>
                    <div>
                        <h3>"Who may approve"</h3>
                        <ul class="who">{move || shown.with(|cohort| cohort.reviewers.iter().map(reviewer).collect_view())}</ul>
                        <p class="note">
                            {move || shown.with(|cohort| format!("{} of {} approvals given on this revision.", cohort.approvals.given, cohort.approvals.needed))}
                        </p>
                    </div>
                    <div class="field">
                        <label for="review-comment">"Comment"</label>
                        <textarea class="input" id="review-comment" name="comment" required maxlength="2000" aria-describedby="review-comment-hint" on:input=move |event| comment.set(event_target_value(&event))></textarea>
                        <span class="hint" id="review-comment-hint">"Required; it goes into the audit log with the digest."</span>
                    </div>
                    <div class="field">
                        <label for="review-password">"Password"</label>
                        <input class="input" id="review-password" name="password" type="password" autocomplete="current-password" aria-describedby="review-password-hint" on:input=move |event| password.set(event_target_value(&event)) />
                        <span class="hint" id="review-password-hint">"Only if you signed in more than five minutes ago."</span>
                    </div>
                    {move || problem.get().map(|problem| banner(&problem))}
                </div>
                <div class="review-foot">
                    {(size > 1).then(|| view! {
                        <div class="field inline">
                            <label for="review-count">"Type "{format::count(size)}" to approve"</label>
                            <input class="input mono" id="review-count" name="count" inputmode="numeric" autocomplete="off" on:input=move |event| typed.set(event_target_value(&event)) />
                        </div>
                    })}
                    <button class="button primary wide" type="submit" name="act" value="approve" disabled=move || busy.get() || why_not(Command::Approve).is_some()>
                        {approve}
                    </button>
                    {move || why_not(Command::Approve).map(|why| view! { <span class="why note">{icon(Icon::Lock)}{why}</span> })}
                    <div class="acts">
                        <button class="button danger" type="submit" name="act" value="reject" disabled=move || busy.get() || why_not(Command::Reject).is_some()>"Reject"</button>
                        <button class="button" type="submit" name="act" value="request_changes" disabled=move || busy.get() || why_not(Command::RequestChanges).is_some()>"Request changes"</button>
                        <span class="age">"Approving publishes nothing."</span>
                    </div>
                    {move || (!hydrated.get()).then(|| view! { <span class="vh">"This form works without the page’s code."</span> })}
                </div>
            </form>
        </section>
    }
}

/// Which button sent the form.
fn submitter(event: &leptos::ev::SubmitEvent) -> Command {
    #[cfg(feature = "hydrate")]
    {
        let value = event.submitter().and_then(|button| button.get_attribute("value"));
        match value.as_deref() {
            Some("reject") => Command::Reject,
            Some("request_changes") => Command::RequestChanges,
            _ => Command::Approve,
        }
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let _ = event;
        Command::Approve
    }
}

fn local(code: &str, detail: &str) -> Problem {
    Problem {
        type_uri: format!("/problems/{code}"),
        title: "Not sent".to_owned(),
        status: 0,
        detail: detail.to_owned(),
        code: code.to_owned(),
        request_id: String::new(),
        errors: Vec::new(),
        facts: None,
    }
}

pub(super) fn reviewer(reviewer: &Reviewer) -> AnyView {
    let (tone, glyph) = if reviewer.eligible { ("well", Icon::Check) } else { ("unknown", Icon::Lock) };
    view! {
        <li data-state=tone>
            {icon(glyph)}
            <span><b>{reviewer.user.username.clone()}</b>": "{reviewer.detail.clone()}</span>
        </li>
    }
    .into_any()
}

fn reviews(cohort: &Cohort) -> AnyView {
    let entries = cohort
        .reviews
        .iter()
        .rev()
        .map(|review| {
            let Badge { tone, icon: glyph, word } = words::decision(review.decision);
            let comment = review.comment.clone().map(|comment| format!("“{comment}”"));
            let valid = if review.valid { "" } else { ", no longer counts" };
            view! {
                <li>
                    {when(review.at)}
                    {toned(tone, glyph)}
                    <p>{review.by.username.clone()}" "{word}" revision "{review.revision}{valid}<small>{comment}</small></p>
                </li>
            }
        })
        .collect_view();
    let body = if cohort.reviews.is_empty() {
        view! { <p class="note">"Nobody has reviewed this cohort yet."</p> }.into_any()
    } else {
        view! { <ol class="trail timed">{entries}</ol> }.into_any()
    };
    view! { <section class="panel" aria-labelledby="h-reviews"><header><h2 id="h-reviews">"Reviews"</h2></header>{body}</section> }.into_any()
}

/// What changed since the last review, and the bytes that the digest is of.
#[component]
fn Canonical(shown: Shown, parts: Parts) -> impl IntoView {
    let id = shown.with_untracked(|cohort| cohort.row.id);
    let first = parts.try_update_value(|parts| parts.plan.take()).flatten();
    let plan = Beside::new(first, &[Topic::Cohorts], move || get::<PlanView>(&format!("/cohorts/{id}/plan")));
    view! {
        <section class="panel" aria-labelledby="h-bytes">
            <header><h2 id="h-bytes">"What the digest covers"</h2></header>
            {plan.show(|plan| (move || bytes(plan.get())).into_any())}
        </section>
    }
}

fn bytes(plan: PlanView) -> AnyView {
    let changes = plan
        .changes
        .iter()
        .map(|change| {
            let show = |value: &Option<serde_json::Value>| value.as_ref().map_or_else(|| "none".to_owned(), format::json);
            view! { <li><span class="mono">{change.pointer.clone()}</span><span><del>{show(&change.before)}</del>" → "<ins>{show(&change.after)}</ins></span></li> }
        })
        .collect_view();
    let covered = covered(&plan.canonical);
    let since = plan.changes_since_revision.map(|revision| {
        let none = plan.changes.is_empty().then_some("Nothing changed.");
        view! { <h3>"Since revision "{revision}", the last reviewed"</h3><ul class="changes">{changes}</ul>{none} }
    });
    view! {
        {since}
        {covered}
        <details>
            <summary>"The "{format::count(i64::try_from(plan.canonical.len()).unwrap_or(i64::MAX))}" canonical bytes"</summary>
            <p class="note">"sha256 over the prefix "<code>{plan.digest_prefix.escape_debug().to_string()}</code>" and these bytes:"</p>
            <pre class="code wrap" tabindex="0" role="region" aria-label="Canonical plan">{plan.canonical}</pre>
        </details>
    }.into_any()
}

/// What the canonical bytes say, field by field: the probe's definition in full view, since it is nowhere else.
pub(super) fn covered(canonical: &str) -> AnyView {
    let Ok(Value::Object(mut parts)) = serde_json::from_str::<Value>(canonical) else {
        return view! { <p class="note">"The bytes can’t be read as a plan."</p> }.into_any();
    };
    let probe = parts.get("probe").filter(|probe| !probe.is_null()).map(fields_of);
    let probe = probe.unwrap_or_else(|| view! { <p class="note">"No probe of that name exists."</p> }.into_any());
    // each item is a row id, a commitment and a stratum: too long to read, and listed under Items
    if let Some(Value::Array(items)) = parts.get("items") {
        let items = format!("{}, each by its id, commitment and stratum", format::messages(format::len(items.len())));
        parts.insert("items".to_owned(), Value::String(items));
    }
    let all = fields_of(&Value::Object(parts));
    view! {
        <h3>"The probe, as it would ask"</h3>
        {probe}
        <details><summary>"Every field"</summary>{all}</details>
    }
    .into_any()
}
