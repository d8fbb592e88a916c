//! Primitives that look at whole images.

use crate::flow::{Flow, Node, Prim};

use super::launch::Plan;
use super::tuning::Tuning;
use super::{distance, histogram, label, objects, percentiles, threshold, totals};

/// The launches of a node of this family; `None` for others, and for what the host does.
pub(super) fn plan(flow: &Flow, node: &Node, tuning: &Tuning) -> Option<Plan> {
    match &node.prim {
        Prim::Totals => Some(totals::plan(flow, node, tuning)),
        Prim::Histogram { bins, low, high } => {
            histogram::plan(flow, node, *bins, [*low, *high], tuning)
        }
        Prim::Percentiles { q } => percentiles::plan(flow, node, q, tuning),
        Prim::Threshold { method, bins } => threshold::plan(flow, node, *method, *bins, tuning),
        Prim::Label(connectivity) => Some(label::label(flow, node, *connectivity, tuning)),
        Prim::ClearBorder => Some(label::clear_border(flow, node, tuning)),
        Prim::KeepSizes { least, most } => {
            Some(objects::keep_sizes(flow, node, [*least, *most], tuning))
        }
        Prim::Relabel => Some(objects::relabel(flow, node, tuning)),
        Prim::Statistics { columns } => {
            Some(objects::statistics::plan(flow, node, *columns, tuning))
        }
        Prim::Distance => distance::plan(flow, node, tuning),
        Prim::Expand { distance } => distance::expand(flow, node, *distance, tuning),
        _ => None,
    }
}
