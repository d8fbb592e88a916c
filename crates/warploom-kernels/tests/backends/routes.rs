//! What the catalogue says of backends is what programs do, for every operation.

use warploom_core::DType;
use warploom_kernels::fuse::Fused;
use warploom_kernels::gpu::Tuning;
use warploom_kernels::kernel::Target;
use warploom_kernels::lower::lower;
use warploom_kernels::op::{Backends, Given, OpCall, OpInfo, ops};
use warploom_kernels::program::{Program, Step};

use super::case::DTYPES;
use super::request::{given, images};

/// The most operations that may be the processor's alone.
const MOST_CPU_ONLY: usize = 8;

/// Other values for parameters that change the way an operation is done.
const VARIANTS: [(&str, &[(&str, &str)]); 9] = [
    ("histogram", &[("low", "3"), ("high", "9")]),
    ("percentiles", &[("q", "1,50,99")]),
    (
        "remove_large_labels",
        &[("maximum", "3"), ("relabel", "true")],
    ),
    ("median_box", &[("radius", "9")]),
    ("median_sphere", &[("radius", "9")]),
    ("percentile_box", &[("q", "70"), ("radius", "9")]),
    ("mean_box", &[("radius", "40")]),
    ("gaussian", &[("sigma", "25")]),
    ("maximum_box", &[("radius", "40")]),
];

fn tunings() -> [Tuning; 4] {
    [
        Tuning::processor(),
        Tuning::gpu(Target::OpenCl),
        Tuning::gpu(Target::Cuda),
        Tuning::gpu(Target::Wgsl),
    ]
}

/// How many bins a histogram of these has is known only when its pixels are.
fn is_by_pixels(op: &OpInfo, dtype: DType) -> bool {
    op.name.starts_with("threshold_") && matches!(dtype, DType::I32 | DType::U32)
}

/// Every call of an operation on images of one type.
fn calls(op: &'static OpInfo, dtype: DType) -> Vec<OpCall> {
    let mut calls = Vec::new();
    for (dims, rank) in [([1, 40, 50], 2), ([6, 20, 30], 3), ([1, 1, 9], 2)] {
        let (given, images) = (given(op, rank), images(op, dtype, dims, rank));
        let variants = VARIANTS.iter().filter(|(name, _)| *name == op.name);
        let variants = variants.map(|(_, more)| {
            let with = |given: Given, (name, text): &(&str, &str)| given.with(*name, *text);
            more.iter().fold(given.clone(), with)
        });
        let all = [given.clone()].into_iter().chain(variants);
        calls.extend(all.filter_map(|given| OpCall::new(op.name, &given, &images).ok()));
    }
    calls
}

#[test]
fn only_what_the_catalogue_names_takes_the_way_over_the_host() {
    let mut cpu_only = Vec::new();
    for op in ops() {
        let by_cpu = matches!(op.backends, Backends::CpuOnly { .. });
        if by_cpu {
            cpu_only.push(op.name);
        }
        let mut count = 0;
        for dtype in DTYPES {
            for call in calls(op, dtype) {
                count += 1;
                for tuning in tunings() {
                    let program = Program::tuned(Fused::none(&lower(&call)), Some(tuning), 256);
                    let detours = program.detours();
                    let may = by_cpu || is_by_pixels(op, dtype);
                    let must = by_cpu && call.image().pixels() > 100;
                    let right = if detours.is_empty() { !must } else { may };
                    assert!(right, "{call} of {dtype}: {tuning:?}: {detours:?}");
                }
            }
        }
        assert!(count > 0, "no call of {} was tried", op.name);
    }
    println!("only on processors: {}", cpu_only.join(", "));
    println!("by way of the host for i32 and u32: threshold_* (bins are counted first)");
    assert!(cpu_only.len() <= MOST_CPU_ONLY, "{cpu_only:?}");
}

#[test]
fn variants_are_of_operations_that_exist() {
    for (name, more) in VARIANTS {
        let op = ops().find(|op| op.name == name);
        let op = op.unwrap_or_else(|| panic!("there is no {name}"));
        for (param, _) in more {
            assert!(op.param(param).is_some(), "{name} has no {param}");
        }
    }
}

/// Every kernel's text of a call.
fn texts(call: &OpCall, tuning: Tuning) -> Vec<String> {
    let program = Program::tuned(Fused::none(&lower(call)), Some(tuning), 256);
    let launches = program.steps().iter().filter_map(|step| match step {
        Step::Launch(launch) => Some(launch.def.text(tuning.target)),
        Step::Host(_) => None,
    });
    launches.collect()
}

/// Extents are arguments: what was compiled for one image serves every other.
#[test]
fn another_shape_compiles_nothing() {
    let shapes = [
        ([1, 40, 50], [1, 97, 133], 2),
        ([1, 40, 50], [1, 2048, 2048], 2),
        ([6, 20, 30], [17, 33, 41], 3),
    ];
    let types = [DType::U8, DType::U16, DType::F32];
    let all = ops().flat_map(|op| types.map(|dtype| (op, dtype)));
    for (op, dtype) in all {
        for (first, second, rank) in shapes {
            let call = |dims| {
                let images = images(op, dtype, dims, rank);
                OpCall::new(op.name, &given(op, rank), &images).ok()
            };
            let (Some(first), Some(second)) = (call(first), call(second)) else {
                continue;
            };
            for tuning in tunings() {
                let known = texts(&first, tuning);
                for text in texts(&second, tuning) {
                    let dims = second.image().dims;
                    assert!(
                        known.contains(&text),
                        "{second} of {dims:?}: {tuning:?}:\n{text}"
                    );
                }
            }
        }
    }
}
