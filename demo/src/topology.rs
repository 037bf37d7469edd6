//! What the shop declares at the broker.

use lapin::{
    Channel, ExchangeKind,
    options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable},
};

/// Where producers publish.
pub const EXCHANGE: &str = "orders";
/// With which key.
pub const ROUTING_KEY: &str = "invoice.create";
/// The source queue.
pub const QUEUE: &str = "orders.invoice";
/// Where its dead letters go …
pub const DEAD_LETTER_EXCHANGE: &str = "orders.dlx";
/// … and stay.
pub const DEAD_LETTER_QUEUE: &str = "orders.invoice.dlq";

/// Declares all of it; again is harmless.
///
/// # Errors
/// When something of that name exists with other arguments, or the broker is gone.
pub async fn declare(channel: &Channel) -> anyhow::Result<()> {
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare(EXCHANGE.into(), ExchangeKind::Direct, durable, FieldTable::default()).await?;
    // Fan-out: whatever key a message dies with, there is a route.
    channel.exchange_declare(DEAD_LETTER_EXCHANGE.into(), ExchangeKind::Fanout, durable, FieldTable::default()).await?;

    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(QUEUE.into(), options, source_arguments()).await?;
    channel.queue_declare(DEAD_LETTER_QUEUE.into(), options, dead_letter_arguments()).await?;
    let (bind, no_arguments) = (QueueBindOptions::default(), FieldTable::default);
    channel.queue_bind(QUEUE.into(), EXCHANGE.into(), ROUTING_KEY.into(), bind, no_arguments()).await?;
    channel.queue_bind(DEAD_LETTER_QUEUE.into(), DEAD_LETTER_EXCHANGE.into(), "".into(), bind, no_arguments()).await?;
    Ok(())
}

/// A quorum queue that hands its dead letters over at least once: the default, at most once, may lose them when a
/// broker stops in between, and at-least-once needs `reject-publish`.
fn source_arguments() -> FieldTable {
    arguments([
        ("x-queue-type", "quorum"),
        ("x-dead-letter-exchange", DEAD_LETTER_EXCHANGE),
        ("x-dead-letter-strategy", "at-least-once"),
        ("x-overflow", "reject-publish"),
    ])
}

/// A classic durable queue, on purpose: on RabbitMQ 4 a quorum queue has a delivery limit of 20, and without a
/// dead-letter exchange of its own it *drops* what passes it; a reader that loses its connection twenty times would
/// empty the last place where these messages are kept. A classic queue has no such limit. (On a cluster: quorum, with
/// the limit switched off by policy.)
fn dead_letter_arguments() -> FieldTable {
    arguments([("x-queue-type", "classic")])
}

fn arguments<const N: usize>(pairs: [(&str, &str); N]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in pairs {
        table.insert(name.into(), AMQPValue::LongString(value.into()));
    }
    table
}
