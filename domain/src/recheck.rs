//! The re-check (RULES 3): what must hold *now* for start, canary again, expand and resume, read in the one
//! transaction that acts. Facts come from the database's clock and rows, share-locked, and from the management API.

use crate::refusal::{Check, Code};

/// The facts of the re-check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// For a start: the approval wasn't used and `now() < expires_at` by the database's clock, whatever a sweeper has
    /// done. `None` for every later act, which the start covers.
    pub start: Option<StartFacts>,
    /// The digest of the plan as it is now, probe definitions and all, is the digest approved.
    pub digest_matches: bool,
    /// Approvals whose people are eligible approvers now.
    pub approvals: u32,
    /// Approvals that the policy asks for now.
    pub approvals_needed: u32,
    /// By the policy now (the stricter of then and now), a message is permanent and the plan has neither a
    /// correction nor a fixed condition for it.
    pub permanent_without_fix: bool,
    /// A freeze covers the queue.
    pub frozen: bool,
    /// The target pre-flight; `Err(Code::NoManagementApi)` where it can't be asked.
    pub target: Check,
    /// Who has the lane.
    pub lane: Lane,
}

/// What only a start needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartFacts {
    /// `now() < expires_at`, by the database's clock.
    pub before_expiry: bool,
    /// An earlier start used the approval.
    pub consumed: bool,
}

/// Who has the lane of the target queue (RULES 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Nobody.
    Free,
    /// This cohort.
    Ours,
    /// Another one; this one waits.
    Taken,
}

/// Checks in the order in which a person would want to hear it.
pub fn recheck(facts: &Facts) -> Check {
    let rules = [
        (facts.start.is_some_and(|start| start.consumed), Code::ApprovalConsumed),
        (facts.start.is_some_and(|start| !start.before_expiry), Code::ApprovalExpired),
        (!facts.digest_matches, Code::PlanDigestMismatch),
        (facts.approvals < facts.approvals_needed.max(1), Code::ApprovalsInsufficient),
        (facts.permanent_without_fix, Code::PolicyTightened),
        (facts.frozen, Code::Frozen),
        (facts.lane == Lane::Taken, Code::LaneTaken),
    ];
    match rules.into_iter().find(|(broken, _)| *broken) {
        Some((_, code)) => Err(code),
        None => facts.target,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Facts = Facts {
        start: Some(StartFacts { before_expiry: true, consumed: false }),
        digest_matches: true,
        approvals: 1,
        approvals_needed: 1,
        permanent_without_fix: false,
        frozen: false,
        target: Ok(()),
        lane: Lane::Free,
    };

    #[test]
    fn each_fact_refuses_by_its_code() {
        assert_eq!(recheck(&GOOD), Ok(()));
        assert_eq!(recheck(&Facts { start: None, lane: Lane::Ours, ..GOOD }), Ok(()));
        let late = Some(StartFacts { before_expiry: false, consumed: false });
        let used = Some(StartFacts { before_expiry: true, consumed: true });
        let cases = [
            (Facts { start: late, ..GOOD }, Code::ApprovalExpired),
            (Facts { start: used, ..GOOD }, Code::ApprovalConsumed),
            (Facts { digest_matches: false, ..GOOD }, Code::PlanDigestMismatch),
            (Facts { approvals: 0, ..GOOD }, Code::ApprovalsInsufficient),
            (Facts { approvals_needed: 2, ..GOOD }, Code::ApprovalsInsufficient),
            (Facts { approvals: 0, approvals_needed: 0, ..GOOD }, Code::ApprovalsInsufficient),
            (Facts { permanent_without_fix: true, ..GOOD }, Code::PolicyTightened),
            (Facts { frozen: true, ..GOOD }, Code::Frozen),
            (Facts { lane: Lane::Taken, ..GOOD }, Code::LaneTaken),
            (Facts { target: Err(Code::NoManagementApi), ..GOOD }, Code::NoManagementApi),
        ];
        for (facts, code) in cases {
            assert_eq!(recheck(&facts), Err(code));
        }
    }
}
