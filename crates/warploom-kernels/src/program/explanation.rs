//! What a program does to memory, and why, for people.

use std::fmt;

use serde::Serialize;

use crate::fuse::{Cost, Fused, Machine, Note};

/// One pass over memory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Explained {
    /// The primitives that share it, in order.
    pub primitives: Vec<&'static str>,
    /// What it moves and computes.
    pub cost: Cost,
}

/// The passes of a program, and the decisions that led to them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Explanation {
    /// In the order they run.
    pub passes: Vec<Explained>,
    /// What fusion decided.
    pub notes: Vec<Note>,
}

impl Explanation {
    pub(super) fn of(fused: &Fused) -> Self {
        let name = |at: &usize| fused.flow.nodes()[*at].prim.name();
        let passes = fused.passes.iter().map(|pass| Explained {
            primitives: pass.nodes.iter().map(name).collect(),
            cost: Cost::of(&fused.flow, pass),
        });
        Self {
            passes: passes.collect(),
            notes: fused.notes.clone(),
        }
    }

    /// Bytes that all passes move.
    pub fn bytes(&self) -> u64 {
        self.passes.iter().map(|pass| pass.cost.bytes).sum()
    }

    /// Seconds that this should take on a device.
    pub fn seconds(&self, machine: &Machine) -> f64 {
        let passes = self.passes.iter();
        passes.map(|pass| pass.cost.seconds(machine)).sum()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, pass) in (1..).zip(&self.passes) {
            let names = pass.primitives.join(" + ");
            writeln!(f, "pass {number}: {names}: moves {} bytes", pass.cost.bytes)?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        Ok(())
    }
}
