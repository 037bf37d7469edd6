//! The replay: rate and what binds it, items by state, what is in doubt, canaries, decisions.

use super::{Shown, canary::canaries, doubt::Doubts, has_replay, opened::Parts};
use crate::{
    api::get,
    components::{Beside, Icon, empty, none, reading, state, toned, when},
    format,
    live::Topic,
    words,
};
use domain::api::{Replay, StateCount};
use leptos::prelude::*;

/// What runs, ran, or would run.
#[component]
pub(super) fn ReplayView(shown: Shown, parts: Parts) -> impl IntoView {
    let started = Memo::new(move |_| shown.with(|cohort| has_replay(cohort.row.state, &cohort.stages)));
    move || {
        if started.get() {
            view! { <Running shown parts /> }.into_any()
        } else {
            empty(
                Icon::Run,
                "Nothing has been replayed",
                "When the plan is approved, a responder starts the canary; rate, items and decisions appear here.",
                (),
            )
            .into_any()
        }
    }
}

#[component]
fn Running(shown: Shown, parts: Parts) -> impl IntoView {
    let id = shown.with_untracked(|cohort| cohort.row.id);
    let read = move || get::<Replay>(&format!("/cohorts/{id}/replay"));
    let first = parts.try_update_value(|parts| parts.replay.take()).flatten();
    let replay = Beside::new(first, &[Topic::Cohorts], read);
    // rates age without any change: while something runs they are read every two seconds
    #[cfg(feature = "hydrate")]
    if let Ok(timer) = set_interval_with_handle(
        move || {
            if shown.with_untracked(|cohort| !cohort.row.state.is_terminal()) {
                replay.take(read());
            }
        },
        std::time::Duration::from_secs(2),
    ) {
        on_cleanup(move || timer.clear());
    }
    replay.show(move |replay| view! { <Board shown parts replay /> }.into_any())
}

#[component]
fn Board(shown: Shown, parts: Parts, replay: RwSignal<Replay>) -> impl IntoView {
    view! {
        <div class="replay">
            <section class="panel at-rate" aria-labelledby="h-rate">
                <header><h2 id="h-rate">"Rate"</h2><span class="age">"handed over, last 10 s"</span></header>
                {move || replay.with(rate)}
            </section>
            <section class="panel at-items" aria-labelledby="h-tally">
                <header><h2 id="h-tally">"Items by state"</h2></header>
                {move || replay.with(|replay| tally(&replay.counts))}
            </section>
            <div class="at-doubt"><Doubts shown parts /></div>
            <section class="panel at-guards" aria-labelledby="h-limits">
                <header><h2 id="h-limits">"Limits and owner"</h2><span class="meta">"no guards"</span></header>
                {move || replay.with(limits)}
            </section>
            <section class="panel at-canary" aria-labelledby="h-canary">
                <header><h2 id="h-canary">"Canary"</h2></header>
                {move || shown.with(canaries)}
            </section>
            <section class="panel at-log" aria-labelledby="h-log">
                <header><h2 id="h-log">"Decisions"</h2><span class="meta">"newest first"</span></header>
                {move || replay.with(decisions)}
            </section>
        </div>
    }
}

fn rate(replay: &Replay) -> AnyView {
    let figure = |name: &'static str, value: String, unit: &'static str| {
        view! { <div><dt>{name}</dt><dd><span class="num big">{value}<span class="unit">{unit}</span></span></dd></div> }
    };
    let bound = match (&replay.halted, replay.binding) {
        (Some(why), _) => state("unknown", Icon::Pause, format!("halted: {}", format::words(why))).into_any(),
        (None, Some(binding)) => state("running", Icon::Gauge, words::binding(binding)).into_any(),
        (None, None) => none("not running", "The governor doesn’t run in this state.").into_any(),
    };
    let eta = match replay.eta_s {
        Some(seconds) => {
            view! { <span class="num big">{format::span(time::Duration::seconds(seconds))}</span> }.into_any()
        }
        None => none("unknown", "Nothing goes out now, so no time left can be told.").into_any(),
    };
    let (now, allowed, cap) = (replay.rate_now_per_s, replay.allowed_per_s, replay.cap_per_s);
    // the axis ends a little above the highest of the three; widths are SVG attributes
    let end = [now.0, allowed.0, cap.0, 1].into_iter().max().unwrap_or(1) * 6 / 5;
    let at = move |value: i64| format!("{}%", (value.max(0) * 100 / end.max(1)).min(100));
    let label = format!(
        "Rate {} per second of {} allowed, cap {}",
        format::rate(now),
        format::rate(allowed),
        format::rate(cap)
    );
    view! {
        <div class="rate">
            <dl class="figures">
                {figure("now", format::rate(now), "/s")}
                {figure("allowed", format::rate(allowed), "/s")}
                {figure("cap", format::rate(cap), "/s")}
                <div><dt>"bound by"</dt><dd>{bound}</dd></div>
                <div><dt>"left at this rate"</dt><dd>{eta}</dd></div>
            </dl>
            <svg role="img" aria-label=label>
                <rect class="track" y="16" width="100%" height="10"></rect>
                <rect class="allowed" y="16" width=at(allowed.0) height="10"></rect>
                <rect class="now" y="16" width=at(now.0) height="10"></rect>
                <line class="tick" x1=at(cap.0) x2=at(cap.0) y1="12" y2="30"></line>
                <text class="tick-word" x=at(cap.0) y="42" text-anchor="end">"cap "{format::rate(cap)}</text>
                <text x="0" y="10">"0"</text>
            </svg>
        </div>
    }
    .into_any()
}

fn tally(counts: &[StateCount]) -> AnyView {
    let total: i64 = counts.iter().map(|one| one.count).sum();
    let scale = |value: i64| value * 1000 / total.max(1);
    let mut x = 0;
    let bars = counts
        .iter()
        .filter(|one| one.count > 0)
        .map(|one| {
            let width = scale(one.count).max(4);
            let at = x;
            x += width + 2;
            view! { <rect class=words::item_fill(one.state) x=at width=width height="12"></rect> }
        })
        .collect_view();
    let label = counts
        .iter()
        .filter(|one| one.count > 0)
        .map(|one| format!("{} {}", format::count(one.count), words::item(one.state).word))
        .collect::<Vec<_>>()
        .join(", ");
    let list = counts
        .iter()
        .map(
            |one| view! { <li>{words::item(one.state).view()}<span class="num">{format::count(one.count)}</span></li> },
        )
        .collect_view();
    view! {
        <div class="tally">
            <svg class="bar wide" viewBox="0 0 1024 12" preserveAspectRatio="none" role="img" aria-label=label>{bars}</svg>
            <ul>{list}</ul>
        </div>
    }.into_any()
}

fn limits(replay: &Replay) -> AnyView {
    let unfenced = replay
        .unfenced
        .iter()
        .map(|epoch| {
            let connection = epoch.connection.clone().unwrap_or_else(|| "no connection".to_owned());
            let open = epoch.publishing.len();
            view! { <li>"epoch "{epoch.epoch}", "{epoch.standing.clone()}", "<code>{connection}</code>", "{open}" unanswered"</li> }
        })
        .collect_view();
    let owner = replay.owner.clone().map_or_else(
        || none("nobody", "No process owns the replay now.").into_any(),
        |owner| view! { <code>{owner}</code> }.into_any(),
    );
    view! {
        <dl class="facts">
            <div><dt>"in flight"</dt><dd>{reading(&replay.in_flight, "")}" of at most "<span class="num">{format::count(replay.max_in_flight)}</span></dd></div>
            <div><dt>"headroom"</dt><dd>{reading(&replay.headroom_per_s, "/s")}</dd></div>
            <div><dt>"unanswered publishes"</dt><dd><span class="num">{format::count(replay.unanswered)}</span></dd></div>
            <div><dt>"owner"</dt><dd>{owner}", epoch "<span class="num">{replay.epoch}</span></dd></div>
            <div><dt>"resumes to"</dt><dd>{replay.resumes_to.map_or("—", |state| words::cohort(state).word)}</dd></div>
            <div><dt>"not fenced"</dt><dd>{if replay.unfenced.is_empty() { "nothing else may go out".into_any() } else { view! { <ul>{unfenced}</ul> }.into_any() }}</dd></div>
        </dl>
    }.into_any()
}

fn decisions(replay: &Replay) -> AnyView {
    if replay.decisions.is_empty() {
        return view! { <p class="note">"The governor hasn’t decided anything yet."</p> }.into_any();
    }
    let entries = replay
        .decisions
        .iter()
        .map(|decision| {
            let readings = decision.readings.to_string();
            view! {
                <li>
                    {when(decision.at)}
                    {toned("running", Icon::Gauge)}
                    <p>{decision.decision.clone()}<small>{readings}</small></p>
                </li>
            }
        })
        .collect_view();
    view! { <ol class="trail timed">{entries}</ol> }.into_any()
}
