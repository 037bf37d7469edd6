//! What is in doubt: published, outcome unknown. Each with its evidence and the two ways out.

use super::{
    Shown, count_of,
    listed::Listed,
    opened::{Parts, items_path},
};
use crate::{
    api::{Method, act},
    components::{ActButton, ActDialog, Answered, Asked, Icon, icon, outcome, state, when, when_ago},
    format,
    frame::use_me,
    live::Topic,
};
use domain::{
    api::{CohortItem, PendingResolution, Reason, Resolve, ResolveOutcome},
    ids::CohortId,
    vocabulary::{ItemState, Permission},
};
use leptos::prelude::*;

/// A card per item.
#[component]
pub(super) fn Doubts(shown: Shown, parts: Parts) -> impl IntoView {
    let id = shown.with_untracked(|cohort| cohort.row.id);
    let any = Memo::new(move |_| shown.with(|cohort| count_of(cohort, ItemState::InDoubt) > 0));
    move || {
        any.get().then(|| {
            let path = move || shown.with_untracked(|cohort| items_path(cohort, ItemState::InDoubt.as_str()));
            let first = parts.try_update_value(|parts| parts.doubts.take()).flatten();
            Listed::new(first, &[Topic::Cohorts], path).show(move |page| {
                view! {
                    <For
                        each=move || page.get().items
                        key=|item| (item.id, item.evidence.len(), item.pending_resolution.is_some())
                        let:item
                    >
                        <Doubt shown cohort=id item />
                    </For>
                }
                .into_any()
            })
        })
    }
}

#[component]
fn Doubt(shown: Shown, cohort: CohortId, item: CohortItem) -> impl IntoView {
    let job = item.job_id.as_ref().map_or_else(|| "no job id".to_owned(), ToString::to_string);
    let published = item.published_at.map(|at| view! { "published "{when(at)}"; " });
    let reason = item.state_reason.as_deref().map(format::words).unwrap_or_else(|| "no answer".to_owned());
    let evidence = if item.evidence.is_empty() {
        view! { <li data-state="unknown">{glyph("")}<span>"Nothing is known yet: no worker event, no dead letter, no probe row with its redrive id."</span></li> }.into_any()
    } else {
        item.evidence
            .iter()
            .map(|one| view! { <li data-state="plain">{glyph(&one.source)}<span>{one.detail.clone()}" "{when_ago(one.at)}</span></li> })
            .collect_view()
            .into_any()
    };
    let pending = item.pending_resolution.clone();
    let ways = match pending {
        None => view! {
            <Way shown cohort item=item.clone() way=Way::Arrived />
            <Way shown cohort item=item.clone() way=Way::NotPublished />
        }
        .into_any(),
        Some(pending) => view! {
            <p class="note">{pending.by.username.clone()}" says it was never published ("{when_ago(pending.at)}"): “"{pending.reason.clone()}"”"</p>
            <Way shown cohort item=item.clone() way=Way::Confirm said=pending />
        }
        .into_any(),
    };
    let label = format!("In doubt: {job}");
    view! {
        <section class="doubt-card" id=format!("doubt-{}", item.id) aria-label=label>
            <div class="head">
                <h3>{state("doubt", Icon::Doubt, "in doubt")}</h3>
                <a class="mono" href=format!("/quarantine/{}", item.quarantine_id)>{job}</a>
                <span class="soft">{published}{reason}". It is not published again."</span>
            </div>
            <ul class="evidence" aria-label="Evidence">{evidence}</ul>
            <div class="ways">{ways}</div>
        </section>
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Arrived,
    NotPublished,
    Confirm,
}

#[component]
fn Way(
    shown: Shown,
    cohort: CohortId,
    item: CohortItem,
    way: Way,
    /// The word that would be confirmed.
    #[prop(optional)]
    said: Option<PendingResolution>,
) -> impl IntoView {
    let open = RwSignal::new(false);
    let permission = if way == Way::Confirm { Permission::Approve } else { Permission::Respond };
    let me = use_me();
    let own = me.as_ref().zip(said).is_some_and(|(me, said)| me.0.user.id == said.by.id);
    let lacks = me.and_then(|me| me.lacks(permission));
    let lacks = lacks.or_else(|| own.then(|| "it is your own word: another person must confirm it".to_owned()));
    let (label, lead) = match way {
        Way::Arrived => (
            "It arrived: record it…",
            "This records, on your word, that the message is or was on the queue. It never goes into another cohort.",
        ),
        Way::NotPublished => (
            "It never arrived…",
            "This records, on your word, that the message was never published. A second person must confirm it, and its owner must be fenced; then it is held again.",
        ),
        Way::Confirm => (
            "Confirm: never published…",
            "This confirms a colleague’s word that the message was never published: 1 message is held again.",
        ),
    };
    let asked = move || Asked {
        title: label.trim_end_matches('…').to_owned(),
        reason_label: "Reason",
        count: None,
        version: shown.with_untracked(|cohort| Some(cohort.row.version)),
        button: label.trim_end_matches('…').to_owned(),
        danger: false,
    };
    let on_submit = move |answered: Answered| {
        let Answered { reason, acting, .. } = answered;
        let path = format!("/cohorts/{cohort}/items/{}/resolve", item.id);
        let then = move |_: serde::de::IgnoredAny| shown.reread();
        match way {
            Way::Confirm => {
                outcome(act(Method::Post, &format!("{path}/confirm"), Some(&Reason { reason }), acting), then)
            }
            Way::Arrived => {
                let body = Resolve { outcome: ResolveOutcome::Arrived, reason };
                outcome(act(Method::Post, &path, Some(&body), acting), then)
            }
            Way::NotPublished => {
                let body = Resolve { outcome: ResolveOutcome::NotPublished, reason };
                outcome(act(Method::Post, &path, Some(&body), acting), then)
            }
        }
    };
    view! {
        <ActButton label why_not=Signal::stored(lacks) on_press=move || open.set(true) />
        <ActDialog open asked on_submit><p class="lead">{lead}</p></ActDialog>
    }
}

fn glyph(source: &str) -> AnyView {
    icon(match source {
        "event" => Icon::Run,
        "dead_letter" => Icon::Dlq,
        "probe" => Icon::Search,
        "late_confirm" => Icon::Ack,
        _ => Icon::Unknown,
    })
}
