//! Owns the producer and the worker processes: starts, replaces, restarts and ends them.

use std::{process::Stdio, time::Duration};

use anyhow::{Context as _, bail};
use serde::Serialize;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdin, Command},
};

use crate::{
    revision::Revision,
    settings::{EventFeedSettings, Services},
};

/// How long a process may take until it consumes.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// How long a process may take to finish what it began.
const ENDED_WITHIN: Duration = Duration::from_secs(20);
/// The line with which a child says that it works.
pub const READY: &str = "ready";

/// What a fleet is made of.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Worker processes.
    pub workers: u16,
    /// Messages that each works on at once.
    pub slots: u16,
    /// Broker and database, handed to every child.
    pub services: Services,
    /// Where their events go.
    pub feed: EventFeedSettings,
}

/// The processes.
#[derive(Debug)]
pub struct Fleet {
    shape: Shape,
    revision: Revision,
    previous: Revision,
    deployments: u32,
    workers: Vec<Member>,
    producer: Member,
}

/// One process.
#[derive(Debug)]
struct Member {
    name: String,
    child: Child,
    /// When this closes, the child ends; it closes with us.
    stdin: Option<ChildStdin>,
}

/// What the control page shows.
#[derive(Debug, Clone, Serialize)]
pub struct FleetState {
    /// What the workers run.
    pub revision: &'static str,
    /// What `rollback` brings back.
    pub previous: &'static str,
    /// Names of the worker processes, with their process ids.
    pub workers: Vec<(String, Option<u32>)>,
    /// The producer's process id.
    pub producer: Option<u32>,
}

impl Fleet {
    /// Starts a producer and workers of `revision`, and waits until all of them work.
    ///
    /// # Errors
    /// When a process can't be started or doesn't get to work in time.
    pub async fn start(shape: Shape, revision: Revision) -> anyhow::Result<Self> {
        let producer = Member::start("producer", &["producer"], &shape).await?;
        let mut fleet = Self { shape, revision, previous: revision, deployments: 0, workers: Vec::new(), producer };
        fleet.workers = fleet.start_workers(revision).await?;
        Ok(fleet)
    }

    /// Replaces every worker: the new ones start, then the old ones finish what they began and end.
    ///
    /// # Errors
    /// When a new process doesn't get to work; the old ones then stay.
    pub async fn deploy(&mut self, revision: Revision) -> anyhow::Result<()> {
        let new = self.start_workers(revision).await?;
        for mut old in std::mem::replace(&mut self.workers, new) {
            old.end().await?;
        }
        if revision != self.revision {
            (self.previous, self.revision) = (self.revision, revision);
        }
        Ok(())
    }

    /// Deploys what ran before.
    ///
    /// # Errors
    /// As [`Fleet::deploy`].
    pub async fn rollback(&mut self) -> anyhow::Result<()> {
        self.deploy(self.previous).await
    }

    /// Starts again what has ended by itself.
    ///
    /// # Errors
    /// When that can't be done now; call it again.
    pub async fn tend(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.producer.child.try_wait()? {
            tracing::warn!("the producer ended ({status}); it is started again");
            self.producer = Member::start("producer", &["producer"], &self.shape).await?;
        }
        for index in 0..self.workers.len() {
            if let Some(status) = self.workers[index].child.try_wait()? {
                let name = self.workers[index].name.clone();
                tracing::warn!("{name} ended ({status}); it is started again");
                self.workers[index] = self.start_worker(&name, self.revision).await?;
            }
        }
        Ok(())
    }

    /// Ends all of them.
    ///
    /// # Errors
    /// When a process can't be waited for.
    pub async fn end(&mut self) -> anyhow::Result<()> {
        self.producer.end().await?;
        for mut worker in self.workers.drain(..) {
            worker.end().await?;
        }
        Ok(())
    }

    /// What runs now.
    #[must_use]
    pub fn state(&self) -> FleetState {
        FleetState {
            revision: self.revision.as_str(),
            previous: self.previous.as_str(),
            workers: self.workers.iter().map(|worker| (worker.name.clone(), worker.child.id())).collect(),
            producer: self.producer.child.id(),
        }
    }

    async fn start_workers(&mut self, revision: Revision) -> anyhow::Result<Vec<Member>> {
        self.deployments += 1;
        let mut workers = Vec::new();
        for number in 1..=self.shape.workers {
            let name = format!("worker-{}-{number}", self.deployments);
            workers.push(self.start_worker(&name, revision).await?);
        }
        Ok(workers)
    }

    async fn start_worker(&self, name: &str, revision: Revision) -> anyhow::Result<Member> {
        let slots = self.shape.slots.to_string();
        let arguments = ["worker", "--name", name, "--revision", revision.as_str(), "--slots", &slots];
        Member::start(name, &arguments, &self.shape).await
    }
}

impl Member {
    async fn start(name: &str, arguments: &[&str], shape: &Shape) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .arg("--until-stdin-closes")
            .envs(shape.services.environment())
            .envs(shape.feed.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{name} can't be started"))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("the child's standard output is a pipe")?;
        let mut lines = BufReader::new(stdout).lines();
        let ready = async {
            while let Some(line) = lines.next_line().await? {
                if line == READY {
                    return Ok(());
                }
            }
            bail!("{name} ended before it worked")
        };
        tokio::time::timeout(READY_WITHIN, ready).await.with_context(|| format!("{name} doesn't get to work"))??;
        // keep reading, so that the pipe never fills
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { name: name.to_owned(), child, stdin })
    }

    /// Lets it finish what it began; kills it when it doesn't.
    async fn end(&mut self) -> anyhow::Result<()> {
        drop(self.stdin.take());
        if tokio::time::timeout(ENDED_WITHIN, self.child.wait()).await.is_err() {
            tracing::warn!("{} doesn't end and is killed", self.name);
            self.child.kill().await?;
        }
        Ok(())
    }
}
