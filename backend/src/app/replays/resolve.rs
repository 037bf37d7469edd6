//! People's word on an item in doubt (RULES 5): one suffices for `arrived`; `not_published` takes a second, eligible person
//! and an epoch that can't publish any more.

use crate::{
    actor::Actor,
    app::{cohorts::review, reasons},
    error::{Error, Result},
    store::{
        Tx, audit,
        cohorts::{
            self,
            items::{self, Step},
            reviews,
        },
        replays::resolutions::{self, Doubtful},
    },
};
use domain::{
    api::{Reason, Resolve, ResolveOutcome},
    eligibility,
    ids::{CohortId, ItemId, UserId},
    item::{Step as Outcome, Trigger, next},
    refusal::Code,
    vocabulary::{Action, ItemState},
};
use serde_json::json;

/// Where an item is after a person's word.
#[derive(Debug, Clone, serde::Serialize, utoipa::ToSchema)]
pub struct Resolved {
    /// The item.
    pub item_id: ItemId,
    /// Its state now; still `in_doubt` while a second person is waited for.
    pub state: ItemState,
}

/// A person says what became of an item in doubt.
///
/// # Errors
/// 409 for an item that isn't in doubt, or whose epoch isn't fenced; the database's.
pub async fn resolve(tx: &mut Tx, actor: &Actor, cohort: CohortId, item: ItemId, word: Resolve) -> Result<Resolved> {
    let reason = reasons::given(&word.reason, "/reason")?;
    // the cohort first, as everywhere
    cohorts::load_for_update(tx, cohort).await?;
    let doubtful = resolutions::item_for_update(tx, cohort, item).await?;
    let by = actor.user()?.id;
    let (outcome, trigger) = match word.outcome {
        ResolveOutcome::Arrived => ("arrived", Trigger::ResolveArrived),
        // asked as if the second person had spoken: what else is missing is said to the first
        ResolveOutcome::NotPublished => {
            ("not_published", Trigger::ResolveNotPublished { second_person: true, fenced: doubtful.fenced })
        }
    };
    let to = allowed(&doubtful, trigger)?;
    resolutions::propose(tx, item, outcome, by, &reason).await?;
    let state = match word.outcome {
        ResolveOutcome::Arrived => {
            let step = Step::new("person", &reason).because("resolved by a person");
            items::move_item(tx, item, &[ItemState::InDoubt], to, step).await?;
            to
        }
        ResolveOutcome::NotPublished => ItemState::InDoubt,
    };
    crate::store::notify(tx, "cohorts", Some(cohort.0)).await?;
    let entry = audit::Entry::new(Action::ItemResolved, "item", item)
        .before(json!({ "state": ItemState::InDoubt, "cohort": cohort }))
        .after(json!({ "state": state, "outcome": outcome }))
        .because(reason);
    audit::done(tx, actor, entry).await?;
    Ok(Resolved { item_id: item, state })
}

/// A second person confirms that it was not published.
///
/// # Errors
/// 409 `nothing_to_confirm`, `second_person_needed`, `not_fenced`; the database's.
pub async fn confirm(tx: &mut Tx, actor: &Actor, cohort: CohortId, item: ItemId, word: Reason) -> Result<Resolved> {
    let reason = reasons::given(&word.reason, "/reason")?;
    cohorts::load_for_update(tx, cohort).await?;
    let doubtful = resolutions::item_for_update(tx, cohort, item).await?;
    let user = actor.user()?;
    let Some(pending) = resolutions::pending(tx, item).await? else {
        return Err(Error::refused("nothing_to_confirm", "Nobody has said that this item was not published."));
    };
    let second_person = is_second_person(tx, cohort, pending.by, user.id).await?;
    let to = allowed(&doubtful, Trigger::ResolveNotPublished { second_person, fenced: doubtful.fenced })?;
    resolutions::confirm(tx, pending.id, user.id).await?;
    let cause = format!("{} — confirmed: {}", pending.reason, reason);
    let step = Step::new("person", &cause).because("resolved by two people");
    items::move_item(tx, item, &[ItemState::InDoubt], to, step).await?;
    let entry = audit::Entry::new(Action::ItemResolutionConfirmed, "item", item)
        .before(json!({ "state": ItemState::InDoubt, "cohort": cohort, "said_by": pending.by }))
        .after(json!({ "state": to }))
        .because(reason);
    audit::done(tx, actor, entry).await?;
    Ok(Resolved { item_id: item, state: to })
}

/// Eligible by RULES 4, as an approver would be; who spoke first counts among those that touched it.
async fn is_second_person(tx: &mut Tx, cohort: CohortId, first: UserId, second: UserId) -> Result<bool> {
    let mut touched = reviews::touched_by(tx, cohort).await?;
    touched.push(first);
    let now = cohorts::database_now(tx).await?;
    let people = review::people(tx, &[second]).await?;
    let person = people.iter().find(|person| person.user.id == second);
    Ok(person.is_some_and(|person| eligibility::eligible(&person.as_person(), &touched, now).is_ok()))
}

fn allowed(doubtful: &Doubtful, trigger: Trigger) -> Result<ItemState> {
    let state: ItemState = doubtful.state.parse().map_err(anyhow::Error::from)?;
    let no = |code: Code| Error::refused(code.as_str(), format!("The item is {state}: {}.", code.sentence()));
    match next(state, trigger).map_err(no)? {
        Outcome::To(to) => Ok(to),
        Outcome::Recorded | Outcome::Contradiction => Err(no(Code::IllegalTransition)),
    }
}
