//! Audit: who did what, when, on which evidence.

use crate::{
    api::{get, query},
    components::{HeldList, Icon, NewRows, banner, copy, empty, fact, icon, loaded, none, state, use_hydrated, when},
    format,
    live::{Reader, Topic, on_change},
};
use domain::{
    api::{AuditEntry, AuditResult, Page, Problem},
    vocabulary::Action,
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

/// What is filtered for, from the address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Filters {
    actor: String,
    action: String,
    subject: String,
    from: String,
    to: String,
}

impl Filters {
    fn path(&self, cursor: &str) -> String {
        let pairs = [
            ("actor", self.actor.clone()),
            ("action", self.action.clone()),
            ("subject", self.subject.clone()),
            ("from", instant(&self.from)),
            ("to", instant(&self.to)),
            ("cursor", cursor.to_owned()),
        ];
        format!("/audit{}", query(pairs))
    }
}

/// What a datetime-local field says (`2026-12-02T03:41`, perhaps with seconds) as the API takes it, UTC. Anything else
/// goes as it is: the API says what is wrong with it.
fn instant(typed: &str) -> String {
    match typed.len() {
        16 => format!("{typed}:00Z"),
        19 => format!("{typed}Z"),
        _ => typed.to_owned(),
    }
}

/// The log, newest first.
#[component]
pub(crate) fn AuditPage() -> impl IntoView {
    let query = use_query_map();
    let filters = Memo::new(move |_| {
        query.with(|query| {
            let param = |name: &str| query.get(name).unwrap_or_default();
            Filters {
                actor: param("actor"),
                action: param("action"),
                subject: param("subject"),
                from: param("from"),
                to: param("to"),
            }
        })
    });
    let page = Resource::new(move || filters.get(), |filters| get::<Page<AuditEntry>>(&filters.path("")));
    view! {
        <Title text="Audit · Lazaret" />
        <div class="page-head">
            <div class="title"><h1>"Audit"</h1></div>
            <p class="sub">"Every decision, written in the same transaction as what it decided. Entries are append-only; sealing and proofs come with the signed log."</p>
        </div>
        {loaded(page, move |page| view! { <Log filters=filters.get_untracked() page /> })}
    }
}

#[component]
fn Log(filters: Filters, page: Page<AuditEntry>) -> impl IntoView {
    let total = RwSignal::new(page.total);
    let list = HeldList::new(page.items, page.next_cursor, |entry: &AuditEntry| entry.id);
    let chosen = RwSignal::new(None::<AuditEntry>);
    let busy = RwSignal::new(false);
    let failed = RwSignal::new(None::<Problem>);
    let hydrated = use_hydrated();
    let reader = Reader::new();
    on_change(&[Topic::Audit], {
        let path = filters.path("");
        move || {
            reader.read(get::<Page<AuditEntry>>(&path), move |page| {
                total.set(page.total);
                list.offer(page.items, page.next_cursor);
            });
        }
    });
    let more = {
        let filters = filters.clone();
        move |_| {
            let Some(cursor) = list.next().get_untracked() else { return };
            let answer = get::<Page<AuditEntry>>(&filters.path(&cursor));
            busy.set(true);
            failed.set(None);
            leptos::task::spawn_local(async move {
                let answer = answer.await;
                if busy.try_set(false).is_some() {
                    return;
                }
                match answer {
                    Ok(page) => list.append(page.items, page.next_cursor),
                    Err(problem) => failed.set(Some(problem)),
                }
            });
        }
    };
    let any = Memo::new(move |_| list.rows().with(|rows| !rows.is_empty()));
    let actions = Action::ALL
        .iter()
        .map(|action| {
            let selected = filters.action == action.as_str();
            view! { <option value=action.as_str() selected=selected>{action.as_str()}</option> }
        })
        .collect_view();
    view! {
        <form class="filters" method="get" action="/audit">
            <label class="vh" for="audit-actor">"Person"</label>
            <input class="input" id="audit-actor" name="actor" placeholder="Person" value=filters.actor.clone() />
            <label class="vh" for="audit-action">"Act"</label>
            <select class="input" id="audit-action" name="action"><option value="">"Any act"</option>{actions}</select>
            <label class="vh" for="audit-subject">"Subject"</label>
            <input class="input" id="audit-subject" name="subject" placeholder="Subject: an id" value=filters.subject.clone() />
            <label for="audit-from">"From, UTC"</label>
            <input class="input" id="audit-from" name="from" type="datetime-local" value=filters.from.clone() />
            <label for="audit-to">"before"</label>
            <input class="input" id="audit-to" name="to" type="datetime-local" value=filters.to.clone() />
            <button class="button" type="submit">"Filter"</button>
            <a class="button" href="/audit">"Clear"</a>
            <span class="dim">{move || format!("{} entries", format::count(total.get().value))}</span>
            <NewRows list />
        </form>
        {move || if any.get() {
            view! {
                <div class="split">
                    <div>
                        <div class="table-box" tabindex="0" role="region" aria-label="Audit entries">
                            <table class="table by-card tight">
                                <thead>
                                    <tr>
                                        <th scope="col">"Seq"</th>
                                        <th scope="col">"Time, UTC"</th>
                                        <th scope="col">"Who"</th>
                                        <th scope="col">"Act"</th>
                                        <th scope="col">"Subject"</th>
                                        <th scope="col">"Before → after"</th>
                                        <th scope="col" class="roomy">"Reason"</th>
                                        <th scope="col"><span class="vh">"Open"</span></th>
                                    </tr>
                                </thead>
                                <tbody>
                                    <For each=move || list.rows().get() key=|entry| (entry.id, entry.seq, entry.count) let:entry>
                                        <Row entry chosen />
                                    </For>
                                </tbody>
                            </table>
                        </div>
                        {move || failed.get().map(|problem| banner(&problem))}
                        {
                            let more = more.clone();
                            move || list.next().get().map({
                                let more = more.clone();
                                move |_| view! {
                                    <div class="acts"><button class="button" type="button" disabled=move || !hydrated.get() || busy.get() on:click=more.clone()>{icon(Icon::Down)}"Older"</button></div>
                                }
                            })
                        }
                    </div>
                    <aside class="panel boxed sticky" aria-label="Entry" aria-live="polite">
                        {move || match chosen.get() {
                            Some(entry) => detail(&entry).into_any(),
                            None => view! { <p class="note">"Open an entry to see what it changed, before and after."</p> }.into_any(),
                        }}
                    </aside>
                </div>
            }.into_any()
        } else {
            empty(Icon::Audit, "No entry matches", "Every decision of a person, a machine or Lazaret itself makes an entry.", ()).into_any()
        }}
    }
}

#[component]
fn Row(entry: AuditEntry, chosen: RwSignal<Option<AuditEntry>>) -> impl IntoView {
    let id = entry.id;
    let hydrated = use_hydrated();
    let seq = match entry.seq {
        Some(seq) => format::count(seq).into_any(),
        None => none("unsealed", "Not yet in the signed log.").into_any(),
    };
    let subject = entry.subject.name.clone().unwrap_or_else(|| format::short(&entry.subject.id));
    let subject = match link(&entry) {
        Some(href) => view! { <a href=href title=entry.subject.id.clone()>{subject}</a> }.into_any(),
        None => view! { <span title=entry.subject.id.clone()>{subject}</span> }.into_any(),
    };
    let refused = (entry.result == AuditResult::Refused).then(|| {
        let code = entry.code.clone().unwrap_or_else(|| "refused".to_owned());
        let times = if entry.count > 1 { format!(" ×{}", entry.count) } else { String::new() };
        state("poison", Icon::Stop, format!("refused: {}{times}", format::words(&code)))
    });
    let reason = entry.reason.clone().unwrap_or_default();
    let current = move || chosen.with(|chosen| chosen.as_ref().is_some_and(|chosen| chosen.id == id).then_some("true"));
    let label = format!("Open entry {} of {}", entry.action, entry.actor.name);
    let picked = entry.clone();
    view! {
        <tr aria-selected=current>
            <th scope="row" class="mono" data-label="Seq">{seq}</th>
            <td class="o2 to-end">{when(entry.at)}</td>
            <td data-label="Who"><b>{entry.actor.name.clone()}</b></td>
            <td class="mono o1 pair">{entry.action.as_str()}</td>
            <td data-label="Subject">{entry.subject.kind.clone()}" "{subject}</td>
            <td class="lead o3">{step(&entry)}{refused}</td>
            <td class="fill roomy lead o4" title=reason.clone()>{reason.clone()}</td>
            <td>
                <button class="copy" type="button" aria-label=label disabled=move || !hydrated.get() on:click=move |_| chosen.set(Some(picked.clone()))>{icon(Icon::Search)}</button>
            </td>
        </tr>
    }
}

/// The state before and after, where both have one; the whole is in the entry.
fn step(entry: &AuditEntry) -> impl IntoView + use<> {
    let word = |value: &Option<serde_json::Value>| {
        value.as_ref().and_then(|value| value.get("state").or_else(|| value.get("custody"))).map(format::json)
    };
    match (word(&entry.before), word(&entry.after)) {
        (Some(before), Some(after)) => {
            Some(view! { <span class="dim mono">{before}</span>" → "<span class="mono">{after}</span> }.into_any())
        }
        (None, Some(after)) => {
            Some(view! { <span class="dim mono">"new"</span>" → "<span class="mono">{after}</span> }.into_any())
        }
        _ => None,
    }
}

fn link(entry: &AuditEntry) -> Option<String> {
    match entry.subject.kind.as_str() {
        "cohort" => Some(format!("/cohorts/{}", entry.subject.id)),
        "quarantine" => Some(format!("/quarantine/{}", entry.subject.id)),
        "queue" => Some(format!("/quarantine?queue={}", entry.subject.id)),
        _ => None,
    }
}

fn detail(entry: &AuditEntry) -> AnyView {
    let roles = entry.actor.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ");
    let json = |value: &Option<serde_json::Value>| match value {
        Some(value) => {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            view! { <pre class="code wrap">{text}</pre> }.into_any()
        }
        None => none("nothing", "The act has no such side.").into_any(),
    };
    let optional = |value: &Option<String>| match value {
        Some(value) => view! { <code>{value.clone()}</code> }.into_any(),
        None => none("none", "Not recorded.").into_any(),
    };
    let id = entry.id.to_string();
    view! {
        <header><h2>{entry.action.as_str()}</h2><span class="meta">{when(entry.at)}</span></header>
        <dl class="facts">
            {fact("who", view! { <b>{entry.actor.name.clone()}</b>", "{entry.actor.kind.clone()}" "{roles} })}
            {fact("subject", view! { {entry.subject.kind.clone()}" "<code>{entry.subject.id.clone()}</code> })}
            {fact("reason", entry.reason.clone().map_or_else(|| none("none", "No reason was given.").into_any(), |reason| format!("“{reason}”").into_any()))}
            {fact("before", json(&entry.before))}
            {fact("after", json(&entry.after))}
            {fact("request", optional(&entry.request_id))}
            {fact("address", optional(&entry.ip))}
            {fact("entry", view! { <span class="id">{format::short(&id)}{copy(id.clone())}</span> })}
        </dl>
    }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_to_the_api_with_their_zone() {
        assert_eq!(instant("2026-12-02T03:41"), "2026-12-02T03:41:00Z");
        assert_eq!(instant("2026-12-02T03:41:07"), "2026-12-02T03:41:07Z");
        assert_eq!(instant(""), "");
        let filters = Filters { from: "2026-12-02T03:41".to_owned(), ..Filters::default() };
        assert_eq!(filters.path(""), "/audit?from=2026%2D12%2D02T03%3A41%3A00Z");
    }
}
