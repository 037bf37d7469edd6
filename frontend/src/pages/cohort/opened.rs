//! All that a cohort's page starts with, in one reading: the cohort, and what its tab shows beside it.

use super::{count_of, has_replay, listed::STEP};
use crate::api::{Answer, Here, encode, query};
use domain::{
    api::{Cohort, CohortItem, Page, PlanView, Replay},
    vocabulary::{CohortState, ItemState},
};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// What the page starts with. The parts are taken by the tab that shows them first; a later tab reads its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Opened {
    pub(super) cohort: Cohort,
    pub(super) items: Option<Answer<Page<CohortItem>>>,
    /// For a draft: of each stratum, the first that may be its canary.
    pub(super) candidates: Vec<Option<Answer<Page<CohortItem>>>>,
    pub(super) doubts: Option<Answer<Page<CohortItem>>>,
    pub(super) plan: Option<Answer<PlanView>>,
    pub(super) replay: Option<Answer<Replay>>,
}

/// The parts that no tab has taken yet.
pub(super) type Parts = StoredValue<Opened>;

/// Which tab an address means, for this cohort.
pub(super) fn tab(asked: &str, cohort: &Cohort) -> &'static str {
    match asked {
        "items" => "items",
        "replay" => "replay",
        "history" => "history",
        "plan" => "plan",
        _ if has_replay(cohort.row.state, &cohort.stages) => "replay",
        _ => "plan",
    }
}

/// The items' address: all, or those in one state.
pub(super) fn items_path(cohort: &Cohort, state: &str) -> String {
    let pairs = [("state", state.to_owned()), ("limit", STEP.to_string())];
    format!("/cohorts/{}/items{}", cohort.row.id, query(pairs))
}

/// The address of one stratum's items.
pub(super) fn stratum_path(cohort: &Cohort, stratum: i64) -> String {
    format!("/cohorts/{}/items?stratum={stratum}&limit={STEP}", cohort.row.id)
}

/// Reads the cohort, then what its tab shows.
pub(super) fn open(
    id: &str,
    asked_tab: String,
    item_state: String,
) -> impl Future<Output = Answer<Opened>> + Send + use<> {
    let here = Here::of_context();
    let cohort = here.get::<Cohort>(&format!("/cohorts/{}", encode(id)));
    async move {
        let cohort = cohort.await?;
        let path = format!("/cohorts/{}", cohort.row.id);
        let draft = cohort.row.state == CohortState::Draft;
        let mut opened = Opened { cohort, items: None, candidates: Vec::new(), doubts: None, plan: None, replay: None };
        let cohort = &opened.cohort;
        match tab(&asked_tab, cohort) {
            "items" => opened.items = Some(here.get(&items_path(cohort, &item_state)).await),
            "plan" if draft => {
                let mut candidates = Vec::with_capacity(cohort.strata.len());
                for stratum in &cohort.strata {
                    candidates.push(Some(here.get(&stratum_path(cohort, stratum.index)).await));
                }
                opened.candidates = candidates;
            }
            "plan" => opened.plan = Some(here.get(&format!("{path}/plan")).await),
            "replay" if has_replay(cohort.row.state, &cohort.stages) => {
                let doubts = (count_of(cohort, ItemState::InDoubt) > 0)
                    .then(|| here.get(&items_path(cohort, ItemState::InDoubt.as_str())));
                let replay = here.get(&format!("{path}/replay")).await;
                opened.replay = Some(replay);
                if let Some(doubts) = doubts {
                    opened.doubts = Some(doubts.await);
                }
            }
            _ => {}
        }
        Ok(opened)
    }
}
