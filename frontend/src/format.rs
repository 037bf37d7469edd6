//! Numbers, times and ids as a person reads them. Pure; the same on server and in the browser.

use domain::api::{Thousandths, Timestamp, Total, TotalRelation};
use serde_json::Value;
use std::collections::BTreeSet;
use time::{Duration, OffsetDateTime, macros::format_description};

/// `1204` → `1 204`.
pub(crate) fn count(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() + 4);
    if value < 0 {
        out.push('\u{2212}');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{a0}');
        }
        out.push(digit);
    }
    out
}

/// A reading with as many decimals as help: `0.42`, `8.5`, `213`.
pub(crate) fn reading(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 100.0 || value.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, reason = "readings are far below 2^63")]
        count(value.round() as i64)
    } else if magnitude >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A rate as the plan has it: no decimals that aren't there.
pub(crate) fn rate(value: Thousandths) -> String {
    if value.0 % 1000 == 0 {
        count(value.0 / 1000)
    } else {
        let text = format!("{:.3}", value.as_f64());
        text.trim_end_matches('0').to_owned()
    }
}

/// `2150` bytes → (`2.1`, `KiB`).
pub(crate) fn bytes(size: i64) -> (String, &'static str) {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let value = size as f64;
    if size < 1024 {
        (count(size), "B")
    } else if size < 1024 * 1024 {
        (format!("{:.1}", value / 1024.0), "KiB")
    } else {
        (format!("{:.1}", value / 1024.0 / 1024.0), "MiB")
    }
}

/// `03:14:20`, or `12-01 03:14:20` on another day than `now`.
pub(crate) fn clock(at: Timestamp, now: OffsetDateTime) -> String {
    let at = at.0.to_offset(time::UtcOffset::UTC);
    let text = if at.date() == now.date() {
        at.format(format_description!("[hour]:[minute]:[second]"))
    } else if at.year() == now.year() {
        at.format(format_description!("[month]-[day] [hour]:[minute]:[second]"))
    } else {
        at.format(format_description!("[year]-[month]-[day] [hour]:[minute]"))
    };
    text.unwrap_or_else(|_| at.to_string())
}

/// `2026-12-02 03:14:20.123 UTC`.
pub(crate) fn full(at: Timestamp) -> String {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second].[subsecond digits:3] UTC");
    at.0.to_offset(time::UtcOffset::UTC).format(format).unwrap_or_else(|_| at.0.to_string())
}

/// `42 s`, `3 min`, `1 h 19 min`, `2 d`.
pub(crate) fn span(length: Duration) -> String {
    let seconds = length.whole_seconds().abs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => {
            let (hours, minutes) = (seconds / 3600, seconds % 3600 / 60);
            if minutes == 0 { format!("{hours} h") } else { format!("{hours} h {minutes} min") }
        }
        _ => format!("{} d", seconds / 86_400),
    }
}

/// `3 min ago` or `in 58 min`.
pub(crate) fn relative(at: Timestamp, now: OffsetDateTime) -> String {
    let since = now - at.0;
    if since.is_negative() && since.whole_seconds() < 0 {
        format!("in {}", span(since))
    } else {
        format!("{} ago", span(since))
    }
}

/// `0193a7c4-5e10-…` → `0193a7…b41c`; short ids stay whole.
pub(crate) fn short(id: &str) -> String {
    let chars: Vec<char> = id.chars().collect();
    if chars.len() <= 20 {
        return id.to_owned();
    }
    let head: String = chars[..6].iter().collect();
    let tail: String = chars[chars.len() - 4..].iter().collect();
    format!("{head}…{tail}")
}

/// A hex digest in groups of four.
pub(crate) fn grouped(hex: &str) -> String {
    let chars: Vec<char> = hex.chars().collect();
    chars.chunks(4).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
}

/// A JSON value in one line, as an operator reads it: strings bare, the rest as JSON.
pub(crate) fn json(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `in_doubt` → `in doubt`, `queue_missing: orders_v2 is gone` → `queue missing: orders_v2 is gone`. Only a code is put
/// into words, which stands alone or before a colon; what a person or a broker wrote stays as it is.
pub(crate) fn words(text: &str) -> String {
    let code = text.split_once(": ").map_or(text, |(code, _)| code);
    let is_code = code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if is_code { format!("{}{}", code.replace('_', " "), &text[code.len()..]) } else { text.to_owned() }
}

/// With a capital at its beginning and a stop at its end.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let begun: String = chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default();
    let ends = begun.is_empty() || begun.ends_with(['.', '!', '?', '”']);
    if ends { begun } else { format!("{begun}.") }
}

/// Why something is in its state: a person's words as they typed them, in quotes; Lazaret's own, in words.
pub(crate) fn why(reason: &str, by_person: bool) -> String {
    if by_person { format!("“{reason}”") } else { words(reason) }
}

/// `1 row`, `12 rows`.
pub(crate) fn many(number: i64, one: &str, other: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { other })
}

/// The length of something, as [`many`] takes it.
pub(crate) fn len(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// `1 message`, `12 messages`.
pub(crate) fn messages(number: i64) -> String {
    many(number, "message", "messages")
}

/// `12`, or `over 10 000` where counting stopped.
pub(crate) fn total(total: &Total) -> String {
    match total.relation {
        TotalRelation::Eq => count(total.value),
        TotalRelation::Gte => format!("over {}", count(total.value)),
    }
}

/// Every value that a JSON document holds, under its path; lists of plain values in one line.
pub(crate) fn flat(value: &Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    descend(String::new(), value, &mut all);
    all
}

fn descend(path: String, value: &Value, all: &mut Vec<(String, String)>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let plain = |value: &Value| !value.is_object() && !value.is_array();
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                descend(below(name), value, all);
            }
        }
        Value::Array(values) if !values.is_empty() && values.iter().all(plain) => {
            all.push((path, values.iter().map(json).collect::<Vec<_>>().join(", ")));
        }
        Value::Array(values) if !values.is_empty() => {
            for (at, value) in values.iter().enumerate() {
                descend(below(&at.to_string()), value, all);
            }
        }
        Value::Object(_) | Value::Array(_) | Value::Null => all.push((path, "none".to_owned())),
        value => all.push((path, json(value))),
    }
}

/// What differs between two JSON documents: path, before, after. An absent side is `None`.
pub(crate) fn differences(
    before: Option<&Value>,
    after: Option<&Value>,
) -> Vec<(String, Option<String>, Option<String>)> {
    let flat = |side: Option<&Value>| side.map(flat).unwrap_or_default();
    let (before, after) = (flat(before), flat(after));
    let find = |side: &[(String, String)], path: &str| {
        side.iter().find(|(known, _)| known == path).map(|(_, value)| value.clone())
    };
    let paths: BTreeSet<&String> = before.iter().chain(&after).map(|(path, _)| path).collect();
    paths
        .into_iter()
        .map(|path| (path.clone(), find(&before, path), find(&after, path)))
        .filter(|(_, before, after)| before != after)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn numbers_are_grouped_and_keep_the_decimals_that_help() {
        for (value, text) in [(0, "0"), (999, "999"), (1204, "1\u{a0}204"), (1_000_000, "1\u{a0}000\u{a0}000")] {
            assert_eq!(count(value), text);
        }
        for (value, text) in [(0.0, "0"), (0.42, "0.42"), (18.24, "18.2"), (213.4, "213"), (3.0, "3")] {
            assert_eq!(reading(value), text);
        }
        assert_eq!(rate(Thousandths(2000)), "2");
        assert_eq!(rate(Thousandths(1500)), "1.5");
        assert_eq!(bytes(2150), ("2.1".to_owned(), "KiB"));
    }

    #[test]
    fn times_are_short_where_the_day_is_the_same() {
        let now = datetime!(2026-12-02 03:41:03 UTC);
        let at = |t: OffsetDateTime| Timestamp(t);
        assert_eq!(clock(at(datetime!(2026-12-02 03:14:20 UTC)), now), "03:14:20");
        assert_eq!(clock(at(datetime!(2026-12-01 03:14:20 UTC)), now), "12-01 03:14:20");
        assert_eq!(relative(at(datetime!(2026-12-02 03:40:21 UTC)), now), "42 s ago");
        assert_eq!(relative(at(datetime!(2026-12-02 04:41:03 UTC)), now), "in 60 min");
        assert_eq!(relative(at(datetime!(2026-12-02 00:22:03 UTC)), now), "3 h 19 min ago");
    }

    #[test]
    fn a_code_is_put_into_words_and_what_was_written_stays() {
        for (text, shown) in [
            ("in_doubt", "in doubt"),
            ("queue_missing: orders_v2 is gone", "queue missing: orders_v2 is gone"),
            ("frozen by mara: try deploy_fix first", "frozen by mara: try deploy_fix first"),
            ("The table order_lines was empty", "The table order_lines was empty"),
            ("", ""),
        ] {
            assert_eq!(words(text), shown);
        }
        assert_eq!(why("rolled_back", true), "“rolled_back”", "typed by a person");
        assert_eq!(why("rolled_back", false), "rolled back");
    }

    #[test]
    fn one_is_not_many_and_a_bound_is_not_a_count() {
        assert_eq!((messages(1), messages(2)), ("1 message".to_owned(), "2 messages".to_owned()));
        assert_eq!(many(0, "row", "rows"), "0 rows");
        let of = |value, relation| total(&Total { value, relation });
        assert_eq!(of(10_000, TotalRelation::Eq), "10\u{a0}000");
        assert_eq!(of(10_000, TotalRelation::Gte), "over 10\u{a0}000");
    }

    #[test]
    fn only_what_differs_is_a_difference() {
        let before = serde_json::json!({ "state": "draft", "draft": { "title": "a", "rate": 2, "who": ["x", "y"] }, "old": null });
        let after = serde_json::json!({ "state": "draft", "draft": { "title": "b", "rate": 2, "who": ["x"], "probe": [{ "n": 1 }] } });
        let text = |value: &str| Some(value.to_owned());
        assert_eq!(
            differences(Some(&before), Some(&after)),
            [
                ("draft.probe.0.n".to_owned(), None, text("1")),
                ("draft.title".to_owned(), text("a"), text("b")),
                ("draft.who".to_owned(), text("x, y"), text("x")),
                ("old".to_owned(), text("none"), None),
            ]
        );
        assert_eq!(differences(None, None), []);
    }

    #[test]
    fn ids_are_shortened_in_the_middle() {
        assert_eq!(short("0193a7c4-5e10-7b02-9d31-6c0f2a8eb41c"), "0193a7…b41c");
        assert_eq!(short("inv-8812407"), "inv-8812407");
        assert_eq!(grouped("4f0c91ae7d"), "4f0c 91ae 7d");
    }
}
