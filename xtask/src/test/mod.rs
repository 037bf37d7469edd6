//! `cargo xtask test`: everything that CI runs, stage by stage.

mod browser;
mod links;
mod outcome;
mod stages;
mod tools;

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum as _;

use crate::cli;
use crate::run::{Run, leave_to_the_signal};
use crate::say;
use crate::services::BrokerVersion;
use outcome::{Outcome, Report};
use stages::Stage;

/// Runs the stages that were asked for, all of them also after one has failed, and ends with the counts.
///
/// # Errors
/// When a stage failed.
pub(crate) fn test(run: &Arc<Run>, arguments: &cli::Test) -> Result<()> {
    let brokers = arguments.broker.map_or_else(|| BrokerVersion::value_variants().to_vec(), |broker| vec![broker]);
    let mut reports = Vec::new();
    for stage in stages::chosen(arguments.what.as_deref(), &brokers) {
        reports.push(carry_out(run, &stage));
    }
    say::result(&outcome::summary(&reports))?;
    if reports.iter().any(Report::failed) {
        bail!("a stage failed");
    }
    if reports.iter().all(Report::ran_nothing) {
        bail!(
            "no test ran: {} names no stage and is part of no test's name",
            arguments.what.as_deref().unwrap_or("it")
        );
    }
    Ok(())
}

/// A stage that ran no test proves nothing: it is red, unless a name narrowed it.
fn ran_something(stage: &Stage, outcome: Outcome) -> Result<Outcome> {
    ensure!(outcome.ran() > 0 || stage.is_narrowed(), "the stage ran no test");
    Ok(outcome)
}

fn carry_out(run: &Arc<Run>, stage: &Stage) -> Report {
    let name = stage.to_string();
    say::line(format!("\n== {name}"));
    let started = Instant::now();
    let result = stage.carry_out(run).and_then(|outcome| ran_something(stage, outcome));
    leave_to_the_signal();
    let took = started.elapsed();
    if let Err(error) = &result {
        say::error(error);
    }
    let report = Report { name, took, result };
    let said = if report.failed() { "FAILED" } else { "ok" };
    say::line(format!("== {}: {said}, {}", report.name, say::seconds(took)));
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_without_a_test_is_red_unless_a_name_narrowed_it() {
        let none = Outcome { skipped: 3, ..Outcome::default() };
        for stage in
            [Stage::Unit(None), Stage::Integration(BrokerVersion::Four, None), Stage::Browser(BrokerVersion::Three)]
        {
            assert!(ran_something(&stage, none).is_err(), "{stage}");
            assert!(ran_something(&stage, Outcome::CHECK).is_ok(), "{stage}");
        }
        assert!(ran_something(&Stage::Unit(Some("digest".to_owned())), none).is_ok());
    }
}
