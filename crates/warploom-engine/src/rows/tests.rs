//! Every pass against plain loops that say what it is, on every instruction set.

use proptest::prelude::*;
use warploom_core::DType;

use super::super::depth::DepthEngine;
use super::super::image::{Image, ImageMut};
use super::super::lanes::{Level, levels};
use super::super::taps::Taps;
use super::super::window::Fold;
use super::super::{Pixel, View, ViewMut};
use super::{Axis, Reads, RowGraph};
use warploom_flow::Boundary;
use warploom_flow::expr::{Dag, Datum, Evaluator, Graph, Pixels, Source, Ty};

/// An image that is easy to index.
#[derive(Clone, Debug)]
struct Plain<T> {
    data: Vec<T>,
    dims: [usize; 3],
}

impl<T: Pixel> Plain<T> {
    fn at(&self, z: usize, y: usize, x: usize) -> T {
        self.data[(z * self.dims[1] + y) * self.dims[2] + x]
    }

    /// A line along `axis` through a pixel, extended on both sides.
    fn line(&self, axis: usize, at: [usize; 3], before: i64, after: i64, rule: Boundary) -> Vec<T> {
        (-before..=after)
            .map(|by| {
                let source = rule.source(at[axis] as i64 + by, self.dims[axis] as i64);
                source.map_or(T::ZERO, |source| {
                    let mut at = at;
                    at[axis] = source as usize;
                    self.at(at[0], at[1], at[2])
                })
            })
            .collect()
    }

    fn map<U>(&self, mut f: impl FnMut([usize; 3]) -> U) -> Plain<U> {
        let [nz, ny, nx] = self.dims;
        let mut data = Vec::new();
        for z in 0..nz {
            for y in 0..ny {
                data.extend((0..nx).map(|x| f([z, y, x])));
            }
        }
        Plain {
            data,
            dims: self.dims,
        }
    }
}

fn correlate(image: &Plain<f32>, axis: usize, taps: &Taps<f32>, rule: Boundary) -> Plain<f32> {
    let (before, after) = (taps.before(), taps.after());
    image.map(|at| {
        let line = image.line(axis, at, before as i64, after as i64, rule);
        match taps {
            Taps::Symmetric(w) => {
                let mut sum = w[0] * line[before];
                for k in 1..w.len() {
                    sum = w[k].mul_add(line[before - k] + line[before + k], sum);
                }
                sum
            }
            Taps::Antisymmetric(w) => {
                let mut sum = w[0] * (line[before + 1] - line[before - 1]);
                for k in 2..=w.len() {
                    sum = w[k - 1].mul_add(line[before + k] - line[before - k], sum);
                }
                sum
            }
            Taps::General { weights, .. } => {
                let mut sum = weights[0] * line[0];
                for k in 1..weights.len() {
                    sum = weights[k].mul_add(line[k], sum);
                }
                sum
            }
        }
    })
}

fn gather<T: Pixel + std::ops::Add<Output = T>>(fold: Fold, values: impl Iterator<Item = T>) -> T {
    match fold {
        Fold::Sum => values.reduce(|a, b| a + b).unwrap(),
        Fold::Min => values.fold(T::GREATEST, Pixel::lesser),
        Fold::Max => values.fold(T::LEAST, Pixel::greater),
    }
}

fn windows<T: Pixel + std::ops::Add<Output = T>>(
    image: &Plain<T>,
    axis: usize,
    fold: Fold,
    radius: usize,
    rule: Boundary,
) -> Plain<T> {
    let (r, w) = (radius as i64, 2 * radius as i64 + 1);
    image.map(|at| {
        let line = image.line(axis, at, r, r, rule);
        let i = at[axis] as i64;
        let cut = (w - i % w) % w;
        if cut == 0 {
            return gather(fold, line.into_iter());
        }
        let (end, beginning) = line.split_at(cut as usize);
        let end = gather(fold, end.iter().rev().copied());
        let beginning = gather(fold, beginning.iter().copied());
        match fold {
            Fold::Sum => end + beginning,
            Fold::Min => end.lesser(beginning),
            Fold::Max => end.greater(beginning),
        }
    })
}

/// Runs one pass of the engine.
fn pass<'a, T, U>(
    image: &'a Plain<T>,
    axis: usize,
    work: &dyn Fn(&mut RowGraph, super::Value, Axis) -> super::Value,
    deep: &dyn Fn() -> DepthEngine,
    level: Level,
) -> Vec<U>
where
    T: Pixel,
    U: Pixel,
    View<'a, T>: Into<Image<'a>>,
    for<'b> ViewMut<'b, U>: Into<ImageMut<'b>>,
{
    let mut out = vec![U::ZERO; image.data.len()];
    let input = View::packed(&image.data, image.dims).into();
    let output = ViewMut::packed(&mut out, image.dims).into();
    if axis == 0 {
        deep().on(level).run(&input, output);
        return out;
    }
    let mut graph = RowGraph::new();
    let value = graph.input(T::DTYPE);
    let value = work(&mut graph, value, if axis == 1 { Axis::Y } else { Axis::X });
    graph.output(value, U::DTYPE);
    graph.finish_on(level).run(&[input], vec![output]);
    out
}

fn dims() -> impl Strategy<Value = [usize; 3]> {
    prop_oneof![
        Just([1, 1, 1]),
        Just([1, 1, 37]),
        Just([1, 37, 1]),
        Just([1, 70, 33]),
        Just([5, 3, 17]),
        (1..4_usize, 1..80_usize, 1..70_usize).prop_map(|(z, y, x)| [z, y, x]),
        Just([2, 5, 300]),
    ]
}

fn rules() -> impl Strategy<Value = Boundary> {
    prop::sample::select(Boundary::ALL.to_vec())
}

fn noise(seed: u64, count: usize) -> impl Iterator<Item = u64> {
    let mut state = seed | 1;
    (0..count).map(move |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    })
}

fn some_image<T>(seed: u64, dims: [usize; 3], value: impl Fn(u64) -> T) -> Plain<T> {
    let data = noise(seed, dims.iter().product()).map(value).collect();
    Plain { data, dims }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn some_taps() -> impl Strategy<Value = Taps<f64>> {
    let weights = prop::collection::vec(-1.0..1.0_f64, 1..20);
    prop_oneof![
        weights.clone().prop_map(Taps::Symmetric),
        weights.clone().prop_map(Taps::Antisymmetric),
        (weights, 0..20_usize).prop_map(|(weights, before)| Taps::General {
            before: before % weights.len(),
            weights,
        }),
        Just(Taps::Symmetric(vec![0.01; 91])),
    ]
}

fn check<T: Pixel + std::ops::Add<Output = T>>(
    image: &Plain<T>,
    axis: usize,
    fold: Fold,
    radius: usize,
    rule: Boundary,
) -> Result<(), TestCaseError>
where
    for<'a> View<'a, T>: Into<Image<'a>>,
    for<'a> ViewMut<'a, T>: Into<ImageMut<'a>>,
{
    let expected = windows(image, axis, fold, radius, rule);
    for level in levels() {
        let is: Vec<T> = pass(
            image,
            axis,
            &|graph, value, axis| graph.window(value, axis, fold, radius, rule),
            &|| DepthEngine::window(T::DTYPE, fold, radius, rule),
            level,
        );
        prop_assert_eq!(&is, &expected.data, "{:?}", level);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn correlations_are_their_definition(
        seed: u64, dims in dims(), axis in 0..3_usize, taps in some_taps(), rule in rules(),
    ) {
        let image = some_image(seed, dims, |bits| bits as f32 / 1e9 - 1.0);
        let expected = correlate(&image, axis, &taps.rounded(), rule);
        for level in levels() {
            let is: Vec<f32> = pass(
                &image,
                axis,
                &|graph, value, axis| graph.taps(value, axis, &taps, rule),
                &|| DepthEngine::taps(DType::F32, &taps, rule),
                level,
            );
            prop_assert_eq!(bits(&is), bits(&expected.data), "{:?}", level);
        }
    }

    #[test]
    fn windows_are_their_definition(
        seed: u64, dims in dims(), axis in 0..3_usize, radius in 0..40_usize, rule in rules(),
        fold in prop::sample::select(vec![Fold::Sum, Fold::Min, Fold::Max]),
    ) {
        // Whether there are negative zeros decides how extremes are found.
        let zero = if seed.is_multiple_of(2) { -0.0 } else { 0.0 };
        let image = some_image(seed, dims, |bits| match bits % 50 {
            0 if fold != Fold::Sum => f32::NAN,
            1 => zero,
            _ => (bits % 1000) as f32 / 7.0 - 50.0,
        });
        let expected = windows(&image, axis, fold, radius, rule);
        for level in levels() {
            let is: Vec<f32> = pass(
                &image,
                axis,
                &|graph, value, axis| graph.window(value, axis, fold, radius, rule),
                &|| DepthEngine::window(DType::F32, fold, radius, rule),
                level,
            );
            prop_assert_eq!(bits(&is), bits(&expected.data), "{:?}", level);
        }
    }

    #[test]
    fn extremes_of_integers_stay_integers(
        seed: u64, dims in dims(), axis in 0..3_usize, radius in 0..40_usize, rule in rules(),
        max: bool,
    ) {
        let fold = if max { Fold::Max } else { Fold::Min };
        check(&some_image(seed, dims, |bits| bits as u8), axis, fold, radius, rule)?;
        check(&some_image(seed, dims, |bits| bits as u16), axis, fold, radius, rule)?;
        check(&some_image(seed, dims, |bits| bits as i16), axis, fold, radius, rule)?;
        check(&some_image(seed, dims, |bits| (bits * 3) as i32), axis, fold, radius, rule)?;
        check(&some_image(seed, dims, |bits| (bits * 3) as u32), axis, fold, radius, rule)?;
        check(&some_image(seed, dims, |bits| bits as f64), axis, fold, radius, rule)?;
    }

    #[test]
    fn chains_are_their_links(
        seed: u64, dims in dims(), a in 0..9_usize, b in 1..30_usize, wraps: bool, threads in 1..4_usize,
        rule in prop::sample::select(vec![Boundary::Clamp, Boundary::Zero, Boundary::Reflect]),
    ) {
        let rule = if wraps { Boundary::Wrap } else { rule };
        let image = some_image(seed, dims, |bits| bits as u16);
        let taps = Taps::Symmetric((0..=a).map(|k| 0.3 / (k + 1) as f64).collect());
        let plain = image.map(|[z, y, x]| f32::from(image.at(z, y, x)));
        let smooth = correlate(&correlate(&plain, 1, &taps.rounded(), rule), 2, &taps.rounded(), rule);
        let sums = windows(&windows(&smooth, 1, Fold::Sum, b, rule), 2, Fold::Sum, b, rule);
        let least = windows(&windows(&smooth, 2, Fold::Min, b, rule), 1, Fold::Min, b, rule);

        let mut graph = RowGraph::new();
        let value = graph.input(DType::U16);
        let value = graph.taps(value, Axis::Y, &taps, rule);
        let value = graph.taps(value, Axis::X, &taps, rule);
        let sum = graph.window(value, Axis::Y, Fold::Sum, b, rule);
        let sum = graph.window(sum, Axis::X, Fold::Sum, b, rule);
        let min = graph.window(value, Axis::X, Fold::Min, b, rule);
        let min = graph.window(min, Axis::Y, Fold::Min, b, rule);
        graph.output(sum, DType::F32);
        graph.output(min, DType::F32);
        let engine = graph.finish();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for _ in 0..2 {
            let (mut one, mut two) = (vec![0.0; plain.data.len()], vec![0.0; plain.data.len()]);
            pool.install(|| engine.run(
                &[View::packed(&image.data, dims).into()],
                vec![ViewMut::packed(&mut one, dims).into(), ViewMut::packed(&mut two, dims).into()],
            ));
            prop_assert_eq!(bits(&one), bits(&sums.data));
            prop_assert_eq!(bits(&two), bits(&least.data));
        }
    }

    #[test]
    fn expressions_read_neighbours_of_inputs_and_of_values(
        seed: u64, dims in dims(), rule in rules(), threads in 1..3_usize,
        offsets in prop::collection::vec((-1..=1_i32, -5..=5_i32, -9..=9_i32), 1..6),
    ) {
        let image = some_image(seed, dims, |bits| bits as u16);
        let extents = dims.map(|n| n as u64);
        // The first expression reads the input anywhere, the second only other rows of the first.
        let build = |dtype: DType, offsets: &[[i32; 3]]| {
            let graph = Graph::new();
            let source = graph.input(dtype);
            let list = graph.input(DType::F64);
            let factor = graph.param(Ty::F32) + graph.scalar(list, 1).cast(Ty::F32);
            let sum = offsets.iter().map(|&offset| graph.near(source, offset, rule).cast(Ty::F32));
            let sum = sum.reduce(|a, b| a * 0.75 + b).unwrap();
            let [_, y, x] = graph.coords();
            let result = sum * factor + (y * 3 + x).cast(Ty::F32);
            Dag::new(&graph, &[(result, DType::F32), (result * 0.5, DType::I16)])
        };
        let all: Vec<[i32; 3]> = offsets.iter().map(|&(z, y, x)| [z, y, x]).collect();
        let flat: Vec<[i32; 3]> = offsets.iter().map(|&(_, y, x)| [0, y, x]).collect();
        let (first, second) = (build(DType::U16, &all), build(DType::F32, &flat));
        let numbers = [Datum::F32(0.125)];
        let list = [9.0, 1.5];
        let pixels = |bytes, dtype| [Source::Image(Pixels::packed(bytes, dtype, extents)), Source::List(&list)];
        let sources = pixels(bytemuck::cast_slice(&image.data), DType::U16);
        let one = Evaluator::new(&first, &numbers, &sources, extents).all();
        // Its bytes need not be aligned, as those of a view must be.
        let sources = pixels(&one[0], DType::F32);
        let two = Evaluator::new(&second, &numbers, &sources, extents).all();

        let mut graph = RowGraph::new();
        let value = graph.input(DType::U16);
        let numbers_in = graph.list();
        let made = graph.map(&first, &[Reads::Image(value), Reads::List(numbers_in)], &numbers).unwrap();
        let last = graph.map(&second, &[Reads::Image(made[0]), Reads::List(numbers_in)], &numbers).unwrap();
        graph.output(made[1], DType::I16);
        graph.output(last[0], DType::F32);
        graph.output(last[1], DType::I16);
        graph.output(made[0], DType::F32);
        let engine = graph.finish();
        let count = image.data.len();
        let (mut a, mut b, mut c, mut d) = (vec![0_i16; count], vec![0.0_f32; count], vec![0_i16; count], vec![0.0_f32; count]);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| engine.run_with(
            &[View::packed(&image.data, dims).into()],
            &[&list],
            vec![
                ViewMut::packed(&mut a, dims).into(),
                ViewMut::packed(&mut b, dims).into(),
                ViewMut::packed(&mut c, dims).into(),
                ViewMut::packed(&mut d, dims).into(),
            ],
        ));
        prop_assert_eq!(bytemuck::cast_slice::<_, u8>(&d), &one[0]);
        prop_assert_eq!(bytemuck::cast_slice::<_, u8>(&a), &one[1]);
        prop_assert_eq!(bytemuck::cast_slice::<_, u8>(&b), &two[0]);
        prop_assert_eq!(bytemuck::cast_slice::<_, u8>(&c), &two[1]);
    }
}

#[test]
fn local_expressions_run_over_long_rows_and_give_the_same() {
    let graph = Graph::new();
    let (a, b) = (graph.input(DType::U16), graph.input(DType::F32));
    let product = graph.pixel(a).cast(Ty::F32) * graph.pixel(b);
    let here = graph.coords()[1].cast(Ty::F32);
    for (expression, is_local) in [(product, true), (product + here, false)] {
        let dag = Dag::new(&graph, &[(expression, DType::F32)]);
        // The last two are large enough to go past the caches.
        let few = [[2, 96, 500], [1, 97, 513], [64, 1, 3], [1, 7, 1]];
        for dims in few.into_iter().chain([[1, 1000, 1024], [3, 333, 1031]]) {
            let count: usize = dims.iter().product();
            let left: Vec<u16> = (0..count).map(|i| (i * 7919 % 65_521) as u16).collect();
            let right: Vec<f32> = (0..count).map(|i| (i % 1013) as f32 / 7.0).collect();
            let mut rows = RowGraph::new();
            let reads = [DType::U16, DType::F32].map(|dtype| Reads::Image(rows.input(dtype)));
            let made = rows.map(&dag, &reads, &[]).unwrap();
            rows.output(made[0], DType::F32);
            let engine = rows.finish().with_last(vec![true]);
            assert_eq!(engine.is_local, is_local);
            let mut room = vec![0.0_f32; count + 16];
            let start = room.as_ptr().addr().next_multiple_of(64) - room.as_ptr().addr();
            let out = &mut room[start / 4..start / 4 + count];
            let inputs = [
                Image::from(View::packed(&left, dims)),
                Image::from(View::packed(&right, dims)),
            ];
            let target = ImageMut::from(ViewMut::packed(out, dims));
            engine.run(&inputs, vec![target]);
            for (i, &found) in room[start / 4..][..count].iter().enumerate() {
                let y = if is_local { 0 } else { i / dims[2] % dims[1] };
                let wanted = f32::from(left[i]) * right[i] + y as f32;
                assert_eq!(found, wanted, "{i} of {dims:?}");
            }
        }
    }
}
