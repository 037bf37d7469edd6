//! Integration tests: one binary, through the front door, against a real Postgres and a real RabbitMQ.

mod acting;
mod admin;
mod cohorts;
mod coverage;
mod custody;
mod events;
mod harness;
mod quarantine;
mod sessions;
