//! The demo's own world: a shop that turns orders into invoices through RabbitMQ.
//!
//! Producer, workers, control page and the independent check are real processes. They share no code with the server:
//! what they know of Lazaret is its public API, and, in the check alone, the tables that hold evidence.

pub mod amqp;
pub mod check;
pub mod clock;
pub mod control;
pub mod database;
pub mod events;
pub mod invoice;
pub mod job;
pub mod producer;
pub mod revision;
pub mod settings;
pub mod stop;
pub mod supervisor;
pub mod topology;
pub mod worker;
