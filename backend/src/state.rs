//! What every handler and worker shares.

use crate::{clock::Clock, config::Config, store::Store};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// The database.
    pub store: Store,
    /// Settings.
    pub config: Arc<Config>,
    /// The edge's clock.
    pub clock: Clock,
    /// Names this installation's HMAC key; read once at start.
    pub installation_key: Arc<[u8; 32]>,
    /// Cancelled when the process is asked to stop: streams and workers end on it.
    pub shutdown: CancellationToken,
    /// "Something changed" notes for `GET /stream`, from every replica.
    pub changes: tokio::sync::broadcast::Sender<domain::api::Changed>,
    /// One HTTP client for management APIs.
    pub http: reqwest::Client,
}
