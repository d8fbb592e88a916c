//! Every operation lowers into what the catalogue promises, and formulas give their numbers.

use warploom_core::{DType, Element};

use super::{lower, lower_into, lower_rows};
use crate::expr::{Datum, Evaluator, Pixels, Source};
use crate::flow::{Flow, Prim, ValueKind};
use crate::image::ImageType;
use crate::op::{Fallback, Given, OpCall, OpInfo, PIXELS, Role, ValueType, ops};

/// A value for each parameter that must be given.
fn given(op: &OpInfo, rank: u8) -> Given {
    let required = op.params().filter(|p| p.fallback == Fallback::Required);
    let mut given = required.fold(Given::new(), |given, param| {
        let text = match param.name {
            "radius" | "factor" | "overlap" => "2",
            "sigma" | "sigma1" => "1.5",
            "sigma2" => "2.5",
            "exponent" | "gamma" => "1.7",
            "value" | "minimum" | "low" => "3",
            "maximum" | "high" => "7",
            "type" => "i16",
            "q" => "30",
            "before" => "1",
            "degrees" => "10",
            "matrix" if rank == 2 => "1,0.1,0,1",
            "matrix" => "1,0,0,0,1,0.1,0,0,1",
            other => panic!("a test value for {other} of {}", op.name),
        };
        given.with(param.name, text)
    });
    if op.name == "richardson_lucy" {
        given = given.with("sigma", 1.5);
    }
    given
}

fn images(op: &OpInfo, dtype: DType, dims: [u64; 3], rank: u8) -> Vec<ImageType> {
    let needed = op.inputs.iter().filter(|input| !input.optional);
    let image = |input: &crate::op::InputInfo| {
        let dims = if input.role == Role::Kernel {
            dims.map(|extent| extent.min(3))
        } else {
            dims
        };
        let dtype = if input.takes().contains(&dtype) {
            dtype
        } else {
            DType::U32
        };
        ImageType { dtype, dims, rank }
    };
    needed.map(image).collect()
}

/// Every value of a flow is written before it is read, and once.
fn check_order(flow: &Flow, what: &str) {
    let mut known: Vec<u32> = flow.inputs().to_vec();
    for node in flow.nodes() {
        for input in &node.inputs {
            assert!(known.contains(input), "{what}: {input} is read too early");
        }
        known.extend(&node.outputs);
    }
    let count = known.len();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len(), count, "{what}: a value is written twice");
}

#[test]
fn every_operation_gives_what_the_catalogue_promises() {
    let shapes = [
        ([1, 12, 9], 2),
        ([5, 7, 6], 3),
        ([1, 8, 9], 3),
        ([1, 1, 11], 2),
        ([1, 9, 1], 2),
        ([4, 1, 6], 3),
        ([1, 1, 1], 2),
    ];
    let (mut seen, mut lowered) = (0, 0);
    for op in ops() {
        let before = lowered;
        for dtype in PIXELS {
            for (dims, rank) in shapes {
                let images = images(op, *dtype, dims, rank);
                let Ok(call) = OpCall::new(op.name, &given(op, rank), &images) else {
                    continue;
                };
                let flow = lower(&call);
                check_order(&flow, op.name);
                let outputs: Vec<ValueKind> =
                    flow.outputs().iter().map(|id| flow.kind(*id)).collect();
                let [output] = outputs[..] else {
                    panic!("{} has {} results", op.name, outputs.len());
                };
                match (call.output(), output) {
                    (ValueType::Image(image), kind) => {
                        assert_eq!(kind, ValueKind::Image(*image), "{call} of {images:?}");
                    }
                    (ValueType::Scalars { count, .. }, ValueKind::List { dtype, length }) => {
                        assert_eq!(length, *count, "{call}");
                        let counts = op.name == "histogram";
                        assert_eq!(dtype, if counts { DType::U32 } else { DType::F64 });
                    }
                    (ValueType::Table { columns }, ValueKind::List { dtype, length }) => {
                        assert_eq!(dtype, DType::F64);
                        let rows = call.image().pixels();
                        assert_eq!(length, 1 + rows * columns.len() as u64);
                    }
                    (promised, kind) => panic!("{call}: {promised} became {kind:?}"),
                }
                let given = flow.outputs()[0];
                assert!(!flow.inputs().contains(&given), "{call} gives its input");
                lowered += 1;
            }
        }
        assert!(lowered > before, "{} was never lowered", op.name);
        seen += 1;
    }
    assert!(seen > 100 && lowered > 3000, "{seen} {lowered}");
}

#[test]
fn primitives_get_the_types_they_are_written_for() {
    for op in ops() {
        for dtype in PIXELS {
            let images = images(op, *dtype, [4, 9, 8], 3);
            let call = OpCall::new(op.name, &given(op, 3), &images).unwrap();
            let flow = lower(&call);
            for node in flow.nodes() {
                let types: Vec<DType> = node
                    .inputs
                    .iter()
                    .map(|id| flow.kind(*id).dtype())
                    .collect();
                let fits = match node.prim {
                    Prim::Label(_) | Prim::Distance => types == [DType::U8],
                    Prim::KeepSizes { .. }
                    | Prim::ClearBorder
                    | Prim::Relabel
                    | Prim::Expand { .. } => types == [DType::U32],
                    Prim::Convolve { .. } | Prim::FftConvolve => types[1] == call.computes_in(),
                    Prim::Watershed | Prim::Statistics { .. } => types[0] == DType::U32,
                    _ => true,
                };
                assert!(fits, "{call}: {:?} of {types:?}", node.prim);
            }
        }
    }
}

#[test]
fn operations_chain_in_one_flow() {
    let image = ImageType::plane(DType::U16, 30, 40);
    let mut flow = Flow::new();
    let input = flow.input(ValueKind::Image(image));
    let blur = OpCall::new("gaussian", &Given::new().with("sigma", 2.0), &[image]).unwrap();
    let blurred = lower_into(&mut flow, &blur, &[input]);
    let between = blur.output().image().unwrap();
    let mask = OpCall::new("threshold_otsu", &Given::new(), &[between]).unwrap();
    let mask = lower_into(&mut flow, &mask, &blurred);
    flow.output(mask[0]);
    check_order(&flow, "chain");
    let prims: Vec<&str> = flow.nodes().iter().map(|node| node.prim.name()).collect();
    assert_eq!(prims, ["taps", "taps", "threshold", "map"]);
}

#[test]
fn new_numbers_do_not_change_expressions() {
    let image = ImageType::plane(DType::U16, 8, 8);
    let dag = |scale: f64| {
        let given = Given::new()
            .with("scale", scale)
            .with("offset", scale * 3.0);
        let call = OpCall::new("affine_intensity", &given, &[image]).unwrap();
        match lower(&call).nodes()[0].prim.clone() {
            Prim::Map { dag, .. } => dag,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(dag(1.0), dag(2.5));
}

#[test]
fn tables_get_the_room_asked_for() {
    let labels = ImageType::plane(DType::U32, 1000, 1000);
    let image = labels.with_dtype(DType::F32);
    let call = OpCall::new("label_statistics", &Given::new(), &[labels, image]).unwrap();
    let length = |flow: Flow| flow.kind(flow.outputs()[0]).elements();
    assert_eq!(length(lower(&call)), 1 + super::ROWS * 13);
    assert_eq!(length(lower_rows(&call, 10)), 1 + 10 * 13);
}

/// Runs a flow of expressions only, on images without gaps.
fn run<T: Element, U: Element>(
    name: &str,
    given: &[(&str, &str)],
    dims: [u64; 3],
    images: &[&[T]],
) -> Vec<U> {
    let kinds: Vec<ImageType> = images
        .iter()
        .map(|_| ImageType {
            dtype: T::DTYPE,
            dims,
            rank: if dims[0] > 1 { 3 } else { 2 },
        })
        .collect();
    let given = given.iter().fold(Given::new(), |given, (name, value)| {
        given.with(*name, *value)
    });
    let call = OpCall::new(name, &given, &kinds).unwrap();
    let flow = lower(&call);
    let mut bytes: Vec<Vec<u8>> = vec![Vec::new(); flow.values().len()];
    for (id, image) in flow.inputs().iter().zip(images) {
        bytes[*id as usize] = bytemuck::cast_slice(image).to_vec();
    }
    for node in flow.nodes() {
        let Prim::Map { dag, numbers } = &node.prim else {
            panic!("{name} has a {}", node.prim.name());
        };
        let numbers: Vec<Datum> = numbers.iter().map(|number| (*number).into()).collect();
        let sources: Vec<Source<'_>> = node
            .inputs
            .iter()
            .map(|id| {
                let kind = flow.kind(*id);
                let bytes = &bytes[*id as usize];
                Source::Image(Pixels::packed(bytes, kind.dtype(), kind.dims()))
            })
            .collect();
        let dims = flow.kind(node.outputs[0]).dims();
        let results = Evaluator::new(dag, &numbers, &sources, dims).all();
        for (id, result) in node.outputs.iter().zip(results) {
            bytes[*id as usize] = result;
        }
    }
    let result = &bytes[flow.outputs()[0] as usize];
    result
        .chunks_exact(size_of::<U>())
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

const NAN: f32 = f32::NAN;

#[test]
fn pointwise_formulas() {
    let row = |name, given, a: [f32; 4]| run::<f32, f32>(name, given, [1, 1, 4], &[&a]);
    let a = [1.0, -4.0, 0.25, 9.0];
    assert_eq!(
        row("affine_intensity", &[("scale", "2"), ("offset", "-1")], a),
        [1.0, -9.0, -0.5, 17.0]
    );
    assert_eq!(
        row("power", &[("exponent", "2")], a),
        [1.0, 16.0, 0.0625, 81.0]
    );
    assert_eq!(
        row("power", &[("exponent", "3")], a),
        [1.0, -64.0, 0.015_625, 729.0]
    );
    assert_eq!(
        row("power", &[("exponent", "-1")], a),
        [1.0, -0.25, 4.0, 1.0 / 9.0]
    );
    assert_eq!(row("abs", &[], a), [1.0, 4.0, 0.25, 9.0]);
    assert_eq!(
        row("invert", &[("maximum", "10")], a),
        [9.0, 14.0, 9.75, 1.0]
    );
    let root = row(
        "power",
        &[("exponent", "0.5")],
        [4.0, -0.0, f32::NEG_INFINITY, -1.0],
    );
    assert_eq!(root[..2], [2.0, 0.0]);
    assert!(root[2].is_nan() && root[3].is_nan() && root[1].is_sign_negative());
    let clipped = row(
        "clip",
        &[("low", "0"), ("high", "5")],
        [NAN, -1.0, 3.0, 7.0],
    );
    assert!(clipped[0].is_nan());
    assert_eq!(clipped[1..], [0.0, 3.0, 5.0]);
    assert_eq!(row("clip", &[("high", "0.5")], a), [0.5, -4.0, 0.25, 0.5]);
    let gamma = row(
        "gamma",
        &[("gamma", "2"), ("maximum", "10")],
        [10.0, 5.0, 0.0, 1.0],
    );
    assert_eq!(gamma[..3], [10.0, 2.5, 0.0]);
    assert!((gamma[3] - 0.1).abs() < 1e-8, "{gamma:?}");
}

/// Powers that are a few operations, at the ends of the range and beside a general one.
#[test]
fn short_powers_are_those_of_ieee() {
    let ends = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY];
    let far = [1e20, 1e-20, -1e-13, 3e-39];
    let near = [1.7, -0.3, 12_345.678, NAN];
    for exponent in [3.0_f32, 4.0, -2.0, 1.5] {
        let text = exponent.to_string();
        for a in [ends, far, near] {
            let found = run::<f32, f32>("power", &[("exponent", &text)], [1, 1, 4], &[&a]);
            for (x, found) in a.iter().zip(found) {
                #[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
                let want = f64::from(*x).powf(f64::from(exponent)) as f32;
                let is_same = found.to_bits().abs_diff(want.to_bits()) <= 2;
                assert!(
                    is_same || (found.is_nan() && want.is_nan()),
                    "{x}^{exponent} = {want}, found {found}"
                );
            }
        }
    }
}

#[test]
fn casts_map_on_fixed_scales() {
    let cast = |given: &[(&str, &str)], a: &[u16]| {
        run::<u16, u8>("cast", given, [1, 1, a.len() as u64], &[a])
    };
    let a = [0, 1, 255, 256, 65_535];
    assert_eq!(cast(&[("type", "u8")], &a), [0, 1, 255, 255, 255]);
    assert_eq!(
        cast(&[("type", "u8"), ("mode", "wrap")], &a),
        [0, 1, 255, 0, 255]
    );
    let scaled = [("type", "u8"), ("scale_from", "65535")];
    assert_eq!(cast(&scaled, &a), [0, 0, 1, 1, 255]);
    let part = [
        ("type", "u8"),
        ("scale_from", "1,257"),
        ("scale_to", "10,138"),
    ];
    assert_eq!(cast(&part, &a), [10, 10, 137, 138, 255]);
    let wrapped = run::<f32, i16>(
        "cast",
        &[("type", "i16"), ("mode", "wrap")],
        [1, 1, 5],
        &[&[32_768.0, -32_769.0, 2.5, NAN, 65_537.6]],
    );
    assert_eq!(wrapped, [32_767, -32_768, 2, 0, 32_767]);
    let wrapped: Vec<i16> = run(
        "cast",
        &[("type", "i16"), ("mode", "wrap")],
        [1, 1, 3],
        &[&[32_768_u32, 65_535, u32::MAX - 1]],
    );
    assert_eq!(wrapped, [-32_768, -1, -2]);
    let unit = run::<u8, f32>(
        "cast",
        &[("type", "f32"), ("scale_to", "1")],
        [1, 1, 2],
        &[&[51, 255]],
    );
    assert_eq!(unit, [0.2, 1.0]);
}

#[test]
fn comparisons_of_whole_numbers_are_exact() {
    // Neighbours that f32 cannot tell apart.
    let a = [16_777_216, 16_777_217, i32::MIN, i32::MAX];
    let test = |name, value| run::<i32, u8>(name, &[("value", value)], [1, 1, 4], &[&a]);
    assert_eq!(test("greater", "16777216"), [0, 1, 0, 1]);
    assert_eq!(test("less_equal", "16777216.5"), [1, 0, 1, 0]);
    assert_eq!(test("equal", "2147483647"), [0, 0, 0, 1]);
    assert_eq!(test("equal", "0.5"), [0; 4]);
    assert_eq!(test("less", "-2147483648"), [0; 4]);
    assert_eq!(test("greater_equal", "-1e30"), [1; 4]);
    let limits = [("low", "0.5"), ("high", "inf")];
    assert_eq!(
        run::<f32, u8>("between", &limits, [1, 1, 3], &[&[0.5, NAN, f32::INFINITY]]),
        [1, 0, 1]
    );
}

#[test]
fn images_combine() {
    let two =
        |name, a: &[f32], b: &[f32]| run::<f32, f32>(name, &[], [1, 1, a.len() as u64], &[a, b]);
    assert_eq!(
        two("divide_images", &[1.0, 3.0], &[0.0, 2.0]),
        [f32::INFINITY, 1.5]
    );
    assert_eq!(
        two("absolute_difference", &[1.0, 3.0], &[4.0, 2.0]),
        [3.0, 1.0]
    );
    let max = two("maximum_images", &[1.0, NAN, 5.0], &[2.0, 1.0, NAN]);
    assert_eq!(max, [2.0, 1.0, 5.0]);
    let min = run::<u32, u32>(
        "minimum_images",
        &[],
        [1, 1, 2],
        &[&[u32::MAX, 3], &[u32::MAX - 1, 4]],
    );
    assert_eq!(min, [u32::MAX - 1, 3]);
    let masked = run::<u16, u16>("mask_image", &[], [1, 1, 3], &[&[7, 8, 9], &[0, 2, 1]]);
    assert_eq!(masked, [0, 8, 9]);
    let chosen = run::<i16, i16>(
        "select",
        &[],
        [1, 1, 3],
        &[&[0, 1, -1], &[1, 2, 3], &[-4, -5, -6]],
    );
    assert_eq!(chosen, [-4, 2, 3]);
    let xor = run::<f32, u8>(
        "binary_xor",
        &[],
        [1, 1, 3],
        &[&[0.0, 2.0, NAN], &[1.0, 0.5, 0.0]],
    );
    assert_eq!(xor, [1, 0, 1]);
}

#[test]
fn stencils_give_the_numbers_of_scipy() {
    let a: [u8; 12] = [1, 5, 2, 8, 0, 3, 9, 4, 7, 6, 250, 12];
    let filter = |name, given: &[(&str, &str)]| run::<u8, f32>(name, given, [1, 3, 4], &[&a]);
    // scipy.ndimage, mode="nearest" and "constant"
    let sobel = filter("sobel", &[]);
    let squares = [
        250.0,
        148.0,
        164.0,
        194.0,
        442.0,
        134_180.0,
        251_122.0,
        126_164.0_f32,
    ];
    assert_eq!(sobel[..8], squares.map(f32::sqrt));
    assert_eq!(
        filter("laplace_diamond", &[])[..6],
        [-3.0, 9.0, -16.0, 10.0, -11.0, -8.0]
    );
    let zero = filter("laplace_box", &[("boundary", "zero")]);
    assert_eq!(zero[..6], [0.0, 25.0, -13.0, 49.0, -22.0, -256.0]);
    assert_eq!(filter("gradient_x", &[])[..4], [4.0, 0.5, 1.5, 6.0]);
    assert_eq!(
        filter("gradient_y", &[])[..6],
        [-1.0, -2.0, 7.0, -4.0, 3.0, 0.5]
    );
}

#[test]
fn diamonds_grow_and_shrink() {
    let mut a = [0_u8; 25];
    a[12] = 200;
    let given = [("shape", "diamond"), ("iterations", "2")];
    let grown: Vec<u8> = run("binary_dilate", &given, [1, 5, 5], &[&a]);
    assert_eq!(grown.iter().map(|v| u32::from(*v)).sum::<u32>(), 13);
    let back: Vec<u8> = run("binary_erode", &given, [1, 5, 5], &[&grown]);
    assert_eq!(back, a.map(|v| u8::from(v != 0)));
    let all: Vec<u8> = run("binary_erode", &given, [1, 5, 5], &[&[1; 25]]);
    assert_eq!(all, [1; 25]);
}

#[test]
fn hats_saturate() {
    // With radius 0 along the only long axis the window is a pixel: a - a.
    let flat: Vec<i32> = run("top_hat_box", &[("radius", "1")], [1, 1, 1], &[&[i32::MIN]]);
    assert_eq!(flat, [0]);
}
