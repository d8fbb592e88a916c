//! Plans carry everything that is needed to run them, and tiles change no bit. The judge is a
//! small interpreter of plans, on the engine for processors.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warploom_core::DType;
use warploom_kernels::cpu::Engine;
use warploom_kernels::flow::{Flow, ValueId, ValueKind};
use warploom_kernels::fuse::{Fused, Halo, Part};
use warploom_kernels::lower::{Computed, lower_computed};
use warploom_kernels::op::{Given, OpCall, Params, find};
use warploom_kernels::{Dims, ImageType};
use warploom_plan::pipeline::{OpUse, Step};
use warploom_plan::plan::{PlanOp, PlanStep, Tiles};
use warploom_plan::{ExecutionPlan, Options, Pipeline, Sources, compile};

use crate::machine::{GIB, cpu, cuda, machine};
use crate::steady::steady;

type Values = BTreeMap<String, (ValueKind, Vec<u8>)>;

/// Runs operations on values that are there; gives all their results.
fn run(ops: &[PlanOp], given: &Values) -> Values {
    let mut flow = Flow::new();
    let mut known: BTreeMap<&str, ValueId> = BTreeMap::new();
    let mut inputs: Vec<&[u8]> = Vec::new();
    for op in ops {
        let mut value = |name: &'_ str, flow: &mut Flow| {
            if let Some(id) = known.get(name) {
                return *id;
            }
            let (name, (kind, bytes)) = given.get_key_value(name).unwrap();
            inputs.push(bytes);
            let id = flow.input(*kind);
            known.insert(name, id);
            id
        };
        let reads: Vec<ValueId> = op.reads.iter().map(|name| value(name, &mut flow)).collect();
        let computed: Vec<Computed<'_>> = op
            .computed
            .iter()
            .map(|computed| Computed {
                param: &computed.param,
                list: value(&computed.from, &mut flow),
                index: computed.index,
            })
            .collect();
        let mut params = Given::new();
        for (name, value) in &op.params {
            params = params.with(name, value.as_str());
        }
        let info = find(&op.op).unwrap();
        let late: Vec<&str> = computed.iter().map(|computed| computed.param).collect();
        let params = Params::read_with(info, &params, &late).unwrap();
        let images: Vec<ImageType> = reads.iter().map(|id| flow.image(*id)).collect();
        let call = OpCall::with(info, params, &images).unwrap();
        assert!(call.output().image().is_none_or(|_| images.len() < 9));
        let result = lower_computed(&mut flow, &call, &reads, &computed)[0];
        flow.output(result);
        known.insert(&op.name, result);
    }
    let results = engine(&flow, &inputs);
    let kinds = flow.outputs().iter().map(|id| flow.kind(*id));
    let names = ops.iter().map(|op| op.name.clone());
    names.zip(kinds.zip(results)).collect()
}

fn engine(flow: &Flow, inputs: &[&[u8]]) -> Vec<Vec<u8>> {
    let words = |kind: ValueKind| vec![0_u64; usize::try_from(kind.bytes()).unwrap().div_ceil(8)];
    let fused = Fused::none(flow);
    let flow = &fused.flow;
    let mut memory: Vec<Vec<u64>> = flow.values().iter().map(|v| words(v.kind)).collect();
    for (id, bytes) in flow.inputs().iter().zip(inputs) {
        let target: &mut [u8] = bytemuck::cast_slice_mut(&mut memory[*id as usize]);
        target[..bytes.len()].copy_from_slice(bytes);
    }
    for pass in &fused.passes {
        let take = |id: &ValueId| std::mem::take(&mut memory[*id as usize]);
        let mut results: Vec<Vec<u64>> = pass.outputs.iter().map(take).collect();
        let read = |id: &ValueId| bytemuck::cast_slice(&memory[*id as usize]);
        let reads: Vec<&[u8]> = pass.inputs.iter().map(read).collect();
        let writes = results
            .iter_mut()
            .map(|words| bytemuck::cast_slice_mut(words));
        let mut writes: Vec<&mut [u8]> = writes.collect();
        Engine::new(flow, pass).run(flow, &reads, &mut writes);
        for (id, words) in pass.outputs.iter().zip(results) {
            memory[*id as usize] = words;
        }
    }
    let outputs = flow.outputs().iter();
    outputs
        .map(|id| {
            let bytes: &[u8] = bytemuck::cast_slice(&memory[*id as usize]);
            bytes[..usize::try_from(flow.kind(*id).bytes()).unwrap()].to_vec()
        })
        .collect()
}

/// Copies a box of pixels, from `start` in an image of `dims`, or back into it.
fn rows(dims: Dims, from: &[std::ops::Range<u64>; 3], mut each: impl FnMut(usize, usize, usize)) {
    let width = usize::try_from(from[2].end - from[2].start).unwrap();
    let mut inner = 0;
    for z in from[0].clone() {
        for y in from[1].clone() {
            let outer = (z * dims[1] + y) * dims[2] + from[2].start;
            each(usize::try_from(outer).unwrap(), inner, width);
            inner += width;
        }
    }
}

fn tiled(ops: &[PlanOp], tiles: &Tiles, given: &Values) -> Values {
    let halo = Halo {
        reach: tiles.reach,
        grain: tiles.grain,
    };
    let first = given[&ops[0].reads[0]].0.image().unwrap();
    let parts = halo.parts(first.dims, tiles.extents);
    assert_eq!(parts.len() as u64, tiles.count);
    let mut results = Values::new();
    for Part { gives, reads } in parts {
        let mut cut = Values::new();
        for (name, (kind, bytes)) in given {
            let Some(image) = kind.image().filter(|image| image.dims == first.dims) else {
                continue;
            };
            let size = usize::try_from(image.dtype.bytes()).unwrap();
            let mut part = Vec::new();
            rows(image.dims, &reads, |outer, _, width| {
                part.extend_from_slice(&bytes[outer * size..(outer + width) * size]);
            });
            let dims = [0, 1, 2].map(|axis| reads[axis].end - reads[axis].start);
            cut.insert(
                name.clone(),
                (ValueKind::Image(ImageType { dims, ..image }), part),
            );
        }
        for (name, (kind, part)) in run(ops, &cut) {
            let tile = kind.image().unwrap();
            let whole = ImageType {
                dims: first.dims,
                ..tile
            };
            let size = usize::try_from(tile.dtype.bytes()).unwrap();
            let (_, target) = results.entry(name).or_insert_with(|| {
                let bytes = usize::try_from(whole.bytes()).unwrap();
                (ValueKind::Image(whole), vec![0; bytes])
            });
            // The inner part, counted from where the tile starts.
            let inner = [0, 1, 2].map(|axis| {
                let start = reads[axis].start;
                gives[axis].start - start..gives[axis].end - start
            });
            let mut lines = Vec::new();
            rows(tile.dims, &inner, |outer, _, width| {
                lines.push((outer, width));
            });
            let mut lines = lines.into_iter();
            rows(whole.dims, &gives, |outer, _, width| {
                let (from, same) = lines.next().unwrap();
                assert_eq!(width, same);
                let source = &part[from * size..(from + width) * size];
                target[outer * size..(outer + width) * size].copy_from_slice(source);
            });
        }
    }
    results
}

/// Runs a plan for one record; gives what it writes.
fn execute(plan: &ExecutionPlan, image: ImageType, pixels: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut values = Values::new();
    values.insert(
        "image".to_owned(),
        (ValueKind::Image(image), pixels.to_vec()),
    );
    let variant = &plan.variants[0];
    for step in &variant.steps {
        let results = match step {
            PlanStep::Copy { .. } => continue,
            PlanStep::Run { ops, .. } => run(ops, &values),
            PlanStep::Tiled { ops, tiles, .. } => tiled(ops, tiles, &values),
        };
        values.extend(results);
    }
    let outputs = variant.outputs.iter();
    outputs
        .map(|output| (output.value.clone(), values[&output.value].1.clone()))
        .collect()
}

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
