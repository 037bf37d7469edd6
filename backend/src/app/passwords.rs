//! Passwords: argon2id, off the async threads, few at a time.

use crate::{
    config::PasswordCost,
    error::{Error, Result},
};
use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version, password_hash::phc};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Shortest password that may be set.
pub const SHORTEST: usize = 12;

/// Longest password that is looked at.
pub const LONGEST: usize = 1024;

/// How many are worked on at once: each takes the cost's memory.
const AT_ONCE: usize = 4;

/// Makes and checks password hashes.
#[derive(Clone)]
pub struct Passwords {
    argon2: Argon2<'static>,
    slots: Arc<Semaphore>,
    /// The hash of a password that nobody has, to check against where there is no account: it takes as long.
    nobody: Arc<str>,
}

impl Passwords {
    /// With this cost.
    ///
    /// # Errors
    /// argon2 doesn't take the cost.
    pub fn new(cost: PasswordCost) -> anyhow::Result<Self> {
        let params = Params::new(cost.memory_kib, cost.passes, 1, None).map_err(|e| anyhow::anyhow!("argon2: {e}"))?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let nobody = hash(&argon2, &hex::encode(rand::random::<[u8; 32]>()))?.into();
        Ok(Self { argon2, slots: Arc::new(Semaphore::new(AT_ONCE)), nobody })
    }

    /// The password's hash, in PHC form.
    ///
    /// # Errors
    /// `Invalid` outside [`SHORTEST`] to [`LONGEST`].
    pub async fn hash(&self, password: String) -> Result<String> {
        if password.chars().count() < SHORTEST || password.len() > LONGEST {
            return Err(Error::invalid("/password", format!("{SHORTEST} characters to {LONGEST} bytes")));
        }
        let argon2 = self.argon2.clone();
        self.work(move || hash(&argon2, &password)).await
    }

    /// Whether it is the password of `known`; with `None` it isn't, after as long a time.
    ///
    /// # Errors
    /// `Internal` for a hash that isn't one.
    pub async fn verify(&self, password: String, known: Option<String>) -> Result<bool> {
        let argon2 = self.argon2.clone();
        let hash = known.clone().unwrap_or_else(|| self.nobody.to_string());
        let matches = self
            .work(move || {
                let hash = phc::PasswordHash::new(&hash).map_err(|e| anyhow::anyhow!("a stored password hash: {e}"))?;
                Ok(password.len() <= LONGEST && argon2.verify_password(password.as_bytes(), &hash).is_ok())
            })
            .await?;
        Ok(matches && known.is_some())
    }

    async fn work<T: Send + 'static>(&self, work: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> Result<T> {
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(|e| Error::Internal(e.into()))?;
        let done = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            work()
        });
        done.await.map_err(|e| Error::Internal(e.into()))?.map_err(Error::Internal)
    }
}

fn hash(argon2: &Argon2<'static>, password: &str) -> anyhow::Result<String> {
    let hash = argon2.hash_password(password.as_bytes()).map_err(|e| anyhow::anyhow!("argon2: {e}"))?;
    Ok(hash.to_string())
}
