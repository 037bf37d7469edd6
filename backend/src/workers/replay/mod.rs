//! The replay of approved cohorts: people's commands set a cohort's state, this picks it up from there. Each cohort has one
//! owner at a time, by lease and epoch; every decision is made from the database's state, so that any process may go on.

mod canary;
mod ending;
mod expansion;
mod hand_over;
mod owner;
mod run;
mod settling;
mod target;

pub use run::{Run, Stepped};

use crate::{error::Result, state::App, store::replays};
use domain::ids::CohortId;
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};
use tokio::task::JoinSet;

/// How often started cohorts are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Steps every started cohort by hand: what tests drive. In production [`work`] gives each cohort a task of its own.
pub struct Replays {
    app: App,
    owner: String,
    answer_within: Duration,
    runs: HashMap<CohortId, Run>,
}

impl Replays {
    /// Under the process's own name.
    #[must_use]
    pub fn new(app: &App) -> Self {
        Self::named(app, &app.config.process_name)
    }

    /// Under a name of its own: another process, to all who look.
    #[must_use]
    pub fn named(app: &App, owner: &str) -> Self {
        Self { app: app.clone(), owner: owner.to_owned(), answer_within: run::ANSWER_WITHIN, runs: HashMap::new() }
    }

    /// Waits so long for the broker's answers.
    #[must_use]
    pub const fn answering_within(mut self, within: Duration) -> Self {
        self.answer_within = within;
        self
    }

    /// One step of every started cohort, one after another; what each did.
    ///
    /// # Errors
    /// The first step's that failed; the others were made.
    pub async fn try_step(&mut self) -> Result<Vec<(CohortId, Stepped)>> {
        let mut did = Vec::new();
        let mut failed = None;
        for cohort in replays::started(self.app.store.pool()).await? {
            let run = self
                .runs
                .entry(cohort)
                .or_insert_with(|| Run::new(self.app.clone(), cohort, self.owner.clone(), self.answer_within));
            match run.step().await {
                Ok(stepped) => did.push((cohort, stepped)),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let gone: HashSet<CohortId> = did.iter().filter(|(_, did)| *did == Stepped::Gone).map(|(id, _)| *id).collect();
        self.runs.retain(|cohort, _| !gone.contains(cohort));
        failed.map_or(Ok(did), Err)
    }

    /// Stops every run in good order.
    pub async fn stop(self) {
        for mut run in self.runs.into_values() {
            run.stop().await;
        }
    }
}

/// The duty, until the process is asked to stop: each started cohort on a task of its own, so that a slow probe or a
/// blocked broker of one doesn't hold up another.
pub async fn work(app: App) {
    let mut tasks: JoinSet<CohortId> = JoinSet::new();
    let mut running: HashSet<CohortId> = HashSet::new();
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = app.shutdown.cancelled() => break,
            Some(ended) = tasks.join_next() => match ended {
                Ok(cohort) => { running.remove(&cohort); }
                // which one it was isn't known: all are looked for anew, and a second task of a cohort finds the lease taken
                Err(error) => { tracing::error!(%error, "a replay's task failed"); running.clear(); }
            },
            _ = look.tick() => match replays::started(app.store.pool()).await {
                Ok(started) => for cohort in started {
                    if running.insert(cohort) {
                        tasks.spawn(drive(app.clone(), cohort));
                    }
                },
                Err(error) => tracing::warn!(%error, "started cohorts can't be read"),
            },
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// Drives one cohort until it ends or the process stops.
async fn drive(app: App, cohort: CohortId) -> CohortId {
    let owner = app.config.process_name.clone();
    let shutdown = app.shutdown.clone();
    let mut run = Run::new(app, cohort, owner, run::ANSWER_WITHIN);
    loop {
        let pause = match run.step().await {
            Ok(Stepped::Gone) => break,
            Ok(stepped) => stepped.pause(),
            Err(error) => {
                tracing::warn!(%cohort, error = format!("{error:?}"), "a replay's step failed; it is tried again");
                Duration::from_secs(1)
            }
        };
        if shutdown.is_cancelled() {
            break;
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = tokio::time::sleep(pause) => {}
        }
    }
    run.stop().await;
    cohort
}
