//! Neighbourhoods of any form: sums, extremes, ranks, convolutions, rolling balls.

use warploom_core::DType;
use warploom_kernels::Boundary;
use warploom_kernels::flow::{Combine, Footprint, Prim};

use super::case::{Case, DTYPES, Picked, image};
use super::devices::agree;

const SHAPES: [[u64; 3]; 5] = [[1, 11, 140], [1, 1, 9], [1, 7, 1], [4, 6, 70], [1, 3, 3]];
const COMBINES: [Combine; 3] = [Combine::Sum, Combine::Min, Combine::Max];

fn around(picked: &Picked, footprint: Footprint, combine: Combine) -> Case {
    let (kind, boundary) = (picked.kind(), picked.boundary);
    let gives = match combine {
        Combine::Sum => picked.real(),
        _ => kind,
    };
    let prim = Prim::Around {
        footprint,
        combine,
        boundary,
    };
    let case = Case::one(prim, &[kind], gives);
    let want = case.picture(0).around(&footprint, combine, boundary, gives);
    case.expecting(&want)
}

fn rank(picked: &Picked, footprint: Footprint, rank: u32) -> Case {
    let (kind, boundary) = (picked.kind(), picked.boundary);
    let prim = Prim::Rank {
        footprint,
        rank,
        boundary,
    };
    let case = Case::one(prim, &[kind], kind);
    let want = case.picture(0).rank(&footprint, rank as usize, boundary);
    case.expecting(&want)
}

fn convolve(picked: &Picked, extents: [u64; 3], mirrored: bool) -> Case {
    let (kind, boundary) = (picked.kind(), picked.boundary);
    let kernel = image(DType::F32, extents);
    let prim = Prim::Convolve { mirrored, boundary };
    let case = Case::one(prim, &[kind, kernel], picked.real());
    let kernel = case.picture(1);
    let want = case
        .picture(0)
        .convolve(&kernel, mirrored, boundary, picked.real());
    case.expecting(&want)
}

fn ball(picked: &Picked, radius: f64) -> Case {
    let prim = Prim::RollingBall { radius };
    let case = Case::one(prim, &[picked.kind()], picked.real());
    let want = case.picture(0).rolling_ball(radius, picked.real());
    case.expecting(&want)
}

fn reach(picked: &Picked, radius: u32) -> [u32; 3] {
    picked.dims.map(|n| if n > 1 { radius } else { 0 })
}

fn round(picked: &Picked, radius: f64) -> Footprint {
    Footprint::Ball(picked.dims.map(|n| if n > 1 { radius } else { 0.0 }))
}

#[test]
fn neighbourhoods_of_every_type() {
    agree(DTYPES.into_iter().flat_map(|dtype| {
        let picked = Picked::new(dtype, [3, 5, 70], Boundary::Clamp);
        let footprint = round(&picked, 2.0);
        COMBINES.map(|combine| around(&picked, footprint, combine))
    }));
}

#[test]
fn extremes_of_several_tiles_beyond_every_edge() {
    let shapes = [[1, 70, 530], [2, 66, 70]];
    let reals = Picked::every(DType::F32, &shapes);
    let bytes = Picked::every(DType::U8, &shapes[..1]);
    agree(reals.chain(bytes).flat_map(|picked| {
        [Combine::Min, Combine::Max].map(|combine| around(&picked, round(&picked, 5.0), combine))
    }));
}

#[test]
fn balls_under_several_tiles() {
    let shapes = [[1, 70, 140], [3, 66, 70]];
    agree(shapes.into_iter().flat_map(|dims| {
        [DType::F32, DType::U16, DType::F64]
            .into_iter()
            .flat_map(move |dtype| {
                let picked = Picked::new(dtype, dims, Boundary::Clamp);
                [1.0, 5.5, 10.0].map(|radius| ball(&picked, radius))
            })
    }));
}

#[test]
fn neighbourhoods_of_every_shape_beyond_every_edge() {
    agree(Picked::every(DType::F32, &SHAPES).flat_map(|picked| {
        let round = round(&picked, 3.0);
        // Farther than the stack in two axes, and still few enough for the definition's loops.
        let square = match picked.dims[0] {
            1 => Footprint::Box(reach(&picked, 9)),
            _ => Footprint::Box([5, 7, 2]),
        };
        COMBINES.into_iter().flat_map(move |combine| {
            [
                around(&picked, round, combine),
                around(&picked, square, combine),
            ]
        })
    }));
}

#[test]
fn ranks_of_every_type() {
    agree(DTYPES.into_iter().flat_map(|dtype| {
        let picked = Picked::new(dtype, [1, 9, 70], Boundary::Reflect);
        [
            rank(&picked, Footprint::Box([0, 1, 1]), 4),
            rank(&picked, Footprint::Box([0, 3, 3]), 12),
            rank(&picked, round(&picked, 6.0), 90),
        ]
    }));
}

#[test]
fn ranks_of_every_shape_beyond_every_edge() {
    agree(Picked::every(DType::F32, &SHAPES).flat_map(|picked| {
        let small = round(&picked, 1.0);
        let many = small.offsets().len() as u32;
        let large = match picked.dims[0] {
            1 => Footprint::Box(reach(&picked, 4)),
            _ => Footprint::Box([4, 7, 1]),
        };
        let more = large.offsets().len() as u32;
        [
            rank(&picked, small, 0),
            rank(&picked, small, many - 1),
            rank(&picked, large, more / 2),
            rank(&picked, large, more - 1),
        ]
    }));
}

/// Boxes large enough to be counted, over images that are larger and far smaller.
#[test]
fn counted_ranks_of_every_shape_beyond_every_edge() {
    let shapes = [[1, 66, 70], [1, 1, 9], [1, 7, 1], [3, 6, 40]];
    let dtypes = [DType::U8, DType::U16, DType::I16];
    agree(dtypes.into_iter().flat_map(|dtype| {
        Picked::every(dtype, &shapes[..]).flat_map(|picked| {
            let [first, second] = match picked.dims[0] {
                1 => [[0, 6, 6], [0, 2, 31]],
                _ => [[1, 4, 4], [2, 9, 1]],
            };
            let last = second.map(|r| 2 * r + 1).iter().product::<u32>() - 1;
            let half = first.map(|r| 2 * r + 1).iter().product::<u32>() / 2;
            [
                rank(&picked, Footprint::Box(first), half),
                rank(&picked, Footprint::Box(second), last),
            ]
        })
    }));
}

#[test]
fn what_is_not_a_number_is_the_largest() {
    let picked = Picked::new(DType::F32, [1, 4, 80], Boundary::Clamp);
    let special = [
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        1.5,
    ];
    let pixels: Vec<f32> = (0..320).map(|i| special[i * 7919 % 101 % 7]).collect();
    let wide: Vec<f64> = pixels.iter().map(|v| f64::from(*v)).collect();
    let mut cases = Vec::new();
    for at in [0, 2, 4, 6, 8] {
        let footprint = Footprint::Box([0, 1, 1]);
        let large = Footprint::Box([0, 4, 4]);
        for (footprint, at) in [(footprint, at), (large, at * 10)] {
            let case = rank(&picked, footprint, at).with_input(0, &pixels);
            let want = case
                .picture(0)
                .rank(&footprint, at as usize, Boundary::Clamp);
            cases.push(case.expecting(&want));
        }
        let picked = Picked::new(DType::F64, [1, 4, 80], Boundary::Clamp);
        let case = rank(&picked, footprint, at).with_input(0, &wide);
        let want = case
            .picture(0)
            .rank(&footprint, at as usize, Boundary::Clamp);
        cases.push(case.expecting(&want));
    }
    for combine in [Combine::Min, Combine::Max] {
        let footprint = Footprint::Box([0, 1, 1]);
        let case = around(&picked, footprint, combine).with_input(0, &pixels);
        let want = case
            .picture(0)
            .around(&footprint, combine, Boundary::Clamp, picked.kind());
        cases.push(case.expecting(&want));
    }
    agree(cases);
}

#[test]
fn convolutions() {
    let types = DTYPES
        .into_iter()
        .map(|dtype| Picked::new(dtype, [3, 5, 70], Boundary::Wrap));
    agree(
        types
            .chain(Picked::every(DType::F32, &SHAPES))
            .flat_map(|picked| {
                [
                    convolve(&picked, [1, 3, 3], true),
                    convolve(&picked, [1, 4, 6], false),
                    convolve(&picked, [3, 1, 9], false),
                ]
            }),
    );
}

#[test]
fn rolling_balls() {
    let types = DTYPES
        .into_iter()
        .map(|dtype| Picked::new(dtype, [3, 5, 70], Boundary::Clamp));
    let shapes = SHAPES
        .iter()
        .map(|dims| Picked::new(DType::F32, *dims, Boundary::Clamp));
    agree(
        types
            .chain(shapes)
            .flat_map(|picked| [ball(&picked, 2.5), ball(&picked, 7.0)]),
    );
}
