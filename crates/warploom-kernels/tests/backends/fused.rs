//! Fused programs give the bytes of unfused ones, whatever the flow.

use proptest::prelude::*;
use warploom_core::{DType, Math};
use warploom_kernels::Boundary;
use warploom_kernels::expr::Ty;
use warploom_kernels::flow::{Combine, Flow, Footprint, Number, Prim, ValueId, ValueKind, Weights};
use warploom_kernels::program::{Loader, Program};

use super::case::{Case, DTYPES, image};
use super::compare::{Rule, numbers, same};
use super::devices::agree;
use super::rig::cpu;

/// How many sorts of nodes there are.
const SORTS: u8 = 16;

/// One node, or a few, of a random flow.
#[derive(Clone, Debug)]
struct Recipe {
    sort: u8,
    sources: (usize, usize),
    axis: u8,
    offset: [i32; 3],
    radius: u32,
    boundary: Boundary,
    dtype: DType,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let rule = prop_oneof![
        4 => Just(Boundary::Clamp),
        2 => prop::sample::select(Boundary::ALL.to_vec()),
    ];
    let offset = (-1..=1, -2..=2, -2..=2).prop_map(|(z, y, x)| [z, y, x]);
    let dtype = prop::sample::select(DTYPES.to_vec());
    let near = (any::<(usize, usize)>(), 0..3_u8, offset, 0..4_u32);
    (0..SORTS, near, rule, dtype).prop_map(
        |(sort, (sources, axis, offset, radius), boundary, dtype)| Recipe {
            sort,
            sources,
            axis,
            offset,
            radius,
            boundary,
            dtype,
        },
    )
}

/// A small neighbourhood that is no box.
fn ball(recipe: &Recipe) -> Footprint {
    let wide = 1.0 + f64::from(recipe.radius) / 2.0;
    Footprint::Ball([f64::from(recipe.axis).min(1.0), wide, 1.5])
}

/// Adds what a recipe says, and gives the value it makes.
fn cook(flow: &mut Flow, values: &[ValueId], recipe: &Recipe) -> ValueId {
    let a = values[recipe.sources.0 % values.len()];
    let b = values[recipe.sources.1 % values.len()];
    let (axis, boundary) = (recipe.axis, recipe.boundary);
    let radius = recipe.radius as usize;
    let weights = |count: usize| -> Vec<f64> { (1..=count).map(|k| 0.4 / k as f64).collect() };
    let (real, ty) = flow.real(a);
    match recipe.sort {
        0 | 1 => flow.taps(a, axis, Weights::Even(weights(radius + 1)), boundary),
        2 => flow.taps(a, axis, Weights::Odd(weights(radius + 1)), boundary),
        3 => flow.taps(a, axis, Weights::Any(weights(2 * radius + 1)), boundary),
        4 => flow.window(a, axis, recipe.radius, Combine::Sum, boundary, real),
        5 => flow.window(a, axis, recipe.radius, Combine::Min, boundary, real),
        6 => flow.window(a, axis, recipe.radius, Combine::Max, boundary, real),
        7 => {
            let kind = flow.kind(a);
            flow.add(Prim::Flip { axis }, &[a], kind)
        }
        8 => {
            let totals = flow.add(Prim::Totals, &[a], ValueKind::scalars(5));
            flow.map(&[b, totals], b, recipe.dtype, &[], |g, images, _| {
                let scale = g.scalar(images[1], 1).cast(Ty::F32);
                g.pixel(images[0]).cast(Ty::F32) - scale * 0.5
            })
        }
        14 => {
            let combine = [Combine::Min, Combine::Max][recipe.radius as usize % 2];
            let (footprint, kind) = (ball(recipe), flow.kind(a));
            let prim = Prim::Around {
                footprint,
                combine,
                boundary,
            };
            flow.add(prim, &[a], kind)
        }
        15 => {
            let (footprint, kind) = (ball(recipe), flow.kind(a));
            let prim = Prim::Rank {
                footprint,
                rank: footprint.offsets().len() as u32 / 3,
                boundary,
            };
            flow.add(prim, &[a], kind)
        }
        sort => {
            let numbers = [Number::F32(0.75)];
            flow.map(&[a, b], a, recipe.dtype, &numbers, |g, images, n| {
                let near = if sort < 11 { [0; 3] } else { recipe.offset };
                let left = g.near(images[0], near, boundary).cast(ty);
                let right = g.pixel(images[1]).cast(ty);
                let scale = n[0].cast(ty);
                match sort {
                    9 => left + right * scale,
                    10 => left.lt(right).select(left, right * 0.5),
                    11 => left.min(right) - right,
                    12 => left.fma(scale, right),
                    _ => g.coords()[2].cast(ty) + left / 3.0 - right,
                }
            })
        }
    }
}

fn build(recipes: &[Recipe], inputs: [DType; 2], dims: [u64; 3], wanted: &[usize]) -> Flow {
    let mut flow = Flow::new();
    let mut values: Vec<ValueId> = inputs
        .map(|dtype| flow.input(ValueKind::Image(image(dtype, dims))))
        .to_vec();
    for recipe in recipes {
        let value = cook(&mut flow, &values, recipe);
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

/// Planes, stacks, rows, columns and single pixels.
fn dims() -> impl Strategy<Value = [u64; 3]> {
    prop_oneof![
        (1..80_u64, 1..40_u64).prop_map(|(y, x)| [1, y, x]),
        (1..5_u64, 1..12_u64, 1..20_u64).prop_map(|(z, y, x)| [z, y, x]),
        (1..3_u64, 1..200_u64).prop_map(|(y, x)| [1, y, x]),
        (1..200_u64, 1..3_u64).prop_map(|(y, x)| [1, y, x]),
    ]
}

/// Flows of any nodes.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    cooked(prop::collection::vec(recipe(), 1..16))
}

/// Flows in which a pixel depends on its surroundings only.
pub(crate) fn local_case() -> impl Strategy<Value = Case> {
    let local = recipe().prop_map(|mut recipe| {
        if [7, 8, 13].contains(&recipe.sort) {
            recipe.sort = 9;
        }
        if recipe.boundary == Boundary::Wrap {
            recipe.boundary = Boundary::Reflect;
        }
        recipe
    });
    cooked(prop::collection::vec(local, 1..5))
}

fn cooked(recipes: impl Strategy<Value = Vec<Recipe>>) -> impl Strategy<Value = Case> {
    let wanted = prop::collection::vec(any::<usize>(), 1..4);
    let dtype = || prop::sample::select(DTYPES.to_vec());
    let holes = any::<bool>();
    (recipes, [dtype(), dtype()], dims(), wanted, holes).prop_map(
        |(recipes, dtypes, dims, wanted, holes)| {
            let name = format!("{recipes:?} of {dtypes:?} {dims:?}, holes {holes}");
            let case = Case::new(name, build(&recipes, dtypes, dims, &wanted));
            if holes { case.with_holes() } else { case }
        },
    )
}

thread_local! {
    static CPU: Loader = Loader::new(cpu(), Math::Strict);
}

pub(crate) fn run(loader: &Loader, program: Program, case: &Case) -> Vec<Vec<u8>> {
    let inputs: Vec<&[u8]> = case.inputs.iter().map(Vec::as_slice).collect();
    let ready = loader.load(program).unwrap();
    ready.run(loader.device(), &inputs).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn fused_is_unfused_bit_for_bit(case in case()) {
        CPU.with(|cpu| {
            let info = cpu.device().info().clone();
            let fused = Program::new(&case.flow, &info);
            prop_assert!(fused.steps().len() <= case.flow.nodes().len());
            let got = run(cpu, fused, &case);
            let want = run(cpu, Program::unfused(&case.flow, &info), &case);
            for ((id, got), want) in case.flow.outputs().iter().zip(&got).zip(&want) {
                let dtype = case.flow.kind(*id).dtype();
                let same = same(Rule::Bits.of(&case.flow), dtype, &numbers(dtype, want), got);
                prop_assert!(same.is_ok(), "{:?} in {}", same, case.name);
            }
            Ok(())
        })?;
    }
}

/// A handful on every device, fused as each of them likes it.
#[test]
fn devices_agree_on_fused_flows() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let cases: Vec<Case> = (0..24)
        .map(|_| {
            let tree = case().new_tree(&mut runner).unwrap();
            proptest::strategy::ValueTree::current(&tree).strictly()
        })
        .collect();
    agree(cases);
}
