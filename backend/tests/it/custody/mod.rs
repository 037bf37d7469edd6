//! Custody on the real broker, seen through the API.

mod any_message;
mod delivery_limits;
mod fixture;
mod losses;
mod messages;
mod stalls;

pub(crate) use fixture::{Fixture, header, job, table};
