//! The pages, one folder each.

mod audit;
mod cohort;
mod cohorts;
mod login;
mod message;
mod not_found;
mod quarantine;
mod watch;

pub(crate) use audit::AuditPage;
pub(crate) use cohort::{CohortPage, UnsavedDrafts};
pub(crate) use cohorts::CohortsPage;
pub(crate) use login::LoginPage;
pub(crate) use message::MessagePage;
pub(crate) use not_found::NotFoundPage;
pub(crate) use quarantine::QuarantinePage;
pub(crate) use watch::WatchPage;

/// The idempotency key of forms on a server-rendered page, one per rendering; handed in at the edge.
#[derive(Debug, Clone)]
pub struct FormKey(pub String);
