//! RabbitMQ: connections, publishing, custody, the management API.

pub mod parcel;
pub mod publisher;
