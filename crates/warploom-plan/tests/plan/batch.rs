//! Many records over many cards.

use proptest::prelude::*;
use warploom_core::DType;
use warploom_plan::batch::{Work, bound, compile_batch, deal};
use warploom_plan::pipeline::{OpUse, Step};
use warploom_plan::{Options, Pipeline, Sources};

use crate::machine::{GIB, cpu, cuda, machine};

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
        let least = bound(&costs, &counts);
        prop_assert!(dealt.makespan <= least * 1.10, "{} of {least}", dealt.makespan);
        prop_assert!(dealt.makespan >= least * (1.0 - 1e-9));
        for (kind, count) in counts.iter().enumerate() {
            let given: usize = dealt.counts.iter().map(|card| card[kind]).sum();
            prop_assert_eq!(given, *count, "every record is somewhere, once");
        }
    }
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
