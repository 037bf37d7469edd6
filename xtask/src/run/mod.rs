//! One command's run: what it started, and how all of it ends.
//!
//! A run owns `target/services/PID-START/`. Each process that it starts leads a process group, is written there, and
//! carries the folder's path in its environment. So three ends are the same to us: the command is done, Ctrl-C, and
//! the command itself killed, after which the next command in this checkout finds a folder without a living owner.

pub(crate) mod identity;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
pub(crate) use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::checkout::Checkout;
use crate::say;
use identity::{Identity, that_inherited};

/// Carries the run's folder to everything that the run starts.
const MARK: &str = "LAZARET_XTASK_RUN";
/// How long a process may take to end when asked.
const GRACE: Duration = Duration::from_secs(15);
/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

static STOPPING: AtomicBool = AtomicBool::new(false);

/// The run of one command.
#[derive(Debug)]
pub(crate) struct Run {
    checkout: Checkout,
    folder: PathBuf,
    started: Mutex<Vec<Entry>>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    leader: Identity,
    stop: Signal,
}

impl Run {
    /// Ends what killed commands of this checkout left, and begins a run that ends on SIGINT, SIGTERM and SIGHUP.
    ///
    /// # Errors
    /// When `target/services/` can't be written, or this isn't Linux (no `/proc`).
    pub(crate) fn begin(checkout: Checkout) -> Result<Arc<Self>> {
        let me = Identity::of(process::id()).context("no /proc/PID/stat: private services need Linux")?;
        let all = checkout.target("services");
        fs::create_dir_all(&all).with_context(|| format!("can't make {}", all.display()))?;
        end_leftovers(&all)?;
        let folder = all.join(me.to_string());
        fs::create_dir_all(&folder)?;
        let run = Arc::new(Self { checkout, folder, started: Mutex::default() });
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let stopped = Arc::clone(&run);
        thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                STOPPING.store(true, Ordering::SeqCst);
                say::line("stopping");
                stopped.end_all();
                process::exit(128 + signal);
            }
        });
        Ok(run)
    }

    /// The checkout that the run is of.
    pub(crate) fn checkout(&self) -> &Checkout {
        &self.checkout
    }

    /// A new folder for the data of the service `name`.
    ///
    /// # Errors
    /// When it can't be made.
    pub(crate) fn data(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
        Ok(folder)
    }

    /// The log file of the process `name`.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.folder.join("log").join(format!("{name}.log"))
    }

    /// Starts a process that lives until the answer is dropped; its output goes to [`Run::log`].
    ///
    /// # Errors
    /// When it can't be started, or the run is ending.
    pub(crate) fn start(self: &Arc<Self>, name: &str, command: &mut Command, stop: Signal) -> Result<Process> {
        let path = self.log(name);
        fs::create_dir_all(self.folder.join("log"))?;
        let log = OpenOptions::new().create(true).append(true).open(&path)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.spawn(name, command, stop)
    }

    /// Runs a tool to its end, its output before the reader.
    ///
    /// # Errors
    /// When it can't be started or does not succeed.
    pub(crate) fn tool(self: &Arc<Self>, command: &mut Command) -> Result<()> {
        let shown = shown(command);
        // Its stdout is progress to us: ours is for results.
        command.stdin(Stdio::null()).stdout(io::stderr());
        let status = self.spawn(&shown, command, Signal::TERM)?.wait()?;
        if !status.success() {
            bail!("`{shown}` failed ({status})");
        }
        Ok(())
    }

    /// Runs a tool to its end and gives its standard output; `input` is its standard input.
    ///
    /// # Errors
    /// When it can't be started or does not succeed: with what it said on stderr.
    pub(crate) fn answer(self: &Arc<Self>, command: &mut Command, input: &[u8]) -> Result<String> {
        let shown = shown(command);
        let output = self.output(command, input)?;
        if !output.status.success() {
            bail!("`{shown}` failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{shown}` answered something that isn't UTF-8"))
    }

    /// Runs a tool to its end and gives what it said and how it ended, for one whose failure is an answer.
    ///
    /// # Errors
    /// When it can't be started.
    pub(crate) fn output(self: &Arc<Self>, command: &mut Command, input: &[u8]) -> Result<Output> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.spawn(&shown(command), command, Signal::TERM)?.output(input)
    }

    /// Runs a tool to its end, its output before the reader and, line by line, before `look`.
    ///
    /// # Errors
    /// When it can't be started.
    pub(crate) fn watched(self: &Arc<Self>, command: &mut Command, mut look: impl FnMut(&str)) -> Result<ExitStatus> {
        let shown = shown(command);
        let (reader, writer) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let mut process = self.spawn(&shown, command, Signal::TERM)?;
        // The command keeps its ends of the pipe until it is told otherwise: then the tool's end is the pipe's.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        for line in BufReader::new(reader).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            say::line(&line);
            look(&line);
        }
        process.wait()
    }

    fn spawn(self: &Arc<Self>, name: &str, command: &mut Command, stop: Signal) -> Result<Process> {
        command.env(MARK, &self.folder).process_group(0);
        let mut started = self.started();
        if STOPPING.load(Ordering::SeqCst) {
            bail!("stopping");
        }
        let child = command.spawn().with_context(|| format!("can't start {name}"))?;
        let leader = Identity::of(child.id()).with_context(|| format!("{name} has no /proc entry"))?;
        let mut record = OpenOptions::new().create(true).append(true).open(self.folder.join("processes"))?;
        writeln!(record, "{leader} {}", stop.as_raw())?;
        started.push(Entry { leader, stop });
        drop(started);
        Ok(Process { run: Arc::clone(self), name: name.to_owned(), child: Some(child), leader, stop })
    }

    /// Ends everything, newest first, and removes the run's data; its logs stay in `target/services/last-log/`.
    pub(crate) fn finish(&self) {
        leave_to_the_signal();
        self.end_all();
    }

    fn end_all(&self) {
        let started = self.started().clone();
        for entry in started.iter().rev() {
            end(entry.leader, entry.stop);
        }
        end_marked(&self.folder);
        let kept = self.checkout.target("services/last-log");
        let log = self.folder.join("log");
        if log.exists() {
            let _ = fs::remove_dir_all(&kept);
            let _ = fs::rename(&log, &kept);
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            say::line(format!("can't remove {}: {error}", self.folder.display()));
        }
    }

    fn started(&self) -> MutexGuard<'_, Vec<Entry>> {
        // The list is whole between any two statements that hold it.
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running process of a run. Dropping it ends it and the group that it leads.
#[derive(Debug)]
pub(crate) struct Process {
    run: Arc<Run>,
    name: String,
    child: Option<Child>,
    leader: Identity,
    stop: Signal,
}

impl Process {
    /// Waits until `ready` says yes.
    ///
    /// # Errors
    /// When the process ends first or `limit` passes: with the end of its log.
    pub(crate) fn ready(&mut self, limit: Duration, mut ready: impl FnMut() -> bool) -> Result<()> {
        let asked = Instant::now();
        while !ready() {
            if let Some(status) = self.ended()? {
                bail!("{} ended ({status}){}", self.name, self.log_tail());
            }
            if asked.elapsed() > limit {
                bail!("{} was not ready after {}{}", self.name, say::seconds(limit), self.log_tail());
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// How it ended, if it did.
    ///
    /// # Errors
    /// When the system can't say.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.as_mut().context("already waited for")?.try_wait().map_err(Into::into)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When the system can't say.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        self.child.as_mut().context("already waited for")?.wait().map_err(Into::into)
    }

    /// Ends it and the group that it leads.
    pub(crate) fn end(&mut self) {
        end(self.leader, self.stop);
        if let Some(child) = &mut self.child {
            let _ = child.wait();
        }
        self.run.started().retain(|entry| entry.leader != self.leader);
    }

    /// The last lines of its log, to be put behind an error.
    pub(crate) fn log_tail(&self) -> String {
        let text = fs::read(self.run.log(&self.name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(20)..].join("\n    ");
        if tail.is_empty() { String::new() } else { format!("; the end of its log:\n    {tail}") }
    }

    fn output(mut self, input: &[u8]) -> Result<Output> {
        let mut child = self.child.take().context("already waited for")?;
        if let Some(mut stdin) = child.stdin.take() {
            // A tool that needs no more of its input closes it.
            let _ = stdin.write_all(input);
        }
        child.wait_with_output().map_err(Into::into)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// When a signal is ending the run, waits for that; else returns at once.
pub(crate) fn leave_to_the_signal() {
    while STOPPING.load(Ordering::SeqCst) {
        thread::park();
    }
}

/// Asks a group to end, and makes it.
fn end(leader: Identity, stop: Signal) {
    leader.signal_group(stop);
    let asked = Instant::now();
    while leader.lives() {
        if asked.elapsed() > GRACE {
            leader.signal_group(Signal::KILL);
        }
        thread::sleep(LOOK);
    }
}

/// Ends every process that carries a run's mark.
fn end_marked(folder: &Path) {
    let asked = Instant::now();
    loop {
        let left = that_inherited(MARK, folder);
        if left.is_empty() || asked.elapsed() > GRACE {
            return;
        }
        left.iter().for_each(|process| process.signal(Signal::KILL));
        thread::sleep(LOOK);
    }
}

/// Ends what runs without a living owner left, and removes their data.
fn end_leftovers(all: &Path) -> Result<()> {
    for entry in fs::read_dir(all)? {
        let entry = entry?;
        let Some(owner) = owner(&entry.file_name()) else { continue };
        if owner.lives() {
            continue;
        }
        say::line(format!("   … ending what the killed command {owner} left"));
        let folder = entry.path();
        let recorded = fs::read_to_string(folder.join("processes")).unwrap_or_default();
        let left: Vec<Entry> = recorded.lines().filter_map(recorded_entry).collect();
        left.iter().rev().for_each(|entry| entry.leader.signal_group(entry.stop));
        let asked = Instant::now();
        // Their data goes with them: nobody needs long to end in good order.
        while left.iter().any(|entry| entry.leader.lives()) && asked.elapsed() < Duration::from_secs(3) {
            thread::sleep(LOOK);
        }
        left.iter().for_each(|entry| entry.leader.signal_group(Signal::KILL));
        end_marked(&folder);
        fs::remove_dir_all(&folder).with_context(|| format!("can't remove {}", folder.display()))?;
    }
    Ok(())
}

/// Reads a line of a run's `processes` file: `PID-START SIGNAL`.
fn recorded_entry(line: &str) -> Option<Entry> {
    let (leader, stop) = line.split_once(' ')?;
    Some(Entry { leader: leader.parse().ok()?, stop: Signal::from_named_raw(stop.parse().ok()?)? })
}

fn owner(folder: &OsStr) -> Option<Identity> {
    folder.to_str()?.parse().ok()
}

fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(OsStr::to_string_lossy));
    words.join(" ")
}

/// Makes a file with this text, for its owner's eyes alone.
///
/// # Errors
/// When it can't be written.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file: File = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes()).with_context(|| format!("can't write {}", path.display()))
}
