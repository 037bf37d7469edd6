//! A state: always colour, icon and word together.

use super::{Icon, icon};
use leptos::prelude::*;

/// How a word of the vocabulary is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Badge {
    /// The state colour: `held`, `well`, `poison`, `doubt`, `running`, `unknown` or `plain`.
    pub(crate) tone: &'static str,
    /// Its glyph.
    pub(crate) icon: Icon,
    /// Its word.
    pub(crate) word: &'static str,
}

impl Badge {
    /// In a line or a cell.
    pub(crate) fn view(self) -> AnyView {
        state(self.tone, self.icon, self.word)
    }

    /// On its own ground, beside a title.
    pub(crate) fn tag(self) -> AnyView {
        tag(self.tone, self.icon, self.word)
    }
}

/// A state with a word of its own.
pub(crate) fn state(tone: &'static str, glyph: Icon, word: impl Into<String>) -> AnyView {
    view! { <span class="state" data-state=tone>{icon(glyph)}{word.into()}</span> }.into_any()
}

/// A state beside a title, with a word of its own.
pub(crate) fn tag(tone: &'static str, glyph: Icon, word: impl Into<String>) -> AnyView {
    view! { <span class="state tag" data-state=tone>{icon(glyph)}{word.into()}</span> }.into_any()
}
