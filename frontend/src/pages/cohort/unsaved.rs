//! What was typed into a draft and not saved: kept over tabs and pages of this window, asked about before it is left.

use super::fields::{Fields, Kept, Typed};
use domain::ids::CohortId;
use leptos::prelude::*;

/// The unsaved drafts of this window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnsavedDrafts(StoredValue<Vec<(CohortId, Typed, Kept)>>);

impl UnsavedDrafts {
    /// Makes them available to every page; the browser asks before the window is left while there are any.
    pub(crate) fn provide() {
        let drafts = Self(StoredValue::new(Vec::new()));
        provide_context(drafts);
        Effect::new(move |_| {
            let listening = window_event_listener(leptos::ev::beforeunload, move |event| {
                if drafts.0.try_with_value(|drafts| !drafts.is_empty()) == Some(true) {
                    event.prevent_default();
                }
            });
            on_cleanup(move || listening.remove());
        });
    }

    /// Those of this window.
    pub(super) fn of_context() -> Self {
        use_context::<Self>().unwrap_or_else(|| Self(StoredValue::new(Vec::new())))
    }

    /// Keeps what is typed now, as long as it isn't what was saved.
    pub(super) fn keep(self, id: CohortId, fields: Fields) {
        let (typed, kept) = (fields.typed(), fields.kept());
        self.forget(id);
        if typed != kept.typed {
            self.0.update_value(|drafts| drafts.push((id, typed, kept)));
        }
    }

    /// Puts back what was typed before. Whether there was something.
    pub(super) fn put_back(self, id: CohortId, fields: Fields) -> bool {
        let known = self.0.with_value(|drafts| drafts.iter().find(|(known, ..)| *known == id).cloned());
        let Some((_, typed, kept)) = known else { return false };
        fields.put(&typed, kept)
    }

    /// The draft is saved, or no draft any more.
    pub(super) fn forget(self, id: CohortId) {
        self.0.update_value(|drafts| drafts.retain(|(known, ..)| *known != id));
    }
}
