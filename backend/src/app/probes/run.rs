//! Asking a probe: one read-only statement with one bound parameter, on a connection of its own (RULES 8).

use crate::{clock::Clock, error::Result};
use domain::{
    api::{ProbeDefinition, ProbeSample},
    ids::AppName,
};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use std::time::Duration;

/// How long a probe may take, connection included.
const WITHIN: Duration = Duration::from_secs(2);
/// More rows are no answer.
const MAX_ROWS: usize = 10;

/// Asks for a job's durable effect. A probe that can't be asked, fails, is too slow or answers too much gives a sample
/// without rows and says why: that is no data, never an absence.
pub async fn ask(clock: &Clock, definition: &ProbeDefinition, job: &AppName) -> ProbeSample {
    let at = clock.now().into();
    let none = |reason: &str, detail: String| ProbeSample {
        as_of: None,
        at,
        rows: None,
        reason: Some(reason.to_owned()),
        detail: Some(detail),
    };
    let Some(job) = job.as_str() else { return none("error", "the job id isn't text".to_owned()) };
    match tokio::time::timeout(WITHIN, query(definition, job)).await {
        Err(_) => none("timeout", format!("no answer within {} s", WITHIN.as_secs())),
        Ok(Err(detail)) => none("error", detail),
        Ok(Ok((_, rows))) if rows.len() > MAX_ROWS => none("too_many_rows", format!("more than {MAX_ROWS} rows")),
        Ok(Ok((as_of, rows))) => {
            ProbeSample { as_of: Some(as_of.into()), at, rows: Some(rows), reason: None, detail: None }
        }
    }
}

/// The sample as the canary's rule takes it; `None` is no data.
#[must_use]
pub fn sample(probe: &ProbeSample) -> Option<domain::canary::Sample> {
    Some(domain::canary::Sample { as_of: probe.as_of?.0, rows: probe.rows.clone()? })
}

async fn query(definition: &ProbeDefinition, job: &str) -> Result<(time::OffsetDateTime, Vec<Value>), String> {
    let ProbeDefinition::Sql { database, statement, .. } = definition;
    let url = secret(database)?;
    let said = |error: sqlx::Error| match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        // an address may hold a password: what failed is said, not where
        sqlx::Error::Io(_) => "the probe's database can't be reached".to_owned(),
        sqlx::Error::Configuration(_) => format!("{database} holds no database address"),
        other => other.to_string(),
    };
    let mut connection = PgConnection::connect(&url).await.map_err(said)?;
    let answer = async {
        sqlx::raw_sql("BEGIN READ ONLY; SET LOCAL statement_timeout = '2s'; SET LOCAL lock_timeout = '1s'")
            .execute(&mut connection)
            .await?;
        // before the statement's snapshot: what it shows is at least as new
        let as_of = sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(&mut connection).await?;
        let wrapped = format!(
            "SELECT to_jsonb(answer) FROM ({}\n) AS answer LIMIT {}",
            statement.trim().trim_end_matches(';'),
            MAX_ROWS + 1
        );
        // an administrator's statement, run by a role of its own in a read-only transaction; the job id is bound
        let rows = sqlx::query_scalar(AssertSqlSafe(wrapped)).bind(job).fetch_all(&mut connection).await?;
        Ok((as_of, rows))
    }
    .await
    .map_err(said);
    // the answer is there; how the connection ends doesn't change it
    let _ = connection.close().await;
    answer
}

/// Reads what `env:NAME` or `file:PATH` refers to.
fn secret(reference: &str) -> Result<String, String> {
    match reference.split_once(':') {
        Some(("env", name)) => std::env::var(name).map_err(|_| format!("the variable {name} isn't set")),
        Some(("file", path)) => std::fs::read_to_string(path)
            .map(|text| text.trim().to_owned())
            .map_err(|_| format!("{path} can't be read")),
        _ => Err("the database is named by env:NAME or file:PATH".to_owned()),
    }
}
