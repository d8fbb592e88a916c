//! Passes of small flows, and of random ones.

use proptest::prelude::*;

use super::*;
use warploom_core::DType;
use warploom_flow::Boundary;
use warploom_flow::expr::Ty;
use warploom_flow::flow::{ValueKind, Weights};
use warploom_flow::image::ImageType;

fn blur(flow: &mut Flow, image: ValueId, axes: &[u8], boundary: Boundary) -> ValueId {
    axes.iter().fold(image, |image, axis| {
        let weights = Weights::Even(vec![0.5, 0.25]);
        flow.taps(image, *axis, weights, boundary)
    })
}

fn plane(flow: &mut Flow) -> ValueId {
    flow.input(ValueKind::Image(ImageType::plane(DType::U16, 30, 40)))
}

fn difference(flow: &mut Flow, a: ValueId, b: ValueId) -> ValueId {
    flow.map(&[a, b], a, DType::F32, &[], |g, images, _| {
        g.pixel(images[0]).cast(Ty::F32) - g.pixel(images[1]).cast(Ty::F32)
    })
}

fn sizes(flow: &Flow) -> Vec<usize> {
    let passes = partition(flow, 64);
    passes.iter().map(|pass| pass.nodes.len()).collect()
}

#[test]
fn a_difference_of_blurs_is_one_pass() {
    let mut flow = Flow::new();
    let image = plane(&mut flow);
    let narrow = blur(&mut flow, image, &[1, 2], Boundary::Clamp);
    let wide = blur(&mut flow, narrow, &[1, 2], Boundary::Reflect);
    let rest = difference(&mut flow, narrow, wide);
    flow.output(rest);
    let passes = partition(&flow, 64);
    assert_eq!(passes.len(), 1);
    assert_eq!(
        (&passes[0].inputs[..], &passes[0].outputs[..]),
        (&[image][..], &[rest][..])
    );
}

#[test]
fn those_that_read_the_same_image_go_together() {
    let mut flow = Flow::new();
    let image = plane(&mut flow);
    for axis in [1, 2] {
        let edge = flow.taps(image, axis, Weights::Odd(vec![0.5]), Boundary::Clamp);
        flow.output(edge);
    }
    assert_eq!(sizes(&flow), [2]);
    let tight = partition(&flow, 2);
    assert_eq!(tight.len(), 2, "a kernel has so many slices and no more");
}

#[test]
fn rows_that_wrap_around_do_not_mix_with_others() {
    let mut flow = Flow::new();
    let image = plane(&mut flow);
    let wrapped = blur(&mut flow, image, &[1, 2], Boundary::Wrap);
    let other = blur(&mut flow, wrapped, &[1, 2], Boundary::Clamp);
    flow.output(other);
    // The sum along x of the first fits either.
    assert_eq!(sizes(&flow), [2, 2]);
}

#[test]
fn sums_along_z_stay_alone_and_numbers_are_waited_for() {
    let mut flow = Flow::new();
    let image = flow.input(ValueKind::Image(ImageType::stack(DType::U16, 9, 30, 40)));
    let smooth = blur(&mut flow, image, &[0, 1, 2], Boundary::Clamp);
    let totals = flow.add(Prim::Totals, &[smooth], ValueKind::scalars(5));
    let scaled = flow.map(
        &[smooth, totals],
        smooth,
        DType::F32,
        &[],
        |g, images, _| g.pixel(images[0]) / g.scalar(images[1], 1).cast(Ty::F32),
    );
    flow.output(scaled);
    let nobody = difference(&mut flow, scaled, smooth);
    let passes = partition(&flow, 64);
    let sizes: Vec<usize> = passes.iter().map(|pass| pass.nodes.len()).collect();
    assert_eq!(sizes, [1, 3, 1]);
    assert_eq!(passes[1].outputs, [smooth, totals]);
    assert!(passes.iter().all(|pass| !pass.outputs.contains(&nobody)));
}

#[test]
fn a_pass_that_would_wait_for_itself_is_cut() {
    let mut flow = Flow::new();
    let image = plane(&mut flow);
    let smooth = blur(&mut flow, image, &[1, 2], Boundary::Clamp);
    let kind = flow.kind(smooth);
    let flipped = flow.add(Prim::Flip { axis: 1 }, &[smooth], kind);
    let rest = difference(&mut flow, smooth, flipped);
    flow.output(rest);
    assert_eq!(sizes(&flow), [2, 1, 1]);
}

fn part(start: [i64; 3]) -> Prim {
    Prim::Crop {
        start,
        boundary: Boundary::Clamp,
        fill: 0.0,
    }
}

#[test]
fn parts_of_images_go_with_what_reads_them() {
    let mut flow = Flow::new();
    let small = ValueKind::Image(ImageType::plane(DType::U16, 20, 30));
    let images = [plane(&mut flow), plane(&mut flow)];
    let [a, b] = images.map(|image| flow.add(part([0, 3, -2]), &[image], small));
    let rest = difference(&mut flow, a, b);
    flow.output(rest);
    let passes = partition(&flow, 64);
    assert_eq!(passes.len(), 1);
    assert_eq!(passes[0].inputs, images);
    // Parts of what is made in a pass cannot be taken before it is all there; alone they are moved.
    let mut flow = Flow::new();
    let image = plane(&mut flow);
    let smooth = blur(&mut flow, image, &[1, 2], Boundary::Clamp);
    let kind = flow.kind(smooth);
    let moved = flow.add(part([0, 1, 0]), &[smooth], kind);
    flow.output(moved);
    let passes = partition(&flow, 64);
    assert_eq!(sizes(&flow), [2, 1]);
    assert!(!passes[1].by_rows(&flow));
}

/// How many nodes the passes have of a chain of blurs over rows of this length.
fn blurs(width: u64) -> Vec<usize> {
    let mut flow = Flow::new();
    let mut image = flow.input(ValueKind::Image(ImageType::plane(DType::U16, 30, width)));
    for _ in 0..12 {
        image = flow.taps(image, 1, Weights::Even(vec![0.1; 9]), Boundary::Clamp);
        image = flow.taps(image, 2, Weights::Even(vec![0.1; 9]), Boundary::Clamp);
    }
    flow.output(image);
    sizes(&flow)
}

#[test]
fn chains_are_cut_before_their_rows_leave_the_cache() {
    assert_eq!(blurs(100), [24]);
    assert_eq!(blurs(2048), [10, 10, 4]);
    assert_eq!(blurs(8192), [2; 12]);
    // A blur is never cut in two.
    assert_eq!(blurs(1 << 20), [2; 12]);
}

/// A node of a random flow.
#[derive(Clone, Debug)]
struct Recipe {
    sources: (usize, usize),
    kind: u8,
    boundary: Boundary,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let boundary = prop_oneof![
        5 => Just(Boundary::Clamp),
        2 => Just(Boundary::Wrap),
        1 => Just(Boundary::Zero)
    ];
    (any::<(usize, usize)>(), 0..9_u8, boundary).prop_map(|(sources, kind, boundary)| Recipe {
        sources,
        kind,
        boundary,
    })
}

fn build(recipes: &[Recipe], near: usize, wanted: &[usize]) -> Flow {
    let mut flow = Flow::new();
    let mut values = vec![
        flow.input(ValueKind::Image(ImageType::stack(DType::U16, 3, 8, 4000))),
        flow.input(ValueKind::Image(ImageType::stack(DType::F32, 3, 8, 4000))),
    ];
    for recipe in recipes {
        let pick = |source: usize| values[values.len() - 1 - source % near.min(values.len())];
        let (a, b) = (pick(recipe.sources.0), pick(recipe.sources.1));
        let kind = flow.kind(a);
        let value = match recipe.kind {
            0 => blur(&mut flow, a, &[1, 2], recipe.boundary),
            1 => {
                let weights = Weights::Even(vec![0.05; 10]);
                flow.taps(a, 1, weights, recipe.boundary)
            }
            2 => blur(&mut flow, a, &[0], recipe.boundary),
            3 => flow.add(Prim::Flip { axis: 1 }, &[a], kind),
            4 => flow.map(&[a, b], a, DType::F32, &[], |g, images, _| {
                let other = g.near(images[0], [1, 0, 0], recipe.boundary);
                other.cast(Ty::F32) + g.pixel(images[1]).cast(Ty::F32)
            }),
            5 => flow.map(&[a, b], a, DType::F32, &[], |g, images, _| {
                let other = g.near(images[0], [0, 1, 0], recipe.boundary);
                other.cast(Ty::F32) + g.pixel(images[1]).cast(Ty::F32)
            }),
            6 => {
                let totals = flow.add(Prim::Totals, &[b], ValueKind::scalars(5));
                flow.map(&[a, totals], a, DType::F32, &[], |g, images, _| {
                    g.pixel(images[0]).cast(Ty::F32) / g.scalar(images[1], 1).cast(Ty::F32)
                })
            }
            7 => flow.add(part([0, 1, -1]), &[a], kind),
            _ => difference(&mut flow, a, b),
        };
        values.push(value);
    }
    for at in wanted {
        let id = values[2 + at % recipes.len()];
        if !flow.is_output(id) {
            flow.output(id);
        }
    }
    flow
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Groups are kept while nodes join, and the passes are the very same.
    #[test]
    fn cutting_is_what_it_means(
        recipes in prop::collection::vec(recipe(), 1..30),
        near in prop_oneof![1..4_usize, Just(100)],
        wanted in prop::collection::vec(any::<usize>(), 1..6),
        most in prop_oneof![3..8_usize, Just(64)],
    ) {
        let flow = build(&recipes, near, &wanted);
        prop_assert_eq!(partition(&flow, most), meaning::partition(&flow, most));
    }
}
