//! The `lazaret` command.

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use domain::vocabulary::Role;
use lazaret::{
    config::{self, Config, ConfigError},
    serve, store,
};
use std::{io::Read as _, process::ExitCode};

/// Control plane for dead letters: custody, review, replay.
#[derive(Debug, Parser)]
#[command(version, about, after_help = "Settings come from the environment; `lazaret serve --help` lists them.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves API and pages, and runs the workers.
    ///
    /// DATABASE_URL                Postgres, as the application role (required)
    /// LAZARET_LISTEN              IP:PORT, default 127.0.0.1:8080
    /// LAZARET_BASE_URL            what browsers call this server, default http://<listen>
    /// LAZARET_SITE_DIR            the folder that holds pkg/ (the browser bundle)
    /// LAZARET_METRICS_LISTEN      IP:PORT of /metrics; absent: not served
    /// LAZARET_WORKERS             on or off, default on
    /// RUST_LOG, LAZARET_LOG_JSON  what is logged; JSON lines when set to 1
    #[command(verbatim_doc_comment)]
    Serve,
    /// Brings the database's schema to this build's. LAZARET_OWNER_DATABASE_URL: Postgres, as the owner.
    Migrate,
    /// Accounts.
    #[command(subcommand)]
    User(UserCommand),
}

#[derive(Debug, Subcommand)]
enum UserCommand {
    /// Makes an account: the way to the first admin. Uses DATABASE_URL.
    Add {
        /// 1 to 64 of a-z 0-9 . _ -
        name: String,
        /// viewer, responder, approver, auditor, admin, emitter; several by commas.
        #[arg(long, value_delimiter = ',', required = true)]
        role: Vec<Role>,
        /// A machine: it never approves.
        #[arg(long)]
        machine: bool,
        /// Reads the password from standard input (the only way: arguments are seen by other processes).
        #[arg(long, required = true)]
        password_stdin: bool,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    start_log();
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(if error.is::<ConfigError>() { 2 } else { 1 })
        }
    }
}

#[tokio::main]
async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Serve => serve::run(Config::from_env()?).await,
        Command::Migrate => store::migrate(&config::owner_database_url()?)
            .await
            .context("the database that LAZARET_OWNER_DATABASE_URL names"),
        Command::User(UserCommand::Add { name, role, machine, password_stdin: _ }) => {
            let mut password = String::new();
            std::io::stdin().read_to_string(&mut password)?;
            let password = password.trim_end_matches(['\r', '\n']).to_owned();
            lazaret::app::users::add_from_command_line(&Config::from_env()?, name, role, machine, password).await
        }
    }
}

fn start_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| "info,tower_sessions=error,tower_sessions_core=error,sqlx=warn".into());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::env::var("LAZARET_LOG_JSON").is_ok_and(|value| value == "1") { log.json().init() } else { log.init() }
}

/// A command's last word to the person who ran it.
fn complain(error: &anyhow::Error) {
    eprintln!("lazaret: {error:#}");
}
