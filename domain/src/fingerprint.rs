//! Fingerprint v1 (RULES 12): the group key of like failures.
//!
//! The text's first 2 KiB are normalised, that is, what varies from one failure to the next becomes a placeholder; the
//! fingerprint is an HMAC under the installation's key over queue, class and that text, so that it tells nothing of
//! the payload once that is erased.
//!
//! | placeholder | stands for |
//! |---|---|
//! | `<str>` | quoted text in `"…"`, `'…'`, `` `…` `` |
//! | `<url>/x`, `<path>/x` | URL or path, of which the last segment `x` stays, normalised itself |
//! | `<email>` | e-mail address |
//! | `<id>` | UUID, ULID |
//! | `<time>` | date, time of day, both |
//! | `<addr>` | IP address, with or without port |
//! | `<n>` | number, or 8 and more hexadecimal digits: one placeholder, since a hash may happen to be all digits |

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::keyed::{Hash32, InstallationKey, Keyed};

/// The version of these rules; stored beside each fingerprint, since other rules group otherwise.
pub const VERSION: i16 = 1;

/// How much of the error text counts, in bytes.
pub const TEXT_LIMIT: usize = 2_048;

/// A failure, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failure<'a> {
    /// The watched queue's name, or what else identifies it for good.
    pub queue: &'a [u8],
    /// The error class.
    pub class: Option<&'a [u8]>,
    /// The error text.
    pub text: Option<&'a [u8]>,
    /// The reason of the newest death.
    pub death_reason: Option<&'a [u8]>,
}

/// The group that a failure belongs to, with the rule that put it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The group key.
    pub hash: Hash32,
    /// What it was made of.
    pub basis: Basis,
}

/// What a fingerprint was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Queue, class and this normalised text (which counts as payload).
    Text(String),
    /// Queue, class and the reason of the newest death, there being no text.
    Reason,
    /// The queue alone: there is neither class nor text nor reason.
    Unclassified,
}

/// The fingerprint of `failure`.
pub fn fingerprint(key: &InstallationKey, failure: Failure<'_>) -> Fingerprint {
    let text = failure.text.map(normalise).filter(|text| !text.is_empty());
    let mut mac = Keyed::new(&key.0, "lazaret.fingerprint.v1");
    mac.part(failure.queue);
    mac.part(failure.class.unwrap_or_default());
    let basis = match (text, failure.class, failure.death_reason) {
        (Some(text), ..) => {
            mac.part(b"text");
            mac.part(text.as_bytes());
            Basis::Text(text)
        }
        (None, None, None) => {
            mac.part(b"unclassified");
            Basis::Unclassified
        }
        (None, _, reason) => {
            mac.part(b"reason");
            mac.part(reason.unwrap_or_default());
            Basis::Reason
        }
    };
    Fingerprint { hash: mac.finish(), basis }
}

/// Everything that varies, in one pass: the leftmost match wins, of several there the one listed first.
static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    let alternatives = [
        r#"(?<str>"[^"\n]*"|`[^`\n]*`|\B'[^'\n]*'\B)"#,
        r#"(?<url>\b[A-Za-z][A-Za-z0-9+.-]*://[^\s"'`<>]+)"#,
        r"(?<email>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)",
        r"(?<id>(?:\b|_)(?:[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}|[0-7][0-9A-HJKMNP-TV-Z]{25})(?:\b|_))",
        r"(?<time>\b\d{4}[-/]\d{2}[-/]\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?(?: ?(?:Z\b|UTC\b|GMT\b|[+-]\d{2}:?\d{2}\b))?",
        r"|\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4}(?: \d{2}:\d{2}(?::\d{2})?(?: (?:UTC|GMT|[+-]\d{4}))?)?",
        r"|\b\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z\b|[+-]\d{2}:?\d{2}\b)?)",
        r"(?<addr>\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2}|:\d{1,5})?\b|\[?\b(?:(?:[0-9A-Fa-f]{1,4}:){3,7}[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,6}(?::[0-9A-Fa-f]{1,4}){1,6})\b(?:\](?::\d{1,5})?)?)",
        r"(?<path>(?:\b[A-Za-z]:|\.{1,2}|~)?(?:[/\\][\w.@%+~-]+){2,}[/\\]?)",
        r"(?<hex>\b0[xX][0-9A-Fa-f]+\b|(?:\b|_)[0-9A-Fa-f]{8,}(?:\b|_))",
        r"(?<n>(?:\B[-+])?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?)",
    ];
    let pattern = alternatives.join("|").replace("||", "|");
    Regex::new(&pattern).expect("the pattern is constant and covered by tests")
});

/// The first 2 KiB of an error text with what varies replaced, spaces collapsed. A text that is longer ends before
/// the word that the limit cuts.
pub fn normalise(text: &[u8]) -> String {
    let text = head(text);
    let replaced = VARIABLE.replace_all(&text, |found: &Captures<'_>| {
        let of = |name: &str| found.name(name).map(|m| m.as_str());
        if of("str").is_some() {
            Cow::Borrowed("<str>")
        } else if let Some(url) = of("url") {
            last_segment("<url>", url.split_once("://").map_or(url, |(_, rest)| rest))
        } else if let Some(path) = of("path") {
            last_segment("<path>", path)
        } else if of("email").is_some() {
            Cow::Borrowed("<email>")
        } else if of("id").is_some() {
            Cow::Borrowed("<id>")
        } else if of("time").is_some() {
            Cow::Borrowed("<time>")
        } else if of("addr").is_some() {
            Cow::Borrowed("<addr>")
        } else {
            Cow::Borrowed("<n>")
        }
    });
    let mut out = String::with_capacity(replaced.len());
    for word in replaced.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

fn head(text: &[u8]) -> Cow<'_, str> {
    if text.len() <= TEXT_LIMIT {
        return String::from_utf8_lossy(text);
    }
    let cut = &text[..TEXT_LIMIT];
    // A cut word would normalise to something else each time; one that fills the whole text has to be cut.
    let whole_words = cut.iter().rposition(u8::is_ascii_whitespace).filter(|at| *at > 0);
    String::from_utf8_lossy(&cut[..whole_words.unwrap_or(TEXT_LIMIT)])
}

/// `prefix/x`, where `x` is the last segment without query and fragment, with its own variable parts replaced.
fn last_segment<'a>(prefix: &'static str, path: &str) -> Cow<'a, str> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = path.trim_end_matches(['/', '\\', '.', ',', ';', ':', ')', ']']);
    match path.rsplit_once(['/', '\\']) {
        Some((_, last)) if !last.is_empty() => {
            let last = VARIABLE
                .replace_all(last, |found: &Captures<'_>| if found.name("id").is_some() { "<id>" } else { "<n>" });
            Cow::Owned(format!("{prefix}/{last}"))
        }
        _ => Cow::Borrowed(prefix),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const KEY: InstallationKey = InstallationKey([5; 32]);

    #[test]
    fn what_varies_is_replaced() {
        let cases = [
            (
                "Order 550e8400-e29b-41d4-a716-446655440000 failed at 2026-12-02T06:25:00.123Z",
                "Order <id> failed at <time>",
            ),
            ("Order 01ARZ3NDEKTSV4RRFFQ69G5FAV failed", "Order <id> failed"),
            ("at 2026-12-02 06:25:00,123 +01:00 end", "at <time> end"),
            ("Wed, 02 Dec 2026 06:25:00 GMT", "<time>"),
            ("06:25:00 tick", "<time> tick"),
            ("connect 10.0.0.1:5432 refused", "connect <addr> refused"),
            ("connect [2001:db8::1]:443 refused", "connect <addr> refused"),
            ("connect fe80::1 refused", "connect <addr> refused"),
            ("std::string::String is not core::fmt::Debug", "std::string::String is not core::fmt::Debug"),
            ("mail to jane.doe+x@example.co.uk bounced", "mail to <email> bounced"),
            ("unknown field \"amount\" and 'vat' and `net`", "unknown field <str> and <str> and <str>"),
            ("can't do what it won't do", "can't do what it won't do"),
            ("GET https://api.example.com:8443/v1/orders/123/lines?x=1 gave 502", "GET <url>/lines gave <n>"),
            ("GET https://api.example.com gave 502", "GET <url> gave <n>"),
            ("GET http://h/v1/orders/550e8400-e29b-41d4-a716-446655440000", "GET <url>/<id>"),
            ("open /var/lib/app/worker.py: no such file", "open <path>/worker.py: no such file"),
            (r"open C:\app\conf\a.ini failed", "open <path>/a.ini failed"),
            ("at /srv/app/handler.rs:42:7", "at <path>/handler.rs:<n>:<n>"),
            ("hash deadbeef01 and id_deadbeef01", "hash <n> and id<n>"),
            ("pointer 0x7fff", "pointer <n>"),
            ("amount -12.50 of 1,000.00 and 1e-6", "amount <n> of <n> and <n>"),
            ("order-123 worker3", "order-<n> worker<n>"),
            ("  many \n\t spaces  ", "many spaces"),
            ("and/or", "and/or"),
            ("", ""),
        ];
        for (text, want) in cases {
            assert_eq!(normalise(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn a_hash_of_digits_only_groups_with_the_others() {
        assert_eq!(normalise(b"commit 12345678 bad"), normalise(b"commit 1234abcd bad"));
    }

    /// CASES R10.
    #[test]
    fn two_thousand_alike_and_ten_others_are_two_groups() {
        let text = |n: u128| {
            let id = uuid::Uuid::from_u128(n.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
            format!("Order {id} failed at 2026-12-02T06:{:02}:{:02}.{n}Z", n / 60 % 60, n % 60)
        };
        let of = |text: &str| {
            let failure =
                Failure { queue: b"orders", class: Some(b"x"), text: Some(text.as_bytes()), ..Failure::default() };
            fingerprint(&KEY, failure).hash
        };
        let mut hashes: HashSet<_> = (0..2_000).map(|n| of(&text(n))).collect();
        assert_eq!(hashes.len(), 1);
        hashes.extend((0..10).map(|_| of("Order rejected: card")));
        assert_eq!(hashes.len(), 2);
    }

    #[test]
    fn queue_class_text_reason_and_key_all_count() {
        let base = Failure { queue: b"q", class: Some(b"c"), text: Some(b"t"), death_reason: Some(b"rejected") };
        let hash = |failure| fingerprint(&KEY, failure).hash;
        assert_eq!(hash(base), hash(Failure { death_reason: None, ..base }), "with a text the reason doesn't count");
        let others = [
            hash(base),
            hash(Failure { queue: b"p", ..base }),
            hash(Failure { class: Some(b"d"), ..base }),
            hash(Failure { class: None, ..base }),
            hash(Failure { text: Some(b"u"), ..base }),
            hash(Failure { text: None, ..base }),
            hash(Failure { text: None, death_reason: Some(b"expired"), ..base }),
            hash(Failure { text: None, death_reason: Some(b"expired"), class: None, ..base }),
            hash(Failure { text: None, death_reason: None, class: None, ..base }),
            fingerprint(&InstallationKey([6; 32]), base).hash,
        ];
        assert_eq!(others.iter().collect::<HashSet<_>>().len(), others.len());
    }

    #[test]
    fn the_basis_says_the_rule() {
        let basis =
            |class, text, death_reason| fingerprint(&KEY, Failure { queue: b"q", class, text, death_reason }).basis;
        assert_eq!(basis(None, Some(&b"took 5 s"[..]), None), Basis::Text("took <n> s".into()));
        assert_eq!(basis(Some(&b"c"[..]), Some(&b"  "[..]), None), Basis::Reason);
        assert_eq!(basis(None, None, Some(&b"rejected"[..])), Basis::Reason);
        assert_eq!(basis(None, None, None), Basis::Unclassified);
    }

    #[test]
    fn text_beyond_the_limit_doesnt_count() {
        let text = |tail: &str| format!("{}{tail}", "word ".repeat(500));
        assert_eq!(normalise(text("a").as_bytes()), normalise(text("b").as_bytes()));
        // the word under the cut is left out as a whole
        let cut = |id: &str| format!("{} {id} tail", "x".repeat(TEXT_LIMIT - 10));
        assert_eq!(
            normalise(cut("550e8400-e29b-41d4-a716-446655440000").as_bytes()),
            normalise(cut("12345678-e29b-41d4-a716-446655440000").as_bytes()),
        );
        assert!(!normalise("é".repeat(2_000).as_bytes()).is_empty());
    }

    proptest! {
        #[test]
        fn any_text_normalises(text in proptest::collection::vec(any::<u8>(), 0..3_000)) {
            let normal = normalise(&text);
            prop_assert!(!normal.contains("  "));
        }

        #[test]
        fn numbers_never_tell_failures_apart(a in any::<u64>(), b in any::<u64>()) {
            let text = |n: u64| normalise(format!("Job {n} of batch b{n} took {n}ms").as_bytes());
            prop_assert_eq!(text(a), text(b));
        }

        #[test]
        fn hex_of_eight_and_more_never_tells_failures_apart(a in "[0-9a-f]{8,40}", b in "[0-9a-f]{8,40}") {
            let text = |h: &str| normalise(format!("commit {h} unknown").as_bytes());
            prop_assert_eq!(text(&a), text(&b));
        }
    }
}
