//! Cases of the system this grew from: conversions between memories, stacks, element types.

use proptest::prelude::*;
use rstest::rstest;
use warploom_core::{DType, Element};
use warploom_kernels::ImageType;
use warploom_kernels::flow::ValueKind;
use warploom_plan::pipeline::{DTypePolicy, OpUse, Step};
use warploom_plan::plan::{CopyReason, PlanStep};
use warploom_plan::stack::{stack, unstack};
use warploom_plan::{Options, Pipeline, Sources, compile};

use crate::assignment::{codes, plane, smooth};
use crate::judge::{Values, execute, execute_on};
use crate::machine::{GIB, cpu, cuda, machine};

#[test]
fn c60_staying_in_one_memory_copies_nothing_between_steps() {
    let pipeline = Pipeline::new("p")
        .step(smooth("a").memory("cupy"))
        .step(smooth("b").memory("torch"));
    let status = machine([cpu(), cuda(0, GIB)]);
    let plan = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap();
    let routes = plan.variants[0].steps.iter().filter(|step| {
        let why = match step {
            PlanStep::Copy { why, .. } => *why,
            _ => return false,
        };
        why == CopyReason::Route
    });
    assert_eq!(routes.count(), 0);
}

#[test]
fn c61_what_is_converted_from_or_to_must_exist() {
    let from = Pipeline::new("p").step(smooth("a").memory("mlx"));
    let refusal = compile(&from, &plane(), None, &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0321"]);
    let cast = OpUse::new("cast").with("type", "quaternion");
    let to = Pipeline::new("p").step(Step::new("a", cast));
    let refusal = compile(&to, &plane(), None, &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0606"]);
}

#[test]
fn c62_host_memory_is_not_on_a_card() {
    let step = smooth("a").memory("numpy").device("cuda:0");
    let status = machine([cpu(), cuda(0, GIB)]);
    let pipeline = Pipeline::new("p").step(step);
    let refusal = compile(&pipeline, &plane(), Some(&status), &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0325"]);
}

fn small(dtype: DType) -> ImageType {
    ImageType::plane(dtype, 4, 5)
}

#[test]
fn c63_planes_make_a_stack_even_one() {
    let plane = small(DType::U16);
    let stacked = stack(&[plane, plane]).unwrap();
    assert_eq!(stacked, ImageType::stack(DType::U16, 2, 4, 5));
    assert_eq!(stack(&[plane]).unwrap().shape(), [1, 4, 5]);
}

#[test]
fn c64_c65_what_is_not_alike_makes_no_stack() {
    let plane = small(DType::U16);
    let deep = ImageType::stack(DType::U16, 2, 4, 5);
    let ragged = ImageType::plane(DType::U16, 4, 6);
    let other = small(DType::F32);
    let said: Vec<String> = [
        &[] as &[ImageType],
        &[deep],
        &[plane, ragged],
        &[plane, other],
    ]
    .into_iter()
    .map(|planes| stack(planes).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(said.join("\n"));
}

/// A stack is of records, which have a type, in host memory: what it cannot be is no value here, and
/// a file cannot say it.
#[rstest]
#[case::unknown_type(
    "dtype = \"u48\"\nforeach = \"plane\"\n[[step]]\nop = \"sqrt\"",
    "WL0308"
)]
#[case::absent_device(
    "device = \"cuda:7\"\nforeach = \"plane\"\n[[step]]\nop = \"sqrt\"",
    "WL0328"
)]
fn c64_planes_of_unknown_types_or_on_absent_devices_make_no_stack(
    #[case] text: &str,
    #[case] code: &str,
) {
    let status = machine([cpu(), cuda(0, GIB)]);
    let sources = Sources::stack(DType::U16, 3, 4, 5);
    let made = Pipeline::from_toml(text)
        .and_then(|pipeline| compile(&pipeline, &sources, Some(&status), &Options::default()));
    assert_eq!(codes(&made.unwrap_err()), [code]);
    assert!("u48".parse::<DType>().is_err());
}

/// Ours differs: a stack of no planes is refused, where the ancestor warned and gave none. A record
/// without a pixel has no result, and a run that wrote nothing for it would look complete.
#[test]
fn c66_stacks_are_taken_apart_and_nothing_else_is() {
    let (plane, places) = unstack(ImageType::stack(DType::U16, 3, 4, 5), None).unwrap();
    assert_eq!(plane, small(DType::U16));
    assert_eq!(places, [0..40, 40..80, 80..120]);
    let said: Vec<String> = [
        small(DType::U16),
        // Four axes cannot be said: an image has three extents.
        ImageType::stack(DType::U16, 0, 4, 5),
    ]
    .into_iter()
    .map(|image| unstack(image, None).unwrap_err().message)
    .collect();
    assert_eq!(
        said,
        [
            "4x5 u16 is no stack: it has 2 axes",
            "0x4x5 u16 has no planes"
        ]
    );
}

proptest! {
    #[test]
    fn c67_what_is_taken_apart_goes_together_again(z in 1..9_u64, y in 1..9_u64, x in 1..9_u64) {
        let image = ImageType::stack(DType::I32, z, y, x);
        let bytes: Vec<u8> = (0..image.bytes()).map(|at| (at * 7 % 251) as u8).collect();
        let (plane, places) = unstack(image, Some(z)).unwrap();
        let planes = vec![plane; places.len()];
        prop_assert_eq!(stack(&planes).unwrap(), image);
        let parts = places.into_iter().flat_map(|place| {
            bytes[usize::try_from(place.start).unwrap()..usize::try_from(place.end).unwrap()].to_vec()
        });
        prop_assert_eq!(parts.collect::<Vec<u8>>(), bytes);
    }
}

#[test]
fn c68_fewer_planes_than_expected_are_refused() {
    let refusal = unstack(ImageType::stack(DType::U8, 2, 4, 5), Some(3)).unwrap_err();
    assert_eq!(refusal.code.to_string(), "WL0317");
    assert_eq!(refusal.message, "2x4x5 u8 has 2 planes, and 3 are expected");
}

/// Pixels through one step, by a plan.
fn through<From: Element, To: Element>(pixels: &[From], step: Step) -> Vec<To> {
    let pipeline = Pipeline::new("p").step(step);
    let image = ImageType::plane(From::DTYPE, 1, pixels.len() as u64);
    let plan = compile(&pipeline, &Sources::new(image), None, &Options::default());
    let plan = plan.unwrap_or_else(|found| panic!("{}", found[0]));
    let bytes = execute(&plan, image, bytemuck::cast_slice(pixels));
    let (_, bytes) = bytes.into_iter().next().unwrap();
    bytes
        .chunks_exact(size_of::<To>())
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

fn cast(to: DType) -> Step {
    Step::new(
        "a",
        OpUse::new("cast").with("type", to.to_string().as_str()),
    )
}

/// From 0 to 1 onto 0 to the most there is: said, not guessed from the pixels.
fn stretched(to: DType, most: f64) -> Step {
    let scale = OpUse::new("affine_intensity").with("scale", most);
    Step::chain("a", [scale]).dtype(to)
}

#[test]
fn c69_c70_c72_ranges_are_whole_and_rounding_is_to_nearest_even() {
    let pixels = [0.0_f32, 0.5, 1.0];
    assert_eq!(
        through::<_, u8>(&pixels, stretched(DType::U8, 255.0)),
        [0, 128, 255]
    );
    assert_eq!(
        through::<_, u16>(&pixels, stretched(DType::U16, 65_535.0)),
        [0, 32_768, 65_535]
    );
    let most = f64::from(u32::MAX);
    assert_eq!(
        through::<_, u32>(&pixels, stretched(DType::U32, most)),
        [0, 2_147_483_648, u32::MAX]
    );
    assert_eq!(
        through::<_, i16>(&pixels, stretched(DType::I16, 32_767.0)),
        [0, 16_384, i16::MAX]
    );
    let most = f64::from(i32::MAX);
    assert_eq!(
        through::<_, i32>(&pixels, stretched(DType::I32, most)),
        [0, 1_073_741_824, i32::MAX]
    );
}

#[rstest]
#[case("i8")]
#[case("i64")]
#[case("u64")]
fn c71_types_nobody_works_in_are_refused(#[case] dtype: &str) {
    let op = OpUse::new("cast").with("type", dtype);
    let pipeline = Pipeline::new("p").step(Step::new("a", op));
    let refusal = compile(&pipeline, &plane(), None, &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0606"]);
    let text = format!("dtype = \"{dtype}\"\n[[step]]\nop = \"sqrt\"");
    assert!(Pipeline::from_toml(&text).is_err());
}

#[test]
fn c73_c74_what_is_too_large_saturates() {
    assert_eq!(through::<_, u8>(&[0.5_f32, 0.5], cast(DType::U8)), [0, 0]);
    assert_eq!(
        through::<_, u8>(&[300.0_f32, 1.5, 2.5, -3.0], cast(DType::U8)),
        [255, 2, 2, 0]
    );
    assert_eq!(
        through::<_, u8>(&[300_u16, 255, 7], cast(DType::U8)),
        [255, 255, 7]
    );
    assert_eq!(
        through::<_, i16>(&[65_535_u16, 5], cast(DType::I16)),
        [i16::MAX, 5]
    );
}

#[test]
fn c75_one_nan_harms_one_pixel() {
    let pixels = [1.0_f32, f32::NAN, 3.0, f32::INFINITY, f32::NEG_INFINITY];
    assert_eq!(
        through::<_, u8>(&pixels, cast(DType::U8)),
        [1, 0, 3, 255, 0]
    );
}

#[test]
fn c76_preserving_the_type_preserves_the_values() {
    let op = OpUse::new("affine_intensity").with("scale", 1.0);
    let mut step = Step::new("a", op);
    step.dtype = Some(DTypePolicy::Input);
    let pixels = [100_u16, 150, 200];
    assert_eq!(through::<_, u16>(&pixels, step), pixels);
}

#[test]
fn c77_images_that_differ_stay_different() {
    let double = || {
        let mut step = Step::new("a", OpUse::new("affine_intensity").with("scale", 2.0));
        step.dtype = Some(DTypePolicy::Input);
        step
    };
    assert_eq!(through::<_, u16>(&[10_u16, 20, 40], double()), [20, 40, 80]);
    let bright = [1000_u16, 2000, 4000];
    assert_eq!(through::<_, u16>(&bright, double()), [2000, 4000, 8000]);
}

/// Several results of a plane are one kind of thing each, and every plane has all of them: a file
/// cannot say otherwise. Without planes there is no record.
#[test]
fn c78_every_plane_gives_all_results() {
    let text = r#"
        foreach = "plane"
        [[step]]
        name = "labels"
        chain = ["threshold_otsu", "label_box"]
        [[step]]
        name = "cells"
        op = "label_statistics"
        input = ["labels", "image"]
        [[output]]
        of = "labels"
        write = "{record}-labels.tif"
        [[output]]
        of = "cells"
        write = "{record}-cells.csv"
    "#;
    let pipeline = Pipeline::from_toml(text).unwrap();
    let sources = Sources::stack(DType::U16, 3, 16, 16);
    let plan = compile(&pipeline, &sources, None, &Options::default()).unwrap();
    let outputs = &plan.variants[0].outputs;
    let told: Vec<(&str, u64)> = outputs.iter().map(|o| (o.of.as_str(), o.planes)).collect();
    assert_eq!(told, [("labels", 3), ("cells", 3)]);
    assert_eq!(
        (outputs[0].gives.as_str(), outputs[0].whole.as_str()),
        ("16x16 u32", "3x16x16 u32")
    );
    // Each of the planes, by itself.
    let (plane, places) = unstack(sources.record.image(), None).unwrap();
    for place in places {
        let pixels: Vec<u16> = (place.start..place.end)
            .step_by(2)
            .map(|at| (at % 97) as u16)
            .collect();
        let given = (
            ValueKind::Image(plane),
            bytemuck::cast_slice(&pixels).to_vec(),
        );
        let results = execute_on(&plan, 0, Values::from([("image".to_owned(), given)]));
        assert_eq!(results.keys().collect::<Vec<_>>(), ["cells", "labels"]);
    }
    let none = Sources::stack(DType::U16, 0, 16, 16);
    let refusal = compile(&pipeline, &none, None, &Options::default()).unwrap_err();
    assert_eq!(codes(&refusal), ["WL0317"]);
}
