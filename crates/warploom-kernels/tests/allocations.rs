//! After its first calls, an operation on planes asks for no memory on processors; those that do are listed.

#[path = "../../warploom-engine/tests/counting/mod.rs"]
mod counting;
#[path = "backends/request.rs"]
mod request;

use warploom_core::DType;
use warploom_kernels::cpu::Engine;
use warploom_kernels::flow::{Flow, ValueId, ValueKind};
use warploom_kernels::fuse::{Options, fuse};
use warploom_kernels::lower::lower;
use warploom_kernels::op::{OpCall, ops};

use request::{given, images};

/// What calls allocate for, and operations whose calls do.
const ALLOCATING: &[(&str, &[&str])] = &[
    (
        "handles of the images of a call",
        &[
            "crop",
            "pad",
            "flip_x",
            "flip_y",
            "transpose_xy",
            "bin_mean",
            "bin_sum",
            "bin_max",
            "rotate_linear",
            "affine_linear",
        ],
    ),
    (
        "the same, and where every column is read",
        &["shift_linear", "resize_linear", "resize_nearest"],
    ),
    (
        "a number for each chunk of pixels",
        &[
            "gamma",
            "invert",
            "minmax_normalize",
            "flat_field",
            "totals",
            "threshold_mean",
        ],
    ),
    (
        "counts of values, and what is computed from them",
        &[
            "percentile_normalize",
            "percentiles",
            "histogram",
            "threshold_otsu",
            "threshold_triangle",
            "threshold_yen",
            "threshold_isodata",
        ],
    ),
    (
        "the values that are left, round by round",
        &["threshold_li"],
    ),
    (
        "taps, made of an image that is given with the call",
        &["convolve"],
    ),
    ("taps of the ball", &["subtract_rolling_ball"]),
    (
        "runs of pixels and their parents, as many as there are",
        &["fill_holes", "label_box", "label_diamond", "clear_border"],
    ),
    (
        "tables of objects, as many as there are",
        &[
            "remove_small_labels",
            "remove_large_labels",
            "relabel_sequential",
            "label_statistics",
        ],
    ),
    ("distances along columns", &["distance_transform"]),
    ("a row of the nearest labels", &["expand_labels"]),
    ("a heap of pixels", &["watershed"]),
    (
        "the spectrum, and what the crate for transforms takes for itself",
        &["fft_convolve", "phase_shift"],
    ),
];

/// The fewest bytes that a call allocates, once it was called a few times.
fn allocated(flow: &Flow) -> usize {
    let options = Options {
        rows: true,
        ..Options::default()
    };
    let fused = fuse(flow, &options);
    let flow = &fused.flow;
    let engines: Vec<Engine> = fused
        .passes
        .iter()
        .map(|pass| Engine::new(flow, pass))
        .collect();
    // Words, so that every value is aligned.
    let blank = |kind: &ValueKind| -> Vec<u64> {
        let words = usize::try_from(kind.bytes().div_ceil(8)).expect("few");
        // Bytes, words and numbers that are neither all the same nor out of the way.
        (0..words as u64)
            .map(|at| at % 7 * 0x0101_0000_0101)
            .collect()
    };
    let mut memory: Vec<Vec<u64>> = flow.values().iter().map(|v| blank(&v.kind)).collect();
    for (id, value) in flow.values().iter().enumerate() {
        if let Some(bytes) = &value.constant {
            let target: &mut [u8] = bytemuck::cast_slice_mut(&mut memory[id]);
            target[..bytes.len()].copy_from_slice(bytes);
        }
    }
    let mut least = usize::MAX;
    for round in 0..12 {
        let mut used = 0;
        for (pass, engine) in fused.passes.iter().zip(&engines) {
            let take = |id: &ValueId| std::mem::take(&mut memory[*id as usize]);
            let mut results: Vec<Vec<u64>> = pass.outputs.iter().map(take).collect();
            let reads = pass.inputs.iter().map(|id| &memory[*id as usize]);
            let reads: Vec<&[u8]> = reads.map(|words| bytemuck::cast_slice(words)).collect();
            let writes = results.iter_mut();
            let mut writes: Vec<&mut [u8]> = writes
                .map(|words| bytemuck::cast_slice_mut(words))
                .collect();
            let before = counting::bytes();
            engine.run(flow, &reads, &mut writes);
            used += counting::bytes() - before;
            for (id, words) in pass.outputs.iter().zip(results) {
                memory[*id as usize] = words;
            }
        }
        // A thread that comes late takes memory of its own then.
        if round > 3 {
            least = least.min(used);
        }
    }
    least
}

#[test]
fn i8_calls_after_the_first_allocate_nothing() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
    let mut found = Vec::new();
    let mut quiet = 0;
    for op in ops() {
        let mut most = 0;
        for dtype in [DType::F32, DType::U16, DType::U8] {
            let images = images(op, dtype, [1, 70, 300], 2);
            let Ok(call) = OpCall::new(op.name, &given(op, 2), &images) else {
                continue;
            };
            let flow = lower(&call);
            most = most.max(pool.as_ref().unwrap().install(|| allocated(&flow)));
        }
        if most > 0 {
            println!("{}: {most} bytes", op.name);
            found.push(op.name);
        } else {
            quiet += 1;
        }
    }
    let listed = ALLOCATING
        .iter()
        .flat_map(|(_, names)| names.iter().copied());
    let listed: Vec<&str> = listed.collect();
    let missing: Vec<&&str> = found.iter().filter(|name| !listed.contains(name)).collect();
    let idle: Vec<&&str> = listed.iter().filter(|name| !found.contains(name)).collect();
    assert!(missing.is_empty(), "these allocate: {missing:?}");
    assert!(idle.is_empty(), "these allocate no more: {idle:?}");
    println!("{quiet} operations allocate nothing");
}
