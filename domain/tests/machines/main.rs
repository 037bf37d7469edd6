//! The state machines of RULES 3 and 5 in a small world of people, two processes and a broker: commands, facts and
//! faults (crash, takeover, late confirm, lost publish, freeze) are generated, and the invariants of RULES 20 must hold
//! after every step. Each planted defect must break one of them, or the search would prove nothing.

mod act;
mod world;

use act::{Act, acts};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use world::{Defect, World};

fn run(defect: Option<Defect>, acts: &[Act]) -> Result<World, String> {
    let mut world = World::new(defect);
    for (at, act) in acts.iter().enumerate() {
        world.step(act).and_then(|()| world.check()).map_err(|broken| format!("step {at}, {act:?}: {broken}"))?;
    }
    Ok(world)
}

proptest! {
    #![proptest_config(Config { cases: 4_000, max_shrink_iters: 4_000, ..Config::default() })]

    #[test]
    fn the_invariants_hold_and_everything_can_end(acts in acts(160)) {
        let mut world = run(None, &acts).map_err(TestCaseError::fail)?;
        world.wind_down().map_err(TestCaseError::fail)?;
    }
}

/// The generated runs get somewhere: most of what the tables know is reached.
#[test]
fn the_search_goes_deep() {
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let mut reached = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..4_000 {
        let acts = acts(160).new_tree(&mut runner).expect("a plain strategy").current();
        let world = run(None, &acts).expect("the invariants hold");
        for state in &world.reached {
            *reached.entry(state.clone()).or_default() += 1;
        }
    }
    let wanted = [
        "cohort expanding",
        "cohort paused",
        "cohort aborted",
        "cohort settling",
        "cohort completed",
        "cohort canary_failed",
        "cohort expired",
        "item in_doubt",
        "item verified",
        "item requarantined",
        "item resolved_not_published",
        "item nacked",
        "item returned",
        "second stratum",
        "takeover while publishing",
        "late confirm",
        "taken anew",
    ];
    for name in wanted {
        assert!(reached.get(name).is_some_and(|n| *n >= 5), "{name}: {reached:?}");
    }
}

#[test]
fn every_planted_defect_is_found() {
    for defect in Defect::ALL {
        let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let found = (0..20_000).any(|_| {
            let acts = acts(160).new_tree(&mut runner).expect("a plain strategy").current();
            run(Some(*defect), &acts).is_err()
        });
        assert!(found, "{defect:?} breaks nothing that is checked");
    }
}
