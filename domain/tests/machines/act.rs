//! What may happen in one step.

use domain::item::Evidence;
use domain::vocabulary::{CohortCommand, Verdict};
use proptest::prelude::*;

/// Indices are taken modulo what there is.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// A person commands; `fair` is whether what depends on the person is so (an eligible approver, the author).
    Command { cohort: usize, command: CohortCommand, fair: bool },
    /// Whatever brings a cohort on, by people, process and broker alike, so that runs get far.
    Advance { process: usize, cohort: usize, fate: Fate },
    /// The approver loses the role, or an approval its standing.
    LoseApproval { cohort: usize },
    /// `expires_at` passes.
    StartTimePasses { cohort: usize },
    /// `run_by` passes.
    RunByPasses { cohort: usize },
    /// The switch for all.
    Freeze(bool),
    /// A process takes the cohort's lease: a new epoch, the old one's publishing swept into doubt.
    Take { process: usize, cohort: usize },
    /// The owner closes older connections at the broker; what was on the wire arrives first, or doesn't.
    CloseOlder { owner: usize, arrives: bool },
    /// The process hands an item over: it writes `publishing` and keeps the item to send.
    HandOver { owner: usize, item: usize },
    /// The process sends what it wrote, however late.
    Send { owner: usize },
    /// The broker reads one publish from a connection.
    Deliver { connection: usize, fate: Fate },
    /// The process reads one answer.
    Answer { connection: usize },
    /// The process gives one publish up.
    TimeOut { owner: usize },
    /// The owner says *stopped*, if it may.
    Stop { owner: usize },
    /// kill -9.
    Crash { process: usize },
    /// Something carries a redrive id that the broker stored.
    Evidence { publish: usize, evidence: Evidence },
    /// People settle an item in doubt.
    Resolve { item: usize, arrived: bool, second_person: bool },
    /// The probe, after the expansion.
    Verify { cohort: usize, item: usize, proved: bool, sampled: bool },
    /// A verdict on the running canary.
    Judge { cohort: usize, verdict: Verdict },
    /// The replay's own triggers: canary answered, handed over, settled, fenced.
    Tick { cohort: usize },
}

/// What the broker does with a publish.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fate {
    Stored,
    Unroutable,
    Refused { not_stored: bool },
}

/// A run of `len` acts. Each is read off one random word, which generates and shrinks far faster than a tree of
/// strategies.
pub(crate) fn acts(len: usize) -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec(any::<u64>(), 0..len).prop_map(|words| words.into_iter().map(act).collect())
}

fn act(word: u64) -> Act {
    let byte = |n: u32| (word >> (8 * n)) as usize & 0xff;
    let (cohort, process, item, connection) = (byte(1) % 3, byte(2) % 2, byte(3), byte(3));
    let owner = byte(2);
    let (yes, also) = (byte(4).is_multiple_of(2), byte(5).is_multiple_of(2));
    let fate = match byte(6) % 8 {
        0 => Fate::Unroutable,
        1 => Fate::Refused { not_stored: yes },
        _ => Fate::Stored,
    };
    let evidence =
        [Evidence::Event, Evidence::ProbeRow, Evidence::DeadLetter, Evidence::LateConfirm, Evidence::LateReturn]
            [byte(7) % 5];
    let verdict = [Verdict::Pass, Verdict::Pass, Verdict::Fail, Verdict::Inconclusive][byte(7) % 4];
    let command = CohortCommand::ALL[byte(6) % CohortCommand::ALL.len()];
    match byte(0) % 128 {
        0..55 => Act::Advance { process, cohort, fate },
        55..60 => Act::Command { cohort, command, fair: yes },
        60 => Act::LoseApproval { cohort },
        61 => Act::StartTimePasses { cohort },
        62 => Act::RunByPasses { cohort },
        63..66 => Act::Freeze(yes && also),
        66..70 => Act::Take { process, cohort },
        70..74 => Act::CloseOlder { owner, arrives: yes },
        74..82 => Act::HandOver { owner, item },
        82..88 => Act::Send { owner },
        88..94 => Act::Deliver { connection, fate },
        94..100 => Act::Answer { connection },
        100..102 => Act::TimeOut { owner },
        102..105 => Act::Stop { owner },
        105..107 => Act::Crash { process },
        107..110 => Act::Evidence { publish: item, evidence },
        110..115 => Act::Resolve { item, arrived: yes, second_person: also },
        115..120 => Act::Verify { cohort, item, proved: yes, sampled: also },
        120..124 => Act::Judge { cohort, verdict },
        _ => Act::Tick { cohort },
    }
}
