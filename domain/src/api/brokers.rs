//! RabbitMQ clusters and what they hold.

use super::{Timestamp, wire};
use crate::ids::BrokerId;

wire! {
    /// One RabbitMQ cluster.
    pub struct Broker {
        /// Identity.
        pub id: BrokerId,
        /// Its name on pages; unique.
        pub name: String,
        /// `amqp://host:port` or `amqps://…`, without credentials or vhost.
        pub amqp_url: String,
        /// `http(s)://host:port`, without credentials. Replay needs it; custody doesn't.
        pub management_url: Option<String>,
        /// Where `user:password` is kept: `env:NAME` or `file:PATH`.
        pub credentials: String,
        /// As the management API last said; `None` when it can't be asked.
        pub product_version: Option<String>,
        /// When it was registered.
        pub created_at: Timestamp,
        /// The ETag.
        pub version: i64,
    }

    /// `POST /brokers`.
    pub struct NewBroker {
        /// Unique, 1–100 characters.
        pub name: String,
        /// See [`Broker::amqp_url`].
        pub amqp_url: String,
        /// See [`Broker::management_url`].
        pub management_url: Option<String>,
        /// See [`Broker::credentials`].
        pub credentials: String,
    }

    /// `PATCH /brokers/{id}`; absent fields stay.
    pub struct ChangeBroker {
        /// See [`Broker::amqp_url`].
        pub amqp_url: Option<String>,
        /// See [`Broker::management_url`].
        pub management_url: Option<String>,
        /// See [`Broker::credentials`].
        pub credentials: Option<String>,
    }

    /// `GET /brokers/{id}/topology`: what the management API lists, to choose from.
    pub struct Topology {
        /// Virtual hosts that the credentials may see.
        pub vhosts: Vec<String>,
        /// Queues.
        pub queues: Vec<TopologyQueue>,
        /// Exchanges.
        pub exchanges: Vec<TopologyExchange>,
        /// Bindings.
        pub bindings: Vec<TopologyBinding>,
    }

    /// A queue as the broker has it.
    pub struct TopologyQueue {
        /// Virtual host.
        pub vhost: String,
        /// Name.
        pub name: String,
        /// `classic`, `quorum` or `stream`.
        pub queue_type: String,
        /// Its dead-letter exchange: argument or policy.
        pub dead_letter_exchange: Option<String>,
        /// Its dead-letter routing key, if it replaces the message's own.
        pub dead_letter_routing_key: Option<String>,
        /// Messages, ready and unacknowledged, at the broker's last sample.
        pub messages: Option<i64>,
    }

    /// An exchange as the broker has it.
    pub struct TopologyExchange {
        /// Virtual host.
        pub vhost: String,
        /// Name; `""` is the default exchange.
        pub name: String,
        /// `direct`, `fanout`, `topic`, `headers` …
        pub exchange_type: String,
    }

    /// A binding as the broker has it.
    pub struct TopologyBinding {
        /// Virtual host.
        pub vhost: String,
        /// Exchange.
        pub source: String,
        /// Queue or exchange.
        pub destination: String,
        /// `queue` or `exchange`.
        pub destination_type: String,
        /// Binding key.
        pub routing_key: String,
    }
}
