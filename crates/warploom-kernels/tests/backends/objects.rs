//! Masks and label images.

use warploom_core::DType;
use warploom_kernels::flow::{Connectivity, Prim, ValueKind};

use super::case::{Case, image};
use super::devices::agree;

const SHAPES: [[u64; 3]; 7] = [
    [1, 1, 1],
    [1, 1, 90],
    [1, 90, 1],
    [1, 40, 33],
    [3, 1, 50],
    [5, 9, 70],
    [1, 120, 257],
];

/// A mask of every sort: sparse noise, dense noise, blobs, stripes that wind, all, nothing.
fn masks([nz, ny, nx]: [u64; 3]) -> Vec<Vec<u8>> {
    let make = |set: &dyn Fn(u64, u64, u64, u64) -> bool| {
        let mut state = 88_172_645_463_325_252_u64;
        let mut pixels = Vec::new();
        for z in 0..nz {
            for y in 0..ny {
                for x in 0..nx {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    pixels.push(u8::from(set(z, y, x, state >> 30)) * 3);
                }
            }
        }
        pixels
    };
    let wave = |v: u64| (v as f64 / 5.0).sin();
    vec![
        make(&|_, _, _, r| r % 8 == 0),
        make(&|_, _, _, r| r % 5 < 3),
        make(&|z, y, x, _| wave(x + z) * wave(y + 2 * z) > 0.3),
        // A snake: every other row, joined at one end or the other.
        make(&|_, y, x, _| y % 2 == 0 || x == if y % 4 == 1 { nx - 1 } else { 0 }),
        make(&|_, _, _, _| true),
        make(&|_, _, _, _| false),
    ]
}

/// Labels on those masks: by blocks, with gaps, some of them large.
fn labels(dims: [u64; 3], greatest: u32) -> Vec<Vec<u32>> {
    let [_, ny, nx] = dims;
    let masks = masks(dims).into_iter();
    let label = |(at, set): (usize, u8)| {
        let at = at as u64;
        let (x, y) = (at % nx, at / nx % ny);
        let label = 1 + (x / 9 * 7 + y / 6 * 13) % 50 * 3;
        let label = u32::try_from(label).expect("small");
        match (set, label % 4) {
            (0, _) => 0,
            (_, 0) => greatest - label,
            _ => label,
        }
    };
    masks
        .map(|mask| mask.into_iter().enumerate().map(label).collect())
        .collect()
}

#[test]
fn components() {
    let cases = SHAPES.into_iter().flat_map(|dims| {
        masks(dims).into_iter().flat_map(move |mask| {
            [Connectivity::Diamond, Connectivity::Box].map(|connectivity| {
                let like = image(DType::U8, dims);
                let gives = like.with_dtype(DType::U32);
                Case::one(Prim::Label(connectivity), &[like], gives).with_input(0, &mask)
            })
        })
    });
    agree(cases);
}

fn on_labels(prims: &[Prim], greatest: &[u32]) -> Vec<Case> {
    on_labels_of(&SHAPES, prims, greatest)
}

fn on_labels_of(shapes: &[[u64; 3]], prims: &[Prim], greatest: &[u32]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &dims in shapes {
        for greatest in greatest {
            for labels in labels(dims, *greatest) {
                for prim in prims {
                    let like = image(DType::U32, dims);
                    cases.push(Case::one(prim.clone(), &[like], like).with_input(0, &labels));
                }
            }
        }
    }
    cases
}

#[test]
fn borders() {
    agree(on_labels(&[Prim::ClearBorder], &[1000]));
}

/// Pixels of few labels without anything between: the ends of runs meet across corners in every way.
#[test]
fn borders_where_labels_touch() {
    let cases = SHAPES.into_iter().flat_map(|dims| {
        [2_u64, 3, 6].map(|labels| {
            let mut state = 88_172_645_463_325_252_u64;
            let pixels = (0..dims.iter().product()).map(|_: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                u32::try_from((state >> 30) % labels).expect("few")
            });
            let pixels: Vec<u32> = pixels.collect();
            let like = image(DType::U32, dims);
            Case::one(Prim::ClearBorder, &[like], like).with_input(0, &pixels)
        })
    });
    agree(cases);
}

#[test]
fn sizes_and_numbers() {
    let prims = [
        Prim::KeepSizes {
            least: 20,
            most: u64::MAX,
        },
        Prim::KeepSizes { least: 0, most: 30 },
        Prim::Relabel,
    ];
    agree(on_labels(&prims, &[1000, u32::MAX]));
}

#[test]
fn growing() {
    let prims = [0.0, 1.0, 2.5, 7.1, 48.9, 1000.0].map(|distance| Prim::Expand { distance });
    agree(on_labels(&prims, &[1000]));
}

#[test]
fn growing_beyond_an_item() {
    let shapes = [[1, 9, 1100], [3, 4, 600]];
    let prims = [3.0, 48.0].map(|distance| Prim::Expand { distance });
    agree(on_labels_of(&shapes, &prims, &[1000]));
}

#[test]
fn distances() {
    let cases = SHAPES.into_iter().flat_map(|dims| {
        masks(dims).into_iter().flat_map(move |mask| {
            [DType::F32, DType::F64].map(|dtype| {
                let like = image(DType::U8, dims);
                let gives = like.with_dtype(dtype);
                Case::one(Prim::Distance, &[like], gives).with_input(0, &mask)
            })
        })
    });
    agree(cases);
}

#[test]
fn tables() {
    let mut cases = Vec::new();
    for dims in SHAPES {
        let columns = if dims[0] > 1 { 16 } else { 13 };
        for (at, greatest) in [1000, u32::MAX].into_iter().enumerate() {
            for labels in labels(dims, greatest) {
                let dtype = [DType::F32, DType::U16][at];
                let (like, measured) = (image(DType::U32, dims), image(dtype, dims));
                let gives = ValueKind::scalars(1 + 40 * u64::from(columns));
                let prim = Prim::Statistics { columns };
                let case = Case::one(prim, &[like, measured], gives);
                cases.push(case.with_input(0, &labels).within(64.0));
            }
        }
    }
    // Bands of rows are added in order; a band has more pixels than a software driver has rounds for.
    let bands = [DType::F32, DType::F64, DType::I16].map(|dtype| (dtype, [1, 700, 61]));
    for (dtype, dims) in bands.into_iter().chain([(DType::F32, [1, 256, 300])]) {
        let (like, measured) = (image(DType::U32, dims), image(dtype, dims));
        let prim = Prim::Statistics { columns: 13 };
        let case = Case::one(prim, &[like, measured], ValueKind::scalars(1 + 60 * 13));
        cases.push(case.with_input(0, &labels(dims, 1000)[1]).within(64.0));
    }
    agree(cases);
}
