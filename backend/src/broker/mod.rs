//! RabbitMQ: connections, publishing, custody's view of a delivery, the management API. No SQL lives here.

pub mod address;
pub mod connection;
pub mod management;
pub mod parcel;
pub mod publisher;
pub mod routing;
pub mod wire;

pub use address::{Address, Credentials};
pub use connection::{BrokerError, connect};
pub use management::{Management, ManagementError};
