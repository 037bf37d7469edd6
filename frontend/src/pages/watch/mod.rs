//! Watch: what needs a person, then every queue.

mod needs;
mod queues;

use crate::{
    api::{ALL, Answer, Here},
    components::{Icon, empty, loaded},
    format,
    live::{Topic, keep_fresh},
};
use domain::{
    api::{CohortRow, DeadLetterQueue, Queue},
    vocabulary::CohortState,
};
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

/// Reads every cohort that may need a person, however old it is: those that are open, and whatever has an item in doubt
/// or was published twice.
fn read() -> impl Future<Output = Answer<Watched>> + Send + use<> {
    let here = Here::of_context();
    let queues = here.rows::<Queue>("/queues?limit=200".to_owned(), ALL);
    let dead_letter_queues = here.rows::<DeadLetterQueue>("/dead-letter-queues?limit=200".to_owned(), ALL);
    let open: Vec<String> =
        CohortState::ALL.iter().filter(|state| state.is_open()).map(|state| format!("state={state}")).collect();
    let open = open.join("&");
    let cohorts = [open.as_str(), "in_doubt=true", "published_twice=true"]
        .map(|filter| here.rows::<CohortRow>(format!("/cohorts?limit=200&{filter}"), ALL));
    async move {
        let (queues, dead_letter_queues) = (queues.await?.items, dead_letter_queues.await?.items);
        let mut all: Vec<CohortRow> = Vec::new();
        for cohorts in cohorts {
            for row in cohorts.await?.items {
                if all.iter().all(|known| known.id != row.id) {
                    all.push(row);
                }
            }
        }
        Ok(Watched { queues, dead_letter_queues, cohorts: all })
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
        let queues = format::many(format::len(queues), "queue", "queues");
        match waiting {
            0 => format!("{queues} watched. Nothing waits for a person."),
            waiting => {
                let things = format::many(format::len(waiting), "thing waits", "things wait");
                format!("{queues} watched. {things} for a person.")
            }
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

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::api::ApiRouter;
    use axum::{Json, Router, extract::RawQuery, routing::get};
    use serde_json::{Value, json};

    fn cohort(n: u128, state: &str, in_doubt: i64) -> Value {
        let who = json!({ "id": uuid::Uuid::from_u128(7), "username": "mara" });
        let at = "2026-12-02T03:00:00.000000Z";
        json!({ "id": uuid::Uuid::from_u128(n), "queue": { "id": uuid::Uuid::from_u128(9), "name": "orders" }, "title": format!("cohort {n}"),
            "state": state, "state_reason": null, "state_since": at, "state_by": null, "revision": 1, "version": 1, "size": 2,
            "counts": [{ "state": "in_doubt", "count": in_doubt }], "created_by": who, "created_at": at, "generation": null,
            "published_twice": false })
    }

    fn page(items: Vec<Value>, next: Option<&str>) -> Value {
        json!({ "items": items, "next_cursor": next, "total": { "value": 2, "relation": "eq" } })
    }

    /// An API whose lists go on for two pages, and whose ended cohorts come only by the filter that asks for doubt.
    fn api() -> Router {
        let lists = |RawQuery(query): RawQuery| async move {
            let query = query.unwrap_or_default();
            Json(match (query.contains("in_doubt=true"), query.contains("cursor=")) {
                (true, false) => page(vec![cohort(1, "aborted", 1)], Some("2")),
                (true, true) => page(vec![cohort(2, "completed", 2)], None),
                (false, _) if query.contains("published_twice=true") => page(vec![], None),
                (false, false) => page(vec![cohort(3, "in_review", 0)], Some("4")),
                (false, true) => page(vec![cohort(4, "paused", 0), cohort(1, "aborted", 1)], None),
            })
        };
        let none = || async { Json(page(vec![], None)) };
        Router::new()
            .route("/api/v1/cohorts", get(lists))
            .route("/api/v1/queues", get(none))
            .route("/api/v1/dead-letter-queues", get(none))
    }

    #[test]
    fn what_waits_is_asked_for_by_what_it_is_and_to_the_last_page() {
        let reading = Owner::new().with(|| {
            provide_context(ApiRouter(api()));
            read()
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let watched = runtime.block_on(reading).unwrap();
        let mut titles: Vec<_> = watched.cohorts.iter().map(|cohort| cohort.title.as_str()).collect();
        titles.sort_unstable();
        assert_eq!(titles, ["cohort 1", "cohort 2", "cohort 3", "cohort 4"], "each once");
        assert_eq!(needs::of(&watched).len(), 4);
    }
}
