//! `cargo xtask demo`: an incident under way, to try Lazaret on; with `--autopilot`, the way out of it.

mod autopilot;
mod client;
mod outcome;
mod registration;
mod shop;
mod unbuilt;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::cli;
use crate::run::Run;
use crate::say;
use crate::services::BrokerVersion;
use crate::services::server::User;
use crate::up::Up;
use autopilot::{Autopilot, BAD};
use client::{Person, until};
use outcome::Outcome;
use registration::Registered;
use shop::Shop;

/// What the workers run before the bad deployment.
const GOOD: &str = "2026.11.3";
/// New orders per second.
const ARRIVAL_PER_S: u32 = 12;
/// How long the incident may take to show.
const LIMIT: Duration = Duration::from_secs(90);

/// Services, server, shop and people.
pub(crate) struct Demo {
    // The shop ends before what it stands on: fields are dropped in this order.
    shop: Shop,
    up: Up,
    registered: Registered,
    people: People,
}

struct People {
    mara: Person,
    ines: Person,
    jon: Person,
    ada: Person,
}

/// Runs the demo: until Ctrl-C, or until the autopilot is through.
///
/// # Errors
/// When it can't start, or the autopilot's story does not end well.
pub(crate) fn demo(run: &Arc<Run>, arguments: &cli::Demo) -> Result<()> {
    let began = Instant::now();
    let mut demo = Demo::start(run, arguments.broker)?;
    if !arguments.autopilot {
        let text = if arguments.json { demo.addresses()?.to_string() } else { demo.for_people() };
        say::result(&text)?;
        let ended = demo.up.server.process().wait()?;
        crate::run::leave_to_the_signal();
        bail!("the server ended by itself ({ended}){}", demo.up.server.process().log_tail());
    }
    let mut outcome = Outcome { broker: demo.up.stack.rabbitmq.version().to_owned(), ..Outcome::default() };
    if let Err(error) = demo.autopilot().play(&mut outcome) {
        crate::run::leave_to_the_signal();
        outcome.problems.push(format!("the story broke off: {error:#}"));
    }
    outcome.seconds = (began.elapsed().as_secs_f64() * 10.0).round() / 10.0;
    outcome.judge()?;
    if arguments.json {
        say::result(&serde_json::to_string(&outcome)?)?;
    } else {
        say::result(&serde_json::to_string_pretty(&outcome)?)?;
    }
    if outcome.ok { Ok(()) } else { bail!("the demo is not ok: {}", outcome.problems.join("; ")) }
}

impl Demo {
    /// Starts everything, and waits until the incident shows.
    ///
    /// # Errors
    /// When it can't start, or the incident does not show in time.
    pub(crate) fn start(run: &Arc<Run>, broker: BrokerVersion) -> Result<Self> {
        let up = Up::start(run, broker, None)?;
        let program = up.programs.join("demo");
        let base_url = up.server.base_url();
        let sign_in = |name: &str| Person::sign_in(&base_url, account(&up, name)?);
        let (surroundings, registered) = say::step("topology, and what an admin registers", || {
            let surroundings = shop::prepare(run, &program, &up.stack)?;
            let registered = registration::register(&sign_in("root")?, &up.stack, &surroundings)?;
            Ok((surroundings, registered))
        })?;
        let ines = Person::sign_in(&base_url, &registered.ines)?;
        let people = People { mara: sign_in("mara")?, ines, jon: sign_in("jon")?, ada: sign_in("ada")? };
        let shop = say::step(&format!("producer and workers of {GOOD}"), || {
            let events = (base_url.as_str(), &registered.workers);
            Shop::open(run, program, surroundings, events, GOOD, ARRIVAL_PER_S)
        })?;
        let demo = Self { shop, up, registered, people };
        say::step(&format!("an incident: {BAD} is deployed"), || demo.break_it())?;
        Ok(demo)
    }

    /// Deploys the bad revision over a shop that works, and waits for its first dead letter in custody.
    fn break_it(&self) -> Result<()> {
        let queue = || self.people.mara.get(&format!("/queues/{}", self.registered.queue_id));
        until("the good workers are seen", LIMIT, || {
            let versions = queue()?["readings"]["consuming_versions"].clone();
            Ok(versions.as_array().is_some_and(|all| all.iter().any(|version| version == GOOD)).then_some(()))
        })?;
        self.shop.deploy(BAD)?;
        until("a dead letter is in custody", LIMIT, || Ok((queue()?["held"].as_i64() > Some(0)).then_some(())))
    }

    /// Everybody who can log in.
    fn users(&self) -> impl Iterator<Item = &User> {
        self.up.server.users().iter().chain([&self.registered.ines])
    }

    fn autopilot(&self) -> Autopilot<'_> {
        let People { mara, ines, jon, ada } = &self.people;
        Autopilot { mara, ines, jon, ada, shop: &self.shop, queue_id: &self.registered.queue_id }
    }

    /// As `up --json`, and where the shop is.
    ///
    /// # Errors
    /// When they are no JSON, which they are.
    pub(crate) fn addresses(&self) -> Result<serde_json::Value> {
        let mut addresses = serde_json::to_value(self.up.addresses())?;
        addresses["users"] = serde_json::to_value(self.users().collect::<Vec<_>>())?;
        addresses["control_url"] = json!(self.shop.control_url());
        addresses["queue_id"] = json!(self.registered.queue_id);
        Ok(addresses)
    }

    fn for_people(&self) -> String {
        let mut lines = vec![
            format!("Lazaret      {}", self.up.server.base_url()),
            format!("the shop     {} (deploy, roll back, more orders, a slow downstream)", self.shop.control_url()),
        ];
        for user in self.users() {
            lines.push(format!("log in as    {} / {} ({})", user.username, user.password, user.roles.join(", ")));
        }
        lines.push(format!("An incident is under way: {BAD} fails large invoices. Ctrl-C ends everything."));
        lines.join("\n")
    }
}

fn account<'a>(up: &'a Up, name: &str) -> Result<&'a User> {
    up.server.users().iter().find(|user| user.username == name).with_context(|| format!("no account {name}"))
}
