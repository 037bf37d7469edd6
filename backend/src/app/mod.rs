//! Use cases, one module per noun: load, ask the rule in `domain`, save result and audit entry in one transaction.

pub mod cohorts;
pub mod custody;
pub mod dead_letter_queues;
pub mod events;
pub mod evidence;
pub mod health;
pub mod passwords;
pub mod quarantine;
pub mod reasons;
pub mod sessions;
pub mod users;
