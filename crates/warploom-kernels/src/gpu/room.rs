//! What a template has room for beside its own work.

use warploom_core::DType;

use crate::flow::{Combine, Flow, Node, Prim, Project, ThresholdMethod};

use super::tuning::Tuning;
use super::window::Window;
use super::{percentiles, slide, taps, totals};

/// The expressions that fit into a primitive's kernels.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Room {
    /// How often each pixel of the first image is read, if it can be computed there instead.
    pub reads: Option<f64>,
    /// Is each pixel written once and not looked at again, so that it can go on through an expression?
    pub writes: bool,
    /// The most buffers that one of its kernels has beside the image it reads and the one it writes.
    pub buffers: usize,
}

impl Room {
    /// What a node has room for on a device.
    pub fn of(flow: &Flow, node: &Node, tuning: &Tuning) -> Self {
        let dtype = flow.kind(node.inputs[0]).dtype();
        let reduction = |reads: usize, buffers: usize| Self {
            reads: Some(reads as f64),
            writes: false,
            buffers,
        };
        let filter = |reads: Option<f64>, buffers: usize| Self {
            reads,
            writes: true,
            buffers,
        };
        match &node.prim {
            Prim::Totals => reduction(totals::reads(flow, node.outputs[0]), 4),
            Prim::Histogram { .. } => reduction(1, 3),
            // Double precision is read by words.
            Prim::Percentiles { q } if dtype != DType::F64 => {
                reduction(percentiles::reads(dtype, q.len(), tuning), 3)
            }
            Prim::Threshold { method, .. } => match (method, dtype) {
                (ThresholdMethod::Li, _) => Self::default(),
                (ThresholdMethod::Mean, _) => reduction(1, 3),
                (_, DType::F32 | DType::F64) => reduction(2, 4),
                _ => reduction(1, 3),
            },
            Prim::Project(project) => filter(
                match project {
                    Project::Std => Some(2.0),
                    Project::Median => None,
                    _ => Some(1.0),
                },
                0,
            ),
            Prim::Bin { .. } | Prim::Flip { .. } | Prim::Transpose { .. } => filter(Some(1.0), 0),
            Prim::Taps(spec) => filter(Some(taps::reads(spec, tuning)), 1),
            Prim::Window { combine, .. } => {
                let slides = Window::of(&node.prim)
                    .and_then(|window| slide::reads(flow, node, window, tuning));
                Self {
                    reads: Some(slides.unwrap_or(2.0)),
                    // Elsewhere what is written is read again, and so are zeros of either sign.
                    writes: slides.is_some() && (*combine == Combine::Sum || dtype != DType::F32),
                    buffers: 0,
                }
            }
            Prim::Around { .. } | Prim::Rank { .. } | Prim::Convolve { .. } => filter(None, 1),
            _ => Self::default(),
        }
    }
}
