//! Defining probes; asking them is `probes`.

use super::fields;
use crate::{
    actor::Actor,
    error::{Error, Result},
    store::{Tx, audit, probes},
};
use domain::{
    api::{Probe, ProbeDefinition, PutProbe},
    vocabulary::Action,
};
use serde_json::json;

/// Defines or changes a probe. An existing one needs the version that was seen.
///
/// # Errors
/// 409 `loosening_needs_second_person` for another definition of a probe that evidence depends on, 412, 422, 428.
pub async fn put(tx: &mut Tx, actor: &Actor, name: &str, seen: Option<i64>, put: PutProbe) -> Result<Probe> {
    let fits = (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !fits {
        return Err(Error::invalid("name", "1 to 64 of a-z 0-9 -"));
    }
    let reason = fields::reason(&put.reason)?;
    check(&put.definition)?;
    let before = probes::lock(tx, name).await?;
    match (&before, seen) {
        (Some(_), None) => return Err(Error::PreconditionRequired),
        (Some(now), Some(seen)) if now.version != seen => return Err(Error::Stale { now: now.version }),
        (None, Some(_)) => return Err(Error::NotFound { what: "probe" }),
        _ => {}
    }
    if before.as_ref().is_some_and(|before| before.definition != put.definition)
        && probes::is_relied_on(tx, name).await?
    {
        return Err(Error::refused(
            "loosening_needs_second_person",
            "a queue whose evidence the vault holds, or an unfinished cohort, is proved by this probe: define another one",
        ));
    }
    let probe = probes::put(tx, name, &put.definition).await?;
    let mut entry = audit::Entry::new(Action::ProbeChanged, "probe", name)
        .named(name)
        .after(json!(probe.definition))
        .because(reason);
    if let Some(before) = before {
        entry = entry.before(json!(before.definition));
    }
    audit::done(tx, actor, entry).await?;
    Ok(probe)
}

fn check(definition: &ProbeDefinition) -> Result<()> {
    let ProbeDefinition::Sql { database, statement, redrive_id_column } = definition;
    let named = database.strip_prefix("env:").or_else(|| database.strip_prefix("file:"));
    if named.is_none_or(|name| name.is_empty() || name.len() > 1_000) {
        // what was sent may be the secret itself: it isn't repeated
        return Err(Error::invalid(
            "/definition/database",
            "where the database's address is kept: env:NAME or file:PATH",
        ));
    }
    fields::text("/definition/statement", statement, 10_000)?;
    if !statement.contains("$1") {
        return Err(Error::invalid("/definition/statement", "it asks about one job: $1 is the job id"));
    }
    if let Some(column) = redrive_id_column {
        fields::text("/definition/redrive_id_column", column, 63)?;
    }
    Ok(())
}
