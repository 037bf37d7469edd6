//! What may be done to the cohort now: each act is its own button and its own dialog, which says exactly what it will
//! do. What the server wouldn't take is shown disabled with the server's reason.

use super::{Shown, count_of};
use crate::{
    api::{Method, act},
    components::{ActButton, ActDialog, Answered, Asked, fact, outcome},
    format,
};
use domain::{
    api::{Act, Cohort, Comment, ReplayAct},
    vocabulary::{CohortCommand as Command, ItemState},
};
use leptos::prelude::*;

/// Acts that have a button here; editing and reviewing have forms of their own.
const BUTTONS: [Command; 13] = [
    Command::Submit,
    Command::StartCanary,
    Command::VerifyAgain,
    Command::NextCanary,
    Command::CanaryAgain,
    Command::Fail,
    Command::Expand,
    Command::Resume,
    Command::Pause,
    Command::Withdraw,
    Command::Revoke,
    Command::Discard,
    Command::Abort,
];

/// The buttons that matter in this state.
#[component]
pub(super) fn Acts(shown: Shown) -> impl IntoView {
    let acts = Memo::new(move |_| {
        shown.with(|cohort| {
            let listed = |command: &Command| cohort.acts.iter().find(|act| act.command == *command);
            BUTTONS
                .iter()
                .filter_map(listed)
                .filter(|act| worth_showing(act))
                .map(|act| act.command)
                .collect::<Vec<_>>()
        })
    });
    view! {
        <div class="acts cohort-acts">
            <For each=move || acts.get() key=|command| *command let:command>
                <OneAct shown command />
            </For>
        </div>
    }
}

/// What this state can't do at all isn't shown; what the reader, a freeze or a limit forbids is, with its reason.
fn worth_showing(act: &Act) -> bool {
    act.allowed || act.reason.as_deref() != Some("illegal_transition")
}

#[component]
fn OneAct(shown: Shown, command: Command) -> impl IntoView {
    let open = RwSignal::new(false);
    let mine = move |cohort: &Cohort| cohort.acts.iter().find(|act| act.command == command).cloned();
    let why_not = Signal::derive(move || {
        let act = shown.with(mine)?;
        (!act.allowed)
            .then(|| act.detail.or(act.reason.map(|code| format::words(&code))).unwrap_or_else(|| "not now".to_owned()))
    });
    let label = Signal::derive(move || shown.with(|cohort| label_of(command, cohort)));
    let kind = match command {
        Command::Abort | Command::Fail => "danger",
        Command::Submit | Command::StartCanary | Command::Expand | Command::Resume => "primary",
        _ => "",
    };
    let asked = move || {
        shown.with_untracked(|cohort| Asked {
            title: verb(command).to_owned(),
            reason_label: if comments(command) { "Comment" } else { "Reason" },
            count: mine(cohort).and_then(|act| act.confirm_count).filter(|count| *count > 1),
            version: Some(cohort.row.version),
            button: label_of(command, cohort).trim_end_matches('…').to_owned(),
            danger: kind == "danger",
        })
    };
    let on_submit = move |answered: Answered| {
        let path = shown.with_untracked(|cohort| format!("/cohorts/{}/{}", cohort.row.id, segment(command)));
        let Answered { reason, count, acting } = answered;
        let then = move |_: serde::de::IgnoredAny| shown.reread();
        if comments(command) {
            outcome(act(Method::Post, &path, Some(&Comment { comment: reason }), acting), then)
        } else {
            let body = ReplayAct { reason, confirm_count: count };
            outcome(act(Method::Post, &path, Some(&body), acting), then)
        }
    };
    view! {
        <ActButton label kind why_not on_press=move || open.set(true) />
        <ActDialog open asked on_submit>{move || shown.with_untracked(|cohort| says(command, cohort))}</ActDialog>
    }
}

const fn comments(command: Command) -> bool {
    matches!(command, Command::Withdraw | Command::Discard | Command::Revoke)
}

const fn segment(command: Command) -> &'static str {
    match command {
        Command::VerifyAgain => "verify-again",
        Command::NextCanary => "next-canary",
        Command::CanaryAgain => "canary-again",
        Command::RequestChanges => "request-changes",
        other => other.as_str(),
    }
}

const fn verb(command: Command) -> &'static str {
    match command {
        Command::Submit => "Submit for review",
        Command::StartCanary => "Start the canary",
        Command::VerifyAgain => "Verify again",
        Command::NextCanary => "Take the next canary",
        Command::CanaryAgain => "Repeat the canary",
        Command::Fail => "Call the canary failed",
        Command::Expand => "Expand",
        Command::Resume => "Resume",
        Command::Pause => "Pause",
        Command::Withdraw => "Withdraw",
        Command::Revoke => "Revoke the approval",
        Command::Discard => "Discard the draft",
        Command::Abort => "Abort",
        Command::Edit => "Edit",
        Command::Approve => "Approve",
        Command::RequestChanges => "Request changes",
        Command::Reject => "Reject",
    }
}

fn left(cohort: &Cohort) -> i64 {
    count_of(cohort, ItemState::Held) + count_of(cohort, ItemState::Scheduled)
}

const fn stays(number: i64) -> &'static str {
    if number == 1 { "stays" } else { "stay" }
}

fn label_of(command: Command, cohort: &Cohort) -> String {
    let rest = left(cohort);
    let left = format::count(rest);
    let text = match command {
        Command::StartCanary => format!("Start canary: publish 1 of {}", format::count(cohort.row.size)),
        Command::NextCanary => "Next canary: publish 1 more".to_owned(),
        Command::CanaryAgain => "Canary again: publish 1".to_owned(),
        Command::Expand if rest == 1 => "Expand: publish the other message".to_owned(),
        Command::Expand => format!("Expand: publish the other {left}"),
        Command::Resume => format!("Resume: {left} left"),
        Command::Pause => format!("Pause: {left} {} held", stays(rest)),
        Command::Abort => format!("Abort: keep {left} held, end the cohort"),
        other => verb(other).to_owned(),
    };
    format!("{text}…")
}

/// What the act will do, in a sentence and in facts.
fn says(command: Command, cohort: &Cohort) -> AnyView {
    let queue = cohort.row.queue.name.clone();
    let held = format!("{} {} held", format::messages(left(cohort)), stays(left(cohort)));
    let left = format::messages(left(cohort));
    let lead = match command {
        Command::Submit => format!(
            "This asks for review of {}. Nothing moves; the messages are claimed until the cohort ends.",
            format::messages(cohort.row.size)
        ),
        Command::StartCanary => format!(
            "This publishes 1 of {} to {queue}, once, now. Nothing else moves.",
            format::messages(cohort.row.size)
        ),
        Command::VerifyAgain => {
            "This asks the probe for the canary’s effect once more. Nothing is published.".to_owned()
        }
        Command::NextCanary => format!("This publishes 1 more approved message to {queue} as a canary, once, now."),
        Command::CanaryAgain => {
            format!("This publishes the next message of each stratum to {queue} as a canary, one after another.")
        }
        Command::Fail => {
            "This ends the cohort as failed. What was published isn’t recalled; the rest stays held.".to_owned()
        }
        Command::Expand => format!("This publishes the remaining {left} to {queue}, under the governor."),
        Command::Resume => {
            format!("This goes on where it was paused: {left} may go out to {queue}, first one as probation.")
        }
        Command::Pause => format!("This stops handing over. {held}; what the broker has isn’t recalled."),
        Command::Withdraw => {
            "This takes the cohort back and ends it. Nothing has moved; the messages stay held.".to_owned()
        }
        Command::Revoke => "This takes your approval back: the cohort waits for review again.".to_owned(),
        Command::Discard => "This drops the draft. The messages stay held.".to_owned(),
        Command::Abort => format!(
            "This ends the cohort. {held}; what the broker has isn’t recalled, and old owners are fenced first."
        ),
        Command::Edit | Command::Approve | Command::RequestChanges | Command::Reject => String::new(),
    };
    let publishes = matches!(
        command,
        Command::StartCanary | Command::NextCanary | Command::CanaryAgain | Command::Expand | Command::Resume
    );
    let facts = publishes.then(|| publishing_facts(command, cohort));
    view! { <p class="lead">{lead}</p>{facts} }.into_any()
}

fn publishing_facts(command: Command, cohort: &Cohort) -> AnyView {
    let receivers = match &cohort.target.receivers {
        Some(receivers) => receivers.join(", "),
        None => "not known: the management API doesn’t answer".to_owned(),
    };
    let generation = cohort.row.generation.map_or_else(|| "—".to_owned(), format::count);
    let canary = matches!(command, Command::StartCanary | Command::NextCanary | Command::CanaryAgain);
    let how = match (&cohort.draft.expansion, &cohort.draft.canary, canary) {
        (_, Some(plan), true) => format!("probe {} for up to {} s; nothing else moves", plan.probe, plan.wait_s),
        (Some(plan), _, false) => format!(
            "{}/s at first, at most {}/s, at most {} in flight",
            format::rate(plan.start_per_s),
            format::rate(plan.max_per_s),
            format::count(plan.max_in_flight)
        ),
        _ => "as the plan says".to_owned(),
    };
    view! {
        <dl class="facts">
            {fact("who gets it", receivers)}
            {fact("generation", view! { <span class="num">{generation}</span>"; attempt is not reset" })}
            {fact(if canary { "then" } else { "rate" }, how)}
            {fact("plan", view! { <code>{format::short(&cohort.plan_digest)}</code> })}
        </dl>
    }
    .into_any()
}
