//! Pixels moved.

use super::lowering::Lowering;
use crate::Boundary;
use crate::expr::Ty;
use crate::flow::{Number, Prim, Tile, ValueId};
use crate::op::infer;

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    let image = at.inputs[0];
    let prim = match at.name() {
        "crop" => {
            let parts = infer::crop(at.call).expect("checked with the call");
            crop(parts.map(|(start, _)| start.cast_signed()))
        }
        "pad" => {
            let (before, _) = infer::padding(at.call);
            Prim::Crop {
                start: before.map(|pixels| -pixels.cast_signed()),
                boundary: at.boundary(),
                fill: at.number("value"),
            }
        }
        "flip_x" => Prim::Flip { axis: 2 },
        "flip_y" => Prim::Flip { axis: 1 },
        "flip_z" => Prim::Flip { axis: 0 },
        "transpose_xy" => Prim::Transpose { axes: [1, 2] },
        "transpose_xz" => Prim::Transpose { axes: [0, 2] },
        "transpose_yz" => Prim::Transpose { axes: [0, 1] },
        "bin_mean" => bin(at, Tile::Mean),
        "bin_sum" => bin(at, Tile::Sum),
        "bin_max" => bin(at, Tile::Max),
        "shift_linear" => {
            let by = |name| at.call.params.maybe_number(name).unwrap_or(0.0);
            affine(IDENTITY, [-by("dz"), -by("dy"), -by("dx")])
        }
        "rotate_linear" => rotation(at),
        "affine_linear" => {
            let (matrix, offset) = infer::affine(at.call, "matrix").expect("checked with the call");
            affine(matrix, offset)
        }
        "resize_linear" => Prim::Resize { linear: true },
        "resize_nearest" => Prim::Resize { linear: false },
        "blend_two" => return blend(at),
        _ => at.unknown(),
    };
    at.give(prim, &[image])
}

const IDENTITY: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

fn crop(start: [i64; 3]) -> Prim {
    Prim::Crop {
        start,
        boundary: Boundary::Clamp,
        fill: 0.0,
    }
}

fn bin(at: &Lowering<'_>, tile: Tile) -> Prim {
    #[expect(clippy::cast_possible_truncation, reason = "limited to 15 bits")]
    let factor = infer::bin(at.call).map(|factor| factor as u32);
    Prim::Bin { factor, tile }
}

fn affine(matrix: [[f64; 3]; 3], offset: [f64; 3]) -> Prim {
    let row = |axis: usize| {
        let [z, y, x] = matrix[axis];
        [z, y, x, offset[axis]]
    };
    Prim::Affine {
        matrix: [row(0), row(1), row(2)],
    }
}

/// About the centre of the plane: the offset is the centre less where it would go.
fn rotation(at: &Lowering<'_>) -> Prim {
    let (sin, cos) = sin_cos(at.number("degrees"));
    let [_, y, x] = at
        .call
        .image()
        .dims
        .map(|extent| (extent as f64 - 1.0) / 2.0);
    let matrix = [[1.0, 0.0, 0.0], [0.0, cos, sin], [0.0, -sin, cos]];
    let offset = [0.0, y - (cos * y + sin * x), x - (cos * x - sin * y)];
    affine(matrix, offset)
}

/// Of an angle in degrees; exact for multiples of a right angle.
fn sin_cos(degrees: f64) -> (f64, f64) {
    let turns = degrees.rem_euclid(360.0);
    let quarter = (turns / 90.0).round();
    let rest = turns - quarter * 90.0;
    let (sin, cos) = if rest == 0.0 {
        (0.0, 1.0)
    } else {
        rest.to_radians().sin_cos()
    };
    match quarter {
        1.0 => (cos, -sin),
        2.0 => (-sin, -cos),
        3.0 => (-cos, sin),
        _ => (sin, cos),
    }
}

/// Both images moved to their places in the result, then chosen from or mixed.
fn blend(at: &mut Lowering<'_>) -> ValueId {
    let (left, right) = (at.inputs[0], at.inputs[1]);
    let overlap = at.call.params.integer("overlap");
    let width = at.flow.image(left).dims[2].cast_signed();
    let start = width - overlap;
    let [left, right] = [(left, 0), (right, -start)].map(|(image, start)| {
        let gives = at.result().with_dtype(at.flow.image(image).dtype);
        at.flow.add_image(crop([0, 0, start]), &[image], gives)
    });
    let ty = at.ty;
    let numbers = [
        Number::new(Ty::I32, start as f64),
        Number::new(Ty::I32, width as f64),
        Number::new(ty, overlap as f64),
    ];
    at.terms(at.real, [left, right], [], &numbers, |[a, b], [], n| {
        let [a, b] = [a, b].map(|pixel| pixel.cast(ty));
        let x = a.graph().coords()[2];
        let w = ((x - n[0]).cast(ty) + 0.5) / n[2];
        let one = a.graph().number(ty, 1.0);
        let mixed = a * (one - w) + b * w;
        x.lt(n[0]).select(a, x.lt(n[1]).select(mixed, b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(0.0, 0.0, 1.0)]
    #[case(90.0, 1.0, 0.0)]
    #[case(180.0, 0.0, -1.0)]
    #[case(-90.0, -1.0, 0.0)]
    #[case(720.0, 0.0, 1.0)]
    #[case(30.0, 0.5, 0.866_025_403_784_438_6)]
    #[case(-450.0, -1.0, 0.0)]
    #[case(100.0, 0.984_807_753_012_208, -0.173_648_177_666_930_33)]
    fn angles(#[case] degrees: f64, #[case] sin: f64, #[case] cos: f64) {
        let found = sin_cos(degrees);
        assert!((found.0 - sin).abs() < 1e-15, "{found:?}");
        assert!((found.1 - cos).abs() < 1e-15, "{found:?}");
    }
}
