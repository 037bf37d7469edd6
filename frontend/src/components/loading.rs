//! Loading and emptiness.

use super::{Icon, icon, problem_page};
use crate::api::Answer;
use leptos::prelude::*;

/// Shows a resource: what it says, what went wrong, or a skeleton meanwhile. `view` is made once per answer; what
/// changes later goes through signals, so that nothing moves under the pointer.
pub(crate) fn loaded<T, V>(
    resource: Resource<Answer<T>>,
    view: impl Fn(T) -> V + Clone + Send + 'static,
) -> impl IntoView
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
}

fn skeleton() -> impl IntoView {
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
}

/// Nothing is here: says what would fill it.
pub(crate) fn empty(glyph: Icon, heading: &'static str, text: impl IntoView, acts: impl IntoView) -> impl IntoView {
    view! {
        <div class="empty">
            {icon(glyph)}
            <h3>{heading}</h3>
            <p>{text}</p>
            <div class="acts">{acts}</div>
        </div>
    }
}
