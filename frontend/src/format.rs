//! Numbers, times and ids as a person reads them. Pure; the same on server and in the browser.

use domain::api::{Thousandths, Timestamp};
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

/// `in_doubt` → `in doubt`.
pub(crate) fn words(snake: &str) -> String {
    snake.replace('_', " ")
}

/// `1 message`, `12 messages`.
pub(crate) fn messages(many: i64) -> String {
    if many == 1 { "1 message".to_owned() } else { format!("{} messages", count(many)) }
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
    fn ids_are_shortened_in_the_middle() {
        assert_eq!(short("0193a7c4-5e10-7b02-9d31-6c0f2a8eb41c"), "0193a7…b41c");
        assert_eq!(short("inv-8812407"), "inv-8812407");
        assert_eq!(grouped("4f0c91ae7d"), "4f0c 91ae 7d");
    }
}
