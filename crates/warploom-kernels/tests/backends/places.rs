//! Pixels in other places, and planes of stacks: geometry, projections, binning.

use warploom_core::DType;
use warploom_kernels::Boundary;
use warploom_kernels::flow::{Prim, Project, Tile};

use super::case::{Case, DTYPES, Picked, image};
use super::devices::agree;

const SHAPES: [[u64; 3]; 7] = [
    [1, 33, 70],
    [1, 1, 9],
    [1, 7, 1],
    [4, 6, 130],
    [1, 3, 3],
    [40, 5, 35],
    [1, 2, 1100],
];

fn shapes(dtype: DType) -> impl Iterator<Item = Picked> {
    SHAPES
        .into_iter()
        .map(move |dims| Picked::new(dtype, dims, Boundary::Clamp))
}

fn types() -> impl Iterator<Item = Picked> {
    DTYPES
        .into_iter()
        .map(|dtype| Picked::new(dtype, [3, 5, 70], Boundary::Clamp))
}

fn crop(picked: &Picked, start: [i64; 3], dims: [u64; 3], fill: f64) -> Case {
    let gives = image(picked.dtype, dims);
    let boundary = picked.boundary;
    let prim = Prim::Crop {
        start,
        boundary,
        fill,
    };
    let case = Case::one(prim, &[picked.kind()], gives);
    let want = case.picture(0).crop(start, boundary, fill, gives);
    case.expecting(&want)
}

#[test]
fn parts() {
    let types = DTYPES
        .into_iter()
        .map(|dtype| Picked::new(dtype, [2, 5, 70], Boundary::Zero));
    agree(
        types
            .chain(Picked::every(DType::F32, &SHAPES))
            .flat_map(|picked| {
                let [z, y, x] = picked.dims;
                let middle = [z / 2, y / 2, x / 2].map(u64::cast_signed);
                [
                    crop(&picked, middle, [z - z / 2, y - y / 2, x - x / 2], 0.0),
                    crop(&picked, [-1, -2, -100], [z + 2, y + 9, x + 201], 7.0),
                    crop(&picked, [0, 0, 3], [1, 2, 66], 7.0),
                ]
            }),
    );
}

#[test]
fn reversals() {
    agree(types().chain(shapes(DType::F32)).flat_map(|picked| {
        (0..3_u8).map(move |axis| {
            let case = Case::one(Prim::Flip { axis }, &[picked.kind()], picked.kind());
            let axis = usize::from(axis);
            let want = case.picture(0).moved(picked.kind(), |mut at| {
                at[axis] = picked.dims[axis].cast_signed() - 1 - at[axis];
                at
            });
            case.expecting(&want)
        })
    }));
}

#[test]
fn exchanges() {
    let tiles = DTYPES.map(|dtype| Picked::new(dtype, [1, 20, 150], Boundary::Clamp));
    let all = types().chain(shapes(DType::F32)).chain(tiles);
    agree(all.flat_map(|picked| {
        [[0, 1], [1, 2], [2, 0]].map(|axes: [u8; 2]| {
            let [a, b] = axes.map(usize::from);
            let mut dims = picked.dims;
            dims.swap(a, b);
            let gives = image(picked.dtype, dims);
            let case = Case::one(Prim::Transpose { axes }, &[picked.kind()], gives);
            let want = case.picture(0).moved(gives, |mut at| {
                at.swap(a, b);
                at
            });
            case.expecting(&want)
        })
    }));
}

#[test]
fn sizes() {
    agree(
        types()
            .chain(shapes(DType::F32))
            .flat_map(|picked| {
                let [z, y, x] = picked.dims;
                [[z, y, x], [1, 3, 200], [z * 2, y + 3, x / 2 + 1]].map(move |dims| (picked, dims))
            })
            .flat_map(|(picked, dims)| {
                [true, false].map(|linear| {
                    let dtype = if linear {
                        picked.real().dtype
                    } else {
                        picked.dtype
                    };
                    let gives = image(dtype, dims);
                    let case = Case::one(Prim::Resize { linear }, &[picked.kind()], gives);
                    let want = case.picture(0).resize(linear, gives);
                    case.expecting(&want)
                })
            }),
    );
}

#[test]
fn whole_parts_of_sizes() {
    agree(whole().flat_map(|(picked, part)| {
        let [z, y, x] = picked.dims;
        [true, false].map(|linear| {
            let dtype = if linear {
                picked.real().dtype
            } else {
                picked.dtype
            };
            let gives = image(dtype, [z, y.div_ceil(2), x / part]);
            let case = Case::one(Prim::Resize { linear }, &[picked.kind()], gives);
            let want = case.picture(0).resize(linear, gives);
            case.expecting(&want)
        })
    }));
}

#[test]
fn matrices() {
    let shift = [
        [1.0, 0.0, 0.0, 0.5],
        [0.0, 1.0, 0.0, -1.0],
        [0.0, 0.0, 1.0, 2.25],
    ];
    // No place lies on the very edge: whether it is inside there depends on the last bit, and
    // wgpu has fewer of them.
    let turn = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 0.8, 0.6, -3.01],
        [0.0, -0.6, 0.8, 2.013],
    ];
    let same = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
    ];
    agree(types().chain(shapes(DType::F32)).flat_map(|picked| {
        [shift, turn, same].map(|matrix| {
            let gives = picked.real();
            let case = Case::one(Prim::Affine { matrix }, &[picked.kind()], gives);
            let want = case.picture(0).affine(&matrix, gives);
            case.expecting(&want)
        })
    }));
}

#[test]
fn slopes_that_lie_within_the_image() {
    let slope = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 0.98, 0.05, 1.503],
        [0.0, -0.05, 0.97, 2.013],
    ];
    let deep = [
        [0.97, 0.01, 0.004, 0.301],
        [0.02, 0.98, -0.05, 12.503],
        [0.0, -0.05, 0.97, 2.013],
    ];
    let flat = [[1, 90, 211], [1, 1, 300]].map(|dims| (slope, dims));
    let cases = flat
        .into_iter()
        .chain([(slope, [3, 40, 140]), (deep, [6, 60, 150])]);
    agree(cases.flat_map(|(matrix, dims)| {
        [DType::F32, DType::U8, DType::F64].map(|dtype| {
            let picked = Picked::new(dtype, dims, Boundary::Clamp);
            let gives = picked.real();
            let case = Case::one(Prim::Affine { matrix }, &[picked.kind()], gives);
            let want = case.picture(0).affine(&matrix, gives);
            let case = case.expecting(&want);
            // Pairs of f32 have places to fewer digits than pixels.
            if dtype == DType::F64 {
                case.strictly()
            } else {
                case
            }
        })
    }));
}

#[test]
fn planes() {
    let all = [
        Project::Sum,
        Project::Max,
        Project::Min,
        Project::Mean,
        Project::Std,
        Project::Median,
        Project::ArgMax,
    ];
    agree(types().chain(shapes(DType::F32)).flat_map(|picked| {
        all.map(|project| {
            let [_, y, x] = picked.dims;
            let dtype = match project {
                Project::Max | Project::Min => picked.dtype,
                Project::ArgMax => DType::U32,
                _ => picked.real().dtype,
            };
            let gives = image(dtype, [1, y, x]);
            let case = Case::one(Prim::Project(project), &[picked.kind()], gives);
            let want = case.picture(0).project(project, gives);
            case.expecting(&want)
        })
    }));
}

/// Images that are a whole number of times as wide as what is made of them, in several runs.
fn whole() -> impl Iterator<Item = (Picked, u64)> {
    let dims = [[1, 6, 1400], [2, 4, 600], [1, 1, 520]];
    let shapes = dims.map(|dims| Picked::new(DType::F32, dims, Boundary::Clamp));
    let types = DTYPES.map(|dtype| Picked::new(dtype, [1, 4, 520], Boundary::Clamp));
    let all = shapes.into_iter().chain(types);
    all.flat_map(|picked| [2, 4].map(|part| (picked, part)))
}

#[test]
fn tiles_that_are_dealt_out() {
    agree(whole().flat_map(|(picked, part)| {
        [Tile::Mean, Tile::Sum, Tile::Max].map(|tile| {
            let part = u32::try_from(part).expect("small");
            let factor = [1, if picked.dims[1] > 1 { 2 } else { 1 }, part];
            let dims = [0, 1, 2].map(|axis| picked.dims[axis] / u64::from(factor[axis]));
            let dtype = if tile == Tile::Max {
                picked.dtype
            } else {
                picked.real().dtype
            };
            let gives = image(dtype, dims);
            let case = Case::one(Prim::Bin { factor, tile }, &[picked.kind()], gives);
            let want = case.picture(0).bin(factor, tile, gives);
            case.expecting(&want)
        })
    }));
}

#[test]
fn tiles() {
    agree(types().chain(shapes(DType::F32)).flat_map(|picked| {
        [Tile::Mean, Tile::Sum, Tile::Max].map(|tile| {
            let factor = picked.dims.map(|n| if n > 2 { 3 } else { 1 });
            let dims = [0, 1, 2].map(|axis| picked.dims[axis] / u64::from(factor[axis]));
            let dtype = if tile == Tile::Max {
                picked.dtype
            } else {
                picked.real().dtype
            };
            let gives = image(dtype, dims);
            let case = Case::one(Prim::Bin { factor, tile }, &[picked.kind()], gives);
            let want = case.picture(0).bin(factor, tile, gives);
            case.expecting(&want)
        })
    }));
}
