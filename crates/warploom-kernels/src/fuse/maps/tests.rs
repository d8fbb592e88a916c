//! Fused and unfused flows give the same bytes, whatever the flow.

use proptest::prelude::*;
use warploom_core::DType;

use super::*;
use crate::cpu::Engine;
use crate::flow::{Number, Prim, ValueKind};
use crate::image::ImageType;

/// Runs a flow on the CPU engine, node by node.
fn run(flow: &Flow, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    // Words, so that every value is aligned.
    let blank = |kind: &ValueKind| vec![0_u64; usize::try_from(kind.bytes().div_ceil(8)).unwrap()];
    let mut memory: Vec<Vec<u64>> = flow.values().iter().map(|v| blank(&v.kind)).collect();
    for (id, bytes) in flow.inputs().iter().zip(inputs) {
        let target: &mut [u8] = bytemuck::cast_slice_mut(&mut memory[*id as usize]);
        target[..bytes.len()].copy_from_slice(bytes);
    }
    let Fused { flow, passes, .. } = &Fused::none(flow);
    for pass in passes {
        let mut results: Vec<Vec<u64>> = pass
            .outputs
            .iter()
            .map(|id| std::mem::take(&mut memory[*id as usize]))
            .collect();
        let reads: Vec<&[u8]> = pass
            .inputs
            .iter()
            .map(|id| bytemuck::cast_slice(&memory[*id as usize]))
            .collect();
        let mut writes: Vec<&mut [u8]> = results
            .iter_mut()
            .map(|words| bytemuck::cast_slice_mut(words))
            .collect();
        Engine::new(flow, pass).run(flow, &reads, &mut writes);
        for (id, words) in pass.outputs.iter().zip(results) {
            memory[*id as usize] = words;
        }
    }
    flow.outputs()
        .iter()
        .map(|id| {
            let bytes: &[u8] = bytemuck::cast_slice(&memory[*id as usize]);
            bytes[..usize::try_from(flow.kind(*id).bytes()).unwrap()].to_vec()
        })
        .collect()
}

/// One expression of a random flow.
#[derive(Clone, Debug)]
struct Recipe {
    sources: (usize, usize),
    offset: [i32; 3],
    formula: u8,
    dtype: DType,
    boundary: Boundary,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let dtype = prop_oneof![Just(DType::F32), Just(DType::U8), Just(DType::I16)];
    let boundary = prop::sample::select(Boundary::ALL.to_vec());
    let offset = prop_oneof![
        Just([0; 3]),
        (-1..=1, -1..=1, -1..=1).prop_map(|(z, y, x)| [z, y, x])
    ];
    (any::<(usize, usize)>(), offset, 0..6_u8, dtype, boundary).prop_map(
        |(sources, offset, formula, dtype, boundary)| Recipe {
            sources,
            offset,
            formula,
            dtype,
            boundary,
        },
    )
}

fn build(recipes: &[Recipe], dims: [u64; 3], wanted: &[usize]) -> Flow {
    let mut flow = Flow::new();
    let mut values: Vec<ValueId> = [DType::U16, DType::F32]
        .map(|dtype| {
            flow.input(ValueKind::Image(ImageType::stack(
                dtype, dims[0], dims[1], dims[2],
            )))
        })
        .to_vec();
    for recipe in recipes {
        let a = values[recipe.sources.0 % values.len()];
        let b = values[recipe.sources.1 % values.len()];
        let numbers = [Number::F32(0.75)];
        let value = flow.map(
            &[a, b],
            a,
            recipe.dtype,
            &numbers,
            |graph, images, numbers| {
                let near = graph.near(images[0], recipe.offset, recipe.boundary);
                let left = near.cast(crate::expr::Ty::F32);
                let right = graph.pixel(images[1]).cast(crate::expr::Ty::F32);
                match recipe.formula {
                    0 => left + right,
                    1 => left * numbers[0] - right,
                    2 => left.min(right),
                    3 => left.lt(right).select(left, right * 0.5),
                    4 => left.fma(numbers[0], right),
                    _ => graph.coords()[2].cast(crate::expr::Ty::F32) + left / 3.0 - right,
                }
            },
        );
        values.push(value);
    }
    for at in wanted {
        let id = values[2 + at % recipes.len()];
        if !flow.outputs().contains(&id) {
            flow.output(id);
        }
    }
    flow
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn fused_is_unfused_bit_for_bit(
        recipes in prop::collection::vec(recipe(), 1..12),
        dims in (1..3_u64, 1..5_u64, 1..6_u64),
        wanted in prop::collection::vec(any::<usize>(), 1..4),
        seed in any::<u32>(),
        fast in prop_oneof![Just(1e15_f64), Just(1e6)],
    ) {
        let flow = build(&recipes, [dims.0, dims.1, dims.2], &wanted);
        let pixels = usize::try_from(dims.0 * dims.1 * dims.2).unwrap();
        let noise = |at: usize| (u32::try_from(at).unwrap().wrapping_mul(2_654_435_761) ^ seed) >> 16;
        let words: Vec<u16> = (0..pixels).map(|at| u16::try_from(noise(at)).unwrap()).collect();
        let floats: Vec<f32> = words.iter().map(|w| f32::from(*w) / 7.0 - 500.0).collect();
        let inputs = [bytemuck::cast_slice(&words).to_vec(), bytemuck::cast_slice(&floats).to_vec()];
        let mut options = Options { buffers: 6, ..Options::default() };
        options.machine.operations_per_second = fast;
        let fused = fuse(&flow, &options);
        prop_assert!(fused.flow.nodes().len() <= flow.nodes().len());
        for node in fused.flow.nodes() {
            prop_assert!(node.inputs.len() + node.outputs.len() <= 6);
        }
        prop_assert_eq!(run(&fused.flow, &inputs), run(&flow, &inputs));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Pairs are found without looking at all nodes again, and are the very same.
    #[test]
    fn fusion_is_what_it_means(
        recipes in prop::collection::vec(recipe(), 1..40),
        wanted in prop::collection::vec(any::<usize>(), 1..8),
        near in 1..12_usize,
        buffers in 3..9_usize,
        terms in prop_oneof![Just(600_usize), Just(25)],
        fast in prop_oneof![Just(1e15_f64), Just(1e6)],
        rows in any::<bool>(),
    ) {
        // Sources that are not far make chains; any make bushes.
        let local = |at: usize, recipe: &Recipe| {
            let (a, b) = recipe.sources;
            let known = 2 + at;
            let back = |source: usize| known - 1 - source % near.min(known);
            let sources = if near < 8 { (back(a), back(b)) } else { (a % known, b % known) };
            Recipe { sources, ..recipe.clone() }
        };
        let recipes: Vec<Recipe> = recipes.iter().enumerate().map(|(at, recipe)| local(at, recipe)).collect();
        let flow = build(&recipes, [1, 4, 5], &wanted);
        let mut options = Options { buffers, terms, rows, ..Options::default() };
        options.machine.operations_per_second = fast;
        let fused = fuse(&flow, &options);
        let (meant, notes) = meaning::fused(&flow, &options);
        prop_assert_eq!(&fused.flow, &meant);
        prop_assert_eq!(&fused.notes[..notes.len()], &notes[..]);
    }
}

#[test]
fn a_chain_is_one_pass() {
    let mut flow = Flow::new();
    let image = ImageType::plane(DType::F32, 4, 5);
    let start = flow.input(ValueKind::Image(image));
    let mut value = start;
    for step in 0..5 {
        let number = Number::F32(step as f32);
        value = flow.map(
            &[value],
            value,
            DType::F32,
            &[number],
            |g, images, numbers| g.pixel(images[0]) * 2.0 + numbers[0],
        );
    }
    flow.output(value);
    let fused = fuse(&flow, &Options::default());
    assert_eq!(fused.flow.nodes().len(), 1);
    assert_eq!(fused.notes.len(), 4);
    let Prim::Map { numbers, .. } = &fused.flow.nodes()[0].prim else {
        panic!("a map");
    };
    assert_eq!(numbers.len(), 5);
    insta::assert_snapshot!(fused.notes[0], @"value 1 stays in registers: 160 bytes less to move");
}

#[test]
fn a_cheap_map_joins_a_stencil_and_a_dear_one_does_not() {
    let build = |dear: bool| {
        let mut flow = Flow::new();
        let image = ImageType::plane(DType::F32, 40, 50);
        let start = flow.input(ValueKind::Image(image));
        let first = flow.map(&[start], start, DType::F32, &[], |g, images, _| {
            let mut value = g.pixel(images[0]);
            for round in 0..if dear { 30 } else { 1 } {
                value = value / (f64::from(round) + 1.7);
            }
            value
        });
        let sum = flow.map(&[first], first, DType::F32, &[], |g, images, _| {
            let near = |x| g.near(images[0], [0, 0, x], Boundary::Clamp);
            near(-1) + near(0) + near(1)
        });
        flow.output(sum);
        fuse(&flow, &Options::default())
    };
    assert_eq!(build(false).flow.nodes().len(), 1);
    let stored = build(true);
    assert_eq!(stored.flow.nodes().len(), 2);
    insta::assert_snapshot!(stored.notes[0], @"value 1 is stored: computing it 3 times a pixel would cost more");
}
