//! Integration tests: one binary, through the front door, against a real Postgres and a real RabbitMQ.

mod custody;
mod harness;
mod sessions;
