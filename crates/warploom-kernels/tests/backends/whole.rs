//! Primitives that look at whole images.

use warploom_core::DType;
use warploom_kernels::ImageType;
use warploom_kernels::flow::{Flow, Prim, ThresholdMethod, ValueKind};

use super::case::{Case, DTYPES, image};
use super::devices::agree;

/// Extents: around chunks of 16 and 4096 pixels, one pixel, rows and columns, stacks.
const SHAPES: [[u64; 3]; 6] = [
    [1, 1, 1],
    [1, 1, 17],
    [1, 33, 1],
    [1, 64, 64],
    [3, 50, 77],
    [1, 300, 401],
];

fn types() -> impl Iterator<Item = ImageType> {
    let all = DTYPES.into_iter().map(|dtype| image(dtype, [1, 161, 211]));
    all.chain(SHAPES.into_iter().map(|dims| image(DType::F32, dims)))
}

/// Images of a few pixels: nothing but one value, both zeros, infinities.
const FEW: [&[f32]; 4] = [
    &[7.5; 9],
    &[-0.0, 0.0, -0.0],
    &[f32::INFINITY, 1.0, -2.0],
    &[f32::INFINITY, f32::NEG_INFINITY],
];
/// And what is no number.
const NAN: [&[f32]; 2] = [&[1.0, f32::NAN, 3.0], &[f32::NAN; 4]];

fn special(prim: &Prim, gives: ValueKind, lists: &[&[f32]]) -> Vec<Case> {
    let float = lists.iter().map(|pixels| {
        let like = image(DType::F32, [1, 1, pixels.len() as u64]);
        Case::one(prim.clone(), &[like], gives).with_input(0, pixels)
    });
    let wide = lists.iter().map(|pixels| {
        let like = image(DType::F64, [1, pixels.len() as u64, 1]);
        let pixels: Vec<f64> = pixels.iter().map(|v| f64::from(*v)).collect();
        Case::one(prim.clone(), &[like], gives).with_input(0, &pixels)
    });
    let equal = [3_u8, 0, 255].map(|value| {
        let like = image(DType::U8, [1, 200, 301]);
        Case::one(prim.clone(), &[like], gives).with_input(0, &vec![value; 200 * 301])
    });
    float.chain(wide).chain(equal).collect()
}

#[test]
fn totals() {
    let gives = ValueKind::scalars(5);
    let cases = types().map(|like| Case::one(Prim::Totals, &[like], gives));
    let nan = special(&Prim::Totals, gives, &NAN);
    agree(cases.chain(special(&Prim::Totals, gives, &FEW)).chain(nan));
}

fn histogram(like: ImageType, bins: u32, [low, high]: [f64; 2]) -> Case {
    let (low, high) = (Some(low), Some(high));
    let gives = ValueKind::List {
        dtype: DType::U32,
        length: u64::from(bins),
    };
    Case::one(Prim::Histogram { bins, low, high }, &[like], gives)
}

#[test]
fn histograms() {
    // Bins of the long table are as wide as pairs of f32 hold exactly: wgpu may put a value on
    // any other edge into the bin beside it.
    let known = types().flat_map(|like| {
        [(1, [-4.0, 9.0]), (256, [-3.3, 251.0]), (5120, [0.0, 320.0])]
            .map(|(bins, range)| histogram(like, bins, range))
    });
    let own = types().map(|like| {
        let mut flow = Flow::new();
        let input = flow.input(ValueKind::Image(like));
        let totals = flow.add(Prim::Totals, &[input], ValueKind::scalars(5));
        let gives = ValueKind::List {
            dtype: DType::U32,
            length: 100,
        };
        let prim = Prim::Histogram {
            bins: 100,
            low: None,
            high: None,
        };
        let counts = flow.add(prim, &[input, totals], gives);
        flow.output(counts);
        Case::new(
            format!("histogram of {like:?} from least to greatest"),
            flow,
        )
    });
    agree(known.chain(own));
}

#[test]
fn percentiles() {
    let q: &[&[f64]] = &[&[50.0], &[1.0, 99.0, 99.9, 0.0, 50.0, 100.0, 33.3]];
    let cases = q.iter().flat_map(|q| {
        let prim = Prim::Percentiles { q: q.to_vec() };
        let gives = ValueKind::scalars(q.len() as u64);
        let nan = special(&prim, gives, &NAN);
        let special = special(&prim, gives, &FEW).into_iter().chain(nan);
        let cases = types().map(move |like| Case::one(prim.clone(), &[like], gives));
        cases.chain(special).collect::<Vec<_>>()
    });
    agree(cases);
}

const METHODS: [ThresholdMethod; 5] = [
    ThresholdMethod::Otsu,
    ThresholdMethod::Triangle,
    ThresholdMethod::Yen,
    ThresholdMethod::Isodata,
    ThresholdMethod::Mean,
];

#[test]
fn thresholds() {
    let gives = ValueKind::scalars(1);
    let cases = METHODS.into_iter().flat_map(|method| {
        let prim = Prim::Threshold { method, bins: 256 };
        let nan = special(&prim, gives, &NAN);
        let special = special(&prim, gives, &FEW).into_iter().chain(nan);
        let cases = types().map(move |like| {
            let case = Case::one(prim.clone(), &[like], gives);
            // As many bins as values: only the pixels tell how many.
            let large = matches!(like.dtype, DType::I32 | DType::U32);
            if large { case.by_host() } else { case }
        });
        cases.chain(special).collect::<Vec<_>>()
    });
    agree(cases);
}
