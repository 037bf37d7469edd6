//! Whether the process has what it needs.

use crate::{state::App, store::health};
use serde::Serialize;

/// `GET /readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// Whether every check is fine.
    pub ready: bool,
    /// What was looked at.
    pub checks: Vec<Check>,
}

/// One thing that the process needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// `database`, `migrations`, `brokers`, `workers`.
    pub name: &'static str,
    /// Whether it is fine.
    pub ok: bool,
    /// Why it isn't.
    pub reason: Option<String>,
}

impl Check {
    fn of(name: &'static str, reason: Option<String>) -> Self {
        Self { name, ok: reason.is_none(), reason }
    }
}

impl Readiness {
    fn of(checks: Vec<Check>) -> Self {
        Self { ready: checks.iter().all(|check| check.ok), checks }
    }

    /// Before the database was ever reached.
    #[must_use]
    pub fn waiting_for_database(why: &str) -> Self {
        Self::of(vec![Check::of("database", Some(why.to_owned()))])
    }
}

/// Looks now.
pub async fn check(app: &App) -> Readiness {
    let migrations = match health::pending_migrations(&app.store).await {
        Err(error) => return Readiness::waiting_for_database(&error.to_string()),
        Ok(pending) => pending,
    };
    let brokers = health::stopped_custody(&app.store).await.unwrap_or_else(|error| Some(error.to_string()));
    let workers = app.shutdown.is_cancelled().then(|| "the process is stopping".to_owned());
    Readiness::of(vec![
        Check::of("database", None),
        Check::of("migrations", migrations),
        Check::of("brokers", brokers),
        Check::of("workers", workers),
    ])
}
