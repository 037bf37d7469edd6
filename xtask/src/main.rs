//! The repository's commands: `cargo xtask demo`, `test`, `up`, `dev`, `build`, `prepare`.
//!
//! Everything that a command starts is registered in a [`run::Run`]: it ends with the command, and what a killed
//! command left is ended by the next one in this checkout.

mod build;
mod checkout;
mod cli;
mod demo;
mod dev;
mod http;
mod install;
mod prepare;
mod run;
mod say;
mod services;
mod test;
mod up;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match checkout::Checkout::find().and_then(|checkout| start(cli, checkout)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Ctrl-C ends the tools that we wait for, which fails them: the signal's own exit code is the one to give.
            run::leave_to_the_signal();
            say::error(&error);
            ExitCode::FAILURE
        }
    }
}

fn start(cli: cli::Cli, checkout: checkout::Checkout) -> anyhow::Result<()> {
    let run = run::Run::begin(checkout)?;
    let done = match cli.command {
        cli::Command::Demo(arguments) => demo::demo(&run, &arguments),
        cli::Command::Test(arguments) => test::test(&run, &arguments),
        cli::Command::Up(arguments) => up::up(&run, &arguments),
        cli::Command::Dev(arguments) => dev::dev(&run, &arguments),
        cli::Command::Build => build::release(&run).map(drop),
        cli::Command::Prepare(arguments) => prepare::prepare(&run, &arguments),
    };
    run.finish();
    done
}
