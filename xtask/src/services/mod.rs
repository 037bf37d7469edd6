//! Private services: a Postgres and a RabbitMQ that live as long as the command that started them.

mod debian;
pub(crate) mod ports;
pub(crate) mod postgres;
pub(crate) mod rabbitmq;
pub(crate) mod server;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::ValueEnum;

use crate::run::Run;
use crate::say;
use postgres::Postgres;
use rabbitmq::RabbitMq;

/// RabbitMQ's major version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BrokerVersion {
    /// 3.10, as in Debian 12.
    #[value(name = "3")]
    Three,
    /// 4.0, as in Debian 13.
    #[value(name = "4")]
    Four,
}

impl BrokerVersion {
    /// `3` or `4`.
    pub(crate) fn major(self) -> u8 {
        match self {
            Self::Three => 3,
            Self::Four => 4,
        }
    }
}

/// A Postgres and a RabbitMQ, both ready.
#[derive(Debug)]
pub(crate) struct Stack {
    /// The database cluster.
    pub(crate) postgres: Postgres,
    /// The broker.
    pub(crate) rabbitmq: RabbitMq,
}

impl Stack {
    /// Starts both and waits until they are ready, installing what is missing where that is possible.
    ///
    /// # Errors
    /// When something is missing that can't be installed here (the text says what), or a service does not get ready.
    pub(crate) fn start(run: &Arc<Run>, broker: BrokerVersion) -> Result<Self> {
        let source = rabbitmq::Source::find(run, broker)?;
        postgres::install(run)?;
        say::step(&format!("Postgres and RabbitMQ {}", source.version()), || {
            // The broker's start takes longest: let it run while the cluster is made.
            let starting = source.start(run)?;
            let postgres = Postgres::start(run)?;
            Ok(Self { postgres, rabbitmq: starting.ready()? })
        })
    }
}

/// Refuses to run a server where `DATABASE_URL` or `AMQP_URL` names services of others, which would silently be passed over.
///
/// # Errors
/// One is set. Only its name is said: the value may hold a password.
pub(crate) fn ensure_private() -> Result<()> {
    refuse_foreign(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

fn refuse_foreign(is_set: impl Fn(&str) -> bool) -> Result<()> {
    for name in ["DATABASE_URL", "AMQP_URL"] {
        ensure!(
            !is_set(name),
            "{name} is set, and this command only runs on services of its own: it makes and drops databases there. \
             Unset it (`env -u {name} cargo xtask …`); for a database and broker that exist, run `lazaret serve` \
             (docs/operate/configure.md)"
        );
    }
    Ok(())
}

/// A password for this run alone: 32 hexadecimal digits from the system's random source.
///
/// # Errors
/// When that source can't be read.
pub(crate) fn password() -> Result<String> {
    let mut random = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let mut text = String::with_capacity(32);
    for byte in random {
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::refuse_foreign;

    #[test]
    fn services_of_others_are_refused_by_name() {
        assert!(refuse_foreign(|_| false).is_ok());
        for name in ["DATABASE_URL", "AMQP_URL"] {
            let said = refuse_foreign(|asked| asked == name).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{name} is set")), "{said}");
        }
    }
}
