//! A finished expression: plain data.

use serde::{Deserialize, Serialize};
use warploom_core::DType;

use super::graph::{Ex, Graph};
use super::node::{Id, Node, Ty};

/// A result of a [`Dag`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Output {
    /// The node; its type is [`Ty::of`] the element type, its value in the element type's range.
    pub id: Id,
    /// The element type it is stored as.
    pub dtype: DType,
}

/// An expression with one or more results per pixel. Every node follows its operands.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Dag {
    nodes: Vec<(Node, Ty)>,
    inputs: Vec<DType>,
    outputs: Vec<Output>,
}

impl Dag {
    /// The part of `graph` that `outputs` need, renumbered. Each output is stored as its element
    /// type, saturated and rounded to nearest even.
    ///
    /// # Panics
    /// When an output's element type is one no operation takes.
    pub fn new(graph: &Graph, outputs: &[(Ex<'_>, DType)]) -> Self {
        let outputs: Vec<(Id, DType)> = outputs
            .iter()
            .map(|(ex, dtype)| (ex.saturate(*dtype).id(), *dtype))
            .collect();
        let nodes = graph.nodes();
        let mut live = vec![false; nodes.len()];
        for (id, _) in &outputs {
            live[*id as usize] = true;
        }
        for id in (0..nodes.len()).rev() {
            if live[id] {
                nodes[id].0.operands().for_each(|o| live[o as usize] = true);
            }
        }
        let mut new = vec![0; nodes.len()];
        let mut kept = Vec::new();
        for (id, (node, ty)) in nodes.iter().enumerate() {
            if live[id] {
                #[expect(clippy::cast_possible_truncation, reason = "ids are 32 bits")]
                {
                    new[id] = kept.len() as Id;
                }
                kept.push((node.with_operands(|o| new[o as usize]), *ty));
            }
        }
        let outputs = outputs.into_iter().map(|(id, dtype)| Output {
            id: new[id as usize],
            dtype,
        });
        Self {
            nodes: kept,
            inputs: graph.inputs(),
            outputs: outputs.collect(),
        }
    }

    /// The nodes with their types.
    pub fn nodes(&self) -> &[(Node, Ty)] {
        &self.nodes
    }

    /// One node.
    pub fn node(&self, id: Id) -> Node {
        self.nodes[id as usize].0
    }

    /// A node's type.
    pub fn ty(&self, id: Id) -> Ty {
        self.nodes[id as usize].1
    }

    /// Element types of the inputs; lists of numbers count as `f64`.
    pub fn inputs(&self) -> &[DType] {
        &self.inputs
    }

    /// The results.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// How far from the pixel a load reads, when that is the same everywhere.
    pub fn offset(&self, at: [Id; 3]) -> Option<[i32; 3]> {
        let mut offset = [0; 3];
        for (axis, id) in (0_u8..).zip(at) {
            offset[usize::from(axis)] = match self.node(id) {
                Node::Coord(of) if of == axis => 0,
                Node::Bin(super::Bin::Add, a, b) if self.node(a) == Node::Coord(axis) => {
                    self.constant(b)?
                }
                _ => return None,
            };
        }
        Some(offset)
    }

    fn constant(&self, id: Id) -> Option<i32> {
        match self.node(id) {
            #[expect(clippy::cast_possible_truncation, reason = "an i32 is kept in 64 bits")]
            Node::Const(Ty::I32, bits) => Some(bits as i32),
            _ => None,
        }
    }

    /// Every load at a fixed offset: image and offset. `None` when some load is not.
    pub fn stencil(&self) -> Option<Vec<(u32, [i32; 3])>> {
        let loads = self.nodes.iter().filter_map(|(node, _)| match node {
            Node::Load { image, at, .. } => Some(self.offset(*at).map(|offset| (*image, offset))),
            _ => None,
        });
        loads.collect()
    }

    /// Does every pixel depend on nothing but the same pixel of each image?
    pub fn is_pointwise(&self) -> bool {
        self.stencil()
            .is_some_and(|loads| loads.iter().all(|(_, offset)| *offset == [0; 3]))
    }
}
