//! What a pass over memory costs, and what computing again does.

use serde::{Deserialize, Serialize};

use crate::expr::{Bin, Dag, Node, Un};

/// What a device does in a second, as far as fusion cares.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Bytes read or written.
    pub bytes_per_second: f64,
    /// Simple operations on single precision.
    pub operations_per_second: f64,
}

impl Default for Machine {
    /// Two cores of a server: what it is until the device was measured.
    fn default() -> Self {
        Self {
            bytes_per_second: 25e9,
            operations_per_second: 50e9,
        }
    }
}

impl Machine {
    /// Seconds to move this many bytes.
    pub fn moving(&self, bytes: u64) -> f64 {
        bytes as f64 / self.bytes_per_second
    }

    /// Seconds to compute this much.
    pub fn computing(&self, operations: f64) -> f64 {
        operations / self.operations_per_second
    }
}

/// Simple operations per pixel: a division or a root counts for several.
pub(super) fn operations(dag: &Dag) -> f64 {
    let cost = |node: &Node| match node {
        Node::Bin(Bin::Div | Bin::Rem, ..) | Node::Un(Un::Sqrt, _) => 6.0,
        Node::Const(..)
        | Node::Param { .. }
        | Node::Scalar { .. }
        | Node::Local(..)
        | Node::Coord(_)
        | Node::Extent(_)
        | Node::InputExtent { .. } => 0.0,
        _ => 1.0,
    };
    dag.nodes().iter().map(|(node, _)| cost(node)).sum()
}
