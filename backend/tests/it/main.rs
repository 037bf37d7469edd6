//! Integration tests: one binary, through the front door, against a real Postgres and a real RabbitMQ.

mod harness;
mod sessions;
