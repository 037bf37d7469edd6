//! Cohorts: draft, plan, review, and the doors that start, pause and end a replay. The replay itself is a worker's.

pub mod acts;
pub mod draft;
pub mod expiry;
pub mod plan;
pub mod preflight;
pub mod recheck;
pub mod replay;
pub mod review;
pub mod submit;
pub mod topology;
pub mod view;

use crate::{
    actor::Actor,
    error::{Error, Result},
    state::App,
    store::{
        Tx, audit,
        cohorts::{self, Cohort},
    },
};
use domain::{
    api,
    cohort::{self as machine, Facts, Transition, Trigger},
    ids::CohortId,
    refusal::Code,
    vocabulary::{Action, CohortCommand, CohortState},
};

/// What an act on a cohort answers: the cohort as it is now, for the person who acted, and the version for the ETag.
pub type Acted = (api::Cohort, Option<i64>);

/// Whether the state has the command at all; said first, before anything costly is asked.
fn ensure_legal(cohort: &Cohort, command: CohortCommand) -> Result<()> {
    if machine::legal(cohort.state).contains(&command) {
        return Ok(());
    }
    Err(refusal(cohort, command, Code::IllegalTransition))
}

/// What the table of RULES 3 makes of a command.
fn step(cohort: &Cohort, command: CohortCommand, facts: &Facts) -> Result<Transition> {
    machine::next(cohort.state, Trigger::Command(command), facts)
        .map_err(|refused| refusal(cohort, command, refused.code))
}

/// A rule's no, as the reader gets it.
fn refusal(cohort: &Cohort, command: CohortCommand, code: Code) -> Error {
    match code {
        Code::IllegalTransition if cohort.state == CohortState::Expired => said(Code::ApprovalExpired),
        Code::IllegalTransition => {
            let legal = machine::legal(cohort.state);
            let words: Vec<&str> = legal.iter().map(|command| command.as_str()).collect();
            let what = if words.is_empty() { "nothing more".to_owned() } else { words.join(", ") };
            Error::Refused {
                code: code.as_str(),
                detail: format!("`{command}` isn't possible while the cohort is {}; possible: {what}.", cohort.state),
                facts: Some(serde_json::json!({ "state": cohort.state, "legal": legal })),
            }
        }
        Code::ReauthenticationRequired => {
            Error::Forbidden { code: code.as_str(), detail: capitalised(code.sentence()) }
        }
        Code::StaleVersion => Error::Stale { now: cohort.version },
        other => said(other),
    }
}

/// A code as a refusal, with its sentence.
fn said(code: Code) -> Error {
    Error::refused(code.as_str(), capitalised(code.sentence()))
}

fn capitalised(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first: String = chars.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

/// The version that the asker saw is the version now, where they named one.
fn ensure_seen(cohort: &Cohort, seen: Option<i64>) -> Result<()> {
    match seen {
        Some(version) if version != cohort.version => Err(Error::Stale { now: cohort.version }),
        _ => Ok(()),
    }
}

/// A person's words, within their bounds.
fn ensure_words(pointer: &str, text: &str) -> Result<()> {
    invalid_if_any(domain::draft::check_words(pointer, text))
}

fn invalid_if_any(fields: Vec<domain::api::FieldError>) -> Result<()> {
    if fields.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid { code: "invalid_request", detail: "the request has bad fields".to_owned(), fields })
}

/// The cohort now, as an act's answer.
async fn acted(tx: &mut Tx, actor: &Actor, id: CohortId, reading: &topology::Reading) -> Result<Acted> {
    let cohort = view::of(tx, actor, id, reading).await?;
    let version = cohort.row.version;
    Ok((cohort, Some(version)))
}

/// An audit entry on this cohort, with its state and revision before.
fn entry(action: Action, cohort: &Cohort) -> audit::Entry {
    audit::Entry::new(action, "cohort", cohort.id)
        .named(&cohort.draft.title)
        .before(serde_json::json!({ "state": cohort.state, "revision": cohort.revision }))
}

/// What lies at the broker before an act: read outside the transaction.
///
/// # Errors
/// `NotFound`; the database's.
pub async fn look(app: &App, id: CohortId) -> Result<topology::Reading> {
    let mut connection = app.store.pool().acquire().await?;
    let cohort = cohorts::load(&mut *connection, id).await?;
    let source = cohorts::facts::source_queue(&mut connection, cohort.queue_id).await?;
    drop(connection);
    Ok(topology::read(app, &source).await)
}
