//! The replay: rate and what binds it, items by state, what is in doubt, canaries, decisions.

use super::{Shown, canary::canaries, doubt::Doubts, has_replay, opened::Parts};
use crate::{
    api::get,
    components::{Beside, Icon, empty, none, reading, state, toned, when},
    format,
    live::Topic,
    words,
};
use domain::{
    api::{Decision, Replay, StateCount, Thousandths},
    vocabulary::Binding,
};
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
            let (tone, glyph) =
                if halted(decision).is_some() { ("unknown", Icon::Pause) } else { ("running", Icon::Gauge) };
            let (what, read) = said(decision);
            view! {
                <li>
                    {when(decision.at)}
                    {toned(tone, glyph)}
                    <p>{what}<small>{read}</small></p>
                </li>
            }
        })
        .collect_view();
    view! { <ol class="trail timed">{entries}</ol> }.into_any()
}

/// Why nothing was handed over, in a decision to hand over nothing.
fn halted(decision: &Decision) -> Option<&str> {
    decision.decision.strip_prefix("halted: ")
}

/// A decision in a sentence, and what it rests on in another. Readings that aren't known here are listed by name.
fn said(decision: &Decision) -> (String, String) {
    let readings = &decision.readings;
    let number = |name: &str| readings.get(name).and_then(serde_json::Value::as_i64);
    let rate = |name: &str| {
        let value = readings.get(name)?;
        serde_json::from_value::<Thousandths>(value.clone()).ok().map(format::rate)
    };
    let binding = readings.get("binding").and_then(|value| serde_json::from_value::<Binding>(value.clone()).ok());
    let what = match (halted(decision), rate("allowed_per_s"), binding) {
        (Some(why), ..) => format!("Halted: {}", format::words(why)),
        (None, Some(rate), Some(binding)) => format!("{rate}/s, bound by {}", words::binding(binding)),
        (None, Some(rate), None) => format!("{rate}/s, bound by nothing"),
        (None, None, _) => format::words(&decision.decision),
    };
    let source = match readings.get("in_flight_source").and_then(serde_json::Value::as_str) {
        Some("events") => " by worker events",
        Some("management") => " by the management API",
        _ => "",
    };
    let in_flight = match (number("in_flight"), number("max_in_flight")) {
        (Some(now), Some(most)) => {
            Some(format!("{} of at most {} in flight{source}", format::count(now), format::count(most)))
        }
        (None, Some(_)) => Some("in flight unknown".to_owned()),
        _ => None,
    };
    let cap = rate("cap_per_s").map(|cap| format!("cap {cap}/s"));
    let left = number("scheduled").map(|left| format!("{} to go", format::count(left)));
    let doubt = number("in_doubt").filter(|doubt| *doubt > 0).map(|doubt| format!("{} in doubt", format::count(doubt)));
    let known = [in_flight, cap, left, doubt].into_iter().flatten().collect::<Vec<_>>();
    let read = if known.is_empty() {
        format::flat(readings).into_iter().map(|(name, value)| format!("{}: {value}", format::words(&name))).collect()
    } else {
        known
    };
    (what, read.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_decision_is_a_sentence_with_what_it_rests_on() {
        let decision = |text: &str, readings| Decision {
            at: domain::api::Timestamp(time::OffsetDateTime::UNIX_EPOCH),
            decision: text.to_owned(),
            readings,
        };
        let running = json!({ "in_flight": 20, "in_flight_source": "events", "max_in_flight": 20, "allowed_per_s": 4, "cap_per_s": 8,
            "binding": "in_flight", "scheduled": 36, "in_doubt": 1 });
        let (what, read) = said(&decision("rate 4/s, bound by in_flight", running));
        assert_eq!(what, "4/s, bound by the in-flight cap");
        assert_eq!(read, "20 of at most 20 in flight by worker events, cap 8/s, 36 to go, 1 in doubt");
        let blind = json!({ "in_flight": null, "max_in_flight": 20 });
        let (what, read) = said(&decision("halted: in_flight_unknown", blind));
        assert_eq!((what.as_str(), read.as_str()), ("Halted: in flight unknown", "in flight unknown"), "never 0");
        assert_eq!(
            said(&decision("something_new", json!({ "seen_by": "x_y" }))),
            ("something new".to_owned(), "seen by: x_y".to_owned())
        );
    }
}
