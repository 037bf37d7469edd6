//! `cargo xtask prepare`: what a build without a database has to know of each query.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};

use crate::build;
use crate::cli;
use crate::run::Run;
use crate::say;
use crate::services::postgres::{self, OWNER, Postgres};

const DATABASE: &str = "prepare";
/// The roots of the crates that hold checked queries: compiling them asks the database.
const ROOTS: [&str; 3] = ["backend/src/lib.rs", "backend/src/main.rs", "backend/tests/it/main.rs"];

/// Writes `.sqlx/`, or checks it.
///
/// # Errors
/// When Postgres can't be had, a migration or a query is wrong, or the check finds a difference.
pub(crate) fn prepare(run: &Arc<Run>, arguments: &cli::Prepare) -> Result<()> {
    postgres::install(run)?;
    let database = say::step("Postgres with migrations", || {
        let postgres = Postgres::start(run)?;
        postgres.create_database(DATABASE, OWNER)?;
        migrate(&postgres, &run.checkout().path("migrations"))?;
        Ok(postgres)
    })?;
    let fresh = say::step("ask Postgres about each query", || ask(run, &database))?;
    let folder = run.checkout().path(".sqlx");
    let committed = queries(&folder)?;
    if arguments.check {
        return compare(&committed, &fresh);
    }
    fs::create_dir_all(&folder)?;
    for name in committed.keys().filter(|name| !fresh.contains_key(*name)) {
        fs::remove_file(folder.join(name))?;
    }
    for (name, text) in &fresh {
        fs::write(folder.join(name), text)?;
    }
    say::line(format!("{} queries in {}", fresh.len(), folder.display()));
    Ok(())
}

/// Applies the migrations in the order of their names, each in one transaction, as `lazaret migrate` does.
fn migrate(postgres: &Postgres, folder: &Path) -> Result<()> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("can't read {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "sql"));
    files.sort();
    for file in files {
        let sql = format!("BEGIN;\n{}\nCOMMIT;\n", fs::read_to_string(&file)?);
        postgres.sql(OWNER, DATABASE, &sql).with_context(|| format!("{}", file.display()))?;
    }
    Ok(())
}

/// Compiles with the database at hand and gives what the query macros wrote down.
fn ask(run: &Arc<Run>, postgres: &Postgres) -> Result<BTreeMap<String, String>> {
    let folder = run.data("queries")?;
    let _compiled_again = Touched::touch(run)?;
    let mut cargo = build::cargo(run);
    // The whole workspace, so that dependencies are those that the lints and tests build with.
    cargo.args(["check", "--quiet", "--workspace", "--all-targets"]);
    cargo.env("DATABASE_URL", postgres.url(OWNER, DATABASE)).env("SQLX_OFFLINE", "false");
    cargo.env("SQLX_TMP", &folder).env("SQLX_OFFLINE_DIR", &folder);
    run.tool(&mut cargo)?;
    queries(&folder)
}

/// The files of a folder of queries by name, empty where there is none.
fn queries(folder: &Path) -> Result<BTreeMap<String, String>> {
    let Ok(files) = fs::read_dir(folder) else { return Ok(BTreeMap::new()) };
    let mut queries = BTreeMap::new();
    for file in files {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        if name.starts_with("query-") {
            queries.insert(name, fs::read_to_string(file.path())?);
        }
    }
    Ok(queries)
}

fn compare(committed: &BTreeMap<String, String>, fresh: &BTreeMap<String, String>) -> Result<()> {
    let differing = fresh.iter().filter(|(name, text)| committed.get(*name) != Some(*text)).map(|(name, _)| name);
    let gone = committed.keys().filter(|name| !fresh.contains_key(*name));
    let stale: Vec<_> = differing.chain(gone).map(String::as_str).collect();
    if stale.is_empty() {
        say::line(format!("{} queries agree with .sqlx/", fresh.len()));
        return Ok(());
    }
    bail!(
        "run `cargo xtask prepare` and commit .sqlx/: not as the sources and migrations give it: {}",
        stale.join(", ")
    )
}

/// Files that look changed to cargo while this lives, and then look as before: other builds are not made again.
struct Touched(Vec<(File, SystemTime)>);

impl Touched {
    fn touch(run: &Run) -> Result<Self> {
        let now_file = File::create(run.data("queries")?.join("now"))?;
        let now = now_file.metadata()?.modified()?;
        let mut touched = Self(Vec::new());
        for root in ROOTS {
            let path = run.checkout().path(root);
            let file = File::options().append(true).open(&path).with_context(|| format!("{}", path.display()))?;
            let before = file.metadata()?.modified()?;
            file.set_modified(now)?;
            touched.0.push((file, before));
        }
        Ok(touched)
    }
}

impl Drop for Touched {
    fn drop(&mut self) {
        for (file, before) in &self.0 {
            let _ = file.set_modified(*before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_changed_a_new_and_a_forgotten_query_are_each_named() {
        let committed = files(&[("query-a", "1"), ("query-b", "1"), ("query-c", "1")]);
        assert!(compare(&committed, &committed).is_ok());
        let fresh = files(&[("query-a", "1"), ("query-b", "2"), ("query-d", "1")]);
        let error = compare(&committed, &fresh).unwrap_err().to_string();
        assert!(error.ends_with("query-b, query-d, query-c"), "{error}");
    }
}
