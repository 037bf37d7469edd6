//! A private RabbitMQ node with its own port mapper, so that nothing of it meets a system broker or another checkout's.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::debian::{self, Suite};
use super::{BrokerVersion, password, ports};
use crate::http::{self, Basic};
use crate::install::{self, Need};
use crate::run::{Process, Run, Signal};

/// The account that the node starts with: an administrator of every virtual host.
const USER: &str = "lazaret";
/// Where Debian keeps RabbitMQ's own scripts. Its wrappers in `sbin` switch to the system broker's account.
const SCRIPTS: &str = "/usr/lib/rabbitmq/bin";
const LIBRARY: &str = "/usr/lib/rabbitmq/lib";
/// Where a node in a root of its own finds its state.
const STATE: &str = "/srv/lazaret";

/// Where a node's programs come from.
#[derive(Debug)]
pub(crate) struct Source {
    version: String,
    /// `None`: this system's own.
    root: Option<PathBuf>,
}

/// A node that was started and may not be ready.
#[derive(Debug)]
pub(crate) struct Starting(RabbitMq);

/// A running node.
#[derive(Debug)]
pub(crate) struct RabbitMq {
    node: Process,
    _port_mapper: Process,
    version: String,
    amqp: ports::Port,
    management: ports::Port,
    _others: [ports::Port; 2],
    password: String,
}

impl Source {
    /// Finds or installs the programs of this major version.
    ///
    /// # Errors
    /// When they can't be installed here: with what to install.
    pub(crate) fn find(run: &Arc<Run>, broker: BrokerVersion) -> Result<Self> {
        let of_system = || installed(Path::new("/")).filter(|version| is(version, broker));
        if let Some(version) = of_system() {
            return Ok(Self { version, root: None });
        }
        let suite = match broker {
            BrokerVersion::Three => Suite::Bookworm,
            BrokerVersion::Four => Suite::Trixie,
        };
        if install::debian_suite().as_deref() == Some(suite.name()) && install::rabbitmq_is_absent() {
            let what = "RabbitMQ's server";
            let found = || Path::new(SCRIPTS).join("rabbitmq-server").exists();
            install::ensure(run, &[Need { what, package: "rabbitmq-server", found }])?;
            if let Some(version) = of_system() {
                return Ok(Self { version, root: None });
            }
        }
        let root = debian::root_with_rabbitmq(run, suite)?;
        let version = installed(&root).with_context(|| format!("{} holds no RabbitMQ", root.display()))?;
        if !is(&version, broker) {
            bail!("{} holds RabbitMQ {version}, not {}; remove that folder", root.display(), broker.major());
        }
        Ok(Self { version, root: Some(root) })
    }

    /// As in `3.10.8`.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Starts a node.
    ///
    /// # Errors
    /// When it can't be started.
    pub(crate) fn start(self, run: &Arc<Run>) -> Result<Starting> {
        let take = || ports::free(run.checkout());
        let (amqp, management, distribution, mapper) = (take()?, take()?, take()?, take()?);
        let password = password()?;
        let name = format!("rabbitmq-{}-{}", self.version, amqp.number());
        let state = run.data(&name)?;
        let settings = format!(
            "listeners.tcp.1 = 127.0.0.1:{amqp}\n\
             management.tcp.ip = 127.0.0.1\n\
             management.tcp.port = {management}\n\
             default_user = {USER}\n\
             default_pass = {password}\n\
             default_user_tags.administrator = true\n",
            amqp = amqp.number(),
            management = management.number(),
        );
        crate::run::write_private(&state.join("rabbitmq.conf"), &settings)?;
        fs::write(state.join("enabled_plugins"), "[rabbitmq_management].\n")?;
        let environment = self.environment(&state, &distribution, &mapper);

        let mut epmd = self.command("epmd", &state, &environment);
        epmd.args(["-address", "127.0.0.1", "-port", &mapper.number().to_string()]);
        let mut epmd = run.start(&format!("{name}-epmd"), &mut epmd, Signal::KILL)?;
        // A node that finds no port mapper starts one that outlives it.
        epmd.ready(Duration::from_secs(20), || listens(&mapper))?;

        let mut node = self.command(&format!("{SCRIPTS}/rabbitmq-server"), &state, &environment);
        // Its data goes with the run: a stop in good order would only take time.
        let node = run.start(&name, &mut node, Signal::KILL)?;
        let others = [distribution, mapper];
        let version = self.version;
        Ok(Starting(RabbitMq { node, _port_mapper: epmd, version, amqp, management, _others: others, password }))
    }

    fn environment(&self, state: &Path, distribution: &ports::Port, mapper: &ports::Port) -> Vec<(&str, String)> {
        let state = if self.root.is_some() { Path::new(STATE) } else { state };
        let inside = |name: &str| state.join(name).display().to_string();
        vec![
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("HOME", inside("")),
            // Replaces the shell by the node, so that the process we started is the one that we end.
            ("RUNNING_UNDER_SYSTEMD", "true".to_owned()),
            ("RABBITMQ_CONF_ENV_FILE", "/dev/null".to_owned()),
            ("RABBITMQ_NODENAME", "lazaret@localhost".to_owned()),
            ("RABBITMQ_DIST_PORT", distribution.number().to_string()),
            ("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}".to_owned()),
            ("RABBITMQ_CONFIG_FILE", inside("rabbitmq.conf")),
            ("RABBITMQ_ADVANCED_CONFIG_FILE", inside("advanced.config")),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", inside("enabled_plugins")),
            ("RABBITMQ_MNESIA_BASE", inside("mnesia")),
            ("RABBITMQ_LOG_BASE", inside("log")),
            ("RABBITMQ_LOGS", "-".to_owned()),
            ("RABBITMQ_PID_FILE", inside("pid")),
            ("ERL_EPMD_ADDRESS", "127.0.0.1".to_owned()),
            ("ERL_EPMD_PORT", mapper.number().to_string()),
        ]
    }

    fn command(&self, program: &str, state: &Path, environment: &[(&str, String)]) -> Command {
        let mut command = match &self.root {
            Some(root) => debian::inside(root, (state, STATE), program),
            None => Command::new(program),
        };
        command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl Starting {
    /// Waits until the node serves AMQP and its management API.
    ///
    /// # Errors
    /// When it ends or does not get ready: with the end of its log.
    pub(crate) fn ready(self) -> Result<RabbitMq> {
        let Self(mut rabbitmq) = self;
        let (amqp, management) = (&rabbitmq.amqp, rabbitmq.management.number());
        let basic = Basic { user: USER, password: &rabbitmq.password };
        rabbitmq.node.ready(Duration::from_secs(120), || {
            listens(amqp) && matches!(http::status(management, "/api/overview", Some(basic)), Ok(200))
        })?;
        Ok(rabbitmq)
    }
}

impl RabbitMq {
    /// As in `3.10.8`.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Address with an administrator's account, without a virtual host.
    pub(crate) fn amqp_url(&self) -> String {
        format!("amqp://{USER}:{}@127.0.0.1:{}", self.password, self.amqp.number())
    }

    /// Address of the management API; its account is the AMQP one's.
    pub(crate) fn management_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.management.number())
    }
}

fn listens(port: &ports::Port) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number()));
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

/// The version of RabbitMQ that a root folder holds.
fn installed(root: &Path) -> Option<String> {
    let library = fs::read_dir(root.join(LIBRARY.trim_start_matches('/'))).ok()?;
    library
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_prefix("rabbitmq_server-")?.to_owned()))
        .max()
}

fn is(version: &str, broker: BrokerVersion) -> bool {
    version.split('.').next() == Some(broker.major().to_string().as_str())
}
