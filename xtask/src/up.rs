//! `cargo xtask up`: private services and the release server.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::build::{self, Built};
use crate::cli;
use crate::run::Run;
use crate::say;
use crate::services::postgres::OWNER;
use crate::services::server::{self, DATABASE, Server, User};
use crate::services::{self, BrokerVersion, Stack};

/// Services and server, all ready.
#[derive(Debug)]
pub(crate) struct Up {
    // The server ends before what it stands on: fields are dropped in this order.
    pub(crate) server: Server,
    pub(crate) stack: Stack,
    /// The folder of the built programs.
    pub(crate) programs: PathBuf,
}

/// What there is, as one JSON object.
#[derive(Debug, Serialize)]
pub(crate) struct Addresses<'a> {
    base_url: String,
    amqp_url: String,
    management_url: String,
    /// As the role that owns the schema.
    database_url: String,
    users: &'a [User],
    tokens: [String; 0],
}

impl Up {
    /// Builds what isn't built and starts everything.
    ///
    /// # Errors
    /// When a build fails, something is missing that can't be installed, or a service does not get ready.
    pub(crate) fn start(run: &Arc<Run>, broker: BrokerVersion, workers: Option<u16>) -> Result<Self> {
        services::ensure_private()?;
        let Built { programs, site } = build::release(run)?;
        let stack = Stack::start(run, broker)?;
        let server = say::step("migrations, server and accounts", || {
            let build = server::Build { program: &programs.join("lazaret"), site: &site, workers };
            Server::start(run, build, &stack.postgres)
        })?;
        Ok(Self { server, stack, programs })
    }

    /// Where everything is.
    pub(crate) fn addresses(&self) -> Addresses<'_> {
        Addresses {
            base_url: self.server.base_url(),
            amqp_url: self.stack.rabbitmq.amqp_url(),
            management_url: self.stack.rabbitmq.management_url(),
            database_url: self.stack.postgres.url(OWNER, DATABASE),
            users: self.server.users(),
            tokens: [],
        }
    }
}

/// Runs `up` until Ctrl-C.
///
/// # Errors
/// When it can't start, or the server ends by itself.
pub(crate) fn up(run: &Arc<Run>, arguments: &cli::Up) -> Result<()> {
    let mut up = Up::start(run, arguments.broker, arguments.workers)?;
    if arguments.json {
        say::result(&serde_json::to_string(&up.addresses())?)?;
    } else {
        say::result(&for_people(&up))?;
    }
    let ended = up.server.process().wait()?;
    crate::run::leave_to_the_signal();
    bail!("the server ended by itself ({ended}){}", up.server.process().log_tail())
}

fn for_people(up: &Up) -> String {
    let addresses = up.addresses();
    let mut lines = vec![
        format!("Lazaret     {}", addresses.base_url),
        format!("RabbitMQ    {} ({})", addresses.amqp_url, up.stack.rabbitmq.version()),
        format!("management  {}", addresses.management_url),
        format!("Postgres    {}", addresses.database_url),
    ];
    for user in addresses.users {
        lines.push(format!("log in as   {} / {} ({})", user.username, user.password, user.roles.join(", ")));
    }
    lines.push("Ctrl-C ends everything.".to_owned());
    lines.join("\n")
}
