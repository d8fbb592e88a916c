//! What a pass over memory costs, and what computing again does.

use serde::{Deserialize, Serialize};

use crate::cpu::Pass;
use crate::expr::{Bin, Dag, Node as Term, Un};
use crate::flow::{Flow, Node, Prim, ValueId, Weights};

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

/// What a device does in a second, as far as choosing between devices cares.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Speed {
    /// Its memory and arithmetic.
    pub machine: Machine,
    /// Bytes a second from the host to the device.
    pub up: f64,
    /// Bytes a second from the device to the host.
    pub down: f64,
    /// Seconds that any launch costs.
    pub launch: f64,
}

impl Speed {
    /// What a device of this sort is taken for until it was measured: orders of magnitude, enough
    /// to prefer a card to the processor for large images and not for small ones.
    pub fn guess(discrete: bool, software: bool) -> Self {
        let speed = |bytes_per_second, operations_per_second, link, launch| Self {
            machine: Machine {
                bytes_per_second,
                operations_per_second,
            },
            up: link,
            down: link,
            launch,
        };
        if software {
            speed(12e9, 25e9, 8e9, 2e-6)
        } else if discrete {
            speed(400e9, 5e12, 12e9, 8e-6)
        } else {
            speed(60e9, 1e12, 20e9, 8e-6)
        }
    }

    /// Could a device be like this? Rates from a kilobyte a second to a million times what there is,
    /// launches within a minute: whatever else a file says was not measured.
    pub fn is_plausible(&self) -> bool {
        let Machine {
            bytes_per_second,
            operations_per_second,
        } = self.machine;
        let rates = [bytes_per_second, operations_per_second, self.up, self.down];
        let rates = rates.iter().all(|rate| (1e3..=1e18).contains(rate));
        rates && (0.0..=60.0).contains(&self.launch)
    }
}

/// What one pass does.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Cost {
    /// Bytes it reads from memory and writes to it.
    pub bytes: u64,
    /// Simple operations.
    pub operations: f64,
}

impl Cost {
    /// Of a pass, as far as is known: of what is no expression, sum or window only the bytes.
    pub fn of(flow: &Flow, pass: &Pass) -> Self {
        let bytes = |ids: &[ValueId]| -> u64 { ids.iter().map(|id| flow.kind(*id).bytes()).sum() };
        let nodes = pass.nodes.iter().map(|at| &flow.nodes()[*at]);
        Self {
            bytes: bytes(&pass.inputs) + bytes(&pass.outputs),
            operations: nodes.map(|node| node_operations(flow, node)).sum(),
        }
    }

    /// Seconds on a device: memory and arithmetic work at the same time.
    pub fn seconds(&self, machine: &Machine) -> f64 {
        let moving = machine.moving(self.bytes);
        moving.max(machine.computing(self.operations))
    }
}

fn node_operations(flow: &Flow, node: &Node) -> f64 {
    let each = match &node.prim {
        Prim::Map { dag, .. } => operations(dag),
        Prim::Taps(taps) => match &taps.weights {
            Weights::Even(weights) | Weights::Odd(weights) => 2.0 * weights.len() as f64,
            Weights::Any(weights) => weights.len() as f64,
        },
        // A running prefix, a running suffix, and the two made one.
        Prim::Window { .. } => 3.0,
        _ => 0.0,
    };
    each * flow.kind(node.outputs[0]).elements() as f64
}

/// Simple operations per pixel: a division or a root counts for several.
pub(super) fn operations(dag: &Dag) -> f64 {
    let cost = |node: &Term| match node {
        Term::Bin(Bin::Div | Bin::Rem, ..) | Term::Un(Un::Sqrt, _) => 6.0,
        Term::Const(..)
        | Term::Param { .. }
        | Term::Scalar { .. }
        | Term::Local(..)
        | Term::Coord(_)
        | Term::Extent(_)
        | Term::InputExtent { .. } => 0.0,
        _ => 1.0,
    };
    dag.nodes().iter().map(|(node, _)| cost(node)).sum()
}
