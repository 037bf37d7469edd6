//! Where things are: this checkout, its `target/`, and the user's cache folder.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// One checkout of the repository.
#[derive(Debug, Clone)]
pub(crate) struct Checkout {
    root: PathBuf,
    cache: PathBuf,
}

impl Checkout {
    /// The checkout that this command was built from.
    ///
    /// # Errors
    /// When neither `XDG_CACHE_HOME` nor `HOME` is set, or a folder can't be made.
    pub(crate) fn find() -> Result<Self> {
        // Cargo says where it runs from; a binary started by hand knows where it was built.
        let xtask = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = xtask.parent().context("xtask has no parent folder")?;
        let cache = match env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
            Some(cache) => PathBuf::from(cache),
            None => Path::new(&env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?).join(".cache"),
        }
        .join("lazaret");
        fs::create_dir_all(&cache).with_context(|| format!("can't make {}", cache.display()))?;
        Ok(Self { root: root.to_path_buf(), cache })
    }

    /// The folder that holds `Cargo.toml`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path inside the checkout.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A path inside `target/`.
    pub(crate) fn target(&self, relative: &str) -> PathBuf {
        self.root.join("target").join(relative)
    }

    /// A path inside the user's cache folder, shared by all checkouts.
    pub(crate) fn cache(&self, relative: &str) -> PathBuf {
        self.cache.join(relative)
    }

    /// Waits for the cache's lock `name` and holds it until the answer is dropped (or the process dies).
    ///
    /// # Errors
    /// When the lock file can't be made or locked.
    pub(crate) fn lock(&self, name: &str) -> Result<File> {
        let path = self.cache(&format!("{name}.lock"));
        let file = File::create(&path).with_context(|| format!("can't make {}", path.display()))?;
        if file.try_lock().is_err() {
            crate::say::line(format!("   … another command holds {}: waiting for it", path.display()));
            file.lock().with_context(|| format!("can't lock {}", path.display()))?;
        }
        Ok(file)
    }
}
