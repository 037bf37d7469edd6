//! RabbitMQ clusters: registering them, and what they hold.

use super::fields;
use crate::{
    actor::Actor,
    broker::{Address, Management, ManagementError},
    error::{Error, Result},
    state::App,
    store::{Tx, audit, brokers},
};
use domain::{
    api::{Broker, ChangeBroker, NewBroker, Topology, TopologyBinding, TopologyExchange, TopologyQueue},
    ids::BrokerId,
    vocabulary::Action,
};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a page waits for a management API before it shows the rest without it.
pub const PAGE_PATIENCE: Duration = Duration::from_millis(1_500);

/// The management API of a registered broker.
///
/// # Errors
/// It has none, or its credentials can't be read.
pub fn management(app: &App, broker: &Broker) -> Result<Management, ManagementError> {
    Management::for_broker(&app.http, &brokers::address(broker))
}

/// Fills in what only the broker knows; `None` stays where it can't be asked in time.
pub async fn with_version(app: &App, mut broker: Broker) -> Broker {
    let asking = async { management(app, &broker).ok()?.overview().await.ok() };
    let overview = tokio::time::timeout(PAGE_PATIENCE, asking).await.ok().flatten();
    broker.product_version = overview.map(|overview| overview.rabbitmq_version);
    broker
}

/// Registers a broker.
///
/// # Errors
/// 409 `broker_name_taken`, 422.
pub async fn create(tx: &mut Tx, actor: &Actor, new: NewBroker) -> Result<Broker> {
    let (id, name) = (BrokerId(crate::clock::new_id()), fields::text("/name", &new.name, 100)?);
    let address = Address { amqp_url: new.amqp_url, management_url: new.management_url, credentials: new.credentials };
    check(&address)?;
    brokers::insert(tx, id, &name, &address).await?;
    audit::done(tx, actor, audit::Entry::new(Action::BrokerCreated, "broker", id).named(name).after(facts(&address)))
        .await?;
    brokers::get(&mut **tx, id).await
}

/// Changes addresses or credentials. What a reviewer reads names the broker: where it is doesn't change under a plan.
///
/// # Errors
/// 404, 409 `broker_in_use` for another address while a submitted cohort hasn't ended, 412, 422.
pub async fn change(tx: &mut Tx, actor: &Actor, id: BrokerId, version: i64, change: ChangeBroker) -> Result<Broker> {
    let before = brokers::lock(tx, id).await?;
    if before.version != version {
        return Err(Error::Stale { now: before.version });
    }
    let was = brokers::address(&before);
    let address = Address {
        amqp_url: change.amqp_url.unwrap_or_else(|| was.amqp_url.clone()),
        management_url: change.management_url.or_else(|| was.management_url.clone()),
        credentials: change.credentials.unwrap_or_else(|| was.credentials.clone()),
    };
    check(&address)?;
    let moved = (&was.amqp_url, &was.management_url) != (&address.amqp_url, &address.management_url);
    if moved && brokers::is_in_submitted_plan(tx, id).await? {
        return Err(Error::refused(
            "broker_in_use",
            "a submitted cohort of this broker hasn't ended: what was reviewed would go to another address",
        ));
    }
    let after = brokers::change(tx, id, &address).await?;
    let entry = audit::Entry::new(Action::BrokerChanged, "broker", id)
        .named(&after.name)
        .before(facts(&was))
        .after(facts(&address));
    audit::done(tx, actor, entry).await?;
    Ok(after)
}

fn facts(address: &Address) -> Value {
    json!({
        "amqp_url": address.amqp_url, "management_url": address.management_url, "credentials": address.credentials,
    })
}

fn check(address: &Address) -> Result<()> {
    bare("/amqp_url", &address.amqp_url, &["amqp", "amqps"])?;
    if let Some(url) = &address.management_url {
        bare("/management_url", url, &["http", "https"])?;
    }
    let named = address.credentials.strip_prefix("env:").or_else(|| address.credentials.strip_prefix("file:"));
    if named.is_none_or(|name| name.is_empty() || name.len() > 1_000 || name.contains('\0')) {
        // what was sent may be the secret itself: it isn't repeated
        return Err(Error::invalid("/credentials", "where USER:PASSWORD is kept: env:NAME or file:PATH"));
    }
    Ok(())
}

/// `scheme://host:port` and nothing else: secrets are kept by reference, a virtual host belongs to a queue.
fn bare(pointer: &str, url: &str, schemes: &[&str]) -> Result<()> {
    let fits = url.parse::<http::Uri>().ok().is_some_and(|url| {
        url.scheme_str().is_some_and(|scheme| schemes.contains(&scheme))
            && url.host().is_some_and(|host| !host.is_empty())
            && url.authority().is_some_and(|authority| !authority.as_str().contains('@'))
            && matches!(url.path(), "" | "/")
            && url.query().is_none()
    });
    if fits {
        Ok(())
    } else {
        Err(Error::invalid(pointer, format!("{}://HOST[:PORT], without credentials or path", schemes.join(" or "))))
    }
}

/// What the management API lists, to choose from.
///
/// # Errors
/// 503 `no_management_api`.
pub async fn topology(app: &App, broker: &Broker) -> Result<Topology> {
    let management = management(app, broker)?;
    let (vhosts, queues, exchanges, bindings) = tokio::try_join!(
        management.vhosts(),
        management.queues(None),
        management.exchanges(None),
        management.bindings(None)
    )?;
    Ok(Topology {
        vhosts,
        queues: queues
            .into_iter()
            .map(|queue| TopologyQueue {
                dead_letter_exchange: queue.text_setting("dead-letter-exchange").map(ToOwned::to_owned),
                dead_letter_routing_key: queue.text_setting("dead-letter-routing-key").map(ToOwned::to_owned),
                messages: queue.messages,
                vhost: queue.vhost,
                name: queue.name,
                queue_type: queue.queue_type,
            })
            .collect(),
        exchanges: exchanges
            .into_iter()
            .map(|exchange| TopologyExchange {
                vhost: exchange.vhost,
                name: exchange.name,
                exchange_type: exchange.exchange_type,
            })
            .collect(),
        bindings: bindings
            .into_iter()
            .map(|binding| TopologyBinding {
                vhost: binding.vhost,
                source: binding.source,
                destination: binding.destination,
                destination_type: binding.destination_type,
                routing_key: binding.routing_key,
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_carry_no_secret_and_no_virtual_host() {
        let check = |amqp_url: &str, credentials: &str| {
            check(&Address { amqp_url: amqp_url.to_owned(), management_url: None, credentials: credentials.to_owned() })
                .is_ok()
        };
        assert!(check("amqp://broker:5672", "env:BROKER") && check("amqps://broker", "file:/run/secrets/broker"));
        for bad in ["amqp://u:p@broker", "amqp://broker/vhost", "http://broker", "broker:5672", ""] {
            assert!(!check(bad, "env:BROKER"), "{bad}");
        }
        assert!(!check("amqp://broker", "guest:guest") && !check("amqp://broker", "env:"));
    }
}
