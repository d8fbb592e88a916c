//! A judge of plans: a small interpreter of their data, on the engine for processors.

use std::collections::BTreeMap;

use warploom_kernels::Dims;
use warploom_kernels::ImageType;
use warploom_kernels::cpu::Engine;
use warploom_kernels::flow::{Flow, ValueId, ValueKind};
use warploom_kernels::fuse::{Fused, Part};
use warploom_plan::ExecutionPlan;
use warploom_plan::plan::{PlanStep, Tiles, Variant};

pub(crate) type Values = BTreeMap<String, (ValueKind, Vec<u8>)>;

/// Runs a step on values that are there; gives its results.
fn run(variant: &Variant, step: usize, given: &Values, tile: Option<Dims>) -> Values {
    let flow = variant.flow(step, tile).unwrap();
    let done = &variant.steps[step];
    let inputs = done.reads().iter().map(|name| given[name].1.as_slice());
    let results = engine(&flow, &inputs.collect::<Vec<_>>());
    let kinds = flow.outputs().iter().map(|id| flow.kind(*id));
    let names = done.gives().iter().cloned();
    names.zip(kinds.zip(results)).collect()
}

/// Runs a flow on the bytes of its inputs; gives those of its outputs.
pub(crate) fn engine(flow: &Flow, inputs: &[&[u8]]) -> Vec<Vec<u8>> {
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

fn tiled(variant: &Variant, step: usize, tiles: &Tiles, given: &Values) -> Values {
    let reads = variant.steps[step].reads();
    let mut images = reads.iter().filter_map(|name| given[name].0.image());
    let first = images.next().unwrap();
    let parts = tiles.parts(first.dims);
    assert_eq!(parts.len() as u64, tiles.count);
    let mut results = Values::new();
    for part in parts {
        let extents = part.extents();
        let Part { gives, reads: from } = part;
        let mut cut = Values::new();
        for name in reads {
            let (kind, bytes) = &given[name];
            let Some(image) = kind.image() else {
                // Every tile gets all numbers.
                cut.insert(name.clone(), given[name].clone());
                continue;
            };
            assert_eq!(
                image.dims, first.dims,
                "images that are cut are equally large"
            );
            let size = usize::try_from(image.dtype.bytes()).unwrap();
            let mut piece = Vec::new();
            rows(image.dims, &from, |outer, _, width| {
                piece.extend_from_slice(&bytes[outer * size..(outer + width) * size]);
            });
            let kind = ValueKind::Image(ImageType {
                dims: extents,
                ..image
            });
            cut.insert(name.clone(), (kind, piece));
        }
        for (name, (kind, piece)) in run(variant, step, &cut, Some(extents)) {
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
                let start = from[axis].start;
                gives[axis].start - start..gives[axis].end - start
            });
            let mut lines = Vec::new();
            rows(tile.dims, &inner, |outer, _, width| {
                lines.push((outer, width));
            });
            let mut lines = lines.into_iter();
            rows(whole.dims, &gives, |outer, _, width| {
                let (inside, same) = lines.next().unwrap();
                assert_eq!(width, same);
                let source = &piece[inside * size..(inside + width) * size];
                target[outer * size..(outer + width) * size].copy_from_slice(source);
            });
        }
    }
    results
}

/// Runs a variant of a plan for one unit; gives what it writes, by value.
pub(crate) fn execute_on(plan: &ExecutionPlan, variant: usize, given: Values) -> Values {
    let variant = &plan.variants[variant];
    let mut values = given;
    for (at, step) in variant.steps.iter().enumerate() {
        let results = match step {
            PlanStep::Copy { .. } => continue,
            PlanStep::Run { .. } => run(variant, at, &values, None),
            PlanStep::Tiled { tiles, .. } => tiled(variant, at, tiles, &values),
        };
        values.extend(results);
    }
    let outputs = variant.outputs.iter();
    outputs
        .map(|output| (output.value.clone(), values[&output.value].clone()))
        .collect()
}

/// Runs a plan for one record that is one image.
pub(crate) fn execute(
    plan: &ExecutionPlan,
    image: ImageType,
    pixels: &[u8],
) -> BTreeMap<String, Vec<u8>> {
    let given = (ValueKind::Image(image), pixels.to_vec());
    let values = execute_on(plan, 0, Values::from([("image".to_owned(), given)]));
    values
        .into_iter()
        .map(|(name, (_, bytes))| (name, bytes))
        .collect()
}
