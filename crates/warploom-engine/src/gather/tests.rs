//! Reductions gathered in a pass give the bytes of reductions of their own.

use proptest::prelude::*;
use warploom_core::DType;
use warploom_flow::Boundary;
use warploom_flow::expr::Ty;
use warploom_flow::flow::{Flow, Prim, ThresholdMethod, ValueId, ValueKind, Weights};
use warploom_flow::image::ImageType;

use crate::{Engine, Pass, partition};

/// Runs passes of a flow of one input; the bytes of its outputs.
fn run(flow: &Flow, passes: &[Pass], input: &[u8]) -> Vec<Vec<u8>> {
    // Words, so that every value is aligned. Bits that are no zeros, to be seen where nobody writes.
    let blank = |kind: &ValueKind| vec![u64::MAX / 3; kind.bytes().div_ceil(8) as usize];
    let mut memory: Vec<Vec<u64>> = flow.values().iter().map(|v| blank(&v.kind)).collect();
    let first: &mut [u8] = bytemuck::cast_slice_mut(&mut memory[flow.inputs()[0] as usize]);
    first[..input.len()].copy_from_slice(input);
    for pass in passes {
        let take = |id: &ValueId| std::mem::take(&mut memory[*id as usize]);
        let mut results: Vec<Vec<u64>> = pass.outputs.iter().map(take).collect();
        let reads = pass.inputs.iter().map(|id| &memory[*id as usize]);
        let reads: Vec<&[u8]> = reads.map(|words| bytemuck::cast_slice(words)).collect();
        let writes = results.iter_mut();
        let mut writes: Vec<&mut [u8]> = writes
            .map(|words| bytemuck::cast_slice_mut(words))
            .collect();
        let engine = Engine::new(flow, pass);
        // Twice, since memory is kept from the first run.
        engine.run(flow, &reads, &mut writes);
        engine.run(flow, &reads, &mut writes);
        for (id, words) in pass.outputs.iter().zip(results) {
            memory[*id as usize] = words;
        }
    }
    let bytes = |id: &ValueId| {
        let bytes: &[u8] = bytemuck::cast_slice(&memory[*id as usize]);
        bytes[..flow.kind(*id).bytes() as usize].to_vec()
    };
    flow.outputs().iter().map(bytes).collect()
}

/// A reduction of a random flow.
#[derive(Clone, Copy, Debug)]
enum End {
    Totals,
    /// Totals of which a formula reads one number.
    One(u32),
    Histogram,
    /// Between the extremes.
    Between,
    Percentiles,
    Threshold(ThresholdMethod),
}

fn end() -> impl Strategy<Value = End> {
    let methods = vec![
        ThresholdMethod::Otsu,
        ThresholdMethod::Triangle,
        ThresholdMethod::Li,
        ThresholdMethod::Yen,
        ThresholdMethod::Isodata,
        ThresholdMethod::Mean,
    ];
    prop_oneof![
        Just(End::Totals),
        (0..5_u32).prop_map(End::One),
        Just(End::Histogram),
        Just(End::Between),
        Just(End::Percentiles),
        prop::sample::select(methods).prop_map(End::Threshold),
    ]
}

fn add(flow: &mut Flow, image: ValueId, end: End) {
    let counts = ValueKind::List {
        dtype: DType::U32,
        length: 37,
    };
    let result = match end {
        End::Totals => flow.add(Prim::Totals, &[image], ValueKind::scalars(5)),
        End::One(index) => {
            let totals = flow.add(Prim::Totals, &[image], ValueKind::scalars(5));
            flow.map(&[image, totals], image, DType::F32, &[], |g, images, _| {
                g.pixel(images[0]).cast(Ty::F32) - g.scalar(images[1], index).cast(Ty::F32)
            })
        }
        End::Histogram => {
            let (low, high) = (Some(-10.0), Some(150.0));
            let bins = 37;
            flow.add(Prim::Histogram { bins, low, high }, &[image], counts)
        }
        End::Between => {
            let totals = flow.add(Prim::Totals, &[image], ValueKind::scalars(5));
            let prim = Prim::Histogram {
                bins: 37,
                low: None,
                high: None,
            };
            flow.add(prim, &[image, totals], counts)
        }
        End::Percentiles => {
            let q = vec![3.0, 50.0, 99.0];
            flow.add(Prim::Percentiles { q }, &[image], ValueKind::scalars(3))
        }
        End::Threshold(method) => {
            let prim = Prim::Threshold { method, bins: 64 };
            flow.add(prim, &[image], ValueKind::scalars(1))
        }
    };
    flow.output(result);
}

/// What is done before: nothing, a formula, sums, or both.
fn before(flow: &mut Flow, image: ValueId, kind: u8, dtype: DType) -> ValueId {
    let mut image = image;
    if kind & 1 != 0 {
        image = flow.map(&[image], image, dtype, &[], |g, images, _| {
            g.pixel(images[0]).cast(Ty::F32) * 0.75 - 20.0
        });
    }
    if kind & 2 != 0 {
        for axis in [1, 2] {
            let weights = Weights::Even(vec![0.5, 0.25]);
            image = flow.taps(image, axis, weights, Boundary::Reflect);
        }
    }
    image
}

fn alone(flow: &Flow) -> Vec<Pass> {
    (0..flow.nodes().len())
        .map(|at| Pass::alone(flow, at))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn gathered_is_what_reductions_find(
        dims in [1_u64..4, 1_u64..70, 1_u64..200],
        dtype in prop::sample::select(vec![DType::U8, DType::I16, DType::U16, DType::F32, DType::U32]),
        kind in 0..4_u8,
        ends in prop::collection::vec(end(), 1..4),
        is_given: bool,
        threads in 1..4_usize,
        seed in 1..u32::MAX,
        special in prop::sample::select(vec![f32::NAN, -0.0, f32::INFINITY, 3.0]),
    ) {
        let mut flow = Flow::new();
        let of = ImageType::stack(DType::F32, dims[0], dims[1], dims[2]);
        let input = flow.input(ValueKind::Image(of));
        let image = before(&mut flow, input, kind, dtype);
        for end in &ends {
            add(&mut flow, image, *end);
        }
        if is_given && image != input {
            flow.output(image);
        }
        let pixels = dims.iter().product::<u64>() as u32;
        let noise = |at: u32| at.wrapping_mul(2_654_435_761).wrapping_mul(seed) >> 20;
        let data: Vec<f32> = (0..pixels)
            .map(|at| if noise(at) == 77 { special } else { (noise(at) % 200) as f32 - 7.0 })
            .collect();
        let bytes = bytemuck::cast_slice(&data);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (shared, single) = (partition(&flow, 64), alone(&flow));
        let found = pool.install(|| run(&flow, &shared, bytes));
        prop_assert_eq!(found, run(&flow, &single, bytes));
    }
}

/// Primitives of each pass.
fn names(flow: &Flow) -> Vec<Vec<&'static str>> {
    let name = |at: &usize| flow.nodes()[*at].prim.name();
    let passes = partition(flow, 64);
    passes
        .iter()
        .map(|pass| pass.nodes.iter().map(name).collect())
        .collect()
}

#[test]
fn reductions_go_with_the_pass_that_makes_their_image() {
    let mut flow = Flow::new();
    let input = flow.input(ValueKind::Image(ImageType::plane(DType::F32, 30, 40)));
    let image = before(&mut flow, input, 3, DType::F32);
    add(&mut flow, image, End::Histogram);
    add(&mut flow, image, End::Threshold(ThresholdMethod::Mean));
    let all = ["map", "taps", "taps", "histogram", "threshold"];
    assert_eq!(names(&flow), [all]);
    // Nobody looks at the image again, so it is nowhere but in the cache.
    let passes = partition(&flow, 64);
    assert!(!passes[0].outputs.contains(&image));
    add(&mut flow, image, End::Totals);
    assert_eq!(names(&flow).len(), 1);
    let passes = partition(&flow, 64);
    assert!(passes[0].outputs.contains(&image), "for the deviation");
}

#[test]
fn several_reductions_of_an_input_are_one_pass() {
    let mut flow = Flow::new();
    let image = flow.input(ValueKind::Image(ImageType::plane(DType::U16, 30, 40)));
    add(&mut flow, image, End::Percentiles);
    add(&mut flow, image, End::Threshold(ThresholdMethod::Otsu));
    assert_eq!(names(&flow), [["percentiles", "threshold"]]);
}

#[test]
fn numbers_are_there_when_the_pass_is_over() {
    let mut flow = Flow::new();
    let input = flow.input(ValueKind::Image(ImageType::plane(DType::F32, 30, 40)));
    let image = before(&mut flow, input, 1, DType::F32);
    add(&mut flow, image, End::One(1));
    assert_eq!(names(&flow), [vec!["map", "totals"], vec!["map"]]);
}
