//! Review: approve, send back, reject, withdraw, discard, revoke. Who may is RULES 4's, through one function.

use super::{Acted, acted, ensure_legal, ensure_seen, ensure_words, entry, plan, said, step, topology};
use crate::{
    actor::Actor,
    error::{Error, Result},
    store::{
        Tx, audit,
        cohorts::{self, Cohort, Entering, facts, generation, lane::Lane, reviews, write},
    },
};
use domain::{
    api::{Approve, UserRef},
    cohort::{Effect, Facts},
    eligibility::{self, AccountChange, Approval, Person},
    ids::{CohortId, UserId},
    lease,
    refusal::Code,
    vocabulary::{Action, CohortCommand, Role},
};
use serde_json::json;
use time::OffsetDateTime;

/// A person as eligibility judges them.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Who.
    pub user: UserRef,
    roles: Vec<Role>,
    machine: bool,
    disabled: bool,
    changes: Vec<AccountChange>,
}

impl Candidate {
    /// The rule's facts.
    #[must_use]
    pub fn as_person(&self) -> Person<'_> {
        Person {
            id: self.user.id,
            roles: &self.roles,
            machine: self.machine,
            disabled: self.disabled,
            changes: &self.changes,
        }
    }
}

/// Everyone with the approver role, and those named.
///
/// # Errors
/// The database's.
pub async fn people(tx: &mut Tx, named: &[UserId]) -> Result<Vec<Candidate>> {
    let people = reviews::people(tx, named).await?;
    Ok(people
        .into_iter()
        .map(|person| Candidate {
            user: person.user,
            roles: person.roles,
            machine: person.machine,
            disabled: person.disabled,
            changes: person.changes,
        })
        .collect())
}

/// Approvals of this revision, for this digest, by people who are eligible now.
///
/// # Errors
/// The database's.
pub async fn valid_approvals(
    tx: &mut Tx,
    cohort: &Cohort,
    digest: &[u8; 32],
    now: OffsetDateTime,
) -> Result<Vec<UserId>> {
    let given = reviews::approvals(tx, cohort.id, cohort.revision).await?;
    let touched = reviews::touched_by(tx, cohort.id).await?;
    let ids: Vec<UserId> = given.iter().map(|(user, _)| *user).collect();
    let people = people(tx, &ids).await?;
    Ok(given
        .into_iter()
        .filter(|(user, of)| {
            of == digest
                && people.iter().any(|person| {
                    person.user.id == *user && eligibility::eligible(&person.as_person(), &touched, now).is_ok()
                })
        })
        .map(|(user, _)| user)
        .collect())
}

/// `POST /cohorts/{id}/approve`: counts once per person; the last one needed allocates the generation.
///
/// # Errors
/// RULES 4's refusals, another digest, another state; the database's.
pub async fn approve(
    tx: &mut Tx,
    actor: &Actor,
    id: CohortId,
    seen: Option<i64>,
    body: Approve,
    reading: &topology::Reading,
) -> Result<Acted> {
    let cohort = cohorts::load_for_update(tx, id).await?;
    ensure_legal(&cohort, CohortCommand::Approve)?;
    ensure_words("/comment", &body.comment)?;
    let user = actor.user()?;
    let now = cohorts::database_now(tx).await?;
    reviews::lock_people_for_share(tx, &[user.id]).await?;
    let made = plan::now(tx, &cohort).await?;
    let touched = reviews::touched_by(tx, id).await?;
    let person = people(tx, &[user.id])
        .await?
        .into_iter()
        .find(|person| person.user.id == user.id)
        .ok_or_else(|| said(Code::MissingRole))?;
    let given = reviews::approvals(tx, id, cohort.revision).await?;
    let approved: Vec<UserId> = given.iter().map(|(by, _)| *by).collect();
    let approvable = eligibility::may_approve(&Approval {
        person: person.as_person(),
        touched: &touched,
        approved: &approved,
        confirmed_at: user.confirmed_at,
        digest_matches: body.plan_digest == made.digest.to_string(),
        now,
    });
    let source = facts::source_queue(tx, cohort.queue_id).await?;
    let counted = valid_approvals(tx, &cohort, &made.digest.0, now).await?.len() + 1;
    let needed = usize::try_from(source.approval_policy.approvals.max(1)).unwrap_or(usize::MAX);
    let facts = Facts { approvable, policy_met: counted >= needed, ..Facts::UNKNOWN };
    let transition = step(&cohort, CohortCommand::Approve, &facts)?;
    ensure_seen(&cohort, seen)?;

    reviews::add(tx, id, cohort.revision, user.id, CohortCommand::Approve, &made.digest.0, &body.comment).await?;
    let mut generation = None;
    if transition.effects.contains(&Effect::AllocateGeneration) {
        generation = Some(allocate_generation(tx, &cohort).await?);
    }
    let entering = Entering { state: transition.to, resumes_to: None, reason: None, by: Some(user.id) };
    if transition.to == cohort.state {
        cohorts::bump(tx, id).await?;
    } else {
        cohorts::set_state(tx, id, entering).await?;
    }
    let after = json!({
        "state": transition.to, "revision": cohort.revision, "plan_digest": made.digest,
        "approvals": counted, "needed": needed, "generation": generation,
    });
    audit::done(tx, actor, entry(Action::CohortApproved, &cohort).after(after).because(body.comment)).await?;
    acted(tx, actor, id, reading).await
}

async fn allocate_generation(tx: &mut Tx, cohort: &Cohort) -> Result<i64> {
    let target = match cohort.lane.as_deref() {
        Some(lane) => lane.parse::<Lane>()?.watched_queue(tx).await?,
        None => None,
    };
    let facts = generation::lock_facts(tx, cohort.id, cohort.queue_id, target).await?;
    let next = lease::next_generation(facts)
        .ok_or_else(|| Error::Internal(anyhow::anyhow!("the generations of this queue are used up")))?;
    generation::write(tx, cohort.id, cohort.queue_id, target, next).await?;
    Ok(next)
}

/// The commands that only say something: send back, reject, withdraw, discard, revoke.
///
/// # Errors
/// Another state, another person than the table names; the database's.
pub async fn say(
    tx: &mut Tx,
    actor: &Actor,
    id: CohortId,
    command: CohortCommand,
    seen: Option<i64>,
    comment: Option<String>,
    reading: &topology::Reading,
) -> Result<Acted> {
    let cohort = cohorts::load_for_update(tx, id).await?;
    ensure_legal(&cohort, command)?;
    ensure_seen(&cohort, seen)?;
    if let Some(comment) = &comment {
        ensure_words("/comment", comment)?;
    }
    let by = actor.user()?.id;
    let approvals = reviews::approvals(tx, id, cohort.revision).await?;
    let facts = Facts {
        by_author: by == cohort.created_by,
        by_approver_of_this: approvals.iter().any(|(user, _)| *user == by),
        ..Facts::UNKNOWN
    };
    let transition = step(&cohort, command, &facts)?;
    let (_, digest) = write::saved_plan(tx, id, cohort.revision).await?.ok_or(Error::NotFound { what: "plan" })?;
    let words = comment.as_deref();
    let action = match command {
        CohortCommand::RequestChanges => Action::CohortChangesRequested,
        CohortCommand::Reject => Action::CohortRejected,
        CohortCommand::Withdraw => Action::CohortWithdrawn,
        CohortCommand::Discard => Action::CohortDiscarded,
        CohortCommand::Revoke => Action::CohortRevoked,
        other => return Err(Error::Internal(anyhow::anyhow!("`{other}` is no word of review"))),
    };
    if matches!(command, CohortCommand::RequestChanges | CohortCommand::Reject | CohortCommand::Revoke) {
        reviews::add(tx, id, cohort.revision, by, command, &digest, words.unwrap_or_default()).await?;
    }
    for effect in transition.effects {
        match effect {
            Effect::NewRevision => next_revision(tx, &cohort, by).await?,
            Effect::VoidApproval => {
                reviews::void_approvals(tx, id, Some(by)).await?;
                write::forget_generation(tx, id).await?;
            }
            // claims are `set_state`'s
            _ => {}
        }
    }
    let entering = Entering { state: transition.to, resumes_to: None, reason: words, by: Some(by) };
    cohorts::set_state(tx, id, entering).await?;
    let mut said = entry(action, &cohort).after(json!({ "state": transition.to }));
    if let Some(words) = words {
        said = said.because(words);
    }
    audit::done(tx, actor, said).await?;
    acted(tx, actor, id, reading).await
}

/// The next revision begins as a copy, without approvals; the page compares it with the one that was reviewed.
async fn next_revision(tx: &mut Tx, cohort: &Cohort, by: UserId) -> Result<()> {
    reviews::void_approvals(tx, cohort.id, None).await?;
    write::forget_generation(tx, cohort.id).await?;
    let revision = write::next_revision(tx, cohort.id).await?;
    if let Some((plan, digest)) = write::saved_plan(tx, cohort.id, cohort.revision).await? {
        let digest =
            digest.try_into().map_err(|_| Error::Internal(anyhow::anyhow!("a stored digest that is short")))?;
        write::save_plan(tx, cohort.id, revision, &plan, &digest, None, by).await?;
    }
    Ok(())
}
