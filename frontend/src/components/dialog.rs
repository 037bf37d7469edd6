//! The dialog of an act: says exactly what it will do, asks why, and for more than one message how many.

use super::{Done, Icon, banner, icon, use_hydrated};
use crate::{
    api::{Acting, Answer, new_key},
    format,
};
use domain::api::Problem;
use leptos::{html, prelude::*};
use std::{pin::Pin, sync::Arc};

/// What the person filled in.
#[derive(Debug, Clone)]
pub(crate) struct Answered {
    /// Why.
    pub(crate) reason: String,
    /// The typed count, where one was asked.
    pub(crate) count: Option<i64>,
    /// One key for this opening of the dialog, kept on a retry.
    pub(crate) acting: Acting,
}

/// What became of the act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done; the dialog closes.
    Done,
    /// Done, and these lines are worth reading; the dialog stays until it is closed.
    Tell(Vec<String>),
}

/// An act under way.
pub(crate) type Doing = Pin<Box<dyn Future<Output = Answer<Outcome>>>>;

/// Wraps an act whose answer needs no words.
pub(crate) fn outcome<T: 'static>(
    act: impl Future<Output = Answer<T>> + 'static,
    then: impl FnOnce(T) + 'static,
) -> Doing {
    Box::pin(async move {
        then(act.await?);
        Ok(Outcome::Done)
    })
}

/// What the dialog asks beside its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The heading.
    pub(crate) title: String,
    /// The name of the text: `Reason` or `Comment`.
    pub(crate) reason_label: &'static str,
    /// The count to type, where more than one message moves.
    pub(crate) count: Option<i64>,
    /// The version to send.
    pub(crate) version: Option<i64>,
    /// The act's own button.
    pub(crate) button: String,
    /// Whether it ends or forbids something.
    pub(crate) danger: bool,
}

/// A modal dialog, made anew at each opening.
#[component]
pub(crate) fn ActDialog(
    /// Whether it is open.
    open: RwSignal<bool>,
    /// Asked when it opens.
    asked: impl Fn() -> Asked + Send + Sync + 'static,
    /// Does it.
    on_submit: impl Fn(Answered) -> Doing + Send + Sync + 'static,
    /// What it will do, in words and facts.
    children: ChildrenFn,
) -> impl IntoView {
    let on_submit: Arc<dyn Fn(Answered) -> Doing + Send + Sync> = Arc::new(on_submit);
    let asked = StoredValue::new(Box::new(asked) as Box<dyn Fn() -> Asked + Send + Sync>);
    move || {
        open.get().then(|| {
            let asked = asked.with_value(|asked| untrack(asked));
            view! { <Opened open asked on_submit=on_submit.clone() children=children.clone() /> }
        })
    }
}

#[component]
fn Opened(
    open: RwSignal<bool>,
    asked: Asked,
    on_submit: Arc<dyn Fn(Answered) -> Doing + Send + Sync>,
    children: ChildrenFn,
) -> impl IntoView {
    let dialog = NodeRef::<html::Dialog>::new();
    let reason = RwSignal::new(String::new());
    let typed = RwSignal::new(String::new());
    let busy = RwSignal::new(false);
    let problem = RwSignal::new(None::<Problem>);
    let told = RwSignal::new(None::<Vec<String>>);
    let key = new_key();
    let hydrated = use_hydrated();
    let done = Done::of_context();
    let act = asked.button.clone();
    // by the element's own door, so that the focus goes back to where it was
    let shut = move || {
        if let Some(dialog) = dialog.get_untracked() {
            dialog.close();
        }
    };
    // an act under way is waited for: whoever left couldn't be told what became of it
    let closed = move |_| match dialog.get_untracked() {
        Some(dialog) if busy.get_untracked() => drop(dialog.show_modal()),
        _ => open.set(false),
    };

    Effect::new(move |_| {
        if let Some(dialog) = dialog.get()
            && !dialog.open()
        {
            let _ = dialog.show_modal();
        }
    });

    let count = asked.count;
    let wrong_count = move || {
        let text: String = typed.get().chars().filter(char::is_ascii_digit).collect();
        count.is_some_and(|count| text.parse() != Ok(count))
    };
    let ready = move || hydrated.get() && !busy.get() && !reason.get().trim().is_empty() && !wrong_count();
    let version = asked.version;
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if !ready() {
            return;
        }
        busy.set(true);
        problem.set(None);
        let doing = on_submit(Answered {
            reason: reason.get_untracked().trim().to_owned(),
            count,
            acting: Acting { key: key.clone(), version },
        });
        let act = act.clone();
        leptos::task::spawn_local(async move {
            let became = doing.await;
            if busy.try_set(false).is_some() {
                return; // the page is gone
            }
            match became {
                Ok(Outcome::Done) => {
                    done.tell(format!("{act}."));
                    shut();
                }
                Ok(Outcome::Tell(lines)) => told.set(Some(lines)),
                Err(refused) => problem.set(Some(refused)),
            }
        });
    };
    let ask_count = count.map(|count| {
        let hint = format!("Type {} to go on.", format::count(count));
        view! {
            <div class="field inline">
                <label for="act-count">{hint}</label>
                <input
                    class="input mono"
                    id="act-count"
                    inputmode="numeric"
                    autocomplete="off"
                    aria-invalid=move || (!typed.get().is_empty() && wrong_count()).then_some("true")
                    prop:value=typed
                    on:input=move |event| typed.set(event_target_value(&event))
                />
            </div>
        }
    });
    let button_class = if asked.danger { "button danger" } else { "button primary" };
    let footer = view! {
        <div class="field">
            <label for="act-reason">{asked.reason_label}</label>
            <textarea
                class="input"
                id="act-reason"
                required
                maxlength="2000"
                autofocus
                prop:value=reason
                on:input=move |event| reason.set(event_target_value(&event))
            ></textarea>
            <span class="hint">"Goes into the audit log."</span>
        </div>
        {ask_count}
        {move || problem.get().map(|problem| banner(&problem))}
        <footer>
            <button class="button" type="button" disabled=busy on:click=move |_| shut()>"Cancel"</button>
            <button class=button_class type="submit" disabled=move || !ready()>
                {asked.button}{move || busy.get().then_some(" …")}
            </button>
        </footer>
    };
    view! {
        <dialog
            class="dialog"
            node_ref=dialog
            aria-labelledby="act-title"
            aria-busy=move || busy.get().then_some("true")
            on:cancel=move |event: leptos::ev::Event| if busy.get_untracked() { event.prevent_default() }
            on:close=closed
        >
            <form on:submit=submit>
                <header>
                    <h2 id="act-title">{asked.title}</h2>
                    <button class="copy" type="button" aria-label="Close" disabled=busy on:click=move |_| shut()>
                        {icon(Icon::Close)}
                    </button>
                </header>
                {children()}
                <div class="stack-tight" hidden=move || told.get().is_some()>{footer}</div>
                {move || told.get().map(|lines| view! {
                    <div class="banner" data-state="well" role="status">
                        {icon(Icon::Check)}
                        <ul>{lines.into_iter().map(|line| view! { <li>{line}</li> }).collect_view()}</ul>
                    </div>
                    <footer><button class="button" type="button" on:click=move |_| shut()>"Close"</button></footer>
                })}
            </form>
        </dialog>
    }
}
