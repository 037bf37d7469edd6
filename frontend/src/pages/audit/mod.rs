//! Audit: who did what, when, on which evidence.

use crate::{
    api::{Answer, Here, encode, get, query},
    components::{
        HeldList, Icon, MoreRows, NewRows, banner, copy, differences, empty, fact, icon, loaded, none, state, when,
    },
    format,
    live::{Reader, Topic, on_change},
};
use domain::{
    api::{AuditEntry, AuditResult, Page, Total},
    ids::AuditId,
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
        let [from, to] = [instant(&self.from), instant(&self.to)];
        self.query(from, to, ("cursor", cursor.to_owned()))
    }

    /// The page's address with one entry opened.
    fn opened(&self, entry: AuditId) -> String {
        self.query(self.from.clone(), self.to.clone(), ("entry", entry.to_string()))
    }

    fn query(&self, from: String, to: String, last: (&str, String)) -> String {
        let pairs = [
            ("actor", self.actor.clone()),
            ("action", self.action.clone()),
            ("subject", self.subject.clone()),
            ("from", from),
            ("to", to),
            last,
        ];
        format!("/audit{}", query(pairs))
    }
}

/// What the page starts with: the list, and the entry that the address opens.
type Opened = (Page<AuditEntry>, Option<Answer<AuditEntry>>);

fn entry_path(id: &str) -> String {
    format!("/audit/{}", encode(id))
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
    let entry = Memo::new(move |_| query.with(|query| query.get("entry")).unwrap_or_default());
    let page = Resource::new(
        move || filters.get(),
        move |filters| {
            let here = Here::of_context();
            let page = here.get::<Page<AuditEntry>>(&filters.path(""));
            let entry = entry.get_untracked();
            async move {
                let page = page.await?;
                let opened = if entry.is_empty() { None } else { Some(here.get(&entry_path(&entry)).await) };
                Ok((page, opened)) as Answer<Opened>
            }
        },
    );
    view! {
        <Title text="Audit · Lazaret" />
        <div class="page-head">
            <div class="title"><h1>"Audit"</h1></div>
            <p class="sub">"Every decision, written in the same transaction as what it decided. Entries are append-only; sealing and proofs come with the signed log."</p>
        </div>
        {loaded(page, move |(page, opened)| view! { <Log filters=filters.get_untracked() page entry opened /> })}
    }
}

#[component]
fn Log(
    filters: Filters,
    page: Page<AuditEntry>,
    /// The id of the entry that the address opens.
    entry: Memo<String>,
    opened: Option<Answer<AuditEntry>>,
) -> impl IntoView {
    let total = RwSignal::new(page.total);
    let list = HeldList::new(page.items, page.next_cursor, |entry: &AuditEntry| entry.id);
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
    let older = {
        let filters = filters.clone();
        move |cursor: &str| {
            let page = get::<Page<AuditEntry>>(&filters.path(cursor));
            async move { page.await.map(|page| (page.items, page.next_cursor)) }
        }
    };
    let chosen = RwSignal::new(opened);
    Effect::new(move |before: Option<String>| {
        let now = entry.get();
        if before.is_some_and(|before| before != now) {
            open(&now, list, chosen);
        }
        now
    });
    let links = StoredValue::new(filters.clone());
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
            <span class="pair"><label for="audit-from">"From, UTC"</label>
            <input class="input" id="audit-from" name="from" type="datetime-local" value=filters.from.clone() /></span>
            <span class="pair"><label for="audit-to">"before"</label>
            <input class="input" id="audit-to" name="to" type="datetime-local" value=filters.to.clone() /></span>
            <button class="button" type="submit">"Filter"</button>
            <a class="button" href="/audit">"Clear"</a>
            <span class="dim">{move || total.with(entries)}</span>
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
                                    <For each=move || list.rows().get() key=|entry| (entry.id, entry.seq, entry.count) let:one>
                                        <Row entry=one links chosen=entry />
                                    </For>
                                </tbody>
                            </table>
                        </div>
                    </div>
                    <aside class="panel boxed sticky" aria-label="Entry" aria-live="polite">
                        {move || match chosen.get() {
                            Some(Ok(entry)) => detail(&entry),
                            Some(Err(problem)) => banner(&problem),
                            None => view! { <p class="note">"Open an entry to see what it changed, before and after."</p> }.into_any(),
                        }}
                    </aside>
                </div>
            }.into_any()
        } else {
            empty(Icon::Audit, "No entry matches", "Every decision of a person, a machine or Lazaret itself makes an entry.", ()).into_any()
        }}
        <MoreRows list label="Older" read=older />
    }
}

fn entries(total: &Total) -> String {
    let word = if total.value == 1 { "entry" } else { "entries" };
    format!("{} {word}", format::total(total))
}

/// Opens the entry of the address: as it is in the list, or read by its id.
fn open(id: &str, list: HeldList<AuditEntry, AuditId>, chosen: RwSignal<Option<Answer<AuditEntry>>>) {
    let shown = list.rows().with_untracked(|rows| rows.iter().find(|entry| entry.id.to_string() == id).cloned());
    if id.is_empty() || shown.is_some() {
        chosen.set(shown.map(Ok));
        return;
    }
    let answer = get::<AuditEntry>(&entry_path(id));
    leptos::task::spawn_local(async move {
        let answer = answer.await;
        // gone with the page: nothing to show
        let _ = chosen.try_set(Some(answer));
    });
}

#[component]
fn Row(entry: AuditEntry, links: StoredValue<Filters>, chosen: Memo<String>) -> impl IntoView {
    let id = entry.id;
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
    let current = move || chosen.with(|chosen| (*chosen == id.to_string()).then_some("true"));
    let label = format!("Open entry {} of {}", entry.action, entry.actor.name);
    let href = links.with_value(|filters| filters.opened(id));
    view! {
        <tr aria-selected=current>
            <th scope="row" class="mono" data-label="Seq">{seq}</th>
            <td class="o2 to-end">{when(entry.at)}</td>
            <td data-label="Who"><b>{entry.actor.name.clone()}</b></td>
            <td class="mono o1 pair">{entry.action.as_str()}</td>
            <td class="short" data-label="Subject">{entry.subject.kind.clone()}" "{subject}</td>
            <td class="lead o3">{step(&entry)}{refused}</td>
            <td class="fill roomy lead o4" title=reason.clone()>{reason.clone()}</td>
            <td>
                <a class="copy" href=href aria-label=label aria-current=current data-noscroll="">{icon(Icon::Search)}</a>
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
            {fact("request", optional(&entry.request_id))}
            {fact("address", optional(&entry.ip))}
            {fact("entry", view! { <span class="id">{format::short(&id)}{copy(id.clone())}</span> })}
        </dl>
        <h3>"Before and after"</h3>
        {differences(entry.before.as_ref(), entry.after.as_ref())}
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
        let entry = AuditId(uuid::Uuid::nil());
        let opened = filters.opened(entry);
        assert!(opened.starts_with("/audit?from=2026%2D12%2D02T03%3A41&entry=0000"), "{opened}");
    }
}
