//! Background duties under one supervisor.

use crate::state::App;
use tokio::task::JoinSet;

/// Starts every duty of this process; they end on `app.shutdown`.
#[must_use]
pub fn start(_app: &App) -> JoinSet<()> {
    JoinSet::new()
}
