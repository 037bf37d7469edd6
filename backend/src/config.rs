//! Settings by environment; every error names the variable and the form it wants.

use std::{net::SocketAddr, path::PathBuf};

/// The server's settings.
#[derive(Debug, Clone)]
pub struct Config {
    /// `LAZARET_LISTEN`, default `127.0.0.1:8080`.
    pub listen: SocketAddr,
    /// `DATABASE_URL`: the application role.
    pub database_url: String,
    /// `LAZARET_SITE_DIR`: the folder that holds `pkg/`; pages work without it, unhydrated.
    pub site_dir: Option<PathBuf>,
    /// `LAZARET_BASE_URL`: what browsers call this server, for the Origin check; default `http://<listen>`.
    pub base_url: String,
    /// `LAZARET_METRICS_LISTEN`: where `/metrics` is served; absent: not at all.
    pub metrics_listen: Option<SocketAddr>,
    /// `LAZARET_WORKERS`: `off` serves pages and API only.
    pub workers: bool,
    /// Names this process in leases and connection names: pid and a random part.
    pub process_name: String,
    /// What a password's hash costs; tests take less.
    pub password_cost: PasswordCost,
}

/// argon2id's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PasswordCost {
    /// Memory, KiB.
    pub memory_kib: u32,
    /// Passes.
    pub passes: u32,
}

impl Default for PasswordCost {
    /// OWASP's: 19 MiB, two passes, one lane.
    fn default() -> Self {
        Self { memory_kib: 19 * 1024, passes: 2 }
    }
}

/// A variable that is missing or malformed.
#[derive(Debug, thiserror::Error)]
#[error("{variable}: {problem}; it wants {form}")]
pub struct ConfigError {
    /// Its name.
    pub variable: &'static str,
    /// What is wrong.
    pub problem: String,
    /// What it should look like.
    pub form: &'static str,
}

impl Config {
    /// Reads the environment.
    ///
    /// # Errors
    /// The first variable that is missing or malformed.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::read(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    /// Reads the settings from any source of variables.
    ///
    /// # Errors
    /// The first variable that is missing or malformed.
    pub fn read(var: impl Fn(&'static str) -> Option<String>) -> Result<Self, ConfigError> {
        let address = |variable: &'static str, text: String| {
            text.parse::<SocketAddr>().map_err(|_| ConfigError {
                variable,
                problem: format!("`{text}` is no address"),
                form: "IP:PORT, like 127.0.0.1:8080",
            })
        };
        let listen = address("LAZARET_LISTEN", var("LAZARET_LISTEN").unwrap_or_else(|| "127.0.0.1:8080".to_owned()))?;
        let database_url = postgres_url("DATABASE_URL", &var)?;
        let base_url = base_url(var("LAZARET_BASE_URL"), listen)?;
        let workers = match var("LAZARET_WORKERS").as_deref() {
            None | Some("on") => true,
            Some("off") => false,
            Some(other) => {
                return Err(ConfigError {
                    variable: "LAZARET_WORKERS",
                    problem: format!("`{other}` is unknown"),
                    form: "on or off",
                });
            }
        };
        Ok(Self {
            listen,
            database_url,
            site_dir: var("LAZARET_SITE_DIR").map(PathBuf::from),
            base_url,
            metrics_listen: var("LAZARET_METRICS_LISTEN")
                .map(|text| address("LAZARET_METRICS_LISTEN", text))
                .transpose()?,
            workers,
            process_name: format!("{}-{:08x}", std::process::id(), rand::random::<u32>()),
            password_cost: PasswordCost::default(),
        })
    }

    /// Whether browsers reach this server on their own machine, where cookies can do without `Secure`.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.base_url.parse::<http::Uri>().ok().and_then(|url| url.host().map(names_loopback)).unwrap_or(false)
    }

    /// Whether `origin` is this server: `base_url`, or on a loopback address any other name of it with the same port.
    #[must_use]
    pub fn is_own_origin(&self, origin: &str) -> bool {
        let (Ok(own), Ok(other)) = (self.base_url.parse::<http::Uri>(), origin.parse::<http::Uri>()) else {
            return false;
        };
        let same_host = match (own.host(), other.host()) {
            (Some(own), Some(other)) => {
                own.eq_ignore_ascii_case(other) || (names_loopback(own) && names_loopback(other))
            }
            _ => false,
        };
        same_host && own.scheme() == other.scheme() && port(&own) == port(&other)
    }
}

/// What browsers send as `Origin`. A wrong one would refuse every write, so it is judged at the start.
fn base_url(given: Option<String>, listen: SocketAddr) -> Result<String, ConfigError> {
    let wrong = |problem: String| ConfigError {
        variable: "LAZARET_BASE_URL",
        problem,
        form: "http(s)://HOST[:PORT], as browsers call this server",
    };
    let Some(given) = given else {
        if listen.ip().is_unspecified() {
            return Err(wrong("it isn't set, and LAZARET_LISTEN is every address, which no browser calls".to_owned()));
        }
        return Ok(format!("http://{listen}"));
    };
    let text = given.trim_end_matches('/');
    // it may hold a password: it isn't repeated
    let url: http::Uri = text.parse().map_err(|_| wrong("it is no web address".to_owned()))?;
    if !matches!(url.scheme_str(), Some("http" | "https")) {
        return Err(wrong("it is no web address".to_owned()));
    }
    let only_a_host = url.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    if !only_a_host || url.path() != "/" || url.query().is_some() {
        return Err(wrong("it names more than scheme, host and port".to_owned()));
    }
    Ok(text.to_owned())
}

fn names_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

fn port(url: &http::Uri) -> u16 {
    url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 })
}

/// The owner's database address, for `lazaret migrate`.
///
/// # Errors
/// `LAZARET_OWNER_DATABASE_URL` is missing or malformed.
pub fn owner_database_url() -> Result<String, ConfigError> {
    postgres_url("LAZARET_OWNER_DATABASE_URL", &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn postgres_url(variable: &'static str, var: &impl Fn(&'static str) -> Option<String>) -> Result<String, ConfigError> {
    const FORM: &str = "postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE";
    let url = var(variable).ok_or(ConfigError { variable, problem: "it isn't set".to_owned(), form: FORM })?;
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        Ok(url)
    } else {
        // the value may hold a password: it isn't repeated
        Err(ConfigError { variable, problem: "it is no Postgres address".to_owned(), form: FORM })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let database = ("DATABASE_URL", "postgres://lazaret_app@127.0.0.1/lazaret");
        Config::read(|name| {
            let found = settings.iter().chain([&database]).find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_bad_setting_is_named_with_the_form_it_wants() {
        for (variable, value, form) in [
            ("DATABASE_URL", "mysql://me:secret@host/db", "postgres://"),
            ("LAZARET_LISTEN", "8080", "IP:PORT"),
            ("LAZARET_LISTEN", "0.0.0.0:8080", "http(s)://HOST"),
            ("LAZARET_METRICS_LISTEN", "localhost", "IP:PORT"),
            ("LAZARET_WORKERS", "4", "on or off"),
            ("LAZARET_BASE_URL", "lazaret.example", "http(s)://HOST"),
            ("LAZARET_BASE_URL", "ftp://lazaret.example", "http(s)://HOST"),
            ("LAZARET_BASE_URL", "https://", "http(s)://HOST"),
            ("LAZARET_BASE_URL", "https://lazaret.example/under/it", "http(s)://HOST"),
            ("LAZARET_BASE_URL", "https://me:secret@lazaret.example", "http(s)://HOST"),
        ] {
            let said = read(&[(variable, value)]).unwrap_err().to_string();
            assert!(said.contains(variable) && said.contains(form), "{variable}={value}: {said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn browsers_call_the_base_url() {
        let everywhere = ("LAZARET_LISTEN", "0.0.0.0:8080");
        let config = read(&[everywhere, ("LAZARET_BASE_URL", "https://lazaret.example/")]).unwrap();
        assert_eq!(config.base_url, "https://lazaret.example");
        assert!(!config.is_loopback() && config.is_own_origin("https://lazaret.example:443"));
        let config = read(&[]).unwrap();
        assert!(config.is_loopback() && config.is_own_origin("http://localhost:8080"));
        assert!(!config.is_own_origin("http://127.0.0.1:8081") && !config.is_own_origin("https://127.0.0.1:8080"));
    }
}
