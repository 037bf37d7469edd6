//! AMQP connections: named, heart-beaten, never recovered behind our back (BROKER.md, "Consuming with lapin").

use super::address::{Address, Credentials, CredentialsError};
use lapin::{
    Connection, ConnectionProperties,
    uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo},
};
use std::time::Duration;

/// How long a connection may take to stand, handshake included.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Heartbeats, seconds: a black-holed connection is noticed within twice this.
const HEARTBEAT_S: u16 = 10;

/// Why the broker can't be used.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The credentials can't be read.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The address isn't one.
    #[error("`{0}` is no amqp(s)://HOST:PORT")]
    Address(String),
    /// No answer in time.
    #[error("the broker didn't answer within {0:?}")]
    Timeout(Duration),
    /// A queue's name that AMQP can't carry.
    #[error("a queue name of {0} bytes is too long")]
    QueueName(usize),
    /// The channel went before an acknowledgement could be sent on it.
    #[error("the channel was lost")]
    ChannelLost,
    /// What the broker or the client said.
    #[error("{}", say(.0))]
    Amqp(#[from] lapin::Error),
}

impl BrokerError {
    /// The AMQP reply code, where the broker gave one: 404 for what doesn't exist, 403, 406 …
    #[must_use]
    pub fn reply_code(&self) -> Option<u16> {
        match self {
            Self::Amqp(error) => reply_code(error),
            _ => None,
        }
    }

    /// Whether the client gave up on bytes that it can't read (a short string that isn't UTF-8): every channel of the
    /// connection went with it, and the message comes back at the next consume.
    #[must_use]
    pub fn is_unreadable_frame(&self) -> bool {
        matches!(self, Self::Amqp(error) if matches!(error.kind(), lapin::ErrorKind::ParsingError(_)))
    }
}

/// The AMQP reply code of an error, where the broker gave one.
#[must_use]
pub fn reply_code(error: &lapin::Error) -> Option<u16> {
    match error.kind() {
        lapin::ErrorKind::ProtocolError(error) => Some(error.get_id()),
        _ => None,
    }
}

fn say(error: &lapin::Error) -> String {
    match error.kind() {
        lapin::ErrorKind::ProtocolError(error) => {
            format!("the broker said {}: {}", error.get_id(), error.get_message())
        }
        lapin::ErrorKind::IOError(error) => format!("the connection failed: {error}"),
        lapin::ErrorKind::MissingHeartbeatError => "the broker's heartbeats stopped".to_owned(),
        lapin::ErrorKind::ParsingError(_) => "the client can't read a frame of the broker's".to_owned(),
        _ => error.to_string(),
    }
}

/// Opens a connection that the broker lists under `name` (client-provided). It is never recovered by the client
/// library: whoever holds it watches [`Connection::events_listener`] and its channels, and opens a new one.
/// Dropping it closes it.
///
/// # Errors
/// See [`BrokerError`].
pub async fn connect(address: &Address, vhost: &str, name: &str) -> Result<Connection, BrokerError> {
    let uri = uri(address, vhost)?;
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    let connecting = Connection::connect_uri(uri, properties);
    match tokio::time::timeout(CONNECT_WITHIN, connecting).await {
        Ok(connected) => Ok(connected?),
        Err(_) => Err(BrokerError::Timeout(CONNECT_WITHIN)),
    }
}

fn uri(address: &Address, vhost: &str) -> Result<AMQPUri, BrokerError> {
    let bad = || BrokerError::Address(address.amqp_url.clone());
    let url = reqwest::Url::parse(&address.amqp_url).map_err(|_| bad())?;
    let (scheme, port) = match url.scheme() {
        "amqp" => (AMQPScheme::AMQP, 5672),
        "amqps" => (AMQPScheme::AMQPS, 5671),
        _ => return Err(bad()),
    };
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(bad)?;
    let Credentials { user: username, password } = Credentials::read(&address.credentials)?;
    Ok(AMQPUri {
        scheme,
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo { username, password },
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port().unwrap_or(port),
        },
        vhost: vhost.to_owned(),
        query: AMQPQueryString {
            heartbeat: Some(HEARTBEAT_S),
            connection_timeout: Some(5_000),
            ..AMQPQueryString::default()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(amqp_url: &str) -> Address {
        Address { amqp_url: amqp_url.to_owned(), management_url: None, credentials: "file:/nowhere".to_owned() }
    }

    #[test]
    fn what_is_no_amqp_address_is_said() {
        for bad in ["http://h:1", "amqp://", "nonsense", ""] {
            assert!(matches!(uri(&address(bad), "/"), Err(BrokerError::Address(_))), "{bad}");
        }
        // a good address gets as far as its credentials
        assert!(matches!(uri(&address("amqp://h:1"), "/"), Err(BrokerError::Credentials(_))));
    }
}
