//! What was decided, for people.

use std::fmt;

use serde::Serialize;

use crate::cpu::Pass;
use crate::flow::{Flow, ValueId};

/// A decision, for people.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "decision")]
pub enum Note {
    /// Two expressions over the same pixel became one.
    Chained {
        /// What is no longer written and read.
        value: ValueId,
        /// Bytes that no longer move.
        saved: u64,
    },
    /// An expression is computed again for each neighbour.
    Recomputed {
        /// What is no longer written and read.
        value: ValueId,
        /// How often it is computed for a pixel.
        times: usize,
        /// Bytes that no longer move.
        saved: u64,
    },
    /// An expression could have been computed again, but storing it is cheaper.
    Stored {
        /// What is written and read.
        value: ValueId,
        /// How often it would have been computed for a pixel.
        times: usize,
    },
    /// Several nodes became one pass over rows.
    Rows {
        /// What they do, in order.
        names: Vec<&'static str>,
        /// Bytes that no longer move.
        saved: u64,
    },
    /// An expression is computed in the kernels of those that read it.
    GoesIn {
        /// What is no longer written and read.
        value: ValueId,
        /// What those do.
        into: Vec<&'static str>,
        /// Bytes that no longer move.
        saved: u64,
    },
    /// What a node makes goes through an expression before it is written.
    GoesOn {
        /// What is no longer read, and written only if others need it.
        value: ValueId,
        /// What the node does.
        of: &'static str,
        /// Bytes that no longer move.
        saved: u64,
    },
    /// Nodes that read the same images do so in the same kernels.
    SideBySide {
        /// What they do, in order.
        names: Vec<&'static str>,
        /// Bytes that are read once instead of twice.
        saved: u64,
    },
    /// Two expressions read the same images and are computed side by side.
    Beside {
        /// Bytes that are read once instead of twice.
        saved: u64,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chained { value, saved } => {
                write!(
                    f,
                    "value {value} stays in registers: {saved} bytes less to move"
                )
            }
            Self::Recomputed {
                value,
                times,
                saved,
            } => write!(
                f,
                "value {value} is computed {times} times a pixel instead of stored: {saved} bytes less to move"
            ),
            Self::Stored { value, times } => write!(
                f,
                "value {value} is stored: computing it {times} times a pixel would cost more"
            ),
            Self::Rows { names, saved } => write!(
                f,
                "{} share one pass over rows: {saved} bytes less to move",
                names.join(", ")
            ),
            Self::GoesIn { value, into, saved } => write!(
                f,
                "value {value} is computed where {} reads it: {saved} bytes less to move",
                into.join(", ")
            ),
            Self::GoesOn { value, of, saved } => write!(
                f,
                "value {value} goes on from {of} in registers: {saved} bytes less to move"
            ),
            Self::SideBySide { names, saved } => write!(
                f,
                "{} read the same images side by side: {saved} bytes less to move",
                names.join(", ")
            ),
            Self::Beside { saved } => {
                write!(
                    f,
                    "two expressions read the same images: {saved} bytes less to move"
                )
            }
        }
    }
}

impl Note {
    /// What a pass of several nodes saves: values that are not written at all, and reads of those
    /// that are or were given, all but the first of each.
    pub(super) fn rows(flow: &Flow, pass: &Pass) -> Self {
        let nodes = || pass.nodes.iter().map(|at| &flow.nodes()[*at]);
        let bytes = |ids: &[ValueId]| -> u64 { ids.iter().map(|id| flow.kind(*id).bytes()).sum() };
        let alone: u64 = nodes()
            .map(|node| bytes(&node.inputs) + bytes(&node.outputs))
            .sum();
        Self::Rows {
            names: nodes().map(|node| node.prim.name()).collect(),
            saved: alone - bytes(&pass.inputs) - bytes(&pass.outputs),
        }
    }
}
