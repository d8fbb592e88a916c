//! Order statistics of neighbourhoods.

use super::lowering::Lowering;
use crate::flow::{Combine, Prim, ValueId};

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    let image = at.inputs[0];
    let (combine, q) = match at.name() {
        "minimum_box" | "minimum_sphere" => (Some(Combine::Min), 0.0),
        "maximum_box" | "maximum_sphere" => (Some(Combine::Max), 0.0),
        "median_box" | "median_sphere" => (None, 50.0),
        "percentile_box" => (None, at.number("q")),
        _ => at.unknown(),
    };
    match combine {
        Some(combine) => at.extreme(image, combine),
        None if at.radius() == [0; 3] => at.copy(image),
        None => ranked(at, image, q),
    }
}

fn ranked(at: &mut Lowering<'_>, image: ValueId, q: f64) -> ValueId {
    let (footprint, boundary) = (at.footprint(), at.boundary());
    let count = footprint.count();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "part of a number of pixels"
    )]
    // As scipy cuts it.
    let rank = (count as f64 * q / 100.0) as u32;
    let last = u32::try_from(count - 1).unwrap_or(u32::MAX);
    let prim = Prim::Rank {
        footprint,
        rank: rank.min(last),
        boundary,
    };
    at.give(prim, &[image])
}
