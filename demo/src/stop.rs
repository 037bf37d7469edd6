//! When a process ends: Ctrl-C, SIGTERM, or its supervisor going away.

use std::io::Read as _;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled by SIGINT or SIGTERM and, for a supervised process, by the end of standard input.
///
/// A supervisor holds the other end of that pipe: however it dies, the pipe closes, and nothing is left running.
///
/// # Errors
/// When signal handlers can't be installed.
pub fn token(until_stdin_closes: bool) -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let mut signals = signal(kind)?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signals.recv().await;
            stop.cancel();
        });
    }
    if until_stdin_closes {
        let stop = stop.clone();
        // A thread of its own: tokio's stdin would hold up the end of the process until the pipe closes.
        std::thread::spawn(move || {
            let mut byte = [0_u8; 1];
            while matches!(std::io::stdin().read(&mut byte), Ok(1..)) {}
            stop.cancel();
        });
    }
    Ok(stop)
}
