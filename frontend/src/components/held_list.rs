//! A list that holds still: rows that are shown change in place, new ones wait behind a button.

use super::{Icon, icon};
use crate::format;
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

    /// The cursor of the next page, while there is one.
    pub(crate) fn next(self) -> RwSignal<Option<String>> {
        self.next
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

    /// Appends the next page.
    pub(crate) fn append(self, more: Vec<T>, next: Option<String>) {
        self.next.set(next);
        self.rows.update(|rows| rows.extend(more));
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

    /// Shows what waits.
    fn take(self) {
        let (latest, next) = self.waiting.get_untracked();
        self.replace(latest, next);
    }
}

fn unknown<T, K: PartialEq>(rows: &[T], latest: &[T], key: fn(&T) -> K) -> usize {
    latest.iter().filter(|new| rows.iter().all(|row| key(row) != key(new))).count()
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
    use super::unknown;

    #[test]
    fn only_rows_that_are_not_shown_are_new() {
        let key = |row: &(i32, char)| row.0;
        assert_eq!(unknown(&[(1, 'a'), (2, 'b')], &[(3, 'c'), (2, 'B')], key), 1);
        assert_eq!(unknown(&[], &[(3, 'c')], key), 1);
        assert_eq!(unknown(&[(3, 'c')], &[], key), 0);
    }
}
