//! The processor where no card will do.

use warploom_core::DType;
use warploom_plan::batch::{Work, compile_batch};
use warploom_plan::pipeline::{OpUse, Policy, Step};
use warploom_plan::{Options, Pipeline, Sources, Speed, compile};

use crate::assignment::faces;
use crate::machine::{GIB, cpu, cuda, machine};
use crate::memory::check;
use crate::steady::steady;

/// Operations that look at whole images, of which there are no tiles.
fn global() -> Pipeline {
    let cells = Step::new("cells", OpUse::new("label_box"));
    let all = Step::new("all", OpUse::new("totals"));
    let pipeline = Pipeline::new("global").step(cells).step(all);
    pipeline
        .output("cells", "cells.tif")
        .output("all", "all.json")
}

fn large() -> Sources {
    Sources::stack(DType::F32, 64, 2048, 2048)
}

#[test]
fn what_no_card_can_do_the_processor_does_and_says_why() {
    let status = machine([cpu(), cuda(0, GIB), cuda(1, GIB / 2)]);
    let options = Options::default();
    let plan = compile(&global(), &large(), Some(&status), &options).unwrap();
    check(&plan);
    assert_eq!(plan.device.faces, ["cpu:0"]);
    insta::assert_snapshot!(steady(&plan.reasons[0].why));
    // In a batch as well.
    let (pipeline, sources) = (global(), large());
    let work = Work {
        pipeline: &pipeline,
        sources: &sources,
        records: 3,
    };
    let batch = compile_batch(&[work], Some(&status), &options).unwrap();
    let cards: Vec<&String> = batch.shares.keys().collect();
    assert_eq!(cards, ["cpu"]);
}

#[test]
fn where_a_card_is_asked_for_the_processor_is_advised() {
    let status = machine([cpu(), cuda(0, GIB)]);
    let mut asked = global();
    asked.whereabouts.backend = Some("cuda".into());
    let mut options = Options::default();
    let refusal = compile(&asked, &large(), Some(&status), &options).unwrap_err();
    assert_eq!(refusal.len(), 1);
    insta::assert_snapshot!(refusal[0]);
    // The caller's word counts as well.
    options.devices = vec!["gpu0".to_owned()];
    let refusal = compile(&global(), &large(), Some(&status), &options).unwrap_err();
    insta::assert_snapshot!(refusal[0]);
    let both = compile(&asked, &large(), Some(&status), &options).unwrap_err();
    insta::assert_snapshot!(both[0]);
}

#[test]
fn what_the_processor_cannot_do_either_is_refused_without_advice() {
    let mut small = cpu();
    small.total_memory = GIB;
    let status = machine([small, cuda(0, GIB / 2)]);
    let refusal = compile(&global(), &large(), Some(&status), &Options::default());
    insta::assert_snapshot!(refusal.unwrap_err()[0]);
}

/// Records that fit the processor as a whole may still be done earlier in tiles on a fast card.
#[test]
fn cost_weighs_tiles_on_a_fast_card_against_the_processor() {
    let status = machine([cpu(), cuda(0, GIB)]);
    let many = (0..12).map(|_| OpUse::new("median_box").with("radius", 3_i64));
    let pipeline = Pipeline::new("p").step(Step::chain("a", many));
    let mut options = Options::default();
    options.placement = Some(Policy::Cost);
    let (fast, slow) = (Speed::guess(true, false), Speed::guess(false, true));
    for (gpu, processor, expected) in [(fast, slow, "cuda:0"), (slow, fast, "cpu:0")] {
        options.calibration.insert("cuda:0".to_owned(), gpu);
        options.calibration.insert("cpu:0".to_owned(), processor);
        let plan = compile(&pipeline, &large(), Some(&status), &options).unwrap();
        check(&plan);
        assert!(
            faces(&plan).iter().all(|(_, face)| face == expected),
            "{}",
            plan.explanation()
        );
    }
}

/// Cards that have all they may take come last, and what shares a card shares its time.
#[test]
fn loads_count_for_every_policy_but_first() {
    let pipeline = Pipeline::new("p").step(Step::new("a", OpUse::new("sqrt")));
    let status = machine([cpu(), cuda(0, 4 * GIB), cuda(1, 2 * GIB)]);
    let slots = status.max_pipelines(status.survey.find("gpu0").unwrap());
    let place = |policy: Policy, load: u32| {
        let mut options = Options::default();
        options.placement = Some(policy);
        options.devices = vec!["gpu0".to_owned(), "gpu1".to_owned()];
        options.loads.insert("gpu0".to_owned(), load);
        let sources = Sources::plane(DType::F32, 512, 512);
        let plan = compile(&pipeline, &sources, Some(&status), &options).unwrap();
        plan.device.name
    };
    for policy in [Policy::First, Policy::Spread, Policy::Fit, Policy::Cost] {
        assert_eq!(place(policy, 0), "gpu0", "{policy}");
    }
    // The seed's policy takes the first whatever is there.
    assert_eq!(place(Policy::First, slots), "gpu0");
    assert_eq!(place(Policy::Spread, 1), "gpu1");
    assert_eq!(place(Policy::Fit, slots - 1), "gpu0");
    assert_eq!(place(Policy::Fit, slots), "gpu1");
    assert_eq!(place(Policy::Cost, 1), "gpu1");
}
