//! The freeze: the switch in the top bar, and the loudest thing on the page while one is on.

use super::use_me;
use crate::{
    api::{Acting, Answer, Method, act, get},
    components::{ActButton, ActDialog, Answered, Asked, Icon, Outcome, icon, use_hydrated, when_ago},
    live::{Reader, Topic, on_change},
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

/// Every switch that is on, kept fresh; `None` while it isn't known: that isn't "off".
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frozen {
    switches: RwSignal<Option<Freezes>>,
    reader: Reader,
}

impl Frozen {
    /// Makes the switches known to every page.
    pub(super) fn provide(first: Answer<Freezes>) {
        let reader = Reader::new();
        if let Err(problem) = &first {
            reader.told(Some(&problem.detail));
        }
        let frozen = Self { switches: RwSignal::new(first.ok()), reader };
        provide_context(frozen);
        on_change(&[Topic::Freeze], move || frozen.reread());
    }

    fn reread(self) {
        self.reader.read(get("/freeze"), move |fresh| {
            if self.switches.with_untracked(|shown| shown.as_ref() != Some(&fresh)) {
                self.switches.set(Some(fresh));
            }
        });
    }
}

/// The switches that are on.
fn use_frozen() -> Frozen {
    use_context::<Frozen>().unwrap_or_else(|| Frozen { switches: RwSignal::new(None), reader: Reader::new() })
}

/// The switch for every replay, in the top bar.
#[component]
pub(crate) fn FreezeSwitch() -> impl IntoView {
    let frozen = use_frozen();
    let hydrated = use_hydrated();
    let open = RwSignal::new(false);
    let on = Signal::derive(move || frozen.switches.with(|all| all.as_ref().is_some_and(|all| all.all.is_some())));
    let pressed = move || {
        frozen.switches.with(|known| match known {
            Some(Freezes { all: None, queues }) if queues.is_empty() => "false",
            Some(_) => "true",
            None => "mixed",
        })
    };
    let lacks = use_me().and_then(|me| me.lacks(Permission::Stop));
    let lacks_lift = use_me().and_then(|me| me.lacks(Permission::Administer));
    let why_not = move || if on.get() { lacks_lift.clone() } else { lacks.clone() };
    let (title, hindrance) = (why_not.clone(), why_not.clone());
    let word = move || {
        let covered = frozen.switches.with(covered);
        match hindrance() {
            Some(why) => format!("{covered}, {why}"),
            None => covered,
        }
    };
    view! {
        <button
            class="freeze-switch"
            type="button"
            aria-pressed=pressed
            title=title
            disabled=move || !hydrated.get() || why_not().is_some()
            on:click=move |_| open.set(true)
        >
            {icon(Icon::Flag)}
            {move || if pressed() == "true" { "Frozen " } else { "Freeze " }}
            <span class="why">{word}</span>
        </button>
        <FreezeDialog open scope=Scope::All lift=on />
    }
}

/// What is frozen, in a word.
fn covered(known: &Option<Freezes>) -> String {
    let Some(Freezes { all, queues }) = known else { return "— unknown".to_owned() };
    match (all, queues.as_slice()) {
        (Some(_), _) => "every queue".to_owned(),
        (None, []) => "off".to_owned(),
        (None, [one]) => one.queue.clone(),
        (None, many) => format!("{} queues", many.len()),
    }
}

/// One bar for every switch that is on, or one that says that this isn't known.
#[component]
pub(crate) fn FrozenBars() -> impl IntoView {
    let frozen = use_frozen();
    move || {
        frozen.switches.with(|known| {
            let Some(Freezes { all, queues }) = known else { return unknown_bar() };
            let all = all.clone().map(|freeze| (Scope::All, freeze));
            let queues = queues
                .iter()
                .map(|one| (Scope::Queue { id: one.queue_id, name: one.queue.clone() }, one.freeze.clone()));
            let bars = all.into_iter().chain(queues).map(|(scope, freeze)| view! { <FrozenBar scope freeze /> });
            bars.collect_view().into_any()
        })
    }
}

fn unknown_bar() -> AnyView {
    view! {
        <div class="alarm" data-state="unknown" role="status">
            <strong>{icon(Icon::Unknown)}"Freeze state unknown"</strong>
            <span>"Whether replays are frozen couldn’t be read. Freezing is possible all the same."</span>
        </div>
    }
    .into_any()
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
            frozen.reread();
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

#[cfg(test)]
mod tests {
    use super::covered;
    use domain::api::Freezes;

    #[test]
    fn a_state_that_could_not_be_read_is_not_off() {
        assert_eq!(covered(&Some(Freezes { all: None, queues: Vec::new() })), "off");
        assert_eq!(covered(&None), "— unknown");
    }
}
