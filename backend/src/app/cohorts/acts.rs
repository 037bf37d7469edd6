//! What the reader may do to a cohort now, and why not: the same facts and rules as the doors ask.

use super::{recheck, replay, review, topology};
use crate::{
    actor::Actor,
    error::{Error, Result},
    store::{
        Tx,
        cohorts::{Cohort, reviews},
    },
};
use domain::{
    api::Act,
    cohort::{self as machine, Trigger},
    eligibility::{self, Approval},
    ids::UserId,
    refusal::{Check, Code},
    vocabulary::{CohortCommand, Permission},
};
use time::OffsetDateTime;

/// Who may command what, before any fact is asked (RULES 4).
#[must_use]
pub const fn permission(command: CohortCommand) -> Permission {
    match command {
        CohortCommand::Approve | CohortCommand::RequestChanges | CohortCommand::Reject | CohortCommand::Revoke => {
            Permission::Approve
        }
        CohortCommand::Pause | CohortCommand::Abort => Permission::Stop,
        _ => Permission::Respond,
    }
}

/// Every command that the state has, judged for this reader.
///
/// # Errors
/// The database's.
pub async fn of(
    tx: &mut Tx,
    actor: &Actor,
    cohort: &Cohort,
    submittable: Check,
    reading: &topology::Reading,
    now: OffsetDateTime,
) -> Result<Vec<Act>> {
    let Some(user) = &actor.user else { return Ok(vec![]) };
    let approvals = reviews::approvals(tx, cohort.id, cohort.revision).await?;
    let approved: Vec<UserId> = approvals.iter().map(|(by, _)| *by).collect();
    let mut acts = Vec::new();
    for command in machine::legal(cohort.state) {
        let needed = permission(command);
        if !actor.may(needed) {
            let detail = format!("needs the permission `{needed}`");
            acts.push(act(command, Some(("missing_permission".to_owned(), detail)), None));
            continue;
        }
        let mut facts = replay::facts_of(tx, cohort, command, reading, now).await?;
        facts.version_matches = true;
        facts.by_author = user.id == cohort.created_by;
        facts.by_approver_of_this = approved.contains(&user.id);
        facts.submittable = submittable;
        // the page asks for the password when the act needs it: a recent sign-in isn't asked here
        facts.approvable = if command == CohortCommand::Approve {
            approvable(tx, cohort, user.id, &approved, now).await?
        } else {
            Err(Code::UnknownFact)
        };
        facts.policy_met = true;
        // fencing is the replay's: a person's word starts it
        facts.fenced = true;
        let count = replay::moves(tx, cohort, command).await?.filter(|count| *count > 1);
        let refused = machine::next(cohort.state, Trigger::Command(command), &facts).err().map(|refusal| refusal.code);
        let why = match refused {
            None => None,
            Some(code) => {
                let told = recheck::explain(tx, cohort, code, reading).await?;
                let detail = match told {
                    Some(Error::Refused { detail, .. }) => detail,
                    _ => code.sentence().to_owned(),
                };
                Some((code.as_str().to_owned(), detail))
            }
        };
        acts.push(act(command, why, count));
    }
    Ok(acts)
}

fn act(command: CohortCommand, refused: Option<(String, String)>, confirm_count: Option<i64>) -> Act {
    let (reason, detail) = refused.unzip();
    Act { command, allowed: reason.is_none(), reason, detail, confirm_count }
}

async fn approvable(
    tx: &mut Tx,
    cohort: &Cohort,
    reader: UserId,
    approved: &[UserId],
    now: OffsetDateTime,
) -> Result<Check> {
    let touched = reviews::touched_by(tx, cohort.id).await?;
    let people = review::people(tx, &[reader]).await?;
    let Some(person) = people.iter().find(|person| person.user.id == reader) else { return Ok(Err(Code::MissingRole)) };
    Ok(eligibility::may_approve(&Approval {
        person: person.as_person(),
        touched: &touched,
        approved,
        confirmed_at: now,
        digest_matches: true,
        now,
    }))
}
