//! `demo`: the shop that the demo shows, one process per subcommand.

use std::{
    io::{IsTerminal as _, Write as _},
    net::SocketAddr,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use demo::{
    amqp,
    check::{Check, Plant, Report},
    control, database,
    events::EventFeed,
    producer,
    revision::Revision,
    settings::{EventFeedSettings, Services},
    stop,
    supervisor::{Fleet, READY, Shape},
    topology,
    worker::Worker,
};

/// The shop of Lazaret's demo: producer, workers, control page, and the check that shares no code with Lazaret.
#[derive(Parser)]
#[command(version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    services: Services,
    #[command(flatten)]
    feed: EventFeedSettings,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Declare exchanges and queues at the broker, and make the demo's tables
    Topology,
    /// Publish orders at the rate of the arrival knob
    Producer {
        /// End when standard input does: for a supervisor
        #[arg(long)]
        until_stdin_closes: bool,
    },
    /// Work on the source queue
    Worker {
        /// Which revision to run: 2026.11.3, 2026.12.1 or 2026.12.2
        #[arg(long)]
        revision: Revision,
        /// Its name in the ledger and at the broker
        #[arg(long, default_value = "worker")]
        name: String,
        /// How many messages at once
        #[arg(long, default_value_t = 3)]
        slots: u16,
        /// End when standard input does: for a supervisor
        #[arg(long)]
        until_stdin_closes: bool,
    },
    /// Count what was lost and what was doubled, from AMQP and SQL alone; exit code 1 when anything was
    Check {
        /// Lazaret's database, for what the vault holds
        #[arg(long, env = "DEMO_VAULT_URL")]
        vault_url: Option<String>,
        /// How long messages may take to come to rest, seconds
        #[arg(long, default_value_t = 30)]
        settle_s: u64,
        /// Pretend a fault, to see the check notice it; nothing is changed
        #[arg(long, value_enum)]
        plant: Option<Plant>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Run producer and workers, and serve the control page
    Control {
        /// Loopback address of the page; port 0 takes a free one
        #[arg(long, default_value = "127.0.0.1:8190")]
        listen: SocketAddr,
        /// Worker processes
        #[arg(long, default_value_t = 2)]
        workers: u16,
        /// Messages that each works on at once
        #[arg(long, default_value_t = 3)]
        slots: u16,
        /// What the workers run at first
        #[arg(long, default_value = "2026.11.3")]
        revision: Revision,
        /// New orders per second at first; without it the knob stays as it was
        #[arg(long)]
        arrival: Option<i32>,
        /// End when standard input does: for a supervisor
        #[arg(long)]
        until_stdin_closes: bool,
    },
    /// Replace the workers by those of another revision
    Deploy {
        /// Which
        revision: Revision,
        #[command(flatten)]
        control: ControlAddress,
    },
    /// Bring the revision before back
    Rollback(ControlAddress),
    /// Set new orders per second; 0 stops them
    Arrival {
        /// 0–500
        per_s: u32,
        #[command(flatten)]
        control: ControlAddress,
    },
    /// Set how long the downstream takes
    DownstreamDelay {
        /// 0–60 000 milliseconds
        ms: u32,
        #[command(flatten)]
        control: ControlAddress,
    },
    /// Print what runs, as JSON
    Status(ControlAddress),
}

#[derive(clap::Args)]
struct ControlAddress {
    /// Where the control page is
    #[arg(long, env = "DEMO_CONTROL_URL", default_value = "http://127.0.0.1:8190")]
    control_url: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("DEMO_LOG").unwrap_or_else(|_| "demo=info,warn".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let Cli { services, feed, command } = Cli::parse();
    match command {
        Command::Topology => {
            database::open(&services.database_url).await?.close().await;
            let connection = amqp::connect(&services.amqp_url, "demo topology").await?;
            // Bound to a name: a channel that is dropped here closes itself while the connection does, and one fails.
            let channel = connection.create_channel().await?;
            topology::declare(&channel).await?;
            connection.close(200, "declared".into()).await?;
        }
        Command::Producer { until_stdin_closes } => {
            let stop = stop::token(until_stdin_closes)?;
            let feed = EventFeed::start(&feed);
            say(READY)?;
            producer::run(&services, &feed, &stop).await?;
            tokio::task::spawn_blocking(|| feed.finish()).await?;
        }
        Command::Worker { revision, name, slots, until_stdin_closes } => {
            let stop = stop::token(until_stdin_closes)?;
            let feed = EventFeed::start(&feed);
            let worker = Worker { revision, name, slots };
            worker.run(&services, &feed, &stop, || say(READY).unwrap_or_else(|_| stop.cancel())).await?;
            tokio::task::spawn_blocking(|| feed.finish()).await?;
        }
        Command::Check { vault_url, settle_s, plant, json } => {
            let check = Check { services, vault_url, settle: Duration::from_secs(settle_s), plant };
            let report = check.run().await?;
            say(&if json { serde_json::to_string(&report)? } else { sentences(&report) })?;
            return Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Control { listen, workers, slots, revision, arrival, until_stdin_closes } => {
            let stop = stop::token(until_stdin_closes)?;
            let pool = database::open(&services.database_url).await?;
            if let Some(per_s) = arrival {
                database::set_arrival(&pool, per_s).await?;
            }
            let fleet = Fleet::start(Shape { workers, slots, services, feed }, revision).await?;
            let announce = |address| drop(say(&format!("{READY} http://{address}")));
            control::serve(listen, fleet, pool, &stop, announce).await?;
        }
        Command::Deploy { revision, control } => order(&control, "deploy", &[("revision", revision.as_str())]).await?,
        Command::Rollback(control) => order(&control, "rollback", &[]).await?,
        Command::Arrival { per_s, control } => order(&control, "arrival", &[("per_s", &per_s.to_string())]).await?,
        Command::DownstreamDelay { ms, control } => order(&control, "downstream", &[("ms", &ms.to_string())]).await?,
        Command::Status(control) => {
            let url = format!("{}/state", control.control_url.trim_end_matches('/'));
            let state = tokio::task::spawn_blocking(move || ureq::get(url).call()?.body_mut().read_to_string()).await?;
            say(&state.context("the control page can't be reached")?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Posts an order to the control page.
async fn order(control: &ControlAddress, path: &str, fields: &[(&str, &str)]) -> anyhow::Result<()> {
    let url = format!("{}/{path}", control.control_url.trim_end_matches('/'));
    let fields: Vec<(String, String)> = fields.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let answer = tokio::task::spawn_blocking(move || -> anyhow::Result<_> {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let mut answer = agent.post(url).send_form(fields)?;
        Ok((answer.status(), answer.body_mut().read_to_string()?))
    });
    match answer.await?.context("the control page can't be reached")? {
        (status, _) if status.is_success() => Ok(()),
        (status, text) => bail!("the control page answered {status}: {}", text.trim()),
    }
}

/// One line on standard output.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn sentences(report: &Report) -> String {
    let Report { jobs, effects, held, queued, lost, doubled, .. } = report;
    let mut text = format!(
        "{jobs} jobs were accepted; {effects} have their invoice. The vault holds {held} messages, the queues {queued}.\n\
         lost {lost}, doubled {doubled}"
    );
    for job in &report.lost_jobs {
        text.push_str(&format!("\nlost: {job}"));
    }
    for redrive in &report.doubled_redrives {
        text.push_str(&format!("\nexecuted more than once: redrive {redrive}"));
    }
    text
}
