//! Plans carry everything that is needed to run them, and tiles change no bit.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use warploom_core::{DType, DeviceInfo};
use warploom_kernels::ImageType;
use warploom_plan::pipeline::{Math, OpUse, Step};
use warploom_plan::plan::{PlanOp, PlanStep};
use warploom_plan::{ExecutionPlan, Options, Pipeline, Sources, compile};

use crate::judge::execute;
use crate::machine::{GIB, cpu, cuda, machine, wgpu};
use crate::memory::check;
use crate::steady::steady;

fn noise(image: ImageType, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let bytes = usize::try_from(image.pixels()).unwrap();
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        u16::try_from(state >> 48).unwrap()
    };
    let pixels: Vec<u16> = (0..bytes).map(next).collect();
    bytemuck::cast_slice(&pixels).to_vec()
}

/// A row of operations, each on what the one before it gave: local ones, ones that look at whole
/// images, and ones whose numbers others compute. Images, numbers and a table are written.
fn pipeline(steps: &[(usize, i64)]) -> Pipeline {
    let mut pipeline = Pipeline::new("tiles");
    let mut last = "image".to_owned();
    for (at, (op, radius)) in steps.iter().enumerate() {
        let (name, other) = (format!("s{at}"), format!("n{at}"));
        let mut before: Option<(OpUse, &str)> = None;
        let op = match op {
            0 => OpUse::new("sqrt"),
            1 => OpUse::new("gaussian").with("sigma", *radius as f64 * 0.7),
            2 => OpUse::new("mean_box").with("radius", *radius),
            3 => OpUse::new("maximum_box").with("radius", *radius),
            4 => OpUse::new("median_box").with("radius", 1_i64),
            5 => OpUse::new("sobel"),
            6 => OpUse::new("minmax_normalize"),
            7 => OpUse::new("top_hat_box").with("radius", *radius),
            8 => OpUse::new("percentile_normalize"),
            9 => OpUse::new("label_box"),
            10 => {
                before = Some((OpUse::new("totals"), "totals.json"));
                OpUse::new("affine_intensity").with_computed("offset", &other, "mean")
            }
            11 => {
                let limits = OpUse::new("percentiles").with("q", [20_i64, 80]);
                before = Some((limits, "limits.json"));
                let clip = OpUse::new("clip").with_computed("low", &other, "0");
                clip.with_computed("high", &other, "1")
            }
            _ => {
                let limits = OpUse::new("percentiles").with("q", [60_i64]);
                before = Some((limits, "one.json"));
                OpUse::new("greater").with_computed("value", &other, "0")
            }
        };
        if let Some((op, file)) = before {
            let step = Step::new(&other, op).reads([last.as_str()]);
            let file = format!("{at}-{file}");
            pipeline = pipeline.step(step).output(&other, &file);
        }
        let step = Step::new(&name, op).reads([last.as_str()]);
        pipeline = pipeline.step(step);
        last = name;
    }
    let labels = Step::new("cells", OpUse::new("label_box")).reads([last.as_str()]);
    let table = Step::new("table", OpUse::new("label_statistics")).reads(["cells", "image"]);
    let pipeline = pipeline.step(labels).step(table).output("s0", "s0.tif");
    let pipeline = pipeline.output("table", "table.csv");
    pipeline.output(&last, "last.tif")
}

/// The operations of a plan that run on tiles.
fn on_tiles(plan: &ExecutionPlan) -> Vec<&PlanOp> {
    let steps = plan.variants.iter().flat_map(|variant| &variant.steps);
    let tiled = steps.filter(|step| matches!(step, PlanStep::Tiled { .. }));
    tiled.flat_map(PlanStep::ops).collect()
}

/// Random pipelines on a card that is too small for them: they go in tiles, and what comes out is
/// what comes out of a card that is not.
#[test]
fn tiles_change_no_bit() {
    tiles_of("cuda.device");
}

/// The processor is a device like others, but for its whole images, which are in its own memory.
#[test]
fn tiles_on_the_processor_change_no_bit() {
    tiles_of("host");
}

fn tiles_of(memory: &str) {
    let step = (0..13_usize, 1..5_i64);
    let steps = proptest::collection::vec(step, 1..6);
    let cases = (
        steps,
        20..50_u64,
        20..50_u64,
        1..4_u64,
        2..8_u64,
        any::<u64>(),
    );
    let mut runner = TestRunner::deterministic();
    let status = if memory == "host" {
        machine([cpu()])
    } else {
        machine([cpu(), cuda(0, GIB)])
    };
    let (mut tiled, mut computed) = (0, 0);
    for case in 0..60 {
        let drawn = cases.new_tree(&mut runner).unwrap().current();
        let (steps, y, x, z, share, seed) = drawn;
        let pipeline = pipeline(&steps);
        let sources = Sources::stack(DType::U16, z, y, x);
        let image = sources.record.image();
        let whole = compile(&pipeline, &sources, Some(&status), &Options::default());
        let whole = whole.unwrap_or_else(|found| panic!("{steps:?}: {}", found[0]));
        let mut pools = whole.memory.pools.iter();
        let device = pools.find(|pool| pool.memory == memory).unwrap();
        let mut options = Options::default();
        options.budget = Some((device.slot / share).max(4096));
        // Nothing of it may be local, or one pixel with all that surrounds it may be too much.
        let Ok(small) = compile(&pipeline, &sources, Some(&status), &options) else {
            continue;
        };
        check(&small);
        let local = on_tiles(&small);
        tiled += usize::from(!local.is_empty());
        computed += usize::from(local.iter().any(|op| !op.computed.is_empty()));
        let pixels = noise(image, seed);
        assert_eq!(
            execute(&small, image, &pixels),
            execute(&whole, image, &pixels),
            "case {case}: {}",
            small.summary()
        );
    }
    // Where nothing goes in tiles, this test proves nothing.
    assert!(tiled >= 40, "{tiled} of 60 go in tiles");
    assert!(
        computed >= 8,
        "{computed} of 60 have computed numbers on tiles"
    );
}

fn bright() -> Pipeline {
    let limits = OpUse::new("percentiles").with("q", [50_i64, 90]);
    let bright = OpUse::new("greater").with_computed("value", "limits", "1");
    Pipeline::new("bright")
        .step(Step::new("limits", limits))
        .step(Step::new("bright", bright).reads(["image"]))
        .step(Step::new("cells", OpUse::new("label_box")))
}

#[test]
fn what_is_moved_is_named_and_what_is_pointwise_stays() {
    let status = machine([cpu(), cuda(0, GIB)]);
    let sources = Sources::plane(DType::U16, 512, 512);
    let mut options = Options::default();
    options.budget = Some(200_000);
    let plan = compile(&bright(), &sources, Some(&status), &options).unwrap();
    let local: Vec<&str> = on_tiles(&plan).iter().map(|op| op.name.as_str()).collect();
    assert_eq!(local, ["bright"], "{}", plan.summary());
    let reasons = plan.reasons.iter().map(|reason| reason.about.as_str());
    let reasons: Vec<&str> = reasons
        .filter(|about| about.contains("processor"))
        .collect();
    assert_eq!(
        reasons,
        ["`limits` on the processor", "`cells` on the processor"]
    );
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    // The pipeline asks for the card: told. The step itself does: refused.
    let mut asked = bright();
    asked.whereabouts.backend = Some("cuda".into());
    let plan = compile(&asked, &sources, Some(&status), &options).unwrap();
    insta::assert_snapshot!(plan.warnings.join("\n"));
    let mut pinned = bright();
    pinned.steps[2] = pinned.steps[2].clone().backend("cuda");
    let refusal = compile(&pinned, &sources, Some(&status), &options).unwrap_err();
    assert_eq!(refusal.len(), 1);
    insta::assert_snapshot!(refusal[0]);
}

#[test]
fn tiles_that_may_differ_in_their_bits_are_told() {
    let sources = Sources::plane(DType::U16, 512, 512);
    let mut options = Options::default();
    options.budget = Some(200_000);
    let why = |card: DeviceInfo, math: Math| {
        let mut pipeline = bright();
        pipeline.math = math;
        let status = machine([cpu(), card]);
        let plan = compile(&pipeline, &sources, Some(&status), &options).unwrap();
        let mut reasons = plan.reasons.iter();
        let reason = reasons.find(|reason| reason.about == "tiles").unwrap();
        reason.why.clone()
    };
    assert!(why(cuda(0, GIB), Math::Strict).contains("the bits are those of whole images"));
    for said in [
        why(cuda(0, GIB), Math::Fast),
        why(wgpu(0, GIB), Math::Strict),
    ] {
        assert!(said.contains("bits may differ"), "{said}");
    }
}

/// Numbers of 64 bits are pairs on some cards, those that go with tiles too.
#[test]
fn numbers_that_go_with_tiles_are_pairs_where_the_card_has_pairs() {
    let sources = Sources::plane(DType::U16, 512, 512);
    let mut options = Options::default();
    options.budget = Some(200_000);
    for (card, expected) in [(cuda(0, GIB), false), (wgpu(0, GIB), true)] {
        let status = machine([cpu(), card]);
        let plan = compile(&bright(), &sources, Some(&status), &options).unwrap();
        let steps = plan.variants[0].steps.iter();
        let pairs = steps.filter_map(|step| match step {
            PlanStep::Tiled { pairs, .. } => Some(*pairs),
            _ => None,
        });
        assert_eq!(pairs.collect::<Vec<_>>(), [expected], "{}", plan.summary());
    }
}

#[test]
fn a_stack_larger_than_its_card_goes_in_tiles_with_a_pass_of_the_processor_between() {
    let pipeline = Pipeline::new("large")
        .step(Step::new("soft", OpUse::new("gaussian").with("sigma", 2.0)))
        .step(Step::new("even", OpUse::new("minmax_normalize")))
        .step(Step::new(
            "wide",
            OpUse::new("mean_box").with("radius", 30_i64),
        ));
    let status = machine([cpu(), cuda(0, GIB)]);
    let sources = Sources::stack(DType::U16, 64, 2048, 2048);
    let plan = compile(&pipeline, &sources, Some(&status), &Options::default()).unwrap();
    insta::assert_snapshot!(steady(&plan.explanation()));
}

/// Without detection, too: the processor needs none.
#[test]
fn a_record_beyond_the_processor_s_budget_goes_in_tiles() {
    let pipeline = Pipeline::new("large")
        .step(Step::new("soft", OpUse::new("gaussian").with("sigma", 2.0)))
        .step(Step::new("even", OpUse::new("minmax_normalize")));
    let sources = Sources::plane(DType::U16, 2048, 2048);
    let mut options = Options::default();
    options.budget = Some(4 << 20);
    let plan = compile(&pipeline, &sources, None, &options).unwrap();
    check(&plan);
    let local: Vec<&str> = on_tiles(&plan).iter().map(|op| op.name.as_str()).collect();
    assert_eq!(local, ["soft"], "{}", plan.summary());
    insta::assert_snapshot!(steady(&plan.explanation()));
}
