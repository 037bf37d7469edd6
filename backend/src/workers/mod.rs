//! Background duties under one supervisor.

pub mod custody;
mod expiry;
pub mod replay;

use crate::state::App;
use tokio::task::JoinSet;

/// Starts every duty of this process; they end on `app.shutdown`.
#[must_use]
pub fn start(app: &App) -> JoinSet<()> {
    let mut duties = JoinSet::new();
    duties.spawn(custody::supervise(app.clone()));
    duties.spawn(expiry::supervise(app.clone()));
    duties.spawn(replay::work(app.clone()));
    duties
}
