//! Custody on the real broker, seen through the API.

mod any_message;
mod fixture;
mod losses;
mod messages;

pub(crate) use fixture::{Fixture, header, job, table};
