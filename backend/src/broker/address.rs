//! Where a broker is, and how to sign in to it. Secrets are kept by reference and read at each use.

use std::fmt;

/// A broker's addresses, as its row has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// `amqp://host:port` or `amqps://host:port`.
    pub amqp_url: String,
    /// `http(s)://host:port`.
    pub management_url: Option<String>,
    /// `env:NAME` or `file:PATH`, where `user:password` is kept.
    pub credentials: String,
}

/// A user and password. `Debug` hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({}, …)", self.user)
    }
}

/// Credentials that can't be read. Says where they should be, never what is there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// Neither `env:` nor `file:`.
    #[error("credentials are named by env:NAME or file:PATH")]
    Form,
    /// The variable isn't set.
    #[error("the environment variable {0} isn't set")]
    NoVariable(String),
    /// The file can't be read.
    #[error("the credentials file {path} can't be read: {problem}")]
    NoFile {
        /// Which.
        path: String,
        /// What the system said.
        problem: String,
    },
    /// No `:` between user and password.
    #[error("{0} doesn't hold USER:PASSWORD")]
    Content(String),
}

impl Credentials {
    /// Reads what a reference names. A file may end with a newline; the password may hold colons.
    ///
    /// # Errors
    /// See [`CredentialsError`].
    pub fn read(reference: &str) -> Result<Self, CredentialsError> {
        let text = if let Some(name) = reference.strip_prefix("env:") {
            std::env::var(name).map_err(|_| CredentialsError::NoVariable(name.to_owned()))?
        } else if let Some(path) = reference.strip_prefix("file:") {
            std::fs::read_to_string(path).map_err(|error| CredentialsError::NoFile {
                path: path.to_owned(),
                problem: error.kind().to_string(),
            })?
        } else {
            return Err(CredentialsError::Form);
        };
        let (user, password) = text
            .trim_end_matches(['\r', '\n'])
            .split_once(':')
            .ok_or_else(|| CredentialsError::Content(reference.to_owned()))?;
        Ok(Self { user: user.to_owned(), password: password.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_come_from_a_file_and_never_show() {
        let path = std::env::temp_dir().join(format!("lazaret-credentials-{}", std::process::id()));
        std::fs::write(&path, "guest:a:b\n").unwrap();
        let read = Credentials::read(&format!("file:{}", path.display())).unwrap();
        assert_eq!((read.user.as_str(), read.password.as_str()), ("guest", "a:b"));
        assert_eq!(format!("{read:?}"), "Credentials(guest, …)");
        std::fs::write(&path, "guest").unwrap();
        let error = Credentials::read(&format!("file:{}", path.display())).unwrap_err();
        assert!(!error.to_string().contains("guest"), "{error}");
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(Credentials::read("file:/nowhere/at/all"), Err(CredentialsError::NoFile { .. })));
        assert_eq!(Credentials::read("guest:guest"), Err(CredentialsError::Form));
        assert!(matches!(Credentials::read("env:LAZARET_NOT_SET_ANYWHERE"), Err(CredentialsError::NoVariable(_))));
    }
}
