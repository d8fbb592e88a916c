//! Intensities made comparable.

use super::blur::gaussian;
use super::lowering::Lowering;
use crate::flow::{Prim, ValueId, ValueKind};
use crate::op::infer;

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    let image = at.inputs[0];
    match at.name() {
        "minmax_normalize" => {
            let totals = at.totals(image);
            let limits = [(totals, 0), (totals, 1)];
            at.map_with(at.real, [image], limits, [], |[a], [min, max], []| {
                (a - min) / (max - min)
            })
        }
        "percentile_normalize" => {
            let q = vec![at.number("low"), at.number("high")];
            let gives = ValueKind::scalars(2);
            let list = at.flow.add(Prim::Percentiles { q }, &[image], gives);
            let limits = [(list, 0), (list, 1)];
            at.map_with(at.real, [image], limits, [], |[a], [low, high], []| {
                ((a - low) / (high - low)).max(0.0).min(1.0)
            })
        }
        "flat_field" => {
            let flat = at.inputs[1];
            if let Some(dark) = at.inputs.get(2).copied() {
                let lit = at.map([flat, dark], [], |[flat, dark], []| flat - dark);
                let mean = (at.totals(lit), 3);
                return at.map_with(
                    at.real,
                    [image, flat, dark],
                    [mean],
                    [],
                    |[a, flat, dark], [mean], []| (a - dark) / (flat - dark) * mean,
                );
            }
            let dark = at.call.params.maybe_number("dark").unwrap_or(0.0);
            let mean = (at.totals(flat), 3);
            at.map_with(
                at.real,
                [image, flat],
                [mean],
                [dark],
                |[a, flat], [mean], [dark]| (a - dark) / (flat - dark) * (mean - dark),
            )
        }
        "subtract_gaussian_background" => {
            let blurred = blurred(at, image);
            at.map([image, blurred], [], |[a, blurred], []| a - blurred)
        }
        "divide_gaussian_background" => {
            let blurred = blurred(at, image);
            at.map([image, blurred], [], |[a, blurred], []| a / blurred)
        }
        "subtract_rolling_ball" => {
            let background = rolled(at, image);
            at.map([image, background], [], |[a, background], []| {
                a - background
            })
        }
        "unsharp" => {
            let (blurred, amount) = (blurred(at, image), at.number("amount"));
            at.map([image, blurred], [amount], |[a, blurred], [amount]| {
                amount.fma(a - blurred, a)
            })
        }
        _ => at.unknown(),
    }
}

/// The background under a ball.
fn rolled(at: &mut Lowering<'_>, image: ValueId) -> ValueId {
    let prim = Prim::RollingBall {
        radius: at.number("radius"),
    };
    let Some(margin) = infer::margins(at.call, "radius") else {
        return at.give(prim, &[image]);
    };
    // The primitive touches nothing outside, so what is there is laid around the image first.
    let part = |start| Prim::Crop {
        start,
        boundary: at.call.params.boundary(),
        fill: 0.0,
    };
    let around = margin.map(u64::cast_signed);
    let mut wide = at.flow.image(image);
    wide.dims = [0, 1, 2].map(|axis| wide.dims[axis] + 2 * margin[axis]);
    let (laid, cut) = (part(around.map(|pixels| -pixels)), part(around));
    let laid = at.flow.add_image(laid, &[image], wide);
    let gives = wide.with_dtype(at.real);
    let background = at.flow.add_image(prim, &[laid], gives);
    at.give(cut, &[background])
}

fn blurred(at: &mut Lowering<'_>, image: ValueId) -> ValueId {
    let sigma = at.call.per_axis("sigma", 0.0);
    gaussian(at.flow, image, sigma, at.call.params.boundary())
}
