//! Primitives as launches of kernels, for devices with memory and a language of their own.
//!
//! Each template here is written once with [`crate::kernel::Builder`] and serves OpenCL, CUDA and
//! wgpu. What a template bakes in is only what changes the code (types, boundary, which sum);
//! extents, pitches, radii and weights are arguments, so a new image shape compiles nothing.

mod lanes;
mod launch;
mod map;
mod taps;
mod tuning;

pub use launch::{Args, Constant, Launch, LaunchArg, Plan};
pub use tuning::Tuning;

use crate::flow::{Flow, Node, Prim};

/// The launches of one node; `None` when the device cannot do it and the host must.
pub fn plan(flow: &Flow, node: &Node, tuning: &Tuning) -> Option<Plan> {
    let plan = match &node.prim {
        Prim::Map { dag, numbers } => Some(map::plan(flow, node, dag, numbers, tuning)),
        Prim::Taps(spec) => Some(taps::plan(flow, node, spec, tuning)),
        _ => None,
    }?;
    let wide = plan.launches.iter().any(|launch| launch.def.is_wide());
    (!wide || tuning.wide).then_some(plan)
}
