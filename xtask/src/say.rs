//! Progress, for people: on stderr, so that stdout holds results alone.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

/// Says one line.
pub(crate) fn line(text: impl AsRef<str>) {
    // A closed stderr is no reason to stop.
    let _ = writeln!(io::stderr(), "{}", text.as_ref());
}

/// Says that `what` starts, does it, and says how long it took.
pub(crate) fn step<T>(what: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    line(format!("   … {what}"));
    let started = Instant::now();
    let done = work()?;
    line(format!("{:>6} {what}", seconds(started.elapsed())));
    Ok(done)
}

/// Says an error with its causes.
pub(crate) fn error(error: &anyhow::Error) {
    line(format!("error: {error:#}"));
}

/// Prints a result on stdout and hands it on at once, so that a reader behind a pipe has it.
///
/// # Errors
/// When stdout is closed.
pub(crate) fn result(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// A duration as people read it: `0.4s`, `12.3s`, `75s`.
pub(crate) fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 60.0 { format!("{seconds:.1}s") } else { format!("{seconds:.0}s") }
}
