//! Where the demo's processes find each other; the same options and variables for all of them.

use clap::Args;

/// Broker and the demo's own database.
#[derive(Debug, Clone, Args)]
pub struct Services {
    /// AMQP address with vhost
    #[arg(long, env = "DEMO_AMQP_URL", global = true, default_value = "amqp://guest:guest@127.0.0.1:5672/%2f")]
    pub amqp_url: String,
    /// The demo's own database (not Lazaret's)
    #[arg(long, env = "DEMO_DATABASE_URL", global = true, default_value = "postgres://postgres@127.0.0.1:5432/demo")]
    pub database_url: String,
}

/// Where worker events go; without an address none are sent.
#[derive(Debug, Clone, Args)]
pub struct EventFeedSettings {
    /// Lazaret's address, like http://127.0.0.1:8080
    #[arg(long, env = "DEMO_LAZARET_URL", global = true)]
    pub lazaret_url: Option<String>,
    /// The machine account that sends events
    #[arg(long, env = "DEMO_LAZARET_USER", global = true, default_value = "workers")]
    pub lazaret_user: String,
    /// Its password; by the environment, so that it isn't in the list of processes
    #[arg(env = "DEMO_LAZARET_PASSWORD", hide_env_values = true, long, global = true, default_value = "")]
    pub lazaret_password: String,
}

impl Services {
    /// As environment variables, for a child process.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, &str); 2] {
        [("DEMO_AMQP_URL", &self.amqp_url), ("DEMO_DATABASE_URL", &self.database_url)]
    }
}

impl EventFeedSettings {
    /// As environment variables, for a child process.
    #[must_use]
    pub fn environment(&self) -> Vec<(&'static str, &str)> {
        let mut variables = vec![
            ("DEMO_LAZARET_USER", self.lazaret_user.as_str()),
            ("DEMO_LAZARET_PASSWORD", self.lazaret_password.as_str()),
        ];
        variables.extend(self.lazaret_url.as_deref().map(|url| ("DEMO_LAZARET_URL", url)));
        variables
    }
}
