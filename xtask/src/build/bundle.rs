//! What the server serves to the browser: `pkg/frontend.js`, `pkg/frontend_bg.wasm`, `pkg/lazaret.css`, each with
//! compressed copies, and the files of `frontend/public/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, ensure};
use wasm_bindgen_cli_support::Bindgen;

use super::source_hash::source_hash;
use super::wasm::Toolchain;
use super::{Profile, compress, css};
use crate::run::Run;
use crate::say;

/// Everything that the bundle is made from, the recipe too.
const SOURCES: [&str; 6] = ["domain", "frontend", "Cargo.toml", "Cargo.lock", ".cargo/config.toml", "xtask/src/build"];
/// The workspace's profile of the bundle that people load.
const RELEASE: &str = "wasm-release";
/// How many bundles the user's cache keeps.
const KEPT: usize = 6;
/// The file that says which sources a folder was built from.
const NAME: &str = "built-from";

/// Builds the bundle, or takes it from the cache if these sources were built before, and gives the folder that holds
/// `pkg/`.
///
/// # Errors
/// When no compiler for the browser can be had, or a build step fails.
pub(crate) fn bundle(run: &Arc<Run>, profile: Profile) -> Result<PathBuf> {
    match profile {
        Profile::Dev => {
            let site = run.checkout().target("site-dev");
            make(run, Toolchain::find(run)?, "wasm-dev", &site)?;
            Ok(site)
        }
        Profile::Release => release(run),
    }
}

fn release(run: &Arc<Run>) -> Result<PathBuf> {
    let checkout = run.checkout();
    let site = checkout.target("site");
    let toolchain = Toolchain::find(run)?;
    let compiler = toolchain.version(run)?;
    let key_now = || source_hash(checkout.root(), &SOURCES, &[&compiler]);
    let key = key_now()?;
    if fs::read_to_string(site.join(NAME)).is_ok_and(|built| built == key) {
        return Ok(site);
    }
    let cache = checkout.cache("bundle");
    fs::create_dir_all(&cache)?;
    let _held = checkout.lock("bundle")?;
    let cached = cache.join(&key);
    if cached.exists() {
        say::line("   … browser bundle: these sources were built before");
    } else {
        say::step("browser bundle (release)", || {
            let partial = cache.join("partial");
            make(run, toolchain, RELEASE, &partial)?;
            // Else the cache would give other sources' bundle to every later build of these.
            ensure!(key_now()? == key, "the sources changed while the browser bundle was built: build it again");
            for (file, sizes) in compressed(&partial.join("pkg"))? {
                let compress::Sizes { raw, gzip, brotli } = sizes;
                say::line(format!("          {file}: {raw} bytes, gzip {gzip}, brotli {brotli}"));
            }
            fs::write(partial.join(NAME), &key)?;
            fs::rename(&partial, &cached).context("can't move the finished bundle to its place")
        })?;
        forget_oldest(&cache)?;
    }
    // By rename, so that a killed copy is never taken for a whole one.
    let partial = checkout.target("site.partial");
    copy(&cached, &partial)?;
    if site.exists() {
        fs::remove_dir_all(&site)?;
    }
    fs::rename(&partial, &site)?;
    Ok(site)
}

/// Makes the bundle anew in `site`.
fn make(run: &Arc<Run>, toolchain: Toolchain, profile: &str, site: &Path) -> Result<()> {
    let wasm = toolchain.build(run, profile)?;
    if site.exists() {
        fs::remove_dir_all(site)?;
    }
    let pkg = site.join("pkg");
    fs::create_dir_all(&pkg)?;
    let public = run.checkout().path("frontend/public");
    if public.exists() {
        copy(&public, site)?;
    }
    let mut bindgen = Bindgen::new();
    bindgen.input_path(wasm).out_name("frontend").typescript(false);
    // Names of functions are two thirds of a release bundle, and of use in a development build alone.
    bindgen.remove_name_section(profile == RELEASE).remove_producers_section(profile == RELEASE);
    bindgen.web(true).and_then(|bindgen| bindgen.generate(&pkg)).map_err(|error| anyhow!("wasm-bindgen: {error:#}"))?;
    style(run, site)
}

/// Makes the style sheet anew in `site`, and nothing else.
///
/// # Errors
/// When a file is missing or isn't CSS.
pub(crate) fn style(run: &Arc<Run>, site: &Path) -> Result<()> {
    let style = css::bundle(&run.checkout().path("frontend/style/lazaret.css"))?;
    fs::write(site.join("pkg/lazaret.css"), style).map_err(Into::into)
}

fn compressed(pkg: &Path) -> Result<Vec<(String, compress::Sizes)>> {
    let mut files: Vec<_> = fs::read_dir(pkg)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let files = files.iter().filter(|file| file.path().is_file());
    files.map(|file| Ok((file.file_name().to_string_lossy().into_owned(), compress::beside(&file.path())?))).collect()
}

/// Copies a folder over another; files that are only in the other one go.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn forget_oldest(cache: &Path) -> Result<()> {
    let mut all: Vec<_> = fs::read_dir(cache)?
        .map(|entry| entry.and_then(|entry| Ok((entry.metadata()?.modified()?, entry.path()))))
        .collect::<Result<_, _>>()?;
    all.sort();
    let many = all.len().saturating_sub(KEPT);
    all.iter().take(many).try_for_each(|(_, path)| fs::remove_dir_all(path))?;
    Ok(())
}
