//! Use cases, one module per noun: load, ask the rule in `domain`, save result and audit entry in one transaction.

pub mod brokers;
pub mod cohorts;
pub mod custody;
pub mod dead_letter_queues;
pub mod events;
pub mod evidence;
pub mod fields;
pub mod freezes;
pub mod health;
pub mod paging;
pub mod passwords;
pub mod probe_definitions;
pub mod probes;
pub mod quarantine;
pub mod queues;
pub mod readings;
pub mod reasons;
pub mod replays;
pub mod sessions;
pub mod users;
