//! Primitives as launches of kernels, for devices with memory and a language of their own.
//!
//! Each template here is written once with [`crate::kernel::Builder`] and serves OpenCL, CUDA and
//! wgpu. What a template bakes in is only what changes the code (types, boundary, which sum);
//! extents, pitches, radii and weights are arguments, so a new image shape compiles nothing.

mod around;
mod ball;
mod beside;
mod bin;
mod columns;
mod convolve;
mod counts;
mod custom;
mod dealt;
mod distance;
mod fill;
mod fold;
mod gate;
mod histogram;
mod hole;
mod key;
mod label;
mod lanes;
mod launch;
mod line;
mod lines;
mod map;
mod moves;
mod near;
mod objects;
mod order;
mod patch;
mod percentiles;
mod project;
mod rank;
mod resample;
mod rolling_ball;
mod room;
mod samples;
mod scan;
mod slide;
mod slope;
mod sorted;
mod strip;
mod taps;
mod threshold;
mod totals;
mod tuning;
mod whole;
mod window;

pub use custom::{SourceOp, SourceOpError};
pub use launch::{Args, Constant, Launch, LaunchArg, Plan};
pub use room::Room;
pub use samples::samples;
pub use tuning::Tuning;

use crate::cpu::Pass;
use crate::flow::{Flow, Footprint, Node, Prim, ValueId};
use crate::kernel::Target;

/// Steps that the loops of one item may take on wgpu: software drivers of Vulkan leave them after
/// 65535 without a word, and a GPU's watchdog is not far.
const STEPS: usize = 60_000;

/// How often the innermost loop of an item is gone through, where that depends on parameters.
fn steps(flow: &Flow, node: &Node) -> usize {
    match &node.prim {
        Prim::Around { footprint, .. } => footprint.count(),
        Prim::Rank { footprint, .. } => rank::steps(footprint, flow.kind(node.inputs[0]).dtype()),
        Prim::Convolve { .. } => {
            usize::try_from(flow.kind(node.inputs[1]).elements()).unwrap_or(usize::MAX)
        }
        Prim::RollingBall { radius } => {
            rolling_ball::covered(flow.kind(node.inputs[0]).dims(), *radius)
                .0
                .len()
        }
        Prim::Taps(taps) => taps.weights.radius(),
        Prim::Statistics { .. } => {
            let rounds = objects::statistics::rounds(flow.kind(node.inputs[0]).dims());
            usize::try_from(rounds).unwrap_or(usize::MAX)
        }
        _ => 0,
    }
}

/// The launch of an expression that writes results over inputs, as pairs of the one and the other say
/// ([`Flow::in_place`] allows them); `None` when the node is none, or the device cannot do it.
pub fn plan_over(
    flow: &Flow,
    node: &Node,
    over: &[(ValueId, ValueId)],
    tuning: &Tuning,
) -> Option<Plan> {
    let Prim::Map { dag, numbers } = &node.prim else {
        return None;
    };
    let plan = map::plan(flow, node, (dag, numbers), over, tuning);
    can(&plan, tuning).then_some(plan)
}

/// The launches of one node; `None` when the device cannot do it and the host must.
pub fn plan(flow: &Flow, node: &Node, tuning: &Tuning) -> Option<Plan> {
    planned(flow, node, tuning).filter(|plan| can(plan, tuning))
}

/// The launches of a pass: of one node, of one with expressions before it or behind it in its own
/// kernels, or of several such side by side. `None` when the device cannot do that.
pub fn plan_pass(flow: &Flow, pass: &Pass, tuning: &Tuning) -> Option<Plan> {
    if let [at] = pass.nodes[..] {
        return plan(flow, &flow.nodes()[at], tuning);
    }
    let nodes = || pass.nodes.iter().map(|at| &flow.nodes()[*at]);
    let is_map = |node: &&Node| matches!(node.prim, Prim::Map { .. });
    let mut whole: Option<Plan> = None;
    for node in nodes().filter(|node| !is_map(node)) {
        let (reads, value) = (node.inputs[0], node.outputs[0]);
        let inner = |id| !pass.outputs.contains(&id);
        let before = nodes()
            .filter(is_map)
            .find(|map| map.outputs[0] == reads && inner(reads));
        let after = nodes()
            .filter(is_map)
            .find(|map| map.inputs.contains(&value));
        let mut plan = planned(flow, node, tuning)?;
        if let Some(map) = before {
            plan = hole::feed(&plan, flow, (map, reads), tuning.target)?;
        }
        if let Some(map) = after {
            let kept = !inner(value);
            plan = hole::drain(&plan, flow, (map, value, kept), tuning.target)?;
        }
        whole = Some(match whole {
            Some(whole) => beside::together(whole, plan),
            None => plan,
        });
    }
    whole.filter(|plan| can(plan, tuning))
}

/// Does the device have the numbers that the launches compute with?
fn can(plan: &Plan, tuning: &Tuning) -> bool {
    tuning.wide || !plan.launches.iter().any(|launch| launch.def.is_wide())
}

/// Neighbours that a kernel is given a list of at most. A larger one would take long to make, whoever only
/// wants to know what a plan would need, and for ever to go through for each pixel; the processor counts.
const LISTED: usize = 1 << 18;

/// How many neighbours a kernel would be given a list of.
fn listed(flow: &Flow, node: &Node) -> usize {
    match &node.prim {
        Prim::Around { footprint, .. } | Prim::Rank { footprint, .. } => footprint.count(),
        Prim::RollingBall { radius } => {
            let dims = flow.kind(node.inputs[0]).dims();
            Footprint::Ball(dims.map(|n| if n > 1 { *radius } else { 0.0 })).count()
        }
        _ => 0,
    }
}

/// The launches of one node.
fn planned(flow: &Flow, node: &Node, tuning: &Tuning) -> Option<Plan> {
    if listed(flow, node) > LISTED || tuning.target == Target::Wgsl && steps(flow, node) > STEPS {
        return None;
    }
    match &node.prim {
        Prim::Map { dag, numbers } => Some(map::plan(flow, node, (dag, numbers), &[], tuning)),
        Prim::Taps(spec) => Some(taps::plan(flow, node, spec, tuning)),
        Prim::Window { .. } => {
            let window = window::Window::of(&node.prim)?;
            Some(window::plan(flow, node, window, tuning))
        }
        Prim::Around {
            footprint,
            combine,
            boundary,
        } => Some(around::plan(
            flow,
            node,
            (footprint, *combine, *boundary),
            tuning,
        )),
        Prim::Rank {
            footprint,
            rank,
            boundary,
        } => Some(rank::plan(
            flow,
            node,
            (footprint, *rank, *boundary),
            tuning,
        )),
        Prim::Convolve { mirrored, boundary } => {
            Some(convolve::plan(flow, node, (*mirrored, *boundary), tuning))
        }
        Prim::RollingBall { radius } => Some(rolling_ball::plan(flow, node, *radius, tuning)),
        Prim::Project(project) => Some(project::plan(flow, node, *project, tuning)),
        Prim::Bin { factor, tile } => Some(bin::plan(flow, node, (*factor, *tile), tuning)),
        Prim::Crop {
            start,
            boundary,
            fill,
        } => Some(moves::crop(flow, node, (*start, *boundary, *fill), tuning)),
        Prim::Flip { axis } => Some(moves::reorder(
            flow,
            node,
            moves::Order::Reversed(*axis),
            tuning,
        )),
        Prim::Transpose { axes } => Some(match (axes[0].min(axes[1]), axes[0].max(axes[1])) {
            (axis, 2) if axis < 2 => moves::turn(flow, node, axis, tuning),
            (0, 1) => moves::reorder(flow, node, moves::Order::RowsAsPlanes, tuning),
            _ => return None,
        }),
        Prim::Affine { matrix } => Some(resample::affine(flow, node, matrix, tuning)),
        Prim::Custom(custom) => custom::plan(flow, node, custom, tuning),
        Prim::Resize { linear } => Some(resample::resize(flow, node, *linear, tuning)),
        _ => whole::plan(flow, node, tuning),
    }
}
