//! Plans carry everything that is needed to run them, and tiles change no bit.

use proptest::prelude::*;
use warploom_core::DType;
use warploom_kernels::ImageType;
use warploom_plan::pipeline::{OpUse, Step};
use warploom_plan::{Options, Pipeline, Sources, compile};

use crate::judge::execute;
use crate::machine::{GIB, cpu, cuda, machine};
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

fn steps() -> impl Strategy<Value = Pipeline> {
    let step = (0..9_usize, 1..5_i64);
    proptest::collection::vec(step, 1..7).prop_map(|steps| {
        let mut pipeline = Pipeline::new("tiles");
        for (at, (op, radius)) in steps.into_iter().enumerate() {
            let op = match op {
                0 => OpUse::new("sqrt"),
                1 => OpUse::new("gaussian").with("sigma", radius as f64 * 0.7),
                2 => OpUse::new("mean_box").with("radius", radius),
                3 => OpUse::new("maximum_box").with("radius", radius),
                4 => OpUse::new("median_box").with("radius", 1_i64),
                5 => OpUse::new("sobel"),
                6 => OpUse::new("minmax_normalize"),
                7 => OpUse::new("top_hat_box").with("radius", radius),
                _ => OpUse::new("percentile_normalize"),
            };
            pipeline = pipeline.step(Step::new(&format!("s{at}"), op));
        }
        // What looks at whole images is not asked to be on the card.
        pipeline.output("s0", "s0.tif")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn tiles_change_no_bit(pipeline in steps(), y in 20..60_u64, x in 20..60_u64, z in 1..4_u64, share in 4..20_u64, seed in any::<u64>()) {
        let last = format!("s{}", pipeline.steps.len() - 1);
        let pipeline = pipeline.output(&last, "last.tif");
        let status = machine([cpu(), cuda(0, GIB)]);
        let sources = Sources::stack(DType::U16, z, y, x);
        let image = sources.record.image();
        let whole = compile(&pipeline, &sources, Some(&status), &Options::default()).unwrap();
        let device = whole.memory.pools.iter().find(|pool| pool.memory == "cuda.device");
        prop_assume!(device.is_some());
        let mut options = Options::default();
        options.budget = Some((device.unwrap().slot / share).max(4096));
        let small = compile(&pipeline, &sources, Some(&status), &options);
        // Nothing of it may be local, or one pixel with all that surrounds it may be too much.
        let Ok(small) = small else {
            return Ok(());
        };
        let pixels = noise(image, seed);
        prop_assert_eq!(execute(&small, image, &pixels), execute(&whole, image, &pixels), "{}", small.summary());
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
