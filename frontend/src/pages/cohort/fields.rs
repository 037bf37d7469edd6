//! The fields of the draft's form, as text, and the draft that they make.

use super::expectations::Lines;
use crate::{clock::Clock, format};
use domain::{
    api::{
        Attribution, CanaryPlan, Cohort, ConditionFixed, ConditionKind, Draft, Expansion, Expectation, FieldError,
        OnRed, Thousandths, Timestamp,
    },
    ids::QuarantineId,
};
use leptos::prelude::*;
use time::{Duration, PrimitiveDateTime, macros::format_description};

/// Every field, as the person typed it.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    pub(super) title: RwSignal<String>,
    pub(super) reason: RwSignal<String>,
    pub(super) condition: RwSignal<String>,
    pub(super) reference: RwSignal<String>,
    pub(super) min_version: RwSignal<String>,
    pub(super) canaries: RwSignal<Vec<RwSignal<String>>>,
    pub(super) probe: RwSignal<String>,
    pub(super) expect: Lines,
    pub(super) wait: RwSignal<String>,
    pub(super) max_canaries: RwSignal<String>,
    pub(super) valid: RwSignal<String>,
    pub(super) by_exclusion: RwSignal<bool>,
    pub(super) start: RwSignal<String>,
    pub(super) max: RwSignal<String>,
    pub(super) factor: RwSignal<String>,
    pub(super) step: RwSignal<String>,
    pub(super) in_flight: RwSignal<String>,
    pub(super) on_red: RwSignal<String>,
    pub(super) verify: RwSignal<String>,
    pub(super) expires: RwSignal<String>,
    pub(super) run_by: RwSignal<String>,
    pub(super) accepted: RwSignal<Vec<String>>,
    pub(super) restore_expiration: RwSignal<bool>,
    kept: RwSignal<Kept>,
}

/// What the form was filled from, and the version that was seen then.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    draft: Draft,
    version: i64,
    /// As the form had it then.
    pub(super) typed: Typed,
}

/// What stands in every field.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Typed {
    texts: Vec<String>,
    canaries: Vec<String>,
    expect: Vec<Expectation>,
    accepted: Vec<String>,
    ticks: [bool; 2],
}

/// The form of a datetime-local field; read as UTC.
const MINUTE: &[time::format_description::BorrowedFormatItem<'static>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]");

fn text(value: impl ToString) -> RwSignal<String> {
    RwSignal::new(value.to_string())
}

impl Fields {
    /// From the draft; what it lacks starts with a careful proposal, which is only saved when the person saves.
    pub(super) fn of(cohort: &Cohort, clock: Clock) -> Self {
        let draft = &cohort.draft;
        let fixed = draft.condition_fixed.as_ref();
        let canary = draft.canary.as_ref();
        let expansion = draft.expansion.as_ref();
        let canaries = cohort
            .strata
            .iter()
            .enumerate()
            .map(|(at, stratum)| {
                let chosen = stratum.canary.or_else(|| canary.and_then(|plan| plan.items.get(at).copied()));
                text(chosen.map(|id| id.to_string()).unwrap_or_default())
            })
            .collect();
        let later = |at: Option<Timestamp>, hours: i64| {
            let at = at.map_or_else(|| clock.now_untracked() + Duration::hours(hours), |at| at.0);
            text(at.format(MINUTE).unwrap_or_default())
        };
        let rate = |value: Option<Thousandths>, otherwise: &str| {
            text(value.map_or_else(|| otherwise.to_owned(), |value| format::rate(value).replace('\u{a0}', "")))
        };
        let number = |value: Option<i64>, otherwise: i64| text(value.unwrap_or(otherwise));
        let fields = Self {
            title: text(&draft.title),
            reason: text(&draft.reason),
            condition: text(fixed.map_or("", |fixed| condition_value(fixed.kind))),
            reference: text(fixed.map(|fixed| fixed.reference.clone()).unwrap_or_default()),
            min_version: text(fixed.and_then(|fixed| fixed.min_worker_version.clone()).unwrap_or_default()),
            canaries: RwSignal::new(canaries),
            probe: text(canary.map(|plan| plan.probe.clone()).unwrap_or_default()),
            expect: Lines::new(canary.map(|plan| plan.expect.as_slice()).unwrap_or_default()),
            wait: number(canary.map(|plan| plan.wait_s), 60),
            max_canaries: number(canary.map(|plan| plan.max_canaries), 2),
            valid: number(canary.map(|plan| plan.valid_s), 1800),
            by_exclusion: RwSignal::new(canary.is_some_and(|plan| plan.attribution == Attribution::ByExclusion)),
            start: rate(expansion.map(|plan| plan.start_per_s), "2"),
            max: rate(expansion.map(|plan| plan.max_per_s), "10"),
            factor: rate(expansion.map(|plan| plan.step_factor), "2"),
            step: number(expansion.map(|plan| plan.step_s), 10),
            in_flight: number(expansion.map(|plan| plan.max_in_flight), 20),
            on_red: text(if expansion.is_some_and(|plan| plan.on_red == OnRed::Pause) { "pause" } else { "halve" }),
            verify: number(expansion.map(|plan| plan.verify_sample_percent), 100),
            expires: later(draft.expires_at, 1),
            run_by: later(draft.run_by, 2),
            accepted: RwSignal::new(draft.accept_warnings.clone()),
            restore_expiration: RwSignal::new(draft.restore_expiration),
            kept: RwSignal::new(Kept { draft: draft.clone(), version: cohort.row.version, typed: Typed::default() }),
        };
        fields.kept.update(|kept| kept.typed = untrack(|| fields.typed()));
        fields
    }

    fn texts(self) -> [RwSignal<String>; 18] {
        [
            self.title,
            self.reason,
            self.condition,
            self.reference,
            self.min_version,
            self.probe,
            self.wait,
            self.max_canaries,
            self.valid,
            self.start,
            self.max,
            self.factor,
            self.step,
            self.in_flight,
            self.on_red,
            self.verify,
            self.expires,
            self.run_by,
        ]
    }

    /// What stands in every field now, tracked.
    pub(super) fn typed(self) -> Typed {
        Typed {
            texts: self.texts().map(|field| field.get()).to_vec(),
            canaries: self.canaries.get().iter().map(|chosen| chosen.get()).collect(),
            expect: self.expect.get(),
            accepted: self.accepted.get(),
            ticks: [self.by_exclusion.get(), self.restore_expiration.get()],
        }
    }

    /// Puts into the fields what was typed before into a form that was filled from `kept`. Whether they fit.
    pub(super) fn put(self, typed: &Typed, kept: Kept) -> bool {
        let canaries = self.canaries.get_untracked();
        if typed.texts.len() != self.texts().len() || typed.canaries.len() != canaries.len() {
            return false;
        }
        for (field, text) in self.texts().into_iter().chain(canaries).zip(typed.texts.iter().chain(&typed.canaries)) {
            field.set(text.clone());
        }
        self.expect.put(&typed.expect);
        self.accepted.set(typed.accepted.clone());
        let [by_exclusion, restore_expiration] = typed.ticks;
        self.by_exclusion.set(by_exclusion);
        self.restore_expiration.set(restore_expiration);
        self.kept.set(kept);
        true
    }

    /// What the form was filled from, tracked.
    pub(super) fn kept(self) -> Kept {
        self.kept.get()
    }

    /// Whether something stands here that isn't saved, tracked.
    pub(super) fn is_unsaved(self) -> bool {
        let typed = self.typed();
        self.kept.with(|kept| kept.typed != typed)
    }

    /// The version to save under. A cohort whose version rose for another reason than its draft may be written; where
    /// another person changed the draft since the form was filled, the server must refuse what is typed here.
    pub(super) fn version(self, now: &Cohort) -> i64 {
        self.kept.with_untracked(|kept| if kept.draft == now.draft { now.row.version } else { kept.version })
    }

    /// What was in the form when it was sent was saved as this.
    pub(super) fn saved(self, cohort: &Cohort, typed: Typed) {
        self.kept.set(Kept { draft: cohort.draft.clone(), version: cohort.row.version, typed });
    }

    /// The draft that these make, or which fields can't be read.
    pub(super) fn read(self) -> Result<Draft, Vec<FieldError>> {
        let mut errors = Vec::new();
        let kept = self.kept.get_untracked().draft;
        let condition_fixed = condition_kind(&self.condition.get_untracked()).map(|kind| ConditionFixed {
            kind,
            reference: trimmed(self.reference),
            min_worker_version: Some(trimmed(self.min_version)).filter(|version| !version.is_empty()),
        });
        let items: Vec<QuarantineId> = self
            .canaries
            .get_untracked()
            .into_iter()
            .map(trimmed)
            .filter(|id| !id.is_empty())
            .filter_map(|id| id.parse().map_err(|_| errors.push(bad("/canary/items", "the id of a held message"))).ok())
            .collect();
        let mut whole = |field: RwSignal<String>, pointer: &str| {
            trimmed(field).parse::<i64>().unwrap_or_else(|_| {
                errors.push(bad(pointer, "a whole number"));
                0
            })
        };
        let (wait_s, max_canaries, valid_s) = (
            whole(self.wait, "/canary/wait_s"),
            whole(self.max_canaries, "/canary/max_canaries"),
            whole(self.valid, "/canary/valid_s"),
        );
        let (step_s, max_in_flight, verify_sample_percent) = (
            whole(self.step, "/expansion/step_s"),
            whole(self.in_flight, "/expansion/max_in_flight"),
            whole(self.verify, "/expansion/verify_sample_percent"),
        );
        let mut rate = |field: RwSignal<String>, pointer: &str| {
            serde_json::from_str::<Thousandths>(&trimmed(field)).unwrap_or_else(|_| {
                errors.push(bad(pointer, "a number with at most three decimals"));
                Thousandths(0)
            })
        };
        let (start_per_s, max_per_s, step_factor) = (
            rate(self.start, "/expansion/start_per_s"),
            rate(self.max, "/expansion/max_per_s"),
            rate(self.factor, "/expansion/step_factor"),
        );
        let mut instant = |field: RwSignal<String>, pointer: &str| {
            let typed = trimmed(field);
            let at = typed.get(..16).and_then(|minute| PrimitiveDateTime::parse(minute, MINUTE).ok());
            if at.is_none() {
                errors.push(bad(pointer, "a date and time, UTC"));
            }
            at.map(|at| Timestamp(at.assume_utc()))
        };
        let (expires_at, run_by) = (instant(self.expires, "/expires_at"), instant(self.run_by, "/run_by"));
        if !errors.is_empty() {
            return Err(errors);
        }
        let attribution =
            if self.by_exclusion.get_untracked() { Attribution::ByExclusion } else { Attribution::RedriveId };
        Ok(Draft {
            title: trimmed(self.title),
            reason: trimmed(self.reason),
            condition_fixed,
            target: kept.target,
            accept_warnings: self.accepted.get_untracked(),
            canary: Some(CanaryPlan {
                items,
                probe: trimmed(self.probe),
                expect: untrack(|| self.expect.get()),
                wait_s,
                max_canaries,
                valid_s,
                attribution,
            }),
            expansion: Some(Expansion {
                start_per_s,
                max_per_s,
                step_factor,
                step_s,
                max_in_flight,
                on_red: if self.on_red.get_untracked() == "pause" { OnRed::Pause } else { OnRed::Halve },
                verify_sample_percent,
            }),
            guards: kept.guards,
            restore_expiration: self.restore_expiration.get_untracked(),
            expires_at,
            run_by,
        })
    }
}

fn trimmed(field: RwSignal<String>) -> String {
    field.get_untracked().trim().to_owned()
}

fn bad(pointer: &str, wanted: &str) -> FieldError {
    FieldError { pointer: pointer.to_owned(), detail: format!("This wants {wanted}.") }
}

const fn condition_value(kind: ConditionKind) -> &'static str {
    match kind {
        ConditionKind::WorkerVersion => "worker_version",
        ConditionKind::Downstream => "downstream",
        ConditionKind::Configuration => "configuration",
        ConditionKind::Data => "data",
    }
}

fn condition_kind(value: &str) -> Option<ConditionKind> {
    match value {
        "worker_version" => Some(ConditionKind::WorkerVersion),
        "downstream" => Some(ConditionKind::Downstream),
        "configuration" => Some(ConditionKind::Configuration),
        "data" => Some(ConditionKind::Data),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ids::CohortId;

    #[test]
    fn what_was_typed_and_not_saved_is_put_back_and_what_was_saved_is_not() {
        Owner::new().with(|| {
            let cohort = super::super::sample::cohort();
            let clock = Clock::of(RwSignal::new(time::OffsetDateTime::UNIX_EPOCH));
            let unsaved = super::super::UnsavedDrafts::of_context();
            let id: CohortId = cohort.row.id;
            let first = Fields::of(&cohort, clock);
            assert!(!first.is_unsaved(), "a proposal isn't a change");
            unsaved.keep(id, first);
            assert!(!unsaved.put_back(id, Fields::of(&cohort, clock)));

            first.reason.set("because of order_lines".to_owned());
            first.canaries.get_untracked()[0].set("0193".to_owned());
            first.restore_expiration.set(true);
            unsaved.keep(id, first);
            let second = Fields::of(&cohort, clock);
            assert!(unsaved.put_back(id, second) && second.is_unsaved());
            assert_eq!(second.typed(), first.typed());

            second.saved(&cohort, second.typed());
            unsaved.keep(id, second);
            assert!(!unsaved.put_back(id, Fields::of(&cohort, clock)), "saved");
        });
    }
}
