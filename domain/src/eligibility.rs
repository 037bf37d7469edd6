//! Four eyes (RULES 4): nobody who touched any revision of a cohort approves it, by any door.

use time::{Duration, OffsetDateTime};

use crate::ids::UserId;
use crate::refusal::{Check, Code};
use crate::vocabulary::Role;

/// How long a change of someone's account by a person who touched the cohort keeps them from approving it.
pub const TAINT: Duration = Duration::days(7);

/// How long signing in counts for an approval.
pub const REAUTHENTICATION: Duration = Duration::minutes(5);

/// What is known of a person who would approve.
#[derive(Debug, Clone, Copy)]
pub struct Person<'a> {
    /// Who.
    pub id: UserId,
    /// Roles now.
    pub roles: &'a [Role],
    /// A machine, a token's owner acting through it included.
    pub machine: bool,
    /// The account may not sign in.
    pub disabled: bool,
    /// Whoever changed their account, password, roles or identity links, and when; the creation of the account too. As
    /// [`reaching`] finds them.
    pub changes: &'a [AccountChange],
}

/// A change of someone's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountChange {
    /// Who made it.
    pub by: UserId,
    /// When, by the database's clock.
    pub at: OffsetDateTime,
}

/// The changes that reach `person`'s account, of all `changes` of anyone's (whose, and what): those of the account itself,
/// and those that an account which changed it had undergone before, in any number of steps. Each keeps the time at which
/// the person's own account was changed. What somebody did to their own account leads to nobody else.
#[must_use]
pub fn reaching(person: UserId, changes: &[(UserId, AccountChange)]) -> Vec<AccountChange> {
    // each with the time from which on its maker could have been under another's hand
    let mut found: Vec<(AccountChange, OffsetDateTime)> =
        changes.iter().filter(|(whose, _)| *whose == person).map(|(_, change)| (*change, change.at)).collect();
    let mut next = 0;
    while let Some((change, since)) = found.get(next).copied() {
        next += 1;
        let before = |(whose, earlier): &&(UserId, AccountChange)| *whose == change.by && earlier.at <= since;
        for (_, earlier) in changes.iter().filter(before).filter(|_| change.by != person) {
            let step = (AccountChange { by: earlier.by, at: change.at }, earlier.at);
            if !found.contains(&step) {
                found.push(step);
            }
        }
    }
    found.into_iter().map(|(change, _)| change).collect()
}

/// Whether `person` may approve a cohort that `touched` drafted, edited, submitted, cloned from or asked for through
/// a token, in any revision. Says nothing about what they approved already.
pub fn eligible(person: &Person<'_>, touched: &[UserId], now: OffsetDateTime) -> Check {
    if touched.contains(&person.id) {
        return Err(Code::SelfApproval);
    }
    if person.machine {
        return Err(Code::MachineApprover);
    }
    if person.disabled || !person.roles.contains(&Role::Approver) {
        return Err(Code::MissingRole);
    }
    if tainted_by(person, touched, now).is_some() {
        return Err(Code::TaintedApprover);
    }
    Ok(())
}

/// Who of those that touched the cohort changed this person's account within [`TAINT`], latest first. A change that
/// claims to be of the future counts too.
pub fn tainted_by(person: &Person<'_>, touched: &[UserId], now: OffsetDateTime) -> Option<AccountChange> {
    let recent = |change: &&AccountChange| now - change.at <= TAINT && touched.contains(&change.by);
    person.changes.iter().filter(recent).max_by_key(|change| change.at).copied()
}

/// The act of approving.
#[derive(Debug, Clone, Copy)]
pub struct Approval<'a> {
    /// Who approves.
    pub person: Person<'a>,
    /// Everyone who touched any revision.
    pub touched: &'a [UserId],
    /// Whose approvals of this revision count already.
    pub approved: &'a [UserId],
    /// When the person last signed in or confirmed their password.
    pub confirmed_at: OffsetDateTime,
    /// The digest that they saw is the digest now.
    pub digest_matches: bool,
    /// The database's clock.
    pub now: OffsetDateTime,
}

/// Whether this approval may be given.
pub fn may_approve(approval: &Approval<'_>) -> Check {
    eligible(&approval.person, approval.touched, approval.now)?;
    if approval.approved.contains(&approval.person.id) {
        return Err(Code::AlreadyApproved);
    }
    if !approval.digest_matches {
        return Err(Code::PlanDigestMismatch);
    }
    let age = approval.now - approval.confirmed_at;
    if age > REAUTHENTICATION || age.is_negative() {
        return Err(Code::ReauthenticationRequired);
    }
    Ok(())
}

/// Who is missing: fewer people could approve than the policy needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{needed} approvals are needed, and {eligible} people could give one")]
pub struct TooFew {
    /// By the policy, at least 1.
    pub needed: u32,
    /// How many could.
    pub eligible: u32,
}

/// Whether enough people in the installation could approve; without, a cohort can't be submitted.
pub fn enough_eligible<'a>(
    people: impl IntoIterator<Item = Person<'a>>,
    touched: &[UserId],
    needed: u32,
    now: OffsetDateTime,
) -> Result<(), TooFew> {
    let needed = needed.max(1);
    let could = people.into_iter().filter(|person| eligible(person, touched, now).is_ok()).count();
    let eligible = u32::try_from(could).unwrap_or(u32::MAX);
    if eligible < needed { Err(TooFew { needed, eligible }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use uuid::Uuid;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-12-02 07:00 UTC);
    const MARA: UserId = UserId(Uuid::from_u128(1));
    const JON: UserId = UserId(Uuid::from_u128(2));
    const ROOT: UserId = UserId(Uuid::from_u128(3));

    fn jon() -> Person<'static> {
        Person { id: JON, roles: &[Role::Approver], machine: false, disabled: false, changes: &[] }
    }

    fn approval() -> Approval<'static> {
        Approval { person: jon(), touched: &[MARA], approved: &[], confirmed_at: NOW, digest_matches: true, now: NOW }
    }

    #[test]
    fn who_may_approve() {
        let minutes = Duration::minutes;
        let cases = [
            (approval(), Ok(())),
            (Approval { touched: &[MARA, JON], ..approval() }, Err(Code::SelfApproval)),
            // an author who is admin and approver too
            (
                Approval {
                    person: Person { roles: &[Role::Admin, Role::Approver], ..jon() },
                    touched: &[JON],
                    ..approval()
                },
                Err(Code::SelfApproval),
            ),
            (Approval { person: Person { machine: true, ..jon() }, ..approval() }, Err(Code::MachineApprover)),
            (Approval { person: Person { disabled: true, ..jon() }, ..approval() }, Err(Code::MissingRole)),
            (Approval { person: Person { roles: &[Role::Admin], ..jon() }, ..approval() }, Err(Code::MissingRole)),
            (Approval { approved: &[JON], ..approval() }, Err(Code::AlreadyApproved)),
            (Approval { digest_matches: false, ..approval() }, Err(Code::PlanDigestMismatch)),
            (Approval { confirmed_at: NOW - minutes(5), ..approval() }, Ok(())),
            (
                Approval { confirmed_at: NOW - minutes(5) - Duration::SECOND, ..approval() },
                Err(Code::ReauthenticationRequired),
            ),
            (Approval { confirmed_at: NOW + minutes(1), ..approval() }, Err(Code::ReauthenticationRequired)),
        ];
        for (approval, want) in cases {
            assert_eq!(may_approve(&approval), want, "{approval:?}");
        }
    }

    #[test]
    fn an_account_changed_by_who_touched_it_is_tainted_for_seven_days() {
        let by = |by, days| AccountChange { by, at: NOW - Duration::days(days) };
        let cases = [
            (vec![by(MARA, 0)], Err(Code::TaintedApprover)),
            (vec![by(MARA, 7)], Err(Code::TaintedApprover)),
            (vec![by(MARA, 8)], Ok(())),
            (vec![by(ROOT, 0)], Ok(())),
            (vec![by(ROOT, 0), by(MARA, 8), by(MARA, 3)], Err(Code::TaintedApprover)),
            // a clock that was ahead doesn't clean anyone
            (vec![by(MARA, -1)], Err(Code::TaintedApprover)),
            // one's own password, changed by oneself
            (vec![by(JON, 0)], Ok(())),
        ];
        for (changes, want) in cases {
            let person = Person { changes: &changes, ..jon() };
            assert_eq!(eligible(&person, &[MARA], NOW), want, "{changes:?}");
        }
    }

    #[test]
    fn a_change_reaches_through_accounts_in_between() {
        let zed = UserId(Uuid::from_u128(4));
        let by = |by, days| AccountChange { by, at: NOW - Duration::days(days) };
        let cases = [
            (vec![(JON, by(ROOT, 1))], vec![by(ROOT, 1)]),
            // mara made zed, who made jon: it counts from jon's own change on
            (vec![(JON, by(zed, 1)), (zed, by(MARA, 9))], vec![by(zed, 1), by(MARA, 1)]),
            (
                vec![(JON, by(zed, 1)), (zed, by(ROOT, 2)), (ROOT, by(MARA, 3))],
                vec![by(zed, 1), by(ROOT, 1), by(MARA, 1)],
            ),
            // what came after
            (vec![(JON, by(zed, 2)), (zed, by(MARA, 1))], vec![by(zed, 2)]),
            // one's own new password makes nothing of long ago recent
            (vec![(JON, by(JON, 0)), (JON, by(MARA, 20))], vec![by(JON, 0), by(MARA, 20)]),
            // two who changed each other
            (vec![(JON, by(zed, 1)), (zed, by(JON, 2))], vec![by(zed, 1), by(JON, 1)]),
            (vec![(zed, by(MARA, 1))], vec![]),
        ];
        for (changes, want) in cases {
            assert_eq!(reaching(JON, &changes), want, "{changes:?}");
        }
    }

    #[test]
    fn without_enough_people_nothing_can_be_submitted() {
        let admin = Person { id: ROOT, roles: &[Role::Admin], ..jon() };
        let author = Person { id: MARA, ..jon() };
        let people = [jon(), admin, author];
        assert_eq!(enough_eligible(people, &[MARA], 1, NOW), Ok(()));
        assert_eq!(enough_eligible(people, &[MARA], 0, NOW), Ok(()));
        assert_eq!(enough_eligible(people, &[MARA], 2, NOW), Err(TooFew { needed: 2, eligible: 1 }));
        assert_eq!(enough_eligible([admin], &[MARA], 0, NOW), Err(TooFew { needed: 1, eligible: 0 }));
    }
}
