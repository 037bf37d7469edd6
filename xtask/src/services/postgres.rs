//! A private Postgres cluster.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::geteuid;

use super::{password, ports};
use crate::install::{self, Need};
use crate::run::{Process, Run, Signal, write_private};

/// The oldest version that Lazaret supports.
const OLDEST: u32 = 15;
/// The role that owns the schema and runs migrations.
pub(crate) const OWNER: &str = "lazaret_owner";
/// The role that the server works as.
pub(crate) const APP: &str = "lazaret_app";

/// A running cluster, without sockets, on a loopback port. Its roles share one password.
#[derive(Debug)]
pub(crate) struct Postgres {
    _server: Process,
    run: Arc<Run>,
    programs: PathBuf,
    port: ports::Port,
    password: String,
}

/// Installs Postgres where it is missing.
///
/// # Errors
/// When it can't be installed here: with what to install.
pub(crate) fn install(run: &Arc<Run>) -> Result<()> {
    install::ensure(
        run,
        &[Need { what: "PostgreSQL 15 or newer", package: "postgresql", found: || programs().is_some() }],
    )
}

impl Postgres {
    /// Makes a cluster with the roles `lazaret_owner` and `lazaret_app`, and starts it.
    ///
    /// # Errors
    /// When it isn't installed or does not get ready.
    pub(crate) fn start(run: &Arc<Run>) -> Result<Self> {
        let programs = programs().context("PostgreSQL's initdb is missing")?;
        let port = ports::free(run.checkout())?;
        let name = format!("postgres-{}", port.number());
        let folder = run.data(&name)?;
        let account = Account::find(&folder)?;
        let (secret, data) = (folder.join("password"), folder.join("cluster"));
        let password = password()?;
        write_private(&secret, &password)?;
        if let Some(id) = account.id {
            chown(&folder, Some(id.user), Some(id.group))?;
            chown(&secret, Some(id.user), Some(id.group))?;
        }
        let (secret, data) = (account.sees(&folder, &secret)?, account.sees(&folder, &data)?);
        // `password`: over loopback, and cheap for unoptimised clients that open a connection per test.
        let mut initdb = account.command(&programs.join("initdb"), &folder);
        initdb.args(["--username=postgres", "--auth=password", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]);
        initdb.arg("--pwfile").arg(&secret).arg("--pgdata").arg(&data);
        run.answer(&mut initdb, b"")?;

        let mut server = account.command(&programs.join("postgres"), &folder);
        server.arg("-D").arg(&data).args(["-p", &port.number().to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=300",
            "synchronous_commit=on",
            // The data does not outlive the run, so no power cut is to be survived.
            "fsync=off",
            "log_min_messages=warning",
        ] {
            server.args(["-c", setting]);
        }
        let mut server = run.start(&name, &mut server, Signal::INT)?;
        let accepts = programs.join("pg_isready");
        server.ready(Duration::from_secs(60), || {
            let mut ask = Command::new(&accepts);
            ask.args(["-q", "-h", "127.0.0.1", "-p", &port.number().to_string()]);
            ask.status().is_ok_and(|status| status.success())
        })?;
        let postgres = Self { _server: server, run: Arc::clone(run), programs, port, password };
        let password = &postgres.password;
        postgres.sql(
            "postgres",
            "postgres",
            &format!(
                "CREATE ROLE {OWNER} LOGIN CREATEDB CREATEROLE PASSWORD '{password}';
                 CREATE ROLE {APP} LOGIN PASSWORD '{password}';"
            ),
        )?;
        Ok(postgres)
    }

    /// The address of `database` for `role`.
    pub(crate) fn url(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}:{}@127.0.0.1:{}/{database}", self.password, self.port.number())
    }

    /// Makes a role that may log in, with the password that all share.
    ///
    /// # Errors
    /// When Postgres refuses.
    pub(crate) fn create_role(&self, name: &str) -> Result<()> {
        self.sql("postgres", "postgres", &format!("CREATE ROLE \"{name}\" LOGIN PASSWORD '{}';", self.password))
    }

    /// Makes an empty database that `owner` owns.
    ///
    /// # Errors
    /// When Postgres refuses.
    pub(crate) fn create_database(&self, name: &str, owner: &str) -> Result<()> {
        self.sql("postgres", "postgres", &format!("CREATE DATABASE \"{name}\" OWNER \"{owner}\";"))
    }

    /// Makes an empty database that `owner` owns, in the place of one of that name and all connections to it.
    ///
    /// # Errors
    /// When Postgres refuses.
    pub(crate) fn recreate_database(&self, name: &str, owner: &str) -> Result<()> {
        self.sql("postgres", "postgres", &format!("DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE);"))?;
        self.create_database(name, owner)
    }

    /// Runs SQL statements as `role` in `database`, each on its own; the first error ends it.
    ///
    /// # Errors
    /// With what Postgres said.
    pub(crate) fn sql(&self, role: &str, database: &str, sql: &str) -> Result<()> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-"]).arg(self.url(role, database));
        self.run.answer(&mut psql, sql.as_bytes()).map(drop)
    }
}

/// The folder of the newest supported PostgreSQL's programs.
fn programs() -> Option<PathBuf> {
    let of_debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(|entry| {
        let entry = entry.ok()?;
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((version, entry.path().join("bin")))
    });
    let newest = of_debian.filter(|(version, bin)| *version >= OLDEST && bin.join("initdb").exists()).max();
    if let Some((_, bin)) = newest {
        return Some(bin);
    }
    let bin = install::in_path("initdb")?.parent()?.to_path_buf();
    let version = Command::new(bin.join("postgres")).arg("--version").output().ok()?;
    let version = String::from_utf8(version.stdout).ok()?;
    let major: u32 = version.split_ascii_whitespace().last()?.split('.').next()?.parse().ok()?;
    (major >= OLDEST).then_some(bin)
}

/// Where an account finds a folder that lies behind folders it may not enter, like root's home.
const SHOWN: &str = "/mnt";

/// Who runs the cluster: Postgres refuses root.
#[derive(Debug)]
struct Account {
    id: Option<Id>,
    /// Whether that account can't reach the run's folder, so that it has to be shown to it somewhere else.
    shut_out: bool,
}

#[derive(Debug, Clone, Copy)]
struct Id {
    user: u32,
    group: u32,
}

impl Account {
    fn find(folder: &Path) -> Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self { id: None, shut_out: false });
        }
        let accounts = fs::read_to_string("/etc/passwd")?;
        let mut accounts = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let account = accounts.find(|fields| fields.first() == Some(&"postgres"));
        let Some([_, _, user, group, ..]) = account.as_deref() else {
            bail!("Postgres refuses to run as root, and this machine has no account `postgres`");
        };
        let id = Id { user: user.parse()?, group: group.parse()? };
        let mut look = Command::new("test");
        look.arg("-x").arg(folder).uid(id.user).gid(id.group);
        Ok(Self { id: Some(id), shut_out: !look.status()?.success() })
    }

    /// Where it finds a path that is inside `folder`.
    fn sees(&self, folder: &Path, path: &Path) -> Result<PathBuf> {
        Ok(if self.shut_out { Path::new(SHOWN).join(path.strip_prefix(folder)?) } else { path.to_path_buf() })
    }

    /// `program` as that account, with `folder` within its reach.
    fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = match self.id {
            Some(id) if self.shut_out => {
                // A mount in a namespace of its own goes when its last process goes: nothing to undo.
                let mut command = Command::new("unshare");
                command.args(["--mount", "--propagation=private", "--", "sh", "-c"]);
                command.arg(format!("mount --bind \"$0\" {SHOWN} && exec \"$@\"")).arg(folder);
                command.args(["setpriv", &format!("--reuid={}", id.user), &format!("--regid={}", id.group)]);
                command.args(["--clear-groups", "--"]).arg(program);
                command
            }
            Some(id) => {
                let mut command = Command::new(program);
                command.uid(id.user).gid(id.group);
                command
            }
            None => Command::new(program),
        };
        // Postgres complains about a working folder that it can't enter.
        command.current_dir("/");
        command
    }
}
