//! Many records over many cards.

use proptest::prelude::*;
use warploom_core::DType;
use warploom_plan::batch::{Work, compile_batch, deal};
use warploom_plan::pipeline::{OpUse, Policy, Step};
use warploom_plan::{Options, Pipeline, Sources};

use crate::machine::{GIB, cpu, cuda, machine, opencl};

/// Kinds of work whose cost differs by card in two ways: cards are fast or slow, and suited or not.
fn batches() -> impl Strategy<Value = (Vec<Vec<f64>>, Vec<usize>)> {
    (2..9_usize, 1..7_usize).prop_flat_map(|(cards, kinds)| {
        let speeds = proptest::collection::vec(1.0..8.0_f64, cards);
        let suits =
            proptest::collection::vec(proptest::collection::vec(0.5..2.0_f64, cards), kinds);
        let sizes = proptest::collection::vec(1.0..20.0_f64, kinds);
        let counts = proptest::collection::vec(200..600_usize, kinds);
        (speeds, suits, sizes, counts).prop_map(|(speeds, suits, sizes, counts)| {
            let costs = suits.iter().zip(&sizes).map(|(suits, size)| {
                let costs = speeds.iter().zip(suits);
                costs.map(|(speed, suit)| size * suit / speed).collect()
            });
            (costs.collect(), counts)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn dealt_work_ends_within_a_tenth_of_what_is_possible((costs, counts) in batches()) {
        let dealt = deal(&costs, &counts);
        let least = dealt.bound;
        prop_assert!(dealt.makespan <= least * 1.10, "{} of {least}", dealt.makespan);
        prop_assert!(dealt.makespan >= least * (1.0 - 1e-9));
        for (kind, count) in counts.iter().enumerate() {
            let given: usize = dealt.counts.iter().map(|card| card[kind]).sum();
            prop_assert_eq!(given, *count, "every record is somewhere, once");
        }
    }
}

/// The end of the best way to deal these pieces, found by trying all.
fn best_of_all(costs: &[Vec<f64>], pieces: &[usize]) -> f64 {
    let cards = costs[0].len();
    let ways = (0..cards.pow(u32::try_from(pieces.len()).unwrap())).map(|mut way| {
        let mut loads = vec![0.0_f64; cards];
        for kind in pieces {
            loads[way % cards] += costs[*kind][way % cards];
            way /= cards;
        }
        loads.into_iter().fold(0.0, f64::max)
    });
    ways.fold(f64::INFINITY, f64::min)
}

/// Few pieces, no two of them alike, on cards that are not alike.
fn handfuls() -> impl Strategy<Value = Vec<Vec<f64>>> {
    (2..4_usize, 1..8_usize).prop_flat_map(|(cards, kinds)| {
        let costs = proptest::collection::vec(1.0..20.0_f64, cards);
        proptest::collection::vec(costs, kinds)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_few_unequal_pieces_end_within_a_tenth_of_the_best_way(costs in handfuls()) {
        let pieces: Vec<usize> = (0..costs.len()).collect();
        let best = best_of_all(&costs, &pieces);
        let dealt = deal(&costs, &vec![1; costs.len()]);
        prop_assert!(dealt.makespan <= best * 1.10, "{} of {best}", dealt.makespan);
        let least = dealt.bound;
        prop_assert!(least <= best * (1.0 + 1e-9), "a bound of {least} that {best} beats");
    }

}

/// More than are tried in every way: many of some kinds and a few of others, on cards that are not
/// alike, in every proportion; some do not run everywhere.
fn mixtures() -> impl Strategy<Value = (Vec<Vec<f64>>, Vec<usize>)> {
    (2..7_usize, 1..9_usize).prop_flat_map(|(cards, kinds)| {
        let cost = prop_oneof![12 => 1.0..20.0_f64, 1 => Just(f64::INFINITY)];
        let costs = proptest::collection::vec(cost, cards);
        let costs = proptest::collection::vec(costs, kinds);
        let count = prop_oneof![3 => Just(1_usize), 2 => 2..6_usize, 2 => 6..60_usize];
        let counts = proptest::collection::vec(count, kinds);
        let many = 13..60_usize;
        (costs, counts, many).prop_map(|(mut costs, mut counts, many)| {
            for costs in &mut costs {
                if costs.iter().all(|cost| cost.is_infinite()) {
                    costs[0] = 5.0;
                }
            }
            counts[0] = many;
            (costs, counts)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn unequal_pieces_end_within_a_tenth_of_what_is_possible((costs, counts) in mixtures()) {
        let dealt = deal(&costs, &counts);
        prop_assert!(
            dealt.makespan <= dealt.bound * 1.10,
            "{} of {}", dealt.makespan, dealt.bound
        );
        prop_assert!(dealt.makespan >= dealt.bound * (1.0 - 1e-9));
        for (kind, count) in counts.iter().enumerate() {
            let given: usize = dealt.counts.iter().map(|card| card[kind]).sum();
            prop_assert_eq!(given, *count, "every record is somewhere, once");
        }
        let ends = dealt.counts.iter().enumerate().map(|(card, counts)| {
            let each = counts.iter().zip(&costs).filter(|(count, _)| **count > 0);
            each.map(|(count, costs)| *count as f64 * costs[card]).sum::<f64>()
        });
        let last = ends.fold(0.0, f64::max);
        prop_assert!((last - dealt.makespan).abs() <= 1e-6 * last, "{last} is told as {}", dealt.makespan);
    }
}

/// Long pieces that no price can cut: what is possible is known by trying, and is the bound.
#[test]
fn the_bound_of_long_pieces_is_what_is_possible() {
    // Two long pieces on one card and one beside the many on the other, or all three on one.
    let costs = vec![vec![1.0, 20.0], vec![13.0, 13.0]];
    let dealt = deal(&costs, &[20, 3]);
    assert!((dealt.makespan - 33.0).abs() < 1e-9, "{}", dealt.makespan);
    assert!(
        dealt.bound > 32.0 && dealt.bound <= dealt.makespan,
        "{}",
        dealt.bound
    );
}

fn one_kind<'a>(pipeline: &'a Pipeline, sources: &'a Sources) -> [Work<'a>; 1] {
    [Work {
        pipeline,
        sources,
        records: 8,
    }]
}

#[test]
fn work_for_the_processor_is_dealt_to_it_where_gpus_are() {
    let status = machine([cpu(), cuda(0, GIB), cuda(1, GIB)]);
    let sources = Sources::plane(DType::U16, 64, 64);
    let sqrt = || Step::new("a", OpUse::new("sqrt"));
    let li = Step::new("a", OpUse::new("threshold_li"));
    for step in [sqrt().backend("cpu"), sqrt().memory("numpy"), li] {
        let pipeline = Pipeline::new("p").step(step);
        let work = one_kind(&pipeline, &sources);
        let batch = compile_batch(&work, Some(&status), &Options::default()).unwrap();
        let cards: Vec<&String> = batch.shares.keys().collect();
        assert_eq!(cards, ["cpu"]);
    }
}

#[test]
fn cost_lets_the_processor_help_and_its_share_is_what_it_is_worth() {
    let status = machine([cpu(), cuda(0, GIB)]);
    let sources = Sources::plane(DType::F32, 8, 8);
    let mut pipeline = Pipeline::new("p").step(Step::new("a", OpUse::new("sqrt")));
    let share = |pipeline: &Pipeline| {
        let work = one_kind(pipeline, &sources);
        let batch = compile_batch(&work, Some(&status), &Options::default()).unwrap();
        batch.shares.get("cpu").map_or(0, |share| share.records[&0])
    };
    assert_eq!(share(&pipeline), 0);
    pipeline.placement = Some(Policy::Cost);
    assert!(share(&pipeline) > 0);
}

#[test]
fn two_faces_of_one_card_are_one_card() {
    let status = machine([cpu(), cuda(0, GIB), opencl(0, 0, GIB), cuda(1, GIB)]);
    let sources = Sources::plane(DType::U16, 64, 64);
    let pipeline = Pipeline::new("p").step(Step::new("a", OpUse::new("sqrt")));
    let mut options = Options::default();
    options.devices = ["opencl:0", "cuda:0", "gpu1"].map(str::to_owned).to_vec();
    let work = one_kind(&pipeline, &sources);
    let batch = compile_batch(&work, Some(&status), &options).unwrap();
    let faces = batch.plans[0].values().map(|plan| &plan.device.faces);
    assert_eq!(faces.collect::<Vec<_>>(), [&["cuda:0"], &["cuda:1"]]);
}

#[test]
fn every_card_that_is_too_small_is_named() {
    let status = machine([cpu(), cuda(0, 1 << 20), cuda(1, 2 << 20)]);
    let mut pipeline = Pipeline::new("p").step(Step::new("a", OpUse::new("sqrt")));
    pipeline.no_host_copy = true;
    let sources = Sources::plane(DType::F32, 1024, 1024);
    let work = one_kind(&pipeline, &sources);
    let refusal = compile_batch(&work, Some(&status), &Options::default()).unwrap_err();
    let said: Vec<String> = refusal.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains("gpu0") && said[1].contains("gpu1"),
        "{said:?}"
    );
}

#[test]
fn a_plate_is_dealt_to_all_cards() {
    let soft =
        Pipeline::new("soft").step(Step::new("a", OpUse::new("gaussian").with("sigma", 2.0)));
    let hard = Pipeline::new("hard").step(Step::new(
        "a",
        OpUse::new("median_box").with("radius", 5_i64),
    ));
    let sources = Sources::plane(DType::U16, 1024, 1024);
    let status = machine([cpu(), cuda(0, GIB), cuda(1, GIB), cuda(2, GIB)]);
    let work = [&soft, &hard].map(|pipeline| Work {
        pipeline,
        sources: &sources,
        records: 384,
    });
    let batch = compile_batch(&work, Some(&status), &Options::default()).unwrap();
    assert_eq!(batch.shares.len(), 3);
    let total: usize = batch
        .shares
        .values()
        .flat_map(|share| share.records.values())
        .sum();
    assert_eq!(total, 768);
    assert!(batch.makespan <= batch.bound * 1.1);
    let again = compile_batch(&work, Some(&status), &Options::default()).unwrap();
    assert_eq!(batch, again);
}

#[test]
fn work_that_fits_nowhere_is_refused() {
    let pipeline = Pipeline::new("p").step(Step::new("a", OpUse::new("no_such_thing")));
    let sources = Sources::plane(DType::U16, 64, 64);
    let work = [Work {
        pipeline: &pipeline,
        sources: &sources,
        records: 1,
    }];
    let refusal = compile_batch(&work, None, &Options::default()).unwrap_err();
    assert_eq!(refusal[0].code.to_string(), "WL0601");
}

#[test]
fn work_goes_only_where_it_can() {
    let never = f64::INFINITY;
    let costs = vec![vec![1.0, never, 2.0], vec![never, 1.0, never]];
    let dealt = deal(&costs, &[300, 100]);
    assert_eq!(dealt.counts, [[200, 0], [0, 100], [100, 0]]);
    assert!((dealt.makespan - 200.0).abs() < 1e-9);
}
