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

/// Extents of images of which processors look at a sample first.
const LARGE: [u64; 3] = [1, 421, 503];
const PIXELS: u64 = 421 * 503;
/// Pixels for each of a sample.
const STEP: u64 = 64;

/// Repeatable noise, 24 bits.
fn random(at: u64) -> u64 {
    (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

/// What processors look at first; whoever changes that changes it here, or nothing deceives them any more.
fn is_in_sample(at: u64) -> bool {
    let turn = (at / STEP) as u32;
    let off = turn.wrapping_mul(0x9e37_79b1) >> 8;
    at / STEP < PIXELS / STEP && at % STEP == u64::from(off) % STEP
}

/// A pixel by its number.
type Pixel<'a> = &'a dyn Fn(u64) -> f32;
/// The same, told whether processors look at it first.
type Seen<'a> = &'a dyn Fn(u64, bool) -> f32;

fn of_large<T: warploom_core::Element>(name: &str, value: impl Fn(u64) -> T) -> Vec<Case> {
    let pixels: Vec<T> = (0..PIXELS).map(value).collect();
    let like = image(T::DTYPE, LARGE);
    let q: [&[f64]; 3] = [&[1.0, 99.8], &[50.0], &[100.0, 0.0, 30.0, 50.0, 50.01, 0.1]];
    let cases = q.map(|q| {
        let prim = Prim::Percentiles { q: q.to_vec() };
        let gives = ValueKind::scalars(q.len() as u64);
        let mut case = Case::one(prim, &[like], gives).with_input(0, &pixels);
        case.name = format!("{name}: {}", case.name);
        // In pairs of f32 some of these are other numbers.
        case.strictly()
    });
    cases.into()
}

#[test]
fn percentiles_by_way_of_a_sample() {
    let share = |at: u64| random(at) as f32 / (1 << 24) as f32;
    let one_of = |at: u64, all: [f32; 4]| all[(random(at) % 4) as usize];
    let sorts: [(&str, Pixel<'_>); 12] = [
        ("noise", &|at| share(at) - 0.3),
        ("ramp", &|at| at as f32),
        ("bell", &|at| (0..6).map(|k| share(6 * at + k)).sum()),
        ("one value", &|_| -3.5),
        ("two values", &|at| (random(at) % 2) as f32),
        ("ten values", &|at| (random(at) % 10) as f32),
        ("mostly zero", &|at| one_of(at, [0.0, share(at), 0.0, 0.0])),
        ("both zeros", &|at| one_of(at, [0.0, -0.0, -0.0, share(at)])),
        ("as far apart as a sample", &|at| {
            if at % STEP == 0 { share(at) } else { 7.0 }
        }),
        ("some are no numbers", &|at| {
            one_of(at, [share(at), -share(at), f32::NAN, -f32::NAN])
        }),
        ("infinities", &|at| {
            one_of(at, [f32::INFINITY, share(at), share(at), f32::NEG_INFINITY])
        }),
        ("nothing but infinities", &|at| {
            one_of(at, [f32::INFINITY; 4]) * if at % 3 == 0 { -1.0 } else { 1.0 }
        }),
    ];
    let mut cases: Vec<Case> = sorts
        .into_iter()
        .flat_map(|(name, value)| of_large(name, value))
        .collect();
    cases.extend(of_large("whole numbers", |at| {
        (random(at) as i32 - (1 << 23)) << 8
    }));
    cases.extend(of_large("ends of whole numbers", |at| {
        [i32::MIN, i32::MAX, 5][(random(at) % 3) as usize]
    }));
    cases.extend(of_large("natural numbers", |at| random(at) as u32));
    cases.extend(of_large("ends of natural numbers", |at| {
        [0, u32::MAX, u32::MAX - 1][(random(at) % 3) as usize]
    }));
    agree(cases);
}

/// Where a sample says something else than the pixels do, these are counted.
#[test]
fn percentiles_although_a_sample_deceives() {
    let share = |at: u64| random(at) as f32 / (1 << 24) as f32;
    let sorts: [(&str, Seen<'_>); 6] = [
        ("no rank is where it was looked for", &|at, seen| {
            if seen { share(at) } else { share(at) + 5.0 }
        }),
        ("and none on the other side", &|at, seen| {
            if seen { share(at) } else { share(at) - 5.0 }
        }),
        ("too many to keep", &|at, seen| {
            if seen {
                share(at)
            } else {
                0.5 + share(at) / 64.0
            }
        }),
        ("no numbers in a sample", &|at, seen| {
            if seen { f32::NAN } else { share(at) }
        }),
        ("few numbers", &|at, _| {
            if at % 499 == 3 { share(at) } else { f32::NAN }
        }),
        ("no numbers", &|_, _| f32::NAN),
    ];
    let cases = sorts
        .into_iter()
        .flat_map(|(name, value)| of_large(name, |at| value(at, is_in_sample(at))));
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
