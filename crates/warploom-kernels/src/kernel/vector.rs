//! Loops over elements side by side: which a compiler for processors should turn into vector code.
//!
//! Compilers choose vectors of 256 bits even where the processor has twice as long ones, and are right for
//! code that has a few of them. Kernels have little else, so they are told.

use std::collections::HashMap;

use warploom_core::DType;

use super::def::{KernelDef, Place, Stmt};
use crate::expr::{Bin, Id, Node, Ty};

/// Bits of the longest vectors.
const VECTOR: u64 = 512;

/// How the place of an element changes from one round of a loop to the next.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    Stays,
    /// To the next element.
    Steps,
    Jumps,
}

impl Pace {
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Stays, pace) | (pace, Self::Stays) => pace,
            _ => Self::Jumps,
        }
    }
}

/// A loop's body.
struct Body<'a> {
    def: &'a KernelDef,
    /// Names that change from round to round.
    names: HashMap<u32, Pace>,
    /// Terms that were looked at: they share parts.
    known: HashMap<Id, Pace>,
}

impl Body<'_> {
    fn pace(&mut self, id: Id) -> Pace {
        if let Some(pace) = self.known.get(&id) {
            return *pace;
        }
        let (node, ty) = self.def.nodes[id as usize];
        let pace = match node {
            Node::Local(number, _) => self.names.get(&number).copied().unwrap_or(Pace::Stays),
            Node::Const(..) | Node::Param { .. } => Pace::Stays,
            // Numbers of elements are of this type.
            _ if ty != Ty::I32 => Pace::Jumps,
            Node::Bin(Bin::Add, a, b) => {
                let (a, b) = (self.pace(a), self.pace(b));
                a.plus(b)
            }
            Node::Bin(Bin::Sub, a, b) if self.pace(b) == Pace::Stays => self.pace(a),
            node => {
                let mut operands = node.operands();
                if operands.all(|id| self.pace(id) == Pace::Stays) {
                    Pace::Stays
                } else {
                    Pace::Jumps
                }
            }
        };
        self.known.insert(id, pace);
        pace
    }

    fn bits(&self, place: Place) -> u64 {
        match place {
            Place::Buffer(at) => 8 * self.def.buffers[at as usize].dtype.bytes(),
            Place::Array(at) => {
                let array = &self.def.arrays[at as usize];
                let dtype = array.narrow.unwrap_or(match array.ty {
                    Ty::F64 => DType::F64,
                    _ => DType::F32,
                });
                8 * dtype.bytes()
            }
        }
    }
}

/// How many elements a vector of the loop has; `None` unless everything it touches lies side by side,
/// without conditions or inner loops.
pub(super) fn elements(
    def: &KernelDef,
    (variable, step): (u32, Id),
    block: &[Stmt],
) -> Option<u64> {
    if def.nodes[step as usize].0 != Node::Const(Ty::I32, 1) {
        return None;
    }
    let mut body = Body {
        def,
        names: HashMap::from([(variable, Pace::Steps)]),
        known: HashMap::new(),
    };
    let (mut most, mut stores) = (0, false);
    for stmt in block {
        match stmt {
            Stmt::Let(number, id) => {
                let pace = body.pace(*id);
                body.names.insert(*number, pace);
            }
            Stmt::Load(number, place, index) => {
                match body.pace(*index) {
                    Pace::Jumps => return None,
                    Pace::Steps => most = most.max(body.bits(*place)),
                    Pace::Stays => {}
                }
                body.names.insert(*number, Pace::Jumps);
            }
            Stmt::Store(place, index, _) => {
                if body.pace(*index) != Pace::Steps {
                    return None;
                }
                most = most.max(body.bits(*place));
                stores = true;
            }
            _ => return None,
        }
    }
    stores.then(|| VECTOR / most)
}
