//! The stages, in the order in which a fault is found soonest.

use std::fmt;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Result, bail};

use super::outcome::Outcome;
use super::tools::{DENY, MDBOOK, NEXTEST};
use super::{browser, links};
use crate::build;
use crate::build::wasm::Toolchain;
use crate::cli;
use crate::prepare;
use crate::run::Run;
use crate::services::{BrokerVersion, Stack};

/// One stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Every file is formatted.
    Format,
    /// No lint of the workspace fires.
    Lints,
    /// No lint of the browser's side of the pages fires: the workspace is compiled for the server alone.
    BrowserLints,
    /// `.sqlx/` is what the sources and migrations give.
    Queries,
    /// The code's documentation builds without a warning.
    CodeDocs,
    /// Licences, sources and bans of dependencies.
    Dependencies,
    /// Every link between the repository's documents leads somewhere.
    Links,
    /// The documents become a book.
    Book,
    /// Unit and property tests, or those whose name holds the text.
    Unit(Option<String>),
    /// Integration tests on one broker, or those whose name holds the text.
    Integration(BrokerVersion, Option<String>),
    /// Browser tests against the demo's running incident.
    Browser(BrokerVersion),
}

/// The tests that need Postgres and RabbitMQ.
const NEED_SERVICES: &str = "kind(test) & (package(lazaret) | package(demo))";

/// The stages that an argument of `cargo xtask test` names; without one, all.
pub(crate) fn chosen(what: Option<&str>, brokers: &[BrokerVersion]) -> Vec<Stage> {
    use Stage::{
        Book, Browser, BrowserLints, CodeDocs, Dependencies, Format, Integration, Links, Lints, Queries, Unit,
    };
    let lint = || vec![Format, Queries, Lints, BrowserLints, Dependencies];
    let docs = || vec![Links, Book, CodeDocs];
    // What pages show does not depend on the broker's version: once is enough.
    let browser = || brokers.first().map(|broker| Browser(*broker)).into_iter().collect();
    let integration = |name: Option<&str>| brokers.iter().map(|b| Integration(*b, name.map(str::to_owned))).collect();
    match what {
        None => [lint(), docs(), vec![Unit(None)], integration(None), browser()].concat(),
        Some("lint") => lint(),
        Some("unit") => vec![Unit(None)],
        Some("integration") => integration(None),
        Some("e2e") => browser(),
        Some("docs") => docs(),
        Some(name) => [vec![Unit(Some(name.to_owned()))], integration(Some(name))].concat(),
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format => write!(f, "format"),
            Self::Lints => write!(f, "lints"),
            Self::BrowserLints => write!(f, "lints of the browser's side"),
            Self::Queries => write!(f, "queries"),
            Self::CodeDocs => write!(f, "code documentation"),
            Self::Dependencies => write!(f, "dependencies"),
            Self::Links => write!(f, "links between documents"),
            Self::Book => write!(f, "book"),
            Self::Unit(_) => write!(f, "unit and property tests"),
            Self::Integration(broker, _) => write!(f, "integration tests on RabbitMQ {}", broker.major()),
            Self::Browser(broker) => write!(f, "browser tests, on RabbitMQ {}", broker.major()),
        }
    }
}

impl Stage {
    /// Whether a part of a test's name was given, so that this stage may have none of that name.
    pub(super) fn is_narrowed(&self) -> bool {
        matches!(self, Self::Unit(Some(_)) | Self::Integration(_, Some(_)))
    }

    /// Carries it out.
    ///
    /// # Errors
    /// When it finds a fault.
    pub(crate) fn carry_out(&self, run: &Arc<Run>) -> Result<Outcome> {
        match self {
            Self::Format => check(run, build::cargo(run).args(["fmt", "--all", "--check"])),
            Self::Lints => {
                let mut cargo = build::cargo(run);
                cargo.args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]);
                check(run, &mut cargo)
            }
            Self::BrowserLints => Toolchain::find(run)?.lint(run).map(|()| Outcome::CHECK),
            Self::Queries => {
                prepare::prepare(run, &cli::Prepare { check: true })?;
                Ok(Outcome::CHECK)
            }
            Self::CodeDocs => {
                let mut cargo = build::cargo(run);
                cargo.args(["doc", "--quiet", "--workspace", "--lib", "--no-deps", "--document-private-items"]);
                // Private items are documented too, so a link to one holds.
                check(run, cargo.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links"))
            }
            Self::Dependencies => {
                let mut deny = DENY.command(run)?;
                check(run, deny.args(["--workspace", "check", "bans", "licenses", "sources"]))
            }
            Self::Links => links::check(run.checkout()).map(|()| Outcome::CHECK),
            Self::Book => book(run),
            Self::Unit(name) => nextest(run, &format!("not ({NEED_SERVICES})"), name.as_deref(), &[]),
            Self::Integration(broker, name) => integration(run, *broker, name.as_deref()),
            Self::Browser(broker) => browser::test(run, *broker),
        }
    }
}

/// Builds the book, and makes sure that every page of it is there: mdBook passes over a file that no one lists.
fn book(run: &Arc<Run>) -> Result<Outcome> {
    let mut mdbook = MDBOOK.command(run)?;
    let (docs, made) = (run.checkout().path("docs"), run.checkout().target("book"));
    check(run, mdbook.arg("build").arg("--dest-dir").arg(&made).arg(&docs))?;
    links::all_in_book(&docs)?;
    Ok(Outcome::CHECK)
}

fn check(run: &Arc<Run>, command: &mut Command) -> Result<Outcome> {
    run.tool(command).map(|()| Outcome::CHECK)
}

/// One node and one cluster for all tests: each makes its own virtual host and database in them.
fn integration(run: &Arc<Run>, broker: BrokerVersion, name: Option<&str>) -> Result<Outcome> {
    let stack = Stack::start(run, broker)?;
    let environment = [
        ("LAZARET_TEST_DATABASE_URL", stack.postgres.url("postgres", "postgres")),
        ("LAZARET_TEST_AMQP_URL", stack.rabbitmq.amqp_url()),
        ("LAZARET_TEST_MANAGEMENT_URL", stack.rabbitmq.management_url()),
        ("LAZARET_TEST_BROKER", broker.major().to_string()),
    ];
    nextest(run, NEED_SERVICES, name, &environment)
}

fn nextest(run: &Arc<Run>, of: &str, name: Option<&str>, environment: &[(&str, String)]) -> Result<Outcome> {
    let mut cargo = NEXTEST.command(run)?;
    // One build for unit and integration tests: the same packages, told apart by the filter. To run none is judged by
    // who asked for the stage, for every test runner alike.
    cargo.args(["nextest", "run", "--workspace", "--no-fail-fast", "--no-tests=pass"]);
    let filter = name.map_or_else(|| of.to_owned(), |name| format!("({of}) & test({name})"));
    cargo.args(["--filterset", &filter]).envs(environment.iter().map(|(name, value)| (name, value)));
    counted(run, &mut cargo)
}

/// Runs a test runner and reads its counts.
pub(super) fn counted(run: &Arc<Run>, command: &mut Command) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let status = run.watched(command, |line| outcome = Outcome::read(line, outcome).unwrap_or(outcome))?;
    if !status.success() && outcome.failed == 0 {
        bail!("the test runner failed ({status})");
    }
    Ok(outcome)
}
