//! Objects: found, sifted, split and measured.

use warploom_core::DType;

use super::compare::Test;
use super::lowering::Lowering;
use crate::flow::{Combine, Connectivity, Prim, ValueId, ValueKind};
use crate::op::ValueType;

/// Rows a table has room for unless more are asked for.
pub const ROWS: u64 = 65_536;

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    let first = at.inputs[0];
    let pixels = |name| at.call.params.integer(name).unsigned_abs();
    let prim = match at.name() {
        "local_maxima" => return local_maxima(at, first),
        "label_statistics" => return statistics(at),
        "label_box" | "label_diamond" => {
            let connectivity = if at.name() == "label_box" {
                Connectivity::Box
            } else {
                Connectivity::Diamond
            };
            let mask = at.mask(first);
            return at.give(Prim::Label(connectivity), &[mask]);
        }
        "watershed" => {
            let mut inputs = vec![at.labels(first), at.inputs[1]];
            if let Some(mask) = at.inputs.get(2) {
                inputs.push(at.mask(*mask));
            }
            return at.give(Prim::Watershed, &inputs);
        }
        "remove_small_labels" => Prim::KeepSizes {
            least: pixels("minimum"),
            most: u64::MAX,
        },
        "remove_large_labels" => Prim::KeepSizes {
            least: 0,
            most: pixels("maximum"),
        },
        "clear_border" => Prim::ClearBorder,
        "expand_labels" => Prim::Expand {
            distance: at.number("distance"),
        },
        "relabel_sequential" => Prim::Relabel,
        _ => at.unknown(),
    };
    let again = matches!(prim, Prim::KeepSizes { .. }) && at.call.params.flag("relabel");
    let labels = at.labels(first);
    let labels = at.give(prim, &[labels]);
    if again {
        return at.give(Prim::Relabel, &[labels]);
    }
    labels
}

fn local_maxima(at: &mut Lowering<'_>, image: ValueId) -> ValueId {
    let highest = at.extreme(image, Combine::Max);
    let Some(threshold) = at.call.params.maybe_number("threshold") else {
        return at.native(DType::U8, [image, highest], |[a, highest]| a.is(highest));
    };
    let test = Test::Greater(threshold);
    let (ty, numbers) = test.numbers(at.flow.image(image).dtype);
    let images = [image, highest];
    at.terms(DType::U8, images, [], &numbers, |[a, highest], [], n| {
        a.is(highest) & test.holds(a.cast(ty), n)
    })
}

fn statistics(at: &mut Lowering<'_>) -> ValueId {
    let ValueType::Table { columns } = at.call.output() else {
        unreachable!("{} gives a table", at.call);
    };
    let columns = u32::try_from(columns.len()).unwrap_or(u32::MAX);
    let labels = at.labels(at.inputs[0]);
    // No more objects than pixels.
    let rows = at.rows.min(at.call.image().pixels());
    let gives = ValueKind::scalars(1 + rows * u64::from(columns));
    let prim = Prim::Statistics { columns };
    at.flow.add(prim, &[labels, at.inputs[1]], gives)
}
