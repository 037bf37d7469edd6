//! The freeze: the switch in the top bar, and the loudest thing on the page while one is on.

use super::{Frozen, use_me};
use crate::{
    api::{Acting, Method, act, get},
    components::{ActButton, ActDialog, Answered, Asked, Icon, Outcome, icon, use_hydrated, when_ago},
};
use domain::{
    api::{Freeze, FreezeResult, Freezes, Reason},
    ids::QueueId,
    vocabulary::Permission,
};
use leptos::prelude::*;

/// What a switch covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every replay.
    All,
    /// One queue's.
    Queue {
        /// Which.
        id: QueueId,
        /// Its name.
        name: String,
    },
}

impl Scope {
    fn path(&self, on: bool) -> String {
        let verb = if on { "freeze" } else { "unfreeze" };
        match self {
            Self::All => format!("/{verb}"),
            Self::Queue { id, .. } => format!("/queues/{id}/{verb}"),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::All => "every queue".to_owned(),
            Self::Queue { name, .. } => name.clone(),
        }
    }
}

/// The switches that are on.
pub(crate) fn use_frozen() -> RwSignal<Freezes> {
    use_context::<Frozen>().map_or_else(|| RwSignal::new(Freezes { all: None, queues: Vec::new() }), |frozen| frozen.0)
}

/// The switch for every replay, in the top bar.
#[component]
pub(crate) fn FreezeSwitch() -> impl IntoView {
    let frozen = use_frozen();
    let hydrated = use_hydrated();
    let open = RwSignal::new(false);
    let on = Signal::derive(move || frozen.with(|frozen| frozen.all.is_some()));
    let any = move || frozen.with(|frozen| frozen.all.is_some() || !frozen.queues.is_empty());
    let lacks = use_me().and_then(|me| me.lacks(Permission::Stop));
    let lacks_lift = use_me().and_then(|me| me.lacks(Permission::Administer));
    let why_not = move || if on.get() { lacks_lift.clone() } else { lacks.clone() };
    let word = move || {
        frozen.with(|frozen| match (&frozen.all, frozen.queues.as_slice()) {
            (Some(_), _) => "every queue".to_owned(),
            (None, []) => "off".to_owned(),
            (None, [one]) => one.queue.clone(),
            (None, many) => format!("{} queues", many.len()),
        })
    };
    let title = why_not.clone();
    view! {
        <button
            class="freeze-switch"
            type="button"
            aria-pressed=move || if any() { "true" } else { "false" }
            title=title
            disabled=move || !hydrated.get() || why_not().is_some()
            on:click=move |_| open.set(true)
        >
            {icon(Icon::Flag)}
            {move || if any() { "Frozen " } else { "Freeze " }}
            <span class="why">{word}</span>
        </button>
        <FreezeDialog open scope=Scope::All lift=on />
    }
}

/// One bar for every switch that is on.
#[component]
pub(crate) fn FrozenBars() -> impl IntoView {
    let frozen = use_frozen();
    move || {
        frozen.with(|frozen| {
            let all = frozen.all.clone().map(|freeze| (Scope::All, freeze));
            let queues = frozen
                .queues
                .iter()
                .map(|one| (Scope::Queue { id: one.queue_id, name: one.queue.clone() }, one.freeze.clone()));
            all.into_iter().chain(queues).map(|(scope, freeze)| view! { <FrozenBar scope freeze /> }).collect_view()
        })
    }
}

#[component]
fn FrozenBar(scope: Scope, freeze: Freeze) -> impl IntoView {
    let open = RwSignal::new(false);
    let permission = if scope == Scope::All { Permission::Administer } else { Permission::Respond };
    let lacks = use_me().and_then(|me| me.lacks(permission));
    let name = match &scope {
        Scope::All => "Every replay is frozen".to_owned(),
        Scope::Queue { name, .. } => format!("{name} is frozen"),
    };
    view! {
        <div class="frozen" role="status">
            <strong>{icon(Icon::Flag)}{name}</strong>
            <span>"No replay can start or go on."</span>
            <span class="why" title=freeze.reason.clone()>
                "by "<b>{freeze.by.username.clone()}</b>" since "{when_ago(freeze.at)}": “"{freeze.reason.clone()}"”"
            </span>
            <ActButton label="Lift the freeze…" why_not=Signal::stored(lacks) on_press=move || open.set(true) />
        </div>
        <FreezeDialog open scope lift=Signal::stored(true) />
    }
}

/// Freezes or lifts, with a reason.
#[component]
pub(crate) fn FreezeDialog(
    open: RwSignal<bool>,
    scope: Scope,
    /// Whether the switch is on, so that this would lift it.
    #[prop(into)]
    lift: Signal<bool>,
) -> impl IntoView {
    let frozen = use_frozen();
    let name = scope.name();
    let asked = {
        let name = name.clone();
        move || {
            let verb = if lift.get() { "Lift the freeze of" } else { "Freeze" };
            Asked {
                title: format!("{verb} {name}"),
                reason_label: "Reason",
                count: None,
                version: None,
                button: format!("{verb} {name}"),
                danger: false,
            }
        }
    };
    let on_submit = move |answered: Answered| {
        let lifting = lift.get_untracked();
        let Answered { reason, acting: Acting { key, .. }, .. } = answered;
        let answer = act::<_, FreezeResult>(
            Method::Post,
            &scope.path(!lifting),
            Some(&Reason { reason }),
            Acting { key, version: None },
        );
        Box::pin(async move {
            let result = answer.await?;
            if let Ok(now) = get::<Freezes>("/freeze").await {
                frozen.set(now);
            }
            Ok(if lifting { Outcome::Done } else { Outcome::Tell(contained(&result)) })
        }) as _
    };
    view! {
        <ActDialog open asked on_submit>
            {
                let name = name.clone();
                move || if lift.get() {
                    view! {
                        <p class="lead">"Replays of "<b>{name.clone()}</b>" may start and go on again."</p>
                        <p class="note">"A paused cohort stays paused: a person resumes it."</p>
                    }.into_any()
                } else {
                    view! {
                        <p class="lead">"Every replay of "<b>{name.clone()}</b>" stops handing over, now."</p>
                        <p class="note">"What was handed to the broker already isn’t recalled. Custody goes on."</p>
                    }.into_any()
                }
            }
        </ActDialog>
    }
}

fn contained(result: &FreezeResult) -> Vec<String> {
    let mut lines = vec!["Frozen.".to_owned()];
    if let Some(reason) = &result.not_contained_reason {
        lines.push(format!("Other consumers of the dead-letter queue aren’t known: {}.", crate::format::words(reason)));
    }
    if !result.not_contained.is_empty() {
        lines.push(format!("Not contained by this freeze: {}.", result.not_contained.join(", ")));
    }
    if !result.publishing.is_empty() {
        let ids = result.publishing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        lines.push(format!("Handed to the broker and unanswered, not recalled: {ids}."));
    }
    lines
}
