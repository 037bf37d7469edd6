//! Loading and emptiness.

use super::{Icon, icon, problem_page};
use crate::{
    api::Answer,
    live::{Reader, Topic, on_change},
};
use leptos::prelude::*;

/// Shows a resource: what it says, what went wrong, or a skeleton meanwhile. `view` is made once per answer; what
/// changes later goes through signals, so that nothing moves under the pointer.
pub(crate) fn loaded<T, V>(resource: Resource<Answer<T>>, view: impl Fn(T) -> V + Clone + Send + 'static) -> AnyView
where
    T: Clone + Send + Sync + 'static,
    V: IntoView + 'static,
{
    view! {
        <Transition fallback=skeleton>
            {move || {
                let view = view.clone();
                Suspend::new(async move {
                    match resource.await {
                        Ok(value) => view(value).into_any(),
                        Err(problem) => problem_page(&problem).into_any(),
                    }
                })
            }}
        </Transition>
    }
    .into_any()
}

fn skeleton() -> AnyView {
    let row = || {
        view! {
            <tr>
                <td><i class="sk w1"></i></td>
                <td><i class="sk w2"></i></td>
                <td><i class="sk w3"></i></td>
                <td><i class="sk w1"></i></td>
            </tr>
        }
    };
    view! {
        <p class="vh" role="status">"Loading"</p>
        <div class="table-box" aria-hidden="true">
            <table class="table" aria-busy="true"><tbody>{row()}{row()}{row()}{row()}{row()}</tbody></table>
        </div>
    }
    .into_any()
}

/// Nothing is here: says what would fill it.
pub(crate) fn empty(glyph: Icon, heading: &'static str, text: impl IntoView, acts: impl IntoView) -> AnyView {
    view! {
        <div class="empty">
            {icon(glyph)}
            <h2>{heading}</h2>
            <p>{text}</p>
            <div class="acts">{acts}</div>
        </div>
    }
    .into_any()
}

/// Something beside a page's main reading: handed in by the page's first load, else read in the browser; read again
/// when its topics change. (A resource of its own inside a loaded page would not hydrate.)
pub(crate) struct Beside<T: Send + Sync + 'static> {
    answer: RwSignal<Option<Answer<T>>>,
    known: Memo<Option<bool>>,
    reader: Reader,
}

impl<T: Send + Sync + 'static> Clone for Beside<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + Sync + 'static> Copy for Beside<T> {}

impl<T: Clone + PartialEq + Send + Sync + 'static> Beside<T> {
    /// Starts with `first`, or reads.
    pub(crate) fn new<F>(
        first: Option<Answer<T>>,
        topics: &'static [Topic],
        read: impl Fn() -> F + Clone + 'static,
    ) -> Self
    where
        F: Future<Output = Answer<T>> + 'static,
    {
        let missing = first.is_none();
        let answer = RwSignal::new(first);
        let known = Memo::new(move |_| answer.with(|answer| answer.as_ref().map(Result::is_ok)));
        let beside = Self { answer, known, reader: Reader::new() };
        let again = {
            let read = read.clone();
            move || beside.take(read())
        };
        on_change(topics, again);
        if missing {
            Effect::new(move |_| beside.take(untrack(&read)));
        }
        beside
    }

    /// Puts the answer in its place, when it comes; a failure doesn't hide what is shown already: the frame tells of it.
    pub(crate) fn take(self, reading: impl Future<Output = Answer<T>> + 'static) {
        let answer = self.answer;
        let put = move |fresh: Answer<T>| {
            let differs = answer.try_with_untracked(|shown| match (shown, &fresh) {
                (Some(Ok(_)), Err(_)) => false,
                (shown, _) => shown.as_ref() != Some(&fresh),
            });
            if differs == Some(true) {
                answer.set(Some(fresh));
            }
        };
        let reading = async move {
            let fresh = reading.await;
            if let Err(problem) = &fresh {
                put(Err(problem.clone()));
            }
            fresh
        };
        self.reader.read(reading, move |fresh| put(Ok(fresh)));
    }

    /// What is known now.
    pub(crate) fn answer(self) -> RwSignal<Option<Answer<T>>> {
        self.answer
    }

    /// Shows it. `view` is made once; what changes later goes through its signal.
    pub(crate) fn show(self, view: impl Fn(RwSignal<T>) -> AnyView + Send + 'static) -> impl IntoView {
        move || match self.known.get() {
            None => skeleton().into_any(),
            Some(true) => {
                let Some(Ok(first)) = self.answer.get_untracked() else { return ().into_any() };
                let value = RwSignal::new(first);
                Effect::new(move |_| {
                    if let Some(Ok(fresh)) = self.answer.get()
                        && value.with_untracked(|shown| *shown != fresh)
                    {
                        value.set(fresh);
                    }
                });
                view(value)
            }
            Some(false) => self.answer.with_untracked(|answer| match answer {
                Some(Err(problem)) => problem_page(problem).into_any(),
                _ => ().into_any(),
            }),
        }
    }
}
