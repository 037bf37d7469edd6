//! What every handler and worker shares.

use crate::{app::passwords::Passwords, clock::Clock, config::Config, store::Store};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// How many "changed" notes a slow stream may fall behind before it is told to re-read everything.
const CHANGES_KEPT: usize = 256;

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
    /// Password hashing.
    pub passwords: Passwords,
}

impl App {
    /// Over a database that can be reached and has the schema: reads (or makes) the installation's key.
    ///
    /// # Errors
    /// The database's, or a broken setting.
    pub async fn open(config: Arc<Config>, store: Store, shutdown: CancellationToken) -> anyhow::Result<Self> {
        let installation_key = crate::store::installation::key(&store).await?;
        // `Err` says that there is one already: another App of this process put it there
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(2))
            .timeout(Duration::from_secs(5))
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self {
            passwords: Passwords::new(config.password_cost)?,
            store,
            config,
            clock: Clock::System,
            installation_key: Arc::new(installation_key),
            shutdown,
            changes: tokio::sync::broadcast::channel(CHANGES_KEPT).0,
            http,
        })
    }
}
