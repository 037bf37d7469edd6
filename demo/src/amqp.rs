//! The way to the broker.

use lapin::{
    Channel, Connection, ConnectionProperties,
    options::{ConfirmSelectOptions, QueueDeclareOptions},
    types::FieldTable,
};

/// Opens a connection that the management page shows as `name`. It doesn't recover by itself: its owner reconnects.
///
/// # Errors
/// When the broker can't be reached or refuses.
pub async fn connect(url: &str, name: &str) -> anyhow::Result<Connection> {
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    Ok(Connection::connect(url, properties).await?)
}

/// A channel on which every publish is confirmed.
///
/// # Errors
/// When the connection is gone.
pub async fn confirming_channel(connection: &Connection) -> anyhow::Result<Channel> {
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    Ok(channel)
}

/// Ready messages of a queue, by a passive declare: the broker's own count at this moment.
///
/// # Errors
/// When the queue doesn't exist (the channel is then closed) or the connection is gone.
pub async fn ready(channel: &Channel, queue: &str) -> anyhow::Result<u32> {
    let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let queue = channel.queue_declare(queue.into(), options, FieldTable::default()).await?;
    Ok(queue.message_count())
}
