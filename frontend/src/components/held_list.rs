//! A list that holds still: rows that are shown change in place, new ones wait behind a button.

use super::{Icon, banner, icon, use_hydrated};
use crate::{api::Answer, format};
use domain::api::Problem;
use leptos::prelude::*;

/// The rows that are shown, and the newest that are known.
pub(crate) struct HeldList<T: Send + Sync + 'static, K: Send + Sync + 'static> {
    rows: RwSignal<Vec<T>>,
    next: RwSignal<Option<String>>,
    waiting: RwSignal<(Vec<T>, Option<String>)>,
    fresh: Memo<usize>,
    key: fn(&T) -> K,
}

impl<T: Send + Sync + 'static, K: Send + Sync + 'static> Clone for HeldList<T, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + Sync + 'static, K: Send + Sync + 'static> Copy for HeldList<T, K> {}

impl<T, K> HeldList<T, K>
where
    T: Clone + PartialEq + Send + Sync + 'static,
    K: PartialEq + Send + Sync + 'static,
{
    /// Starts with these rows, and the cursor after them.
    pub(crate) fn new(rows: Vec<T>, next: Option<String>, key: fn(&T) -> K) -> Self {
        let rows = RwSignal::new(rows);
        let waiting = RwSignal::new((Vec::new(), None));
        let fresh = Memo::new(move |_| {
            rows.with(|rows| waiting.with(|(waiting, _): &(Vec<T>, _)| unknown(rows, waiting, key)))
        });
        Self { rows, next: RwSignal::new(next), waiting, fresh, key }
    }

    /// The rows that are shown.
    pub(crate) fn rows(self) -> RwSignal<Vec<T>> {
        self.rows
    }

    /// Shows these rows now: the person asked for them.
    pub(crate) fn replace(self, rows: Vec<T>, next: Option<String>) {
        self.waiting.set((Vec::new(), None));
        self.next.set(next);
        self.rows.set(rows);
    }

    /// Appends the page that follows `cursor`, unless the list went on to something else meanwhile.
    fn append(self, cursor: &str, more: Vec<T>, next: Option<String>) {
        if self.next.try_get_untracked().flatten().as_deref() == Some(cursor) {
            self.next.set(next);
            self.rows.update(|rows| rows.extend(more));
        }
    }

    /// What a later look at the first page found: rows shown change in place, others wait.
    pub(crate) fn offer(self, latest: Vec<T>, next: Option<String>) {
        let key = self.key;
        let changed = self.rows.with_untracked(|rows| {
            let mut merged = rows.clone();
            for row in &mut merged {
                if let Some(new) = latest.iter().find(|new| key(new) == key(row)) {
                    row.clone_from(new);
                }
            }
            (merged != *rows).then_some(merged)
        });
        if let Some(merged) = changed {
            self.rows.set(merged);
        }
        self.waiting.set((latest, next));
    }

    /// Shows what waits, before what is shown already; where rows between the two may be missing, in its place.
    fn take(self) {
        let (mut latest, next) = self.waiting.get_untracked();
        let fresh = self.rows.with_untracked(|rows| unknown(rows, &latest, self.key));
        if fresh == latest.len() {
            self.replace(latest, next);
        } else {
            latest.truncate(fresh);
            self.waiting.set((Vec::new(), None));
            self.rows.update(|rows| drop(rows.splice(0..0, latest)));
        }
    }
}

/// How many rows came before everything that is shown. What follows a row that is shown isn't new: it moved up from a
/// later page when others left.
fn unknown<T, K: PartialEq>(rows: &[T], latest: &[T], key: fn(&T) -> K) -> usize {
    latest.iter().take_while(|new| rows.iter().all(|row| key(row) != key(new))).count()
}

/// The button that fetches the next page. A failure is told beside it, and what is shown stays.
#[component]
pub(crate) fn MoreRows<T, K, F>(
    /// The list.
    list: HeldList<T, K>,
    /// What it says.
    label: &'static str,
    /// Reads the page that follows a cursor: its rows, and the cursor after them.
    read: impl Fn(&str) -> F + Send + Sync + 'static,
) -> impl IntoView
where
    T: Clone + PartialEq + Send + Sync + 'static,
    K: PartialEq + Send + Sync + 'static,
    F: Future<Output = Answer<(Vec<T>, Option<String>)>> + 'static,
{
    let hydrated = use_hydrated();
    let busy = RwSignal::new(false);
    let failed = RwSignal::new(None::<Problem>);
    let read = StoredValue::new(read);
    let more = move |_| {
        let Some(cursor) = list.next.get_untracked() else { return };
        let answer = read.with_value(|read| read(&cursor));
        busy.set(true);
        failed.set(None);
        leptos::task::spawn_local(async move {
            let answer = answer.await;
            if busy.try_set(false).is_some() {
                return;
            }
            match answer {
                Ok((rows, next)) => list.append(&cursor, rows, next),
                Err(problem) => failed.set(Some(problem)),
            }
        });
    };
    let any = Memo::new(move |_| list.next.with(Option::is_some));
    view! {
        {move || failed.get().map(|problem| banner(&problem))}
        {move || any.get().then(|| view! {
            <div class="acts">
                <button class="button" type="button" disabled=move || !hydrated.get() || busy.get() on:click=more>
                    {icon(Icon::Down)}{label}
                </button>
            </div>
        })}
    }
}

/// The button behind which new rows wait.
#[component]
pub(crate) fn NewRows<T, K>(
    /// The list.
    list: HeldList<T, K>,
) -> impl IntoView
where
    T: Clone + PartialEq + Send + Sync + 'static,
    K: PartialEq + Send + Sync + 'static,
{
    let label = move || match list.fresh.get() {
        0 => None,
        many => Some(format!("{} new", format::count(i64::try_from(many).unwrap_or(i64::MAX)))),
    };
    view! {
        {move || label().map(|label| view! {
            <button class="button new-rows" type="button" on:click=move |_| list.take()>{icon(Icon::Down)}{label}</button>
        })}
        <span class="vh" role="status">{label}</span>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_before_all_that_is_shown_are_new() {
        let key = |row: &(i32, char)| row.0;
        assert_eq!(unknown(&[(1, 'a'), (2, 'b')], &[(3, 'c'), (2, 'B')], key), 1);
        assert_eq!(unknown(&[(2, 'b'), (1, 'a')], &[(1, 'a'), (0, 'z')], key), 0, "one left, and one moved up");
        assert_eq!(unknown(&[], &[(3, 'c')], key), 1);
        assert_eq!(unknown(&[(3, 'c')], &[], key), 0);
    }

    #[test]
    fn new_rows_go_before_the_pages_that_were_fetched() {
        Owner::new().with(|| {
            let list = HeldList::new(vec![3, 2], Some("after 2".to_owned()), |row: &i32| *row);
            list.append("after 2", vec![1], None);
            list.append("after 9", vec![9], None);
            list.offer(vec![5, 4, 3], Some("after 3".to_owned()));
            list.take();
            assert_eq!((list.rows().get_untracked(), list.next.get_untracked()), (vec![5, 4, 3, 2, 1], None));
            list.offer(vec![9, 8], Some("after 8".to_owned()));
            list.take();
            assert_eq!(list.rows().get_untracked(), [9, 8], "whatever came between them isn't known");
        });
    }
}
