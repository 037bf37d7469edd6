//! Watch: what needs a person, then every queue.

mod needs;
mod queues;

use crate::{
    api::{Answer, get},
    components::{Icon, empty, loaded},
    live::{Topic, keep_fresh},
};
use domain::api::{CohortRow, DeadLetterQueue, Page, Queue};
use leptos::prelude::*;
use leptos_meta::Title;
use serde::{Deserialize, Serialize};
use {needs::Needs, queues::Queues};

/// Everything that Watch shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Watched {
    queues: Vec<Queue>,
    dead_letter_queues: Vec<DeadLetterQueue>,
    cohorts: Vec<CohortRow>,
}

fn read() -> impl Future<Output = Answer<Watched>> + Send + use<> {
    let queues = get::<Page<Queue>>("/queues?limit=200");
    let dead_letter_queues = get::<Page<DeadLetterQueue>>("/dead-letter-queues?limit=200");
    let cohorts = get::<Page<CohortRow>>("/cohorts?limit=200");
    async move {
        Ok(Watched {
            queues: queues.await?.items,
            dead_letter_queues: dead_letter_queues.await?.items,
            cohorts: cohorts.await?.items,
        })
    }
}

/// The page that is opened first at night.
#[component]
pub(crate) fn WatchPage() -> impl IntoView {
    let watched = Resource::new(|| (), |()| read());
    view! {
        <Title text="Watch · Lazaret" />
        {loaded(watched, |watched| view! { <Watch watched /> })}
    }
}

#[component]
fn Watch(watched: Watched) -> impl IntoView {
    let watched = RwSignal::new(watched);
    keep_fresh(watched, &[Topic::Queues, Topic::Cohorts, Topic::Freeze, Topic::Quarantine], read);
    let needs = Memo::new(move |_| watched.with(needs::of));
    let sub = move || {
        let queues = watched.with(|watched| watched.queues.len());
        let waiting = needs.with(Vec::len);
        let queues = if queues == 1 { "1 queue".to_owned() } else { format!("{queues} queues") };
        match waiting {
            0 => format!("{queues} watched. Nothing waits for a person."),
            1 => format!("{queues} watched. 1 thing waits for a person."),
            many => format!("{queues} watched. {many} things wait for a person."),
        }
    };
    let any = Memo::new(move |_| watched.with(|watched| !watched.queues.is_empty()));
    view! {
        <div class="page-head">
            <div class="title"><h1>"Watch"</h1></div>
            <p class="sub">{sub}</p>
        </div>
        {move || {
            if any.get() {
                view! {
                    <div class="stack">
                        <Needs needs />
                        <Queues watched />
                    </div>
                }
                .into_any()
            } else {
                empty(
                    Icon::Queue,
                    "Nothing is watched yet",
                    "An admin registers a broker and its queues through the API (POST /api/v1/brokers, then /api/v1/queues) and switches custody on. Until then Lazaret only looks.",
                    (),
                )
                .into_any()
            }
        }}
    }
}
