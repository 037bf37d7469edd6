//! The on-call's story, played through the public API alone; the only other thing it touches is the shop, whose workers
//! it mends as a deployment would.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::client::{Person, until};
use super::outcome::Outcome;
use super::registration::PROBE;
use super::shop::Shop;
use crate::say;

/// What runs when the story starts.
pub(super) const BAD: &str = "2026.12.1";
/// What mends it.
const MENDED: &str = "2026.12.2";
/// How the bad revision's failures are called.
const FAILURE: &str = "amount_rejected";
/// How the poison's failure is called.
const POISON: &str = "schema_invalid";
/// How much the healthy age must rise before anybody is paged, seconds.
const RISE_S: f64 = 4.0;
/// How many of the failed jobs must be in custody: a cohort to speak of.
const ENOUGH: usize = 12;
/// What the pre-flight may warn of here: the messages that the bad revision replaced were seen minutes ago.
const EXPECTED_WARNINGS: [&str; 1] = ["job_has_live_message"];
/// The cap that the two authors agree on, messages a second.
const MAX_PER_S: u32 = 8;
/// How long any condition may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Who plays, and on what.
pub(super) struct Autopilot<'a> {
    /// Responder: the on-call engineer.
    pub(super) mara: &'a Person,
    /// Responder and approver: she lends a hand with the plan, and so may not approve it.
    pub(super) ines: &'a Person,
    /// Approver.
    pub(super) jon: &'a Person,
    /// Auditor.
    pub(super) ada: &'a Person,
    /// Whose workers are at fault.
    pub(super) shop: &'a Shop,
    /// The watched queue.
    pub(super) queue_id: &'a str,
}

impl Autopilot<'_> {
    /// Plays it, and notes what is found.
    ///
    /// # Errors
    /// When a step can't be done or a condition doesn't come true; what was found until then is in `outcome`.
    pub(super) fn play(&self, outcome: &mut Outcome) -> Result<()> {
        self.notice()?;
        self.mend()?;
        let held = self.evidence()?;
        let cohort = self.draft(&held)?;
        self.lend_a_hand(&cohort)?;
        let digest = self.submit(&cohort)?;
        outcome.self_approval_refused = Some(self.are_authors_refused(&cohort, &digest)?);
        self.approve(&cohort, &digest)?;
        self.canary(&cohort, outcome)?;
        self.expand(&cohort, outcome)?;
        self.prove_it_is_over(outcome)?;
        self.explain(&cohort, outcome)
    }

    /// Healthy work gets old, and the failures begin to arrive.
    fn notice(&self) -> Result<()> {
        let mut first = None;
        let (from, to) = until("healthy work gets older", LIMIT, || {
            let queue = self.queue()?;
            let Some(age) = queue["readings"]["healthy_age_s"]["value"].as_f64() else { return Ok(None) };
            let first = *first.get_or_insert(age);
            Ok((age >= first + RISE_S).then_some((first, age)))
        })?;
        let classes = self.queue()?["readings"]["retries_by_class"].clone();
        say::line(format!(
            "The oldest healthy order has waited {to:.0} s, a moment ago it was {from:.0} s. Attempts fail: {classes}."
        ));
        until("enough failed orders are in custody", LIMIT, || {
            Ok((self.held(FAILURE)?.len() >= ENOUGH && !self.held(POISON)?.is_empty()).then_some(()))
        })?;
        let groups = self.mara.list("/quarantine/groups")?;
        for group in groups {
            say::line(format!(
                "In custody: {} × {} — {} (by {}).",
                group["count"],
                text(&group["error_class"]),
                text(&group["normalised_text"]),
                group["worker_versions"],
            ));
        }
        Ok(())
    }

    /// The fix goes out; what waits is worked off.
    fn mend(&self) -> Result<()> {
        self.shop.deploy(MENDED)?;
        say::line(format!("The shop deploys {MENDED}: the large invoices were right, the check of {BAD} was not."));
        let age = until("the backlog is worked off", LIMIT, || {
            let readings = self.queue()?["readings"].clone();
            let age = readings["healthy_age_s"]["value"].as_f64();
            Ok(age.filter(|age| *age < RISE_S && readings["ready"]["value"].as_f64().is_some_and(|ready| ready < 20.0)))
        })?;
        say::line(format!("Healthy work advances again: the oldest has waited {age:.1} s."));
        // the reading looks a minute back; a canary that a worker of the bad revision could take would prove nothing
        until("only the mended workers consume", LIMIT, || {
            Ok((self.queue()?["readings"]["consuming_versions"] == json!([MENDED])).then_some(()))
        })?;
        say::line(format!("Only {MENDED} consumes now."));
        Ok(())
    }

    /// What failed by the bad revision and is held; the poison is left out by its class.
    fn evidence(&self) -> Result<Vec<Value>> {
        let mut before = 0;
        // a dead letter may still be on its way: the list is asked for when two looks agree and the DLQ is empty
        let held = until("custody has everything", LIMIT, || {
            let held = self.held(FAILURE)?;
            let settled = held.len() == before && self.dead_letters_waiting()? == Some(0.0);
            before = held.len();
            Ok(settled.then_some(held))
        })?;
        say::line(format!(
            "{} orders failed as {FAILURE} are held, and {} as {POISON}.",
            held.len(),
            self.held(POISON)?.len()
        ));
        Ok(held)
    }

    /// Drafts the cohort, with one inspected canary for each stratum.
    fn draft(&self, held: &[Value]) -> Result<String> {
        let mut canaries: Vec<(&str, &str)> = Vec::new();
        for row in held {
            let (id, fingerprint) = (id(row)?, row["fingerprint"].as_str().context("no fingerprint")?);
            if !canaries.iter().any(|(_, seen)| *seen == fingerprint) {
                canaries.push((id, fingerprint));
            }
        }
        let canaries: Vec<&str> = canaries.into_iter().map(|(id, _)| id).collect();
        for canary in &canaries {
            let reason = json!({ "reason": "Canary: is this a large, but right invoice?" });
            let payload = self.mara.act("POST", &format!("/quarantine/{canary}/reveal"), None, &reason)?;
            say::line(format!(
                "mara opens a payload: invoice {} over {} cents. It is right.",
                text(&payload["json"]["invoice_number"]),
                payload["json"]["amount_cents"],
            ));
        }
        let plan = json!({
            "queue_id": self.queue_id,
            "title": "Large invoices that 2026.12.1 refused",
            "reason": "The check of 2026.12.1 refused right invoices; 2026.12.2 takes them.",
            "selection": { "filter": { "error_class": [FAILURE] } },
            "condition_fixed": { "kind": "worker_version", "reference": MENDED, "min_worker_version": MENDED },
            "accept_warnings": [],
            "canary": {
                "items": canaries,
                "probe": PROBE,
                "expect": [
                    { "pointer": "/0/amount_cents", "op": "eq", "from_evidence": "/amount_cents" },
                    { "pointer": "/0/invoice_number", "op": "eq", "from_evidence": "/invoice_number" },
                ],
                "wait_s": 30,
                "max_canaries": 1,
                "valid_s": 900,
                "attribution": "redrive_id",
            },
            "expansion": {
                "start_per_s": 2,
                "max_per_s": 2 * MAX_PER_S,
                "step_factor": 2,
                "step_s": 2,
                "max_in_flight": 8,
                "on_red": "pause",
                "verify_sample_percent": 100,
            },
            "guards": {},
            "expires_at": in_minutes(30)?,
            "run_by": in_minutes(60)?,
        });
        let cohort = self.mara.act("POST", "/cohorts", None, &plan)?;
        say::line(format!("mara drafts a cohort of {} messages; the poison is not among them.", cohort["size"]));
        Ok(id(&cohort)?.to_owned())
    }

    /// Submits the plan; a warning that this story expects is read, and accepted by name.
    fn submit(&self, cohort: &str) -> Result<String> {
        let path = format!("/cohorts/{cohort}/submit");
        let seen = self.cohort(cohort)?;
        let first = self.mara.try_act("POST", &path, version(&seen), &json!({}))?;
        if first.code() == "warning_not_accepted" {
            let codes: Vec<&str> = first.body["facts"]["warnings"]
                .as_array()
                .context("a warning without its name")?
                .iter()
                .map(|warning| text(&warning["code"]))
                .collect();
            if let Some(other) = codes.iter().find(|code| !EXPECTED_WARNINGS.contains(code)) {
                bail!("the pre-flight warns of {other}");
            }
            say::line(format!("The pre-flight warns of {}; mara accepts it by name.", codes.join(", ")));
            let mut draft = seen["draft"].clone();
            draft["accept_warnings"] = json!(codes);
            self.mara.act("PATCH", &format!("/cohorts/{cohort}"), version(&seen), &draft)?;
            self.mara.act("POST", &path, version(&self.cohort(cohort)?), &json!({}))?;
        } else {
            first.done().context("mara submits")?;
        }
        let plan = self.mara.get(&format!("/cohorts/{cohort}/plan"))?;
        let digest = plan["plan_digest"].as_str().context("the plan has no digest")?.to_owned();
        say::line(format!("mara submits the plan; its digest begins {}.", &digest[..digest.len().min(12)]));
        Ok(digest)
    }

    /// A second author: who has edited a revision has a hand in the plan.
    fn lend_a_hand(&self, cohort: &str) -> Result<()> {
        let seen = self.cohort(cohort)?;
        let mut draft = seen["draft"].clone();
        draft["expansion"]["max_per_s"] = json!(MAX_PER_S);
        self.ines.act("PATCH", &format!("/cohorts/{cohort}"), version(&seen), &draft)?;
        say::line(format!("ines lowers the cap in mara's draft: {MAX_PER_S} a second, at most."));
        Ok(())
    }

    /// Whether both authors are refused as reviewers: mara has no role for it, ines has one, and four eyes forbid her.
    fn are_authors_refused(&self, cohort: &str, digest: &str) -> Result<bool> {
        let approval = json!({ "plan_digest": digest, "comment": "I wrote it, so it is right." });
        let mut refused = true;
        for (author, status, code) in [(self.mara, 403, "missing_permission"), (self.ines, 409, "self_approval")] {
            let seen = self.cohort(cohort)?;
            let answer = author.try_act("POST", &format!("/cohorts/{cohort}/approve"), version(&seen), &approval)?;
            say::line(format!("{} tries to approve the plan: {} {}.", author.name(), answer.status, answer.code()));
            refused &= answer.status == status && answer.code() == code;
        }
        Ok(refused && self.cohort(cohort)?["state"] == "in_review")
    }

    /// The colleague reads the plan and approves what he read.
    fn approve(&self, cohort: &str, digest: &str) -> Result<()> {
        let plan = self.jon.get(&format!("/cohorts/{cohort}/plan"))?;
        if plan["plan_digest"] != digest {
            bail!("jon sees another plan than mara submitted");
        }
        let approval =
            json!({ "plan_digest": plan["plan_digest"], "comment": "One canary first, then at most 8 a second." });
        let seen = self.cohort(cohort)?;
        self.jon.act("POST", &format!("/cohorts/{cohort}/approve"), version(&seen), &approval)?;
        let approved = self.cohort(cohort)?;
        if approved["state"] != "approved" {
            bail!("after jon's approval the cohort is {}", approved["state"]);
        }
        say::line(format!("jon approves it; generation {}.", approved["generation"]));
        Ok(())
    }

    /// One message, and its effect.
    fn canary(&self, cohort: &str, outcome: &mut Outcome) -> Result<()> {
        self.replay_act(cohort, "canary", "One first.")?;
        let judged = until("the canary is judged", LIMIT, || {
            let cohort = self.cohort(cohort)?;
            let judged = cohort["canaries"]
                .as_array()
                .is_some_and(|all| !all.is_empty() && all.iter().all(|canary| !canary["verdict"].is_null()));
            let over = cohort["state"] != "canary_running" && cohort["state"] != "canary_verifying";
            Ok((over || (judged && cohort["state"] == "canary_verifying")).then_some(cohort))
        })?;
        let canaries = judged["canaries"].as_array().context("no canaries")?;
        let passed = judged["state"] == "canary_passed"
            && !canaries.is_empty()
            && canaries.iter().all(|canary| canary["verdict"] == "pass" && canary["attributed_by"].is_string());
        outcome.exit_conditions.canary_verified = Some(if passed {
            "met"
        } else if canaries.iter().any(|canary| canary["verdict"] == "fail") {
            "not_met"
        } else {
            "unknown"
        });
        for canary in canaries {
            say::line(format!(
                "The canary: {}{}; the invoice is there, attributed by {}, made by {}.",
                text(&canary["verdict"]),
                canary["verdict_reason"].as_str().map_or_else(String::new, |reason| format!(" ({reason})")),
                text(&canary["attributed_by"]),
                text(&canary["worker_version"]),
            ));
        }
        if !passed {
            bail!("the cohort is {} after its canary: {}", judged["state"], judged["state_reason"]);
        }
        Ok(())
    }

    /// The rest, under the governor.
    fn expand(&self, cohort: &str, outcome: &mut Outcome) -> Result<()> {
        self.replay_act(cohort, "expand", "The canary passed.")?;
        let mut fastest = 0.0_f64;
        let ended = until("the rest is back", LIMIT, || {
            let replay = self.mara.get(&format!("/cohorts/{cohort}/replay"))?;
            let (allowed, cap) = (replay["allowed_per_s"].as_f64(), replay["cap_per_s"].as_f64());
            if let (Some(allowed), Some(cap)) = (allowed, cap)
                && allowed > cap
            {
                bail!("the governor allows {allowed} a second, over its cap of {cap}");
            }
            fastest = fastest.max(replay["rate_now_per_s"].as_f64().unwrap_or(0.0));
            let cohort = self.cohort(cohort)?;
            Ok((cohort["state"] != "expanding" && cohort["state"] != "settling").then_some(cohort))
        });
        let items = self.mara.list(&format!("/cohorts/{cohort}/items"))?;
        let of = |pick: &dyn Fn(&Value) -> bool| i64::try_from(items.iter().filter(|item| pick(item)).count()).ok();
        outcome.cohort.items = of(&|_| true);
        outcome.cohort.confirmed = of(&|item| item["confirmed_at"].is_string());
        outcome.cohort.verified = of(&|item| item["state"] == "verified");
        outcome.cohort.in_doubt = of(&|item| item["state"] == "in_doubt");
        let ended = ended?;
        if ended["state"] != "completed" {
            bail!("the cohort is {} after its expansion: {}", ended["state"], ended["state_reason"]);
        }
        say::line(format!(
            "Completed: {} items, {} confirmed, {} with their effect proved, {} in doubt; at most {fastest:.1} a second.",
            items.len(),
            outcome.cohort.confirmed.unwrap_or_default(),
            outcome.cohort.verified.unwrap_or_default(),
            outcome.cohort.in_doubt.unwrap_or_default(),
        ));
        Ok(())
    }

    /// Nothing lost, nothing doubled, by a script that doesn't ask Lazaret; and the poison is still held.
    fn prove_it_is_over(&self, outcome: &mut Outcome) -> Result<()> {
        self.shop.arrival(0)?;
        let counts = self.shop.check(None)?;
        say::line(format!(
            "The independent check: {} orders accepted, {} invoices, {} messages held, {} on queues; lost {}, doubled {}.",
            counts.jobs, counts.effects, counts.held, counts.queued, counts.lost, counts.doubled,
        ));
        outcome.jobs = Some(counts.jobs);
        outcome.effects = Some(counts.effects);
        outcome.held = Some(counts.held);
        outcome.lost = Some(counts.lost);
        outcome.doubled = Some(counts.doubled);
        let loss = self.shop.check(Some("loss"))?;
        outcome.check_notices.loss = Some(!loss.ok && loss.lost == counts.lost + 1);
        let double = self.shop.check(Some("double"))?;
        outcome.check_notices.double = Some(!double.ok && double.doubled == counts.doubled + 1);
        let poison = self.held(POISON)?;
        outcome.poison_held = Some(poison.len() == 1);
        say::line(format!("Still held as {POISON}: {}. It waits for a correction.", poison.len()));
        Ok(())
    }

    /// The auditor reads who did what.
    fn explain(&self, cohort: &str, outcome: &mut Outcome) -> Result<()> {
        let entries = self.ada.list("/audit")?;
        outcome.audit.entries = i64::try_from(entries.len()).ok();
        let acts = [
            ("quarantine.reveal", self.mara, "done"),
            ("cohort.create", self.mara, "done"),
            ("cohort.submit", self.mara, "done"),
            ("cohort.edit", self.ines, "done"),
            ("cohort.approve", self.mara, "refused"),
            ("cohort.approve", self.ines, "refused"),
            ("cohort.approve", self.jon, "done"),
            ("cohort.start_canary", self.mara, "done"),
            ("cohort.expand", self.mara, "done"),
        ];
        let mut missing = Vec::new();
        for (action, actor, result) in acts {
            let found = entries.iter().find(|entry| {
                entry["action"] == action
                    && entry["actor"]["name"] == actor.name()
                    && entry["result"] == result
                    && (action == "quarantine.reveal" || action == "cohort.create" || entry["subject"]["id"] == cohort)
            });
            match found {
                Some(entry) => say::line(format!("  {} {action} by {} ({result})", text(&entry["at"]), actor.name())),
                None => missing.push(format!("{action} by {} ({result})", actor.name())),
            }
        }
        if !missing.is_empty() {
            bail!("the audit trail lacks {}", missing.join(", "));
        }
        say::line(format!("ada finds every act in the trail, among {} entries.", entries.len()));
        Ok(())
    }

    /// A separate, deliberate act of the replay, with the count that the page would have her type.
    fn replay_act(&self, cohort: &str, act: &str, reason: &str) -> Result<()> {
        let seen = self.cohort(cohort)?;
        let count = seen["acts"].as_array().and_then(|acts| acts.iter().find(|known| known["command"] == act));
        let count = count.map_or(Value::Null, |act| act["confirm_count"].clone());
        let body = json!({ "reason": reason, "confirm_count": count });
        self.mara.act("POST", &format!("/cohorts/{cohort}/{act}"), version(&seen), &body)?;
        say::line(format!(
            "mara: {act}{}.",
            count.as_i64().map_or_else(String::new, |count| format!(", {count} messages"))
        ));
        Ok(())
    }

    fn queue(&self) -> Result<Value> {
        self.mara.get(&format!("/queues/{}", self.queue_id))
    }

    fn cohort(&self, id: &str) -> Result<Value> {
        self.mara.get(&format!("/cohorts/{id}"))
    }

    /// What is held of one class.
    fn held(&self, class: &str) -> Result<Vec<Value>> {
        self.mara.list(&format!("/quarantine?queue={}&state=held&error_class={class}", self.queue_id))
    }

    fn dead_letters_waiting(&self) -> Result<Option<f64>> {
        let id = self.queue()?["dead_letter_queue"]["id"].as_str().context("no dead-letter queue")?.to_owned();
        Ok(self.mara.get(&format!("/dead-letter-queues/{id}"))?["backlog"]["value"].as_f64())
    }
}

fn id(value: &Value) -> Result<&str> {
    value["id"].as_str().context("no id")
}

fn version(value: &Value) -> Option<i64> {
    value["version"].as_i64()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("unknown")
}

/// RFC 3339.
#[expect(clippy::disallowed_methods, reason = "a script at the edge, like the person whom it plays")]
fn in_minutes(minutes: i64) -> Result<String> {
    Ok((OffsetDateTime::now_utc() + time::Duration::minutes(minutes)).format(&Rfc3339)?)
}
