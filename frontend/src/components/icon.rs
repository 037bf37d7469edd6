//! The glyphs: 16 px, drawn with the current colour, never without a word beside them.

use leptos::prelude::*;

macro_rules! glyphs {
    ($($(#[$doc:meta])* $name:ident = $paths:literal),* $(,)?) => {
        /// One glyph.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Icon { $($(#[$doc])* $name),* }

        impl Icon {
            const fn paths(self) -> &'static str {
                match self { $(Self::$name => $paths),* }
            }
        }
    };
}

glyphs! {
    Ack = r#"<path d="m3.5 8.4 3 3 6-6.6"/>"#,
    Audit = r#"<path d="M3.5 1.5h6l3 3v10h-9zM6 7h4M6 9.5h4M6 12h2"/>"#,
    Check = r#"<circle cx="8" cy="8" r="6"/><path d="m5.5 8.2 1.8 1.8 3.4-3.8"/>"#,
    Clock = r#"<circle cx="8" cy="8" r="6"/><path d="M8 4.5V8l2.5 1.5"/>"#,
    Close = r#"<path d="m4.5 4.5 7 7m0-7-7 7"/>"#,
    Cohort = r#"<rect x="2" y="5.5" width="8.5" height="8" rx="1"/><path d="M5 5.5v-3h9v8h-3.5"/>"#,
    Copy = r#"<rect x="5.5" y="5.5" width="8" height="8" rx="1"/><path d="M3.5 10.5h-1v-8h8v1"/>"#,
    Dlq = r#"<path d="M8 2v7M5 6.5 8 9.5l3-3M2.5 10v3.5h11V10"/>"#,
    Dot = r#"<circle cx="8" cy="8" r="2.5" fill="currentColor"/>"#,
    Doubt = r#"<path d="M8 1.6 14.4 8 8 14.4 1.6 8z"/><path d="M6.6 6.6c.2-1.8 2.9-1.6 2.8.1C9.3 7.9 8 7.8 8 9.1M8 11v.01"/>"#,
    Down = r#"<path d="M3 8.5 8 13l5-4.5M8 13V3"/>"#,
    Flag = r#"<path class="i-flag" d="M4.5 2.5h9v8h-9z"/><path d="M3 1.5v13"/>"#,
    Gauge = r#"<path d="M2 12a6.2 6.2 0 1 1 12 0M8 11l3-4"/>"#,
    Key = r#"<circle cx="5" cy="8" r="3"/><path d="M8 8h6v2.5M11.5 8v2"/>"#,
    Lock = r#"<rect x="3.5" y="7" width="9" height="6.5" rx="1"/><path d="M5.5 7V5a2.5 2.5 0 0 1 5 0v2"/>"#,
    Off = r#"<path d="M2 2l12 12M4.6 7.4A5.2 5.2 0 0 1 7 6.2M9.6 6.4a5 5 0 0 1 1.9 1M2.3 5.2c.6-.6 1.4-1.1 2.2-1.5M7.5 3c2.3-.1 4.5.7 6.2 2.2M6.4 9.8a2.4 2.4 0 0 1 2.2-.4M8 12.5v.01"/>"#,
    Pause = r#"<circle cx="8" cy="8" r="6"/><path d="M6.5 6v4M9.5 6v4"/>"#,
    Person = r#"<circle cx="8" cy="5.5" r="2.8"/><path d="M2.8 14c.5-5.2 9.9-5.2 10.4 0"/>"#,
    Queue = r#"<path d="M2 4h12M2 8h12M2 12h7"/>"#,
    Redrive = r#"<path d="M13 8a5 5 0 1 1-1.6-3.7M13 1.8v3h-3"/>"#,
    Reject = r#"<path d="m4 4 8 8M12 4l-8 8"/>"#,
    Run = r#"<circle cx="8" cy="8" r="6"/><path d="M6.8 5.6 10.6 8l-3.8 2.4z" fill="currentColor"/>"#,
    Seal = r#"<path d="m8 1.8 1.8 1.4 2.3-.2.7 2.2 1.6 1.6-.9 2.1.3 2.3-2.2.7L10 13.7 8 12.8l-2 .9-1.6-1.8-2.2-.7.3-2.3-.9-2.1 1.6-1.6.7-2.2 2.3.2z"/><path d="m5.6 8 1.7 1.7 3-3.3"/>"#,
    Search = r#"<circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3.5 3.5"/>"#,
    Stop = r#"<path d="M5.4 2h5.2L14 5.4v5.2L10.6 14H5.4L2 10.6V5.4z"/><path d="M8 5v3.6M8 11v.01"/>"#,
    Theme = r#"<circle cx="8" cy="8" r="5.5"/><path d="M8 2.5a5.5 5.5 0 0 1 0 11z" fill="currentColor"/>"#,
    Unknown = r#"<circle cx="8" cy="8" r="6" stroke-dasharray="2.2 2.5"/><path d="M5.8 8h4.4"/>"#,
    Warn = r#"<path d="M8 2.2 14.4 13.5H1.6z"/><path d="M8 6.6v3M8 11.5v.01"/>"#,
    Watch = r#"<path d="M1.5 8.5h3l2-5 3 9 2-4h3"/>"#,
}

/// Draws a glyph, hidden from assistive technology: the word beside it says the same.
pub(crate) fn icon(glyph: Icon) -> AnyView {
    view! { <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" inner_html=glyph.paths()></svg> }.into_any()
}

/// The same in a state's colour, where the word is elsewhere in the line.
pub(crate) fn toned(tone: &'static str, glyph: Icon) -> AnyView {
    view! { <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" data-state=tone inner_html=glyph.paths()></svg> }
        .into_any()
}

/// The flag and the name.
pub(crate) fn wordmark() -> AnyView {
    view! {
        <a class="wordmark" href="/">
            <svg viewBox="0 0 16 20" aria-hidden="true">
                <path class="staff" d="M1.5 1v18.5" stroke-width="2" stroke-linecap="round"></path>
                <path class="cloth" d="M3 2h12v10H3z"></path>
            </svg>
            "Lazaret"
        </a>
    }
    .into_any()
}
