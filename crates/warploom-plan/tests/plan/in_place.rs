//! Results that are written over what they are made of.

use warploom_core::{DType, Status};
use warploom_plan::pipeline::{OpUse, Step};
use warploom_plan::plan::{InPlace, PlanStep, Pool};
use warploom_plan::{ExecutionPlan, Options, Pipeline, Sources, compile};

use crate::machine::{GIB, cpu, cuda, machine};
use crate::memory::check;
use crate::steady::steady;

const MIB: u64 = 1 << 20;

fn planned(pipeline: &Pipeline, status: Option<&Status>) -> ExecutionPlan {
    let sources = Sources::plane(DType::F32, 1024, 2048);
    let plan = compile(pipeline, &sources, status, &Options::default());
    let plan = plan.unwrap_or_else(|found| panic!("{}", found[0]));
    check(&plan);
    plan
}

fn pool<'p>(plan: &'p ExecutionPlan, memory: &str) -> &'p Pool {
    let mut pools = plan.memory.pools.iter();
    pools.find(|pool| pool.memory == memory).unwrap()
}

fn in_place(plan: &ExecutionPlan) -> Vec<(&str, &str)> {
    let steps = plan.variants.iter().flat_map(|variant| &variant.steps);
    let pairs = steps.flat_map(PlanStep::in_place);
    pairs
        .map(|InPlace { value, over }| (value.as_str(), over.as_str()))
        .collect()
}

fn step(name: &str, op: &str) -> Step {
    Step::new(name, OpUse::new(op))
}

#[test]
fn a_pixel_by_pixel_step_takes_the_memory_of_one_image() {
    let pipeline = Pipeline::new("p").step(step("a", "sqrt"));
    let plan = planned(&pipeline, None);
    assert_eq!(pool(&plan, "host").slot, 8 * MIB);
    assert_eq!(pool(&plan, "host").bound, 8 * MIB);
    assert_eq!(in_place(&plan), [("a", "image")]);
    insta::assert_snapshot!(steady(&plan.explanation()));
    let status = machine([cpu(), cuda(0, GIB)]);
    let plan = planned(&pipeline, Some(&status));
    assert_eq!(pool(&plan, "cuda.device").slot, 8 * MIB);
    assert_eq!(in_place(&plan), [("a", "image")]);
}

#[test]
fn what_lies_in_place_halves_the_budget_that_is_needed() {
    let pipeline = Pipeline::new("p").step(step("a", "sqrt"));
    let sources = Sources::plane(DType::F32, 1024, 2048);
    let mut options = Options::default();
    options.depth = Some(1);
    options.budget = Some(8 * MIB);
    assert!(compile(&pipeline, &sources, None, &options).is_ok());
    options.budget = Some(8 * MIB - 1);
    assert!(compile(&pipeline, &sources, None, &options).is_err());
}

#[test]
fn what_is_needed_later_or_is_not_alike_is_not_written_over() {
    // Other elements; neighbours; the image itself is written, too.
    let cast = OpUse::new("cast").with("type", "u16");
    let soft = OpUse::new("gaussian").with("sigma", 2.0);
    for op in [cast, soft] {
        let pipeline = Pipeline::new("p").step(Step::new("a", op));
        assert_eq!(in_place(&planned(&pipeline, None)), []);
    }
    let both = Pipeline::new("p")
        .step(step("a", "sqrt"))
        .step(Step::new("b", OpUse::new("gaussian").with("sigma", 2.0)).reads(["image"]))
        .output("a", "a.tif")
        .output("b", "b.tif");
    let plan = planned(&both, None);
    let first: Vec<&str> = in_place(&plan).iter().map(|(value, _)| *value).collect();
    assert!(!first.contains(&"b"), "{}", plan.explanation());
    // All records share a constant.
    let status = machine([cpu(), cuda(0, GIB)]);
    let flat = Pipeline::new("p")
        .constant("flat", "flat.tif")
        .step(step("a", "add_images").reads(["flat", "flat"]));
    let sources = Sources::plane(DType::F32, 64, 64);
    let sources = sources.constant(
        "flat",
        warploom_kernels::ImageType::plane(DType::F32, 64, 64),
    );
    for status in [None, Some(&status)] {
        let plan = compile(&flat, &sources, status, &Options::default()).unwrap();
        assert_eq!(in_place(&plan), []);
    }
}

/// Between steps of two faces and inside of one: what dies is written over.
#[test]
fn values_between_steps_are_written_over_too() {
    let status = machine([cpu(), cuda(0, GIB)]);
    let pipeline = Pipeline::new("p")
        .step(Step::new("soft", OpUse::new("gaussian").with("sigma", 2.0)).backend("cuda"))
        .step(step("a", "sqrt").backend("cpu"))
        .step(step("b", "abs").backend("cuda"));
    let plan = planned(&pipeline, Some(&status));
    assert!(
        in_place(&plan).contains(&("a", "soft")),
        "{}",
        plan.explanation()
    );
    // Where another pass takes more, nothing is gained by it.
    assert_eq!(in_place(&plan).len(), 1, "{}", plan.explanation());
    // After a sum over all pixels, what was computed before it is in the place of the result.
    let pipeline = Pipeline::new("p")
        .step(step("a", "sqrt"))
        .step(step("b", "minmax_normalize"));
    let plan = planned(&pipeline, Some(&status));
    assert_eq!(in_place(&plan), [("b", "image")], "{}", plan.explanation());
    assert!(plan.explanation().contains("writes over what it reads"));
}
