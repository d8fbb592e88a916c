//! Expressions in the kernels of other primitives: before them, behind them, both.

use warploom_core::DType;
use warploom_kernels::Boundary;
use warploom_kernels::ImageType;
use warploom_kernels::expr::Ty;
use warploom_kernels::flow::{
    Combine, Connectivity, Flow, Footprint, Number, Prim, Project, Taps, ThresholdMethod, Tile,
    ValueId, ValueKind, Weights,
};
use warploom_kernels::fuse::{Fused, Options, fuse};
use warploom_kernels::gpu::Tuning;
use warploom_kernels::kernel::Target;
use warploom_kernels::program::Program;

use super::case::{Case, image};
use super::devices::agree;

const DIMS: [u64; 3] = [3, 21, 140];

/// An expression of two images and a number.
fn mixed(flow: &mut Flow, a: ValueId, b: ValueId, dtype: DType) -> ValueId {
    let numbers = [Number::F32(0.75), Number::F64(1.0 / 3.0)];
    flow.map(&[a, b], a, dtype, &numbers, |g, images, n| {
        let [a, b] = [0, 1].map(|at| g.pixel(images[at]).cast(Ty::F32));
        (a.fma(n[0], b) / 3.0).cast(Ty::F64) * n[1] - 7.0
    })
}

/// An expression of one image and of numbers that were computed earlier.
fn scaled(flow: &mut Flow, a: ValueId, list: ValueId, dtype: DType) -> ValueId {
    flow.map(&[list, a], a, dtype, &[], |g, inputs, _| {
        let by = g.scalar(inputs[0], 1);
        g.pixel(inputs[1]).cast(Ty::F64) * by + g.scalar(inputs[0], 0)
    })
}

fn totals(flow: &mut Flow, image: ValueId) -> ValueId {
    flow.add(Prim::Totals, &[image], ValueKind::scalars(5))
}

/// What looks at whole images, and what it gives.
fn reductions() -> Vec<(Prim, ValueKind)> {
    let table = |bins: u32| ValueKind::List {
        dtype: DType::U32,
        length: u64::from(bins),
    };
    let histogram = |bins| Prim::Histogram {
        bins,
        low: Some(-20.0),
        high: Some(90.5),
    };
    let threshold = |method| Prim::Threshold { method, bins: 64 };
    let q = |count: u32| Prim::Percentiles {
        q: (0..count).map(|at| 7.0 * f64::from(at) + 0.5).collect(),
    };
    vec![
        (Prim::Totals, ValueKind::scalars(5)),
        (histogram(17), table(17)),
        (histogram(5000), table(5000)),
        (q(2), ValueKind::scalars(2)),
        (q(13), ValueKind::scalars(13)),
        (threshold(ThresholdMethod::Otsu), ValueKind::scalars(1)),
        (threshold(ThresholdMethod::Mean), ValueKind::scalars(1)),
    ]
}

/// What gives an image of an image of this type.
fn filters(dtype: DType, boundary: Boundary) -> Vec<(Prim, ValueKind)> {
    let kind = |dtype| ValueKind::Image(image(dtype, DIMS));
    let [nz, ny, nx] = DIMS;
    let real = warploom_kernels::flow::real(dtype);
    let taps = |axis, weights| {
        Prim::Taps(Taps {
            axis,
            weights,
            boundary,
        })
    };
    let even = || Weights::Even(vec![0.4, 0.2, 0.1]);
    let window = |axis, combine| Prim::Window {
        axis,
        radius: 2,
        combine,
        boundary,
    };
    let ball = Footprint::Ball([0.0, 1.5, 1.5]);
    let mut all = Vec::new();
    for axis in 0..3 {
        all.push((taps(axis, even()), kind(real)));
        all.push((window(axis, Combine::Sum), kind(real)));
        all.push((window(axis, Combine::Max), kind(dtype)));
        all.push((Prim::Flip { axis }, kind(dtype)));
    }
    let any = Weights::Any(vec![0.1, 0.2, 0.3]);
    all.push((taps(2, any), kind(real)));
    let around = Prim::Around {
        footprint: ball,
        combine: Combine::Max,
        boundary,
    };
    all.push((around, kind(dtype)));
    let rank = Prim::Rank {
        footprint: ball,
        rank: 2,
        boundary,
    };
    all.push((rank, kind(dtype)));
    let tile = |dtype| ValueKind::Image(image(dtype, [nz, ny / 3, nx / 2]));
    let bin = |tile| Prim::Bin {
        factor: [1, 3, 2],
        tile,
    };
    all.push((bin(Tile::Mean), tile(real)));
    all.push((bin(Tile::Max), tile(dtype)));
    let flat = |dtype| ValueKind::Image(ImageType::plane(dtype, ny, nx));
    all.push((Prim::Project(Project::Max), flat(dtype)));
    all.push((Prim::Project(Project::Std), flat(real)));
    let turned = ValueKind::Image(image(dtype, [nz, nx, ny]));
    all.push((Prim::Transpose { axes: [1, 2] }, turned));
    all
}

/// An expression before a primitive and, where it gives an image, one behind it.
fn around(prim: &Prim, gives: ValueKind, dtype: DType, kept: bool) -> Flow {
    let mut flow = Flow::new();
    let [a, b] =
        [DType::U16, DType::F32].map(|dtype| flow.input(ValueKind::Image(image(dtype, DIMS))));
    let before = mixed(&mut flow, a, b, dtype);
    let core = flow.add(prim.clone(), &[before], gives);
    if gives.image().is_some() {
        let list = totals(&mut flow, a);
        let after = scaled(&mut flow, core, list, DType::F32);
        flow.output(after);
    }
    if kept || gives.image().is_none() {
        flow.output(core);
    }
    flow
}

fn named(prim: &Prim, dtype: DType, kept: bool, flow: Flow) -> Case {
    let mut name = format!("{prim:?} of {dtype}, kept {kept}");
    name.truncate(160);
    Case::new(name, flow).strictly()
}

#[test]
fn expressions_before_reductions() {
    let dtypes = [DType::U8, DType::I16, DType::U32, DType::F32, DType::F64];
    agree(dtypes.into_iter().flat_map(|dtype| {
        reductions().into_iter().filter_map(move |(prim, gives)| {
            // Those of large whole numbers are left to the host.
            let large = dtype == DType::U32 && matches!(prim, Prim::Threshold { .. });
            let mean = matches!(
                prim,
                Prim::Threshold {
                    method: ThresholdMethod::Mean,
                    ..
                }
            );
            let flow = around(&prim, gives, dtype, false);
            (!large || mean).then(|| named(&prim, dtype, false, flow))
        })
    }));
}

#[test]
fn expressions_around_filters() {
    let dtypes = [DType::U8, DType::F32, DType::F64];
    let cases = dtypes.into_iter().zip(Boundary::ALL.into_iter().cycle());
    agree(cases.flat_map(|(dtype, boundary)| {
        let filters = filters(dtype, boundary).into_iter().enumerate();
        filters.map(move |(at, (prim, gives))| {
            let kept = at % 3 == 1;
            named(&prim, dtype, kept, around(&prim, gives, dtype, kept))
        })
    }));
}

/// Two reductions of one expression, and a difference of blurs that others need too.
#[test]
fn expressions_with_several_readers() {
    let mut flow = Flow::new();
    let [a, b] =
        [DType::U16, DType::F32].map(|dtype| flow.input(ValueKind::Image(image(dtype, DIMS))));
    let mean = mixed(&mut flow, a, b, DType::F32);
    let (sums, ranks) = (
        totals(&mut flow, mean),
        flow.add(
            Prim::Percentiles { q: vec![1.0, 99.0] },
            &[mean],
            ValueKind::scalars(2),
        ),
    );
    let cast = flow.map(&[a], a, DType::F32, &[], |g, images, _| {
        g.pixel(images[0]).cast(Ty::F32) + 0.5
    });
    let blur = |flow: &mut Flow, weights: Vec<f64>| {
        let rows = flow.taps(cast, 1, Weights::Even(weights.clone()), Boundary::Reflect);
        flow.taps(rows, 2, Weights::Even(weights), Boundary::Reflect)
    };
    let (fine, coarse) = (
        blur(&mut flow, vec![0.6, 0.2]),
        blur(&mut flow, vec![0.2; 20]),
    );
    let apart = flow.map(&[fine, coarse], fine, DType::F32, &[], |g, images, _| {
        g.pixel(images[0]) - g.pixel(images[1])
    });
    let normal = scaled(&mut flow, apart, ranks, DType::F32);
    let most = totals(&mut flow, apart);
    let label = flow.map(&[normal], normal, DType::U8, &[], |g, images, _| {
        g.pixel(images[0]).gt(0.0).cast(Ty::I32)
    });
    let objects = ValueKind::Image(image(DType::U32, DIMS));
    let objects = flow.add(Prim::Label(Connectivity::Box), &[label], objects);
    for id in [sums, most, coarse, objects] {
        flow.output(id);
    }
    agree([Case::new("blurs", flow).strictly()]);
}

/// Numbers that no device rounds: WGSL too gives the very same.
#[test]
fn expressions_of_numbers_that_are_not_rounded() {
    let half = |flow: &mut Flow, id: ValueId| {
        flow.map(&[id], id, DType::F32, &[], |g, images, _| {
            g.pixel(images[0]).cast(Ty::F32) * 0.5
        })
    };
    let kinds = filters(DType::F32, Boundary::Reflect).into_iter();
    let kinds = kinds.filter(|(prim, _)| !matches!(prim, Prim::Taps(_) | Prim::Project(_)));
    let cases = kinds.chain(reductions()).map(|(prim, gives)| {
        let mut flow = Flow::new();
        let input = flow.input(ValueKind::Image(image(DType::U8, DIMS)));
        let before = half(&mut flow, input);
        let core = flow.add(prim.clone(), &[before], gives);
        let output = match gives.image() {
            Some(_) => half(&mut flow, core),
            None => core,
        };
        flow.output(output);
        let mut name = format!("halves: {prim:?}");
        name.truncate(160);
        Case::new(name, flow)
    });
    agree(cases.collect::<Vec<_>>());
}

fn fused(flow: &Flow, tuning: Tuning) -> Fused {
    let options = Options {
        buffers: 16,
        holes: Some(tuning),
        ..Options::default()
    };
    fuse(flow, &options)
}

/// Whatever has room for an expression takes it, and the program is what was explained.
#[test]
fn expressions_have_no_pass_of_their_own() {
    let tunings = [
        Tuning::processor(),
        Tuning::gpu(Target::OpenCl),
        Tuning::gpu(Target::Cuda),
        Tuning::gpu(Target::Wgsl),
    ];
    for tuning in tunings {
        for dtype in [DType::U8, DType::F32] {
            let prims = filters(dtype, Boundary::Reflect);
            for (prim, gives) in prims.into_iter().chain(reductions()) {
                let flow = around(&prim, gives, dtype, false);
                let alone = fuse(
                    &flow,
                    &Options {
                        holes: None,
                        ..Options::default()
                    },
                );
                let fused = fused(&flow, tuning);
                let (with, without) = (fused.passes.len(), alone.passes.len());
                let program = Program::tuned(fused.clone(), Some(tuning), 64);
                let shared = fused.passes.iter().filter(|pass| pass.nodes.len() > 1);
                assert_eq!(
                    program.explanation().passes.len(),
                    with,
                    "{prim:?} on {tuning:?}"
                );
                for pass in shared {
                    let plan = warploom_kernels::gpu::plan_pass(&fused.flow, pass, &tuning);
                    assert!(
                        plan.is_some(),
                        "{prim:?} of {dtype} on {tuning:?}: {pass:?}"
                    );
                }
                let reads_once = matches!(
                    prim,
                    Prim::Histogram { .. } | Prim::Bin { .. } | Prim::Flip { .. }
                );
                assert!(
                    !reads_once || with < without,
                    "{prim:?} of {dtype} on {tuning:?}: {:?}",
                    fused.notes
                );
            }
        }
    }
}

#[test]
fn totals_end_a_chain() {
    let mut flow = Flow::new();
    let image = flow.input(ValueKind::Image(ImageType::plane(DType::U16, 100, 200)));
    let root = flow.map(&[image], image, DType::F32, &[], |g, images, _| {
        g.pixel(images[0]).cast(Ty::F32).sqrt()
    });
    let sums = totals(&mut flow, root);
    flow.output(sums);
    let processor = fused(&flow, Tuning::processor());
    assert_eq!(processor.passes.len(), 1);
    assert_eq!(processor.passes[0].inputs, [image]);
    assert_eq!(processor.passes[0].outputs, [sums]);
    insta::assert_snapshot!(processor.notes[0], @"value 1 is computed where totals reads it: 200000 bytes less to move");
    // What somebody wants is written, and then read.
    flow.output(root);
    assert_eq!(fused(&flow, Tuning::processor()).passes.len(), 2);
}
