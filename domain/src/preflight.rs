//! Pre-flight (RULES 6): what stops a plan before review, and what a person must accept by name. Capacity isn't here.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    api::{Attribution, Draft, ExpectOp, Finding},
    ids::QuarantineId,
    kind,
    vocabulary::{Kind, QuarantineState},
};

/// What is known of one message that a plan would send.
#[derive(Debug, Clone)]
pub struct ItemFacts {
    /// Which.
    pub id: QuarantineId,
    /// Its job.
    pub job_id: Option<Vec<u8>>,
    /// Whether it belongs to a watched queue.
    pub attributed: bool,
    /// The kind frozen at custody.
    pub kind_then: Kind,
    /// The kind by the policy now.
    pub kind_now: Kind,
    /// Its own state now.
    pub state: QuarantineState,
    /// The unfinished cohort, other than this one, that claims it, by its title.
    pub claimed_by: Option<String>,
    /// The unfinished cohort, other than this one, that claims its job by another message.
    pub job_claimed_by: Option<String>,
    /// Whether an item of any cohort stands for it whose outcome is unknown.
    pub in_doubt_elsewhere: bool,
    /// The row that it may be a second delivery of.
    pub possible_duplicate_of: Option<QuarantineId>,
    /// Whether it or the other of its flagged pair was in a cohort before.
    pub pair_used_before: bool,
    /// Whether another message of its job was seen alive lately.
    pub job_has_live_message: bool,
    /// Whether the message has an expiration to restore.
    pub expires: bool,
    /// Why it can't be put on the wire, as a code and in words.
    pub unpublishable: Option<(&'static str, String)>,
}

/// What is known of the target, from the management API, now.
#[derive(Debug, Clone, Default)]
pub struct TargetFacts {
    /// The queue whose dead letters these are.
    pub source_queue: String,
    /// Whether the exchange exists, clients may publish to it, and (for the default exchange) the queue is there.
    pub missing: Option<String>,
    /// Queues that would get a message.
    pub receivers: BTreeSet<String>,
    /// Exchanges on the way whose routing can't be told: others may get it too.
    pub undecided: BTreeSet<String>,
    /// Exchanges on the way with an alternate exchange.
    pub alternate: BTreeSet<String>,
    /// Exchanges on the way that delay.
    pub delayed: BTreeSet<String>,
    /// Receivers that drop the oldest message when they are full.
    pub drop_head: BTreeSet<String>,
    /// Receivers that give a message at most one delivery.
    pub low_delivery_limit: BTreeSet<String>,
    /// Receivers from which a second death has no way to a queue, each with what is missing.
    pub second_death_unroutable: BTreeMap<String, String>,
}

/// One stratum's canary.
#[derive(Debug, Clone)]
pub struct CanaryFacts {
    /// The stratum, from 0.
    pub stratum: i64,
    /// An item that the plan names for it.
    pub item: Option<QuarantineId>,
    /// Whether a person opened its payload since custody.
    pub inspected: bool,
    /// Whether the probe can ask about it: it names a job.
    pub has_job: bool,
}

/// What a pre-flight found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// Each stops the submit.
    pub refusals: Vec<Finding>,
    /// Each must be accepted by name.
    pub warnings: Vec<Finding>,
    first_refusal: Option<&'static str>,
}

impl Findings {
    /// Whether the plan may be submitted; else the code that names the problem: the first refusal's, or
    /// `warning_not_accepted`.
    ///
    /// # Errors
    /// The code.
    pub fn submittable(&self) -> Result<(), &'static str> {
        match self.first_refusal {
            Some(code) => Err(code),
            None if self.unaccepted().next().is_some() => Err("warning_not_accepted"),
            None => Ok(()),
        }
    }

    /// Warnings that the draft doesn't accept.
    pub fn unaccepted(&self) -> impl Iterator<Item = &Finding> {
        self.warnings.iter().filter(|warning| !warning.accepted)
    }
}

/// At most this many messages are listed by a finding; it counts all.
const LISTED: usize = 100;

/// The default target of RULES 6: the original exchange and key where exactly the source queue gets it and all
/// messages have the same; else that queue itself, by the default exchange.
#[must_use]
pub fn default_target(source_queue: &str, original: Option<(&str, &str)>, only_the_source: bool) -> (String, String) {
    match original {
        Some((exchange, key)) if only_the_source => (exchange.to_owned(), key.to_owned()),
        _ => (String::new(), source_queue.to_owned()),
    }
}

/// Judges a plan. Findings come in the order of this function; the first refusal names the submit's problem.
#[must_use]
pub fn judge(draft: &Draft, items: &[ItemFacts], canaries: &[CanaryFacts], target: &TargetFacts) -> Findings {
    let mut found = Collector { draft, findings: Findings::default() };
    judge_items(&mut found, draft, items);
    judge_target(&mut found, target);
    judge_canaries(&mut found, canaries);
    warn_of_items(&mut found, draft, items);
    warn_of_target(&mut found, target);
    warn_of_probe(&mut found, draft);
    found.findings
}

/// Judges the target alone, as a re-check does: what was refused then is refused now, and what the plan didn't accept by
/// name may not have come about since.
#[must_use]
pub fn judge_target_now(draft: &Draft, target: &TargetFacts) -> Findings {
    let mut found = Collector { draft, findings: Findings::default() };
    judge_target(&mut found, target);
    warn_of_target(&mut found, target);
    found.findings
}

struct Collector<'a> {
    draft: &'a Draft,
    findings: Findings,
}

impl Collector<'_> {
    fn refuse(&mut self, code: &'static str, detail: impl Into<String>, items: Vec<QuarantineId>) {
        self.findings.first_refusal.get_or_insert(code);
        self.findings.refusals.push(finding(code, detail.into(), items, false));
    }

    fn refuse_where(
        &mut self,
        code: &'static str,
        detail: &str,
        items: &[ItemFacts],
        bad: impl Fn(&ItemFacts) -> bool,
    ) {
        let items: Vec<_> = items.iter().filter(|item| bad(item)).map(|item| item.id).collect();
        if !items.is_empty() {
            self.refuse(code, detail, items);
        }
    }

    fn warn(&mut self, code: &str, detail: impl Into<String>, items: Vec<QuarantineId>) {
        let accepted = self.draft.accept_warnings.iter().any(|name| name == code);
        self.findings.warnings.push(finding(code, detail.into(), items, accepted));
    }
}

fn finding(code: &str, detail: String, mut items: Vec<QuarantineId>, accepted: bool) -> Finding {
    let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
    items.truncate(LISTED);
    Finding { code: code.to_owned(), detail, items, count, accepted }
}

fn judge_items(found: &mut Collector<'_>, draft: &Draft, items: &[ItemFacts]) {
    found.refuse_where(
        "unattributed",
        "These aren't known to be this queue's: a person must assign them first, or gave them to another queue.",
        items,
        |item| !item.attributed,
    );
    if draft.condition_fixed.is_none() {
        found.refuse_where(
            "permanent_without_condition",
            "These failed for a reason counted as permanent: the plan must say which condition was fixed.",
            items,
            |item| kind::stricter(item.kind_then, item.kind_now) == Kind::Permanent,
        );
    }
    found.refuse_where("in_doubt_elsewhere", "A publish of these has an unknown outcome.", items, |item| {
        item.in_doubt_elsewhere
    });
    let mut by_holder: BTreeMap<&str, Vec<QuarantineId>> = BTreeMap::new();
    for item in items {
        if let Some(holder) = item.claimed_by.as_deref() {
            by_holder.entry(holder).or_default().push(item.id);
        }
    }
    for (holder, items) in by_holder {
        found.refuse("message_claimed", format!("The cohort \u{201c}{holder}\u{201d} has claimed these."), items);
    }
    found.refuse_where(
        "not_held",
        "Only what was never sent, came back unsent, or was found not published may be sent.",
        items,
        |item| {
            item.claimed_by.is_none()
                && !item.in_doubt_elsewhere
                && !matches!(item.state, QuarantineState::Held | QuarantineState::Claimed)
        },
    );
    judge_jobs(found, items);
    let mut by_code: BTreeMap<&'static str, (String, Vec<QuarantineId>)> = BTreeMap::new();
    for item in items {
        if let Some((code, detail)) = &item.unpublishable {
            by_code.entry(code).or_insert_with(|| (detail.clone(), Vec::new())).1.push(item.id);
        }
    }
    for (code, (detail, items)) in by_code {
        found.refuse(code, format!("These can't be published as they are: {detail}."), items);
    }
}

/// One item per job in a cohort, one unfinished cohort per job; of a flagged pair at most one, ever, unless accepted.
fn judge_jobs(found: &mut Collector<'_>, items: &[ItemFacts]) {
    let mut by_job: BTreeMap<&[u8], Vec<QuarantineId>> = BTreeMap::new();
    for item in items {
        if let Some(job) = item.job_id.as_deref() {
            by_job.entry(job).or_default().push(item.id);
        }
    }
    let twice: Vec<_> = by_job.into_values().filter(|messages| messages.len() > 1).flatten().collect();
    if !twice.is_empty() {
        found.refuse("duplicate_job", "Several messages of one job: a cohort takes one of each.", twice);
    }
    let mut by_holder: BTreeMap<&str, Vec<QuarantineId>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.claimed_by.is_none()) {
        if let Some(holder) = item.job_claimed_by.as_deref() {
            by_holder.entry(holder).or_default().push(item.id);
        }
    }
    for (holder, items) in by_holder {
        let detail = format!("The cohort \u{201c}{holder}\u{201d} has another message of these jobs.");
        found.refuse("duplicate_job", detail, items);
    }
}

fn judge_target(found: &mut Collector<'_>, target: &TargetFacts) {
    if let Some(missing) = &target.missing {
        found.refuse("target_missing", missing, vec![]);
    } else if target.receivers.is_empty() && target.undecided.is_empty() {
        found.refuse("target_unroutable", "No queue would get these messages.", vec![]);
    }
    for (queue, why) in &target.second_death_unroutable {
        let detail = format!("A message that dies again on `{queue}` would vanish: {why}.");
        found.refuse("second_death_unroutable", detail, vec![]);
    }
}

fn judge_canaries(found: &mut Collector<'_>, canaries: &[CanaryFacts]) {
    let without: Vec<String> =
        canaries.iter().filter(|canary| canary.item.is_none()).map(|canary| (canary.stratum + 1).to_string()).collect();
    if !without.is_empty() {
        let detail = format!("The plan names no canary for stratum {}.", without.join(", "));
        found.refuse("canary_missing", detail, vec![]);
    }
    let jobless: Vec<_> = canaries.iter().filter(|canary| !canary.has_job).filter_map(|canary| canary.item).collect();
    if !jobless.is_empty() {
        found.refuse("canary_without_job", "The probe asks by job id, and these canaries name none.", jobless);
    }
    let unseen: Vec<_> = canaries.iter().filter(|canary| !canary.inspected).filter_map(|canary| canary.item).collect();
    if !unseen.is_empty() {
        let detail = "A person must open the payload of each canary before the plan is submitted.";
        found.refuse("canary_not_inspected", detail, unseen);
    }
}

fn warn_of_items(found: &mut Collector<'_>, draft: &Draft, items: &[ItemFacts]) {
    let ids = |bad: &dyn Fn(&ItemFacts) -> bool| -> Vec<QuarantineId> {
        items.iter().filter(|item| bad(item)).map(|item| item.id).collect()
    };
    let live = ids(&|item| item.job_has_live_message);
    if !live.is_empty() {
        found.warn("job_has_live_message", "Another message of these jobs was seen alive lately.", live);
    }
    // a third delivery points to the first, as the second does
    let original = |item: &ItemFacts| item.possible_duplicate_of.unwrap_or(item.id);
    let mut of_one: BTreeMap<QuarantineId, usize> = BTreeMap::new();
    for item in items {
        *of_one.entry(original(item)).or_default() += 1;
    }
    let pairs = ids(&|item| {
        let has_other = of_one.get(&original(item)).is_some_and(|rows| *rows > 1);
        item.pair_used_before || (item.possible_duplicate_of.is_some() && has_other)
    });
    if !pairs.is_empty() {
        let detail = "These may be second deliveries of messages that are in this cohort, or were in one.";
        found.warn("possible_duplicate", detail, pairs);
    }
    if draft.restore_expiration {
        let expiring = ids(&|item| item.expires);
        if !expiring.is_empty() {
            let detail = "Their expiration is restored: they may expire before a consumer takes them.";
            found.warn("restored_expiration", detail, expiring);
        }
    }
}

fn warn_of_target(found: &mut Collector<'_>, target: &TargetFacts) {
    let others: Vec<&str> =
        target.receivers.iter().filter(|queue| **queue != target.source_queue).map(String::as_str).collect();
    if !others.is_empty() || !target.undecided.is_empty() {
        let mut names = others;
        let undecided: Vec<String> =
            target.undecided.iter().map(|name| format!("whatever `{name}` routes to")).collect();
        names.extend(undecided.iter().map(String::as_str));
        found.warn("more_receivers", format!("Beside the source queue these get it: {}.", names.join(", ")), vec![]);
    }
    let named = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
    for (code, names, what) in [
        (
            "alternate_exchange",
            &target.alternate,
            "has an alternate exchange, which takes unroutable messages in silence",
        ),
        ("delayed_exchange", &target.delayed, "delays messages"),
        ("drop_head", &target.drop_head, "drops its oldest message when it is full"),
        ("low_delivery_limit", &target.low_delivery_limit, "gives a message at most one delivery"),
    ] {
        if !names.is_empty() {
            found.warn(code, format!("{} {what}.", named(names)), vec![]);
        }
    }
}

fn warn_of_probe(found: &mut Collector<'_>, draft: &Draft) {
    let Some(canary) = &draft.canary else { return };
    if canary.expect.iter().all(|expectation| expectation.op == ExpectOp::Exists) {
        let detail = "The expectations only ask whether an effect exists, not whether it is the right one.";
        found.warn("probe_tests_existence", detail, vec![]);
    }
    if canary.attribution == Attribution::ByExclusion {
        let detail =
            "An effect counts when no other live message of the job is known: nothing ties it to this redrive.";
        found.warn("attribution_by_exclusion", detail, vec![]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn id(n: u128) -> QuarantineId {
        QuarantineId(Uuid::from_u128(n))
    }

    fn draft() -> Draft {
        serde_json::from_value(serde_json::json!({
            "title": "t", "reason": "r",
            "canary": { "items": [], "probe": "p", "expect": [{ "pointer": "/0/state", "op": "eq", "value": "sent" }],
                "wait_s": 30, "max_canaries": 1, "valid_s": 600, "attribution": "redrive_id" },
        }))
        .unwrap()
    }

    fn item(n: u128) -> ItemFacts {
        ItemFacts {
            id: id(n),
            job_id: Some(n.to_be_bytes().to_vec()),
            attributed: true,
            kind_then: Kind::Transient,
            kind_now: Kind::Transient,
            state: QuarantineState::Held,
            claimed_by: None,
            job_claimed_by: None,
            in_doubt_elsewhere: false,
            possible_duplicate_of: None,
            pair_used_before: false,
            job_has_live_message: false,
            expires: false,
            unpublishable: None,
        }
    }

    fn target() -> TargetFacts {
        TargetFacts { source_queue: "q".into(), receivers: BTreeSet::from(["q".to_owned()]), ..TargetFacts::default() }
    }

    fn canary() -> CanaryFacts {
        CanaryFacts { stratum: 0, item: Some(id(1)), inspected: true, has_job: true }
    }

    fn codes(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.code.as_str()).collect()
    }

    #[test]
    fn a_sound_plan_has_no_finding() {
        let found = judge(&draft(), &[item(1), item(2)], &[canary()], &target());
        assert_eq!(found, Findings::default());
        assert_eq!(found.submittable(), Ok(()));
    }

    #[test]
    fn each_refusal_has_its_code() {
        type Spoil = fn(&mut ItemFacts);
        let cases: [(Spoil, &str); 11] = [
            (|i| i.attributed = false, "unattributed"),
            (|i| i.kind_then = Kind::Permanent, "permanent_without_condition"),
            (|i| i.kind_now = Kind::Permanent, "permanent_without_condition"),
            (|i| i.in_doubt_elsewhere = true, "in_doubt_elsewhere"),
            (|i| i.claimed_by = Some("other".into()), "message_claimed"),
            (|i| i.state = QuarantineState::ReturnedToQueue, "not_held"),
            (|i| i.state = QuarantineState::Erased, "not_held"),
            (|i| i.state = QuarantineState::InDoubt, "not_held"),
            (|i| i.job_id = Some(2u128.to_be_bytes().to_vec()), "duplicate_job"),
            (|i| i.job_claimed_by = Some("other".into()), "duplicate_job"),
            (|i| i.unpublishable = Some(("headers_too_large", "too much".into())), "headers_too_large"),
        ];
        for (spoil, code) in cases {
            let mut bad = item(1);
            spoil(&mut bad);
            let found = judge(&draft(), &[bad, item(2)], &[canary()], &target());
            assert_eq!(codes(&found.refusals), [code]);
            assert!(found.refusals[0].items.contains(&id(1)) && found.warnings.is_empty());
        }
    }

    #[test]
    fn a_condition_lets_permanent_kinds_in() {
        let mut draft = draft();
        draft.condition_fixed =
            serde_json::from_value(serde_json::json!({ "kind": "worker_version", "reference": "2026.12.2" })).unwrap();
        let mut bad = item(1);
        bad.kind_then = Kind::Permanent;
        assert!(judge(&draft, &[bad], &[canary()], &target()).refusals.is_empty());
    }

    #[test]
    fn targets_are_judged() {
        let with = |spoil: fn(&mut TargetFacts)| {
            let mut target = target();
            spoil(&mut target);
            let found = judge(&draft(), &[item(1)], &[canary()], &target);
            (codes(&found.refusals).join(","), codes(&found.warnings).join(","))
        };
        assert_eq!(with(|t| t.missing = Some("gone".into())).0, "target_missing");
        assert_eq!(with(|t| t.receivers.clear()).0, "target_unroutable");
        assert_eq!(
            with(|t| {
                t.second_death_unroutable.insert("q".into(), "no exchange".into());
            })
            .0,
            "second_death_unroutable"
        );
        assert_eq!(
            with(|t| {
                t.receivers.insert("other".into());
            })
            .1,
            "more_receivers"
        );
        assert_eq!(
            with(|t| {
                t.undecided.insert("h".into());
            })
            .1,
            "more_receivers"
        );
        assert_eq!(
            with(|t| {
                t.alternate.insert("e".into());
            })
            .1,
            "alternate_exchange"
        );
        assert_eq!(
            with(|t| {
                t.delayed.insert("e".into());
            })
            .1,
            "delayed_exchange"
        );
        assert_eq!(
            with(|t| {
                t.drop_head.insert("q".into());
            })
            .1,
            "drop_head"
        );
        assert_eq!(
            with(|t| {
                t.low_delivery_limit.insert("q".into());
            })
            .1,
            "low_delivery_limit"
        );
    }

    #[test]
    fn canaries_are_seen_by_a_person() {
        let with = |canary: CanaryFacts| codes(&judge(&draft(), &[item(1)], &[canary], &target()).refusals).join(",");
        assert_eq!(with(CanaryFacts { inspected: false, ..canary() }), "canary_not_inspected");
        assert_eq!(with(CanaryFacts { has_job: false, ..canary() }), "canary_without_job");
        assert_eq!(with(CanaryFacts { item: None, inspected: false, has_job: true, ..canary() }), "canary_missing");
    }

    #[test]
    fn warnings_are_accepted_by_name() {
        let mut draft = draft();
        let mut pair = item(2);
        pair.possible_duplicate_of = Some(id(1));
        let found = judge(&draft, &[item(1), pair.clone()], &[canary()], &target());
        assert_eq!(codes(&found.warnings), ["possible_duplicate"]);
        assert_eq!(found.unaccepted().count(), 1);
        assert_eq!(found.submittable(), Err("warning_not_accepted"));
        draft.accept_warnings = vec!["possible_duplicate".into()];
        assert_eq!(judge(&draft, &[item(1), pair.clone()], &[canary()], &target()).unaccepted().count(), 0);
        assert!(judge(&draft, &[pair.clone()], &[canary()], &target()).warnings.is_empty(), "its original isn't in it");
        let third = ItemFacts { possible_duplicate_of: Some(id(1)), ..item(3) };
        let found = judge(&draft, &[pair, third], &[canary()], &target());
        assert_eq!(
            codes(&found.warnings),
            ["possible_duplicate"],
            "the second and the third delivery, without the first"
        );
    }

    #[test]
    fn the_default_target_is_the_original_only_where_it_reaches_nobody_else() {
        let pair = |exchange: &str, key: &str| (exchange.to_owned(), key.to_owned());
        assert_eq!(default_target("q", Some(("orders", "invoice")), true), pair("orders", "invoice"));
        assert_eq!(default_target("q", Some(("orders", "invoice")), false), pair("", "q"));
        assert_eq!(default_target("q", None, true), pair("", "q"));
    }
}
