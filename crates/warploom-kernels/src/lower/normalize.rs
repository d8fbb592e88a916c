//! Intensities made comparable.

use super::blur::gaussian;
use super::lowering::Lowering;
use crate::flow::{Prim, ValueId, ValueKind};

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
            let (flat, dark) = (at.inputs[1], at.number("dark"));
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
            let radius = at.number("radius");
            let background = at.give(Prim::RollingBall { radius }, &[image]);
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

fn blurred(at: &mut Lowering<'_>, image: ValueId) -> ValueId {
    let sigma = at.call.per_axis("sigma", 0.0);
    gaussian(at.flow, image, sigma, at.call.params.boundary())
}
