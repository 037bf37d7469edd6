//! One quarantined message: its state, the four counters side by side, what it holds, where it has been.

mod counters;
mod custody;
mod fields;
mod payload;

use crate::{
    api::{get, query},
    components::{Icon, copy, fact, id_link, loaded, none, when, when_ago},
    format,
    live::{Topic, keep_fresh},
    words,
};
use domain::api::{BrokerFacts, QuarantinedMessage};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::{use_params_map, use_query_map};
use {counters::counters, custody::Custody, fields::fields, payload::Payload};

/// The page of one message.
#[component]
pub(crate) fn MessagePage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).unwrap_or_default());
    let message = Resource::new(move || id.get(), |id| get::<QuarantinedMessage>(&path(&id)));
    view! {
        <Title text="Message · Lazaret" />
        {loaded(message, |message| view! { <Message message /> })}
    }
}

fn path(id: &str) -> String {
    format!("/quarantine/{}", crate::api::encode(id))
}

#[component]
fn Message(message: QuarantinedMessage) -> impl IntoView {
    let id = message.row.id.to_string();
    let message = RwSignal::new(message);
    keep_fresh(message, &[Topic::Quarantine, Topic::Cohorts], {
        let id = id.clone();
        move || get(&path(&id))
    });
    let query_map = use_query_map();
    let tab = Memo::new(move |_| query_map.with(|query| query.get("tab")).unwrap_or_default());
    let tabs = {
        let id = id.clone();
        move || {
            let count = message.with(|message| {
                [None, Some(message.headers.len() + message.properties.len()), Some(message.lineage.len())]
            });
            [("", "Payload"), ("headers", "Headers and properties"), ("lineage", "Lineage")]
                .into_iter()
                .zip(count)
                .map(|((name, label), count)| {
                    let href = format!("/quarantine/{id}{}", query([("tab", name.to_owned())]));
                    let current = move || (tab.get() == name).then_some("page");
                    view! { <a href=href aria-current=current data-noscroll="">{label}{count.map(|count| view! { <small>{count}</small> })}</a> }
                })
                .collect_view()
        }
    };
    view! {
        {move || head(&message.get())}
        {move || message.with(counters)}
        <div class="split">
            <div>
                <nav class="tabs" aria-label="Message">{tabs}</nav>
                <div class="stack-tight">
                    {move || match tab.get().as_str() {
                        "headers" => message.with(fields).into_any(),
                        "lineage" => message.with(custody::lineage).into_any(),
                        _ => view! { <Payload message /> }.into_any(),
                    }}
                </div>
            </div>
            <aside class="stack">
                <Custody message />
                {move || message.with(facts)}
            </aside>
        </div>
    }
}

fn head(message: &QuarantinedMessage) -> AnyView {
    let row = &message.row;
    let name = row.message_id.as_ref().map_or_else(|| row.id.to_string(), ToString::to_string);
    let job = row.job_id.as_ref().map(ToString::to_string);
    let job_crumb = job.map(|job| {
        let href = format!("/quarantine{}", query([("q", job.clone())]));
        view! { <a href=href>{format::short(&job)}</a> }
    });
    let queue = match &row.queue {
        Some(queue) => view! { <a href=format!("/quarantine?queue={}", queue.id)>{queue.name.clone()}</a> }.into_any(),
        None => none("no queue", "No watched queue claims it.").into_any(),
    };
    let died = match row.dead_lettered_at {
        Some(at) => view! { " at "{when(at)} }.into_any(),
        None => view! { "; when isn’t known, it arrived "{when_ago(row.arrived_at)} }.into_any(),
    };
    let by = row.worker_version.as_ref().map(|version| view! { " by "<code>{version.clone()}</code> });
    let class = row.error_class.clone().unwrap_or_else(|| "unclassified".to_owned());
    let text = row.error_text.as_ref().map(|text| view! { ", “"{text.clone()}"”" });
    let cohort = row.cohort.as_ref().map(|cohort| {
        view! { " In cohort "<a href=format!("/cohorts/{}", cohort.id)>{cohort.title.clone()}</a>"." }
    });
    let duplicate = row.possible_duplicate_of.map(|other| {
        view! { " Possibly a second delivery of "{id_link(format!("/quarantine/{other}"), other.to_string())}"." }
    });
    view! {
        <div class="page-head">
            <nav class="crumbs" aria-label="Breadcrumb"><a href="/quarantine">"Quarantine"</a>{job_crumb}</nav>
            <div class="title">
                <h1>"Message "{format::short(&name)}</h1>
                {words::quarantine(row.state).tag()}
                {copy(name.clone())}
            </div>
            <p class="sub">
                "Dead-lettered from "{queue}{died}{by}": "<code>{class}</code>{text}"."{cohort}{duplicate}
            </p>
            <div class="acts">
                <a class="button" href=format!("/audit?subject={}", row.id)>"Its audit entries"</a>
            </div>
        </div>
    }
    .into_any()
}

fn facts(message: &QuarantinedMessage) -> AnyView {
    let payload = &message.payload;
    let BrokerFacts { original_exchange, original_routing_key, died_on, reason, redelivered, .. } = &message.broker;
    let sha = match &payload.sha256 {
        Some(sha) => view! { <span class="digest">{format::grouped(sha)}</span> }.into_any(),
        None => none("erased", "The payload was erased; its commitment stays.").into_any(),
    };
    let exchange = match original_exchange {
        Some(name) if name.0.is_empty() => view! { "the default exchange" }.into_any(),
        Some(name) => view! { <code>{name.to_string()}</code> }.into_any(),
        None => none("unknown", "The broker didn’t say.").into_any(),
    };
    let key = match original_routing_key {
        Some(key) => view! { <code>{key.to_string()}</code> }.into_any(),
        None => none("unknown", "The broker didn’t say.").into_any(),
    };
    let died_on = match died_on {
        Some(queue) => view! { <code>{queue.to_string()}</code> }.into_any(),
        None => none("unknown", "No x-death entry.").into_any(),
    };
    let text = |value: &Option<String>, absent: &'static str| match value {
        Some(value) => view! { <code>{value.clone()}</code> }.into_any(),
        None => none("absent", absent).into_any(),
    };
    let row = &message.row;
    view! {
        <section class="panel" aria-labelledby="h-facts">
            <header><h2 id="h-facts">"Facts"</h2></header>
            <dl class="facts">
                {fact("sha256", sha)}
                {fact("commitment", view! { <span class="digest">{format::grouped(&payload.commitment)}</span> })}
                {fact("content type", text(&payload.content_type, "absent in the message"))}
                {fact("encoding", text(&payload.content_encoding, "absent in the message"))}
                {fact("published to", view! { {exchange}", key "{key} })}
                {fact("died on", died_on)}
                {fact("reason", text(reason, "no x-death entry"))}
                {fact("redelivered", if *redelivered { "yes, a hint and no proof" } else { "no" })}
                {fact("kind", row.kind.as_str())}
                {fact("fingerprint", view! {
                    <a class="mono" href=format!("/quarantine{}", query([("fingerprint", row.fingerprint.clone())]))>
                        {format::short(&row.fingerprint)}
                    </a>
                })}
                {fact("arrived", when_ago(row.arrived_at))}
                {fact("evidence id", id_link(format!("/quarantine/{}", row.id), row.id.to_string()))}
            </dl>
        </section>
    }
    .into_any()
}

/// A glyph of a trail, in its state's colour.
fn mark(tone: &'static str, glyph: Icon) -> AnyView {
    crate::components::toned(tone, glyph)
}
