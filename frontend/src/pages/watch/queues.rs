//! A row per queue: what is known of it now, and its custody.

use super::Watched;
use crate::{
    components::{ActButton, Badge, Icon, none, num, reading, unknown},
    format,
    frame::{FreezeDialog, Scope, use_me},
    words,
};
use domain::{
    api::{DeadLetterQueue, Queue},
    ids::QueueId,
    vocabulary::{CustodyState, Permission},
};
use leptos::prelude::*;

/// Queues in a fixed order: trouble is shown by state, rows stay where they are.
#[component]
pub(super) fn Queues(watched: RwSignal<Watched>) -> impl IntoView {
    let ids =
        Memo::new(move |_| watched.with(|watched| watched.queues.iter().map(|queue| queue.id).collect::<Vec<_>>()));
    view! {
        <section class="panel" aria-labelledby="queues">
            <header>
                <h2 id="queues">"Queues"</h2>
                <span class="meta">"rates are per second; hover or focus a number for its source and age"</span>
            </header>
            <div class="table-box" tabindex="0" role="region" aria-label="Queues, table">
                <table class="table by-card tight">
                    <thead>
                        <tr>
                            <th scope="col">"State"</th>
                            <th scope="col">"Queue"</th>
                            <th scope="col" class="end">"Held"</th>
                            <th scope="col" class="end">"Ready"</th>
                            <th scope="col" class="end">"Healthy age / limit"</th>
                            <th scope="col" class="end">"In flight"</th>
                            <th scope="col" class="end">"Arrive /s"</th>
                            <th scope="col">"Retry /s by class"</th>
                            <th scope="col">"Consuming"</th>
                            <th scope="col">"Dead letters"</th>
                            <th scope="col" class="end">"On DLQ"</th>
                            <th scope="col" class="end">"Gen"</th>
                            <th scope="col"><span class="vh">"Act"</span></th>
                        </tr>
                    </thead>
                    <tbody>
                        <For each=move || ids.get() key=|id| *id let:id>
                            <QueueRow watched id />
                        </For>
                    </tbody>
                </table>
            </div>
        </section>
    }
}

#[component]
fn QueueRow(watched: RwSignal<Watched>, id: QueueId) -> impl IntoView {
    let row = Memo::new(move |_| {
        watched.with(|watched| {
            let queue = watched.queues.iter().find(|queue| queue.id == id)?;
            let dlq = watched.dead_letter_queues.iter().find(|dlq| dlq.id == queue.dead_letter_queue.id);
            Some((queue.clone(), dlq.cloned()))
        })
    });
    let open = RwSignal::new(false);
    let frozen = Signal::derive(move || row.with(|row| row.as_ref().is_some_and(|(queue, _)| queue.frozen.is_some())));
    let name = row.with_untracked(|row| row.as_ref().map(|(queue, _)| queue.name.clone()).unwrap_or_default());
    let permission = move || if frozen.get() { Permission::Respond } else { Permission::Stop };
    let me = use_me();
    let why_not = Signal::derive(move || me.as_ref().and_then(|me| me.lacks(permission())));
    let label = Signal::derive(move || if frozen.get() { "Lift the freeze…" } else { "Freeze…" }.to_owned());
    view! {
        <tr>
            {move || row.get().map(|(queue, dlq)| cells(&queue, dlq.as_ref()))}
            <td>
                <ActButton label why_not on_press=move || open.set(true) />
                <FreezeDialog open scope=Scope::Queue { id, name } lift=frozen />
            </td>
        </tr>
    }
}

fn cells(queue: &Queue, dlq: Option<&DeadLetterQueue>) -> AnyView {
    let readings = &queue.readings;
    let held = format!("/quarantine?queue={}&state=held", queue.id);
    let limit = queue.slo.oldest_age_s.map(|limit| view! { <span class="dim">" / "{format::count(limit)}" s"</span> });
    let retries = match (&readings.retries_by_class_reason, readings.retries_by_class.as_slice()) {
        (Some(why), _) => unknown(why),
        (None, []) => view! { <span class="dim">"none in a minute"</span> }.into_any(),
        (None, classes) => classes
            .iter()
            .map(|class| view! { <span><code>{class.error_class.clone()}</code>" "<span class="num">{format::rate(class.per_s)}</span>" "</span> })
            .collect_view()
            .into_any(),
    };
    let versions = match (&readings.consuming_versions_reason, readings.consuming_versions.as_slice()) {
        (Some(why), _) => unknown(why),
        (None, []) => none("none in a minute", "No worker version began an attempt in the last minute.").into_any(),
        (None, versions) => view! { <code>{versions.join(", ")}</code> }.into_any(),
    };
    view! {
        <td class="lead">{trouble(queue, dlq).view()}</td>
        <th class="lead" scope="row"><a href=held.clone()>{queue.name.clone()}</a></th>
        <td data-label="Held" class="end"><a href=held>{num(queue.held)}</a></td>
        <td data-label="Ready" class="end">{reading(&readings.ready, "")}</td>
        <td data-label="Healthy age" class="end">{reading(&readings.healthy_age_s, "s")}{limit}</td>
        <td data-label="In flight" class="end">{reading(&readings.in_flight, "")}</td>
        <td data-label="Arrive" class="end">{reading(&readings.arrival_per_s, "")}</td>
        <td data-label="Retry by class" class="pair">{retries}</td>
        <td data-label="Consuming" class="pair">{versions}</td>
        <td data-label="Dead letters" class="pair">{custody(dlq)}</td>
        <td data-label="On DLQ" class="end">
            {match dlq {
                Some(dlq) => reading(&dlq.backlog, ""),
                None => none("unknown", "Its dead-letter queue isn’t registered.").into_any(),
            }}
        </td>
        <td data-label="Gen" class="end">{num(queue.redrive_generation)}</td>
    }
    .into_any()
}

/// The worst that is known of the queue.
fn trouble(queue: &Queue, dlq: Option<&DeadLetterQueue>) -> Badge {
    let age = queue.readings.healthy_age_s.value;
    #[expect(clippy::cast_precision_loss, reason = "an objective in seconds")]
    let breached = age.zip(queue.slo.oldest_age_s).is_some_and(|(age, limit)| age > limit as f64);
    if dlq.is_some_and(|dlq| dlq.state == CustodyState::Stopped) {
        Badge { tone: "poison", icon: Icon::Stop, word: "custody broken" }
    } else if breached {
        Badge { tone: "poison", icon: Icon::Stop, word: "late" }
    } else if queue.frozen.is_some() {
        Badge { tone: "held", icon: Icon::Flag, word: "frozen" }
    } else if queue.held > 0 {
        Badge { tone: "held", icon: Icon::Flag, word: "holding" }
    } else if age.is_none() {
        Badge { tone: "unknown", icon: Icon::Unknown, word: "unknown" }
    } else {
        Badge { tone: "well", icon: Icon::Check, word: "healthy" }
    }
}

fn custody(dlq: Option<&DeadLetterQueue>) -> AnyView {
    match dlq {
        Some(dlq) => {
            let title = format!(
                "{}{}",
                dlq.name,
                dlq.state_reason.as_deref().map(|why| format!(": {}", format::words(why))).unwrap_or_default()
            );
            view! { <span title=title>{words::custody(dlq.state).view()}</span> }.into_any()
        }
        None => none("unknown", "Its dead-letter queue isn’t registered.").into_any(),
    }
}
