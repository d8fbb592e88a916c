//! Windows along an axis on a processor, where what an item works on fits its nearest cache.

mod extremes;
mod stacked;
mod turned;

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Combine, Flow, Node};
use crate::kernel::{Access, Builder, Img};

use super::launch::{Args, Plan, along};
use super::tuning::Tuning;
use super::window::Window;

/// The launch, where there is a way of a processor's own.
pub(super) fn plan(flow: &Flow, node: &Node, window: Window, tuning: &Tuning) -> Option<Plan> {
    if !tuning.is_processor() {
        return None;
    }
    let stacked = stacked::plan(flow, node, window, tuning);
    stacked.or_else(|| match window.combine {
        Combine::Sum => turned::plan(flow, node, window, tuning),
        Combine::Min | Combine::Max => extremes::plan(flow, node, window, tuning),
    })
}

/// How often each pixel is read from the image, where there is a way of a processor's own.
pub(super) fn reads(flow: &Flow, node: &Node, window: Window, tuning: &Tuning) -> Option<f64> {
    if !tuning.is_processor() {
        return None;
    }
    let dtype = flow.kind(node.outputs[0]).dtype();
    let stacked = stacked::reads(dtype, window);
    stacked.or_else(|| match window.combine {
        Combine::Sum => turned::reads(window),
        Combine::Min | Combine::Max => extremes::reads(dtype, window),
    })
}

/// What the kernels are given.
#[derive(Clone, Copy)]
struct Frame<'k> {
    k: &'k Builder,
    src: Img<'k>,
    dst: Img<'k>,
    planes: Ex<'k>,
    /// Pixels along the axis and beside it.
    length: Ex<'k>,
    side: Ex<'k>,
    window: Ex<'k>,
    radius: Ex<'k>,
}

impl<'k> Frame<'k> {
    fn new(k: &'k Builder, from: DType, to: DType) -> Self {
        let src = k.image("src", from, Access::Read);
        let dst = k.image("dst", to, Access::ReadWrite);
        let [planes, length, side, window] =
            ["planes", "length", "side", "window"].map(|name| k.scalar(name, Ty::I32));
        Self {
            k,
            src,
            dst,
            planes,
            length,
            side,
            window,
            radius: k.let_((window - 1).shifted_right(1)),
        }
    }

    fn args(flow: &Flow, node: &Node, window: Window) -> Args {
        let (input, output) = (node.inputs[0], node.outputs[0]);
        let [planes, y, x] = along(flow.kind(output).dims(), window.axis);
        let (length, side) = if window.axis == 2 { (x, y) } else { (y, x) };
        Args::new()
            .image_along(flow, input, window.axis)
            .image_along(flow, output, window.axis)
            .count(planes)
            .count(length)
            .count(side)
            .count(u64::from(window.radius) * 2 + 1)
    }
}
