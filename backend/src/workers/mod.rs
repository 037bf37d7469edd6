//! Background duties under one supervisor.

pub mod custody;
<<<<<<< HEAD
mod expiry;
=======
pub mod replay;
>>>>>>> f8e1c86 (Run replays: lease and takeover, canary, expansion, settling, fenced ends)

use crate::state::App;
use tokio::task::JoinSet;

/// Starts every duty of this process; they end on `app.shutdown`.
#[must_use]
pub fn start(app: &App) -> JoinSet<()> {
    let mut duties = JoinSet::new();
    duties.spawn(custody::supervise(app.clone()));
<<<<<<< HEAD
    duties.spawn(expiry::supervise(app.clone()));
=======
    duties.spawn(replay::work(app.clone()));
>>>>>>> f8e1c86 (Run replays: lease and takeover, canary, expansion, settling, fenced ends)
    duties
}
