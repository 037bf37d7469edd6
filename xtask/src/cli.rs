//! What can be asked for.

use clap::{Args, Parser, Subcommand};

use crate::services::BrokerVersion;

/// Lazaret's repository commands. Services are private to a command: free loopback ports, data under `target/`,
/// nothing left running.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring up an incident to try Lazaret on: services, server, workers, producers and people; runs until Ctrl-C.
    Demo(Demo),
    /// Run everything that CI runs, or the stages named. A stage that runs no test is a failure.
    Test(Test),
    /// Start private services and the release server, without demo traffic; runs until Ctrl-C.
    Up(Up),
    /// Like `up`, with a development build that is rebuilt and restarted, and open pages loaded again, when a source
    /// file changes.
    Dev(Dev),
    /// Build the release server and the browser bundle; start nothing.
    Build,
    /// Write `.sqlx/`, the facts about each query that a build without a database needs.
    Prepare(Prepare),
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Play the on-call through the public API from notice to completed, print the story, then end.
    #[arg(long)]
    pub(crate) autopilot: bool,
    /// Progress to stderr; the last line of stdout is one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// RabbitMQ's major version.
    #[arg(long, value_enum, default_value = "3")]
    pub(crate) broker: BrokerVersion,
}

/// Arguments of `test`.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// `lint`, `unit`, `integration`, `e2e`, `docs`, or part of the name of a Rust test (then a stage may have none of
    /// that name). Nothing: all of them.
    #[arg(value_name = "STAGE|NAME")]
    pub(crate) what: Option<String>,
    /// RabbitMQ's major version for the integration and browser tests. Nothing: integration tests on both, browser
    /// tests on 3.
    #[arg(long, value_enum)]
    pub(crate) broker: Option<BrokerVersion>,
}

/// Arguments of `up`.
#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Print one JSON line on stdout when ready: addresses, accounts with passwords, tokens.
    #[arg(long)]
    pub(crate) json: bool,
    /// RabbitMQ's major version.
    #[arg(long, value_enum, default_value = "3")]
    pub(crate) broker: BrokerVersion,
    /// Runtime threads of the server; without it, one for each core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: Option<u16>,
}

/// Arguments of `dev`.
#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// RabbitMQ's major version.
    #[arg(long, value_enum, default_value = "3")]
    pub(crate) broker: BrokerVersion,
}

/// Arguments of `prepare`.
#[derive(Debug, Args)]
pub(crate) struct Prepare {
    /// Write nothing; fail if `.sqlx/` is not what the sources and migrations give.
    #[arg(long)]
    pub(crate) check: bool,
}
