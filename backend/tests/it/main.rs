//! Integration tests: one binary, through the front door, against a real Postgres and a real RabbitMQ.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod acting;
mod admin;
mod cohorts;
mod coverage;
mod custody;
mod events;
mod harness;
mod openapi;
mod outages;
mod problems;
mod quarantine;
mod replay;
mod sessions;
