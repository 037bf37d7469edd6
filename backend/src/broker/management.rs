//! A small client of RabbitMQ's management API: topology, readings, and the way to close a connection (fencing).
//!
//! Numbers are samples of up to 5 s ago (BROKER.md, "Readings"); whether something exists is current.

use super::{
    address::{Address, Credentials, CredentialsError},
    routing::{self, Receivers},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, time::Duration};

/// How long one call may take.
const CALL_WITHIN: Duration = Duration::from_secs(5);
/// How often a connection that should go is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// Signed in to one broker's management API. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Management {
    http: reqwest::Client,
    base: String,
    credentials: Credentials,
}

/// Why the management API gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ManagementError {
    /// The broker has no management address.
    #[error("the broker is registered without a management address")]
    NotConfigured,
    /// The credentials can't be read.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// 401 or 403: the user may not ask that.
    #[error("the management API refused {0}")]
    Refused(String),
    /// It can't be reached, is too slow, or answered what it shouldn't.
    #[error("the management API can't be used: {0}")]
    Failed(String),
}

impl From<ManagementError> for crate::error::Error {
    fn from(error: ManagementError) -> Self {
        Self::Unavailable { code: "no_management_api", detail: error.to_string() }
    }
}

/// `GET /api/overview`.
#[derive(Debug, Clone, Deserialize)]
pub struct Overview {
    /// Like `3.10.8`.
    pub rabbitmq_version: String,
    /// The cluster's name.
    #[serde(default)]
    pub cluster_name: String,
}

/// A queue. Counts are `None` until the broker has sampled them.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Queue {
    /// Name.
    pub name: String,
    /// Virtual host.
    #[serde(default)]
    pub vhost: String,
    /// `classic`, `quorum` or `stream`.
    #[serde(rename = "type", default)]
    pub queue_type: String,
    /// As declared.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The policy that matches it.
    #[serde(default)]
    pub policy: Option<String>,
    /// What policy and operator policy set together.
    #[serde(default)]
    pub effective_policy_definition: Option<Map<String, Value>>,
    /// Ready and unacknowledged.
    #[serde(default)]
    pub messages: Option<i64>,
    /// Ready.
    #[serde(default)]
    pub messages_ready: Option<i64>,
    /// Delivered and unacknowledged.
    #[serde(default)]
    pub messages_unacknowledged: Option<i64>,
    /// How many consumers.
    #[serde(default)]
    pub consumers: Option<i64>,
    /// Who consumes; only [`Management::queue`] fills it.
    #[serde(default)]
    pub consumer_details: Vec<Consumer>,
    /// Rates; `None` until something moved.
    #[serde(default)]
    pub message_stats: Option<Map<String, Value>>,
}

impl Queue {
    /// A setting by its policy name (`dead-letter-exchange`, `max-length`, `overflow`, `delivery-limit`,
    /// `message-ttl` …): the argument `x-<name>`, which goes before a policy, else the policy's value.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&Value> {
        self.arguments
            .get(&format!("x-{name}"))
            .or_else(|| self.effective_policy_definition.as_ref().and_then(|definition| definition.get(name)))
    }

    /// A setting that is text.
    #[must_use]
    pub fn text_setting(&self, name: &str) -> Option<&str> {
        self.setting(name).and_then(Value::as_str)
    }

    /// A rate per second over the last samples: `publish`, `ack`, `deliver_get` …; `None` where it has none.
    #[must_use]
    pub fn rate(&self, what: &str) -> Option<f64> {
        self.message_stats.as_ref()?.get(&format!("{what}_details"))?.get("rate")?.as_f64()
    }
}

/// A consumer of a queue.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Consumer {
    /// The tag it chose.
    #[serde(default)]
    pub consumer_tag: String,
    /// Its channel and so its connection.
    #[serde(default)]
    pub channel_details: ChannelDetails,
}

/// Where a channel belongs to.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ChannelDetails {
    /// The broker's name of the connection.
    #[serde(default)]
    pub connection_name: String,
    /// Where it comes from.
    #[serde(default)]
    pub peer_host: String,
    /// Whose it is.
    #[serde(default)]
    pub user: String,
}

/// An exchange.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Exchange {
    /// Name; `""` is the default exchange.
    pub name: String,
    /// Virtual host.
    #[serde(default)]
    pub vhost: String,
    /// `direct`, `fanout`, `topic`, `headers`, `x-delayed-message` …
    #[serde(rename = "type", default)]
    pub exchange_type: String,
    /// Clients may not publish to it.
    #[serde(default)]
    pub internal: bool,
    /// As declared.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The policy that matches it.
    #[serde(default)]
    pub policy: Option<String>,
    /// Where unroutable messages go: argument or policy. `Some("")` where a policy applies that can't be read.
    #[serde(skip)]
    pub alternate_exchange: Option<String>,
}

impl Exchange {
    /// Whether it delays messages (the plug-in `x-delayed-message`).
    #[must_use]
    pub fn is_delayed(&self) -> bool {
        self.exchange_type == "x-delayed-message"
    }

    /// The type that routes: of a delayed exchange, the one it stands for.
    #[must_use]
    pub fn routing_type(&self) -> &str {
        if self.is_delayed() {
            self.arguments.get("x-delayed-type").and_then(Value::as_str).unwrap_or_default()
        } else {
            &self.exchange_type
        }
    }
}

/// A binding.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Binding {
    /// The exchange.
    pub source: String,
    /// Virtual host.
    #[serde(default)]
    pub vhost: String,
    /// A queue or an exchange.
    pub destination: String,
    /// `queue` or `exchange`.
    pub destination_type: String,
    /// The binding key.
    #[serde(default)]
    pub routing_key: String,
}

/// A connection at the broker.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Connection {
    /// The broker's name for it, which closing takes.
    pub name: String,
    /// The name that its client gave.
    #[serde(default)]
    pub user_provided_name: Option<String>,
    /// Whose it is.
    #[serde(default)]
    pub user: Option<String>,
    /// `running`, `blocked`, `flow` …
    #[serde(default)]
    pub state: Option<String>,
    #[serde(default)]
    client_properties: Option<Map<String, Value>>,
}

impl Connection {
    /// The name that its client gave; the one that [`super::connect`] takes.
    #[must_use]
    pub fn client_name(&self) -> Option<&str> {
        let property = || self.client_properties.as_ref()?.get("connection_name")?.as_str();
        self.user_provided_name.as_deref().or_else(property)
    }
}

impl Management {
    /// The client for one broker; reads its credentials now.
    ///
    /// # Errors
    /// No management address, or credentials that can't be read.
    pub fn for_broker(http: &reqwest::Client, address: &Address) -> Result<Self, ManagementError> {
        let base = address.management_url.as_deref().ok_or(ManagementError::NotConfigured)?;
        Ok(Self {
            http: http.clone(),
            base: base.trim_end_matches('/').to_owned(),
            credentials: Credentials::read(&address.credentials)?,
        })
    }

    /// Version and cluster name.
    ///
    /// # Errors
    /// See [`ManagementError`]; so for all calls.
    pub async fn overview(&self) -> Result<Overview, ManagementError> {
        self.list(&["overview"]).await
    }

    /// Virtual hosts that the credentials may see.
    ///
    /// # Errors
    /// See [`ManagementError`].
    pub async fn vhosts(&self) -> Result<Vec<String>, ManagementError> {
        #[derive(Deserialize)]
        struct Vhost {
            name: String,
        }
        let vhosts: Vec<Vhost> = self.list(&["vhosts"]).await?;
        Ok(vhosts.into_iter().map(|vhost| vhost.name).collect())
    }

    /// All queues, or those of one virtual host.
    ///
    /// # Errors
    /// See [`ManagementError`].
    pub async fn queues(&self, vhost: Option<&str>) -> Result<Vec<Queue>, ManagementError> {
        self.list(&of("queues", vhost)).await
    }

    /// One queue with its consumers; `None` where there is none.
    ///
    /// # Errors
    /// See [`ManagementError`].
    pub async fn queue(&self, vhost: &str, name: &str) -> Result<Option<Queue>, ManagementError> {
        self.get(&["queues", vhost, name]).await
    }

    /// All exchanges, or those of one virtual host, with their alternate exchanges.
    ///
    /// # Errors
    /// See [`ManagementError`].
    pub async fn exchanges(&self, vhost: Option<&str>) -> Result<Vec<Exchange>, ManagementError> {
        let mut exchanges: Vec<Exchange> = self.list(&of("exchanges", vhost)).await?;
        let policies = if exchanges.iter().any(|exchange| exchange.policy.is_some()) {
            self.policies(vhost).await
        } else {
            Ok(Vec::new())
        };
        for exchange in &mut exchanges {
            let declared = exchange.arguments.get("alternate-exchange").and_then(Value::as_str).map(str::to_owned);
            exchange.alternate_exchange = declared.or_else(|| match (&exchange.policy, &policies) {
                (None, _) => None,
                (Some(_), Err(_)) => Some(String::new()),
                (Some(name), Ok(policies)) => {
                    let policy = policies.iter().find(|p| p.name == *name && p.vhost == exchange.vhost)?;
                    policy.definition.get("alternate-exchange")?.as_str().map(str::to_owned)
                }
            });
        }
        Ok(exchanges)
    }

    /// All bindings, or those of one virtual host.
    ///
    /// # Errors
    /// See [`ManagementError`].
    pub async fn bindings(&self, vhost: Option<&str>) -> Result<Vec<Binding>, ManagementError> {
        self.list(&of("bindings", vhost)).await
    }

    /// Which queues would get a message published to `exchange` with `key`.
    ///
    /// # Errors
    /// See [`ManagementError`].
    pub async fn receivers(&self, vhost: &str, exchange: &str, key: &str) -> Result<Receivers, ManagementError> {
        if exchange.is_empty() {
            let queue = self.queue(vhost, key).await?;
            return Ok(Receivers { queues: queue.into_iter().map(|q| q.name).collect(), ..Receivers::default() });
        }
        let (exchanges, bindings) = tokio::try_join!(self.exchanges(Some(vhost)), self.bindings(Some(vhost)))?;
        Ok(routing::receivers(exchange, key, &exchanges, &bindings, &BTreeSet::new()))
    }

    /// All connections. One is listed from a moment after its handshake until a moment after it went.
    ///
    /// # Errors
    /// See [`ManagementError`].
    pub async fn connections(&self) -> Result<Vec<Connection>, ManagementError> {
        self.list(&["connections"]).await
    }

    /// The connections that their client named `client_name`.
    ///
    /// # Errors
    /// See [`ManagementError`].
    pub async fn connections_named(&self, client_name: &str) -> Result<Vec<Connection>, ManagementError> {
        let mut connections = self.connections().await?;
        connections.retain(|connection| connection.client_name() == Some(client_name));
        Ok(connections)
    }

    /// Closes one connection, by the broker's name for it. `false`: it was gone already.
    ///
    /// # Errors
    /// See [`ManagementError`]; `Refused` where the user is neither the connection's nor an administrator.
    pub async fn close_connection(&self, name: &str, reason: &str) -> Result<bool, ManagementError> {
        let request = self.request(reqwest::Method::DELETE, &["connections", name]).header("X-Reason", reason);
        Ok(self.send(request, "closing a connection").await?.is_some())
    }

    /// Closes every connection of that client name and sees them gone: `true` once two looks in a row find none,
    /// `false` if `within` passes first.
    ///
    /// # Errors
    /// See [`ManagementError`].
    pub async fn close_and_see_gone(
        &self,
        client_name: &str,
        reason: &str,
        within: Duration,
    ) -> Result<bool, ManagementError> {
        let deadline = tokio::time::Instant::now() + within;
        let mut looked_in_vain = 0;
        loop {
            let there = self.connections_named(client_name).await?;
            looked_in_vain = if there.is_empty() { looked_in_vain + 1 } else { 0 };
            if looked_in_vain == 2 {
                return Ok(true);
            }
            for connection in there {
                self.close_connection(&connection.name, reason).await?;
            }
            if tokio::time::Instant::now() >= deadline {
                return Ok(false);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn policies(&self, vhost: Option<&str>) -> Result<Vec<Policy>, ManagementError> {
        self.list(&of("policies", vhost)).await
    }

    fn request(&self, method: reqwest::Method, path: &[&str]) -> reqwest::RequestBuilder {
        let path: String = path.iter().map(|segment| format!("/{}", utf8_percent_encode(segment, SEGMENT))).collect();
        self.http
            .request(method, format!("{}/api{path}", self.base))
            .basic_auth(&self.credentials.user, Some(&self.credentials.password))
            .timeout(CALL_WITHIN)
    }

    /// The answer's body; `None` for 404.
    async fn send(&self, request: reqwest::RequestBuilder, what: &str) -> Result<Option<Vec<u8>>, ManagementError> {
        let failed = |error: reqwest::Error| ManagementError::Failed(say(&error.without_url()));
        let response = request.send().await.map_err(failed)?;
        match response.status().as_u16() {
            404 => Ok(None),
            401 | 403 => Err(ManagementError::Refused(what.to_owned())),
            200..=299 => Ok(Some(response.bytes().await.map_err(failed)?.to_vec())),
            status => Err(ManagementError::Failed(format!("{what} was answered with {status}"))),
        }
    }

    async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Option<T>, ManagementError> {
        let what = format!("reading {}", path.first().copied().unwrap_or_default());
        let Some(body) = self.send(self.request(reqwest::Method::GET, path), &what).await? else { return Ok(None) };
        serde_json::from_slice(&body)
            .map(Some)
            .map_err(|error| ManagementError::Failed(format!("{what} gave what it shouldn't: {error}")))
    }

    /// What always exists, or is an empty answer where its virtual host doesn't.
    async fn list<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, ManagementError> {
        self.get(path).await?.ok_or_else(|| ManagementError::Failed(format!("there is no {}", path.join(" "))))
    }
}

#[derive(Debug, Clone, Deserialize)]
struct Policy {
    name: String,
    vhost: String,
    #[serde(default)]
    definition: Map<String, Value>,
}

fn of<'a>(what: &'a str, vhost: Option<&'a str>) -> Vec<&'a str> {
    std::iter::once(what).chain(vhost).collect()
}

/// An HTTP error with its cause, without the address (which may be internal).
fn say(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_argument_goes_before_a_policy() {
        let queue: Queue = serde_json::from_value(json!({
            "name": "q", "type": "quorum", "arguments": {"x-dead-letter-exchange": "declared"},
            "effective_policy_definition": {"dead-letter-exchange": "policy", "delivery-limit": 3},
            "message_stats": {"publish_details": {"rate": 1.5}},
        }))
        .unwrap();
        assert_eq!(queue.text_setting("dead-letter-exchange"), Some("declared"));
        assert_eq!(queue.setting("delivery-limit"), Some(&json!(3)));
        assert_eq!(queue.setting("overflow"), None);
        assert_eq!((queue.rate("publish"), queue.rate("ack"), queue.messages), (Some(1.5), None, None));
    }

    #[test]
    fn names_of_any_kind_make_one_path_segment() {
        let segment = |name: &str| utf8_percent_encode(name, SEGMENT).to_string();
        assert_eq!(segment("/"), "%2F");
        assert_eq!(segment("a/b %?#ü"), "a%2Fb%20%25%3F%23%C3%BC");
        assert_eq!(segment("127.0.0.1:1 -> h"), "127%2E0%2E0%2E1%3A1%20%2D%3E%20h".replace("%2D", "-"));
    }
}
