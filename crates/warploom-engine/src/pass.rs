//! Nodes of a flow that run as one.

use std::collections::HashSet;

use warploom_core::DType;

use super::dispatch::weights;
use super::gather::Gather;
use super::rows::MOST;
use super::tape::Tape;
use warploom_flow::expr::Node as Term;
use warploom_flow::flow::{Flow, Node, Prim, ValueId, ValueKind};
use warploom_flow::{Boundary, Dims};

/// Nodes that run as one, and what they read and write. Plain data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pass {
    /// The nodes, by their place in the flow, each after those it depends on.
    pub nodes: Vec<usize>,
    /// Values they read that others made, each once.
    pub inputs: Vec<ValueId>,
    /// Values they make that others need.
    pub outputs: Vec<ValueId>,
}

impl Pass {
    /// One node alone.
    pub fn alone(flow: &Flow, at: usize) -> Self {
        let pass = Self::of(flow, vec![at]);
        if pass.by_rows(flow) {
            return pass;
        }
        // What does not go by rows writes all it makes.
        let outputs = flow.nodes()[at].outputs.clone();
        Self { outputs, ..pass }
    }

    /// Can all its nodes be computed row by row? Some are only where they are not alone.
    pub(super) fn by_rows(&self, flow: &Flow) -> bool {
        let nodes = self.nodes.iter().map(|at| &flow.nodes()[*at]);
        let shared = self.nodes.len() > 1;
        nodes
            .map(|node| Rowwise::of(flow, node).or_else(|| Rowwise::gathered(flow, node)))
            .all(|it| it.is_some_and(|it| shared || !it.is_guest))
    }

    /// May it run with an input in the memory of an output, by their places in its lists? It may when
    /// it is one expression by rows that may write the one over the other.
    pub fn in_place(&self, flow: &Flow, input: usize, output: usize) -> bool {
        let [at] = self.nodes[..] else {
            return false;
        };
        flow.in_place(&flow.nodes()[at], self.inputs[input], self.outputs[output])
            && self.by_rows(flow)
    }

    /// Nodes in ascending order.
    pub(super) fn of(flow: &Flow, nodes: Vec<usize>) -> Self {
        let inside = |at: usize| nodes.binary_search(&at).is_ok();
        let made = |id: ValueId| flow.writer(id).is_some_and(|at| inside(at as usize));
        let members = || nodes.iter().map(|at| &flow.nodes()[*at]);
        let mut seen: HashSet<ValueId> = HashSet::new();
        let inputs = members().flat_map(|node| &node.inputs).copied();
        let inputs = inputs.filter(|id| !made(*id) && seen.insert(*id)).collect();
        let needs = |id: ValueId, at: usize| !inside(at) || looks_again(flow, at, id);
        let needed =
            |id: &ValueId| flow.is_output(*id) || flow.readers(*id).any(|at| needs(*id, at));
        let outputs = members().flat_map(|node| &node.outputs).copied();
        let outputs = outputs.filter(needed).collect();
        Self {
            nodes,
            inputs,
            outputs,
        }
    }
}

/// Does a node look at an image again after it was made row by row?
pub(super) fn looks_again(flow: &Flow, at: usize, id: ValueId) -> bool {
    let node = &flow.nodes()[at];
    node.inputs[0] == id && Gather::of(flow, node).is_some_and(|gather| gather.looks_again())
}

/// What becomes of rows outside the image that a node reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Edge {
    /// It reads no other rows.
    None,
    /// They are those of the other end.
    Wrap,
    /// They are made up.
    Other,
    /// Both, so rows cannot be numbered one way for all.
    Mixed,
}

impl Edge {
    fn of(boundary: Boundary) -> Self {
        if boundary == Boundary::Wrap {
            Self::Wrap
        } else {
            Self::Other
        }
    }

    pub(super) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, edge) | (edge, Self::None) => edge,
            (a, b) if a == b => a,
            _ => Self::Mixed,
        }
    }
}

/// A node that can be computed row by row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rowwise {
    pub(super) dims: Dims,
    pub(super) edge: Edge,
    /// By itself it is better done another way: a reduction, and pixels that only move.
    pub(super) is_guest: bool,
    /// Bytes of rows that are kept because it reads rows above and below its own, about.
    pub(super) kept: u64,
}

impl Rowwise {
    /// A reduction that takes rows as they come; `None` when it is none.
    pub(super) fn gathered(flow: &Flow, node: &Node) -> Option<Self> {
        Gather::of(flow, node)?;
        Some(Self {
            dims: flow.kind(node.inputs[0]).image()?.dims,
            edge: Edge::None,
            is_guest: true,
            kept: 0,
        })
    }

    /// `None` when rows do not suffice.
    pub(super) fn of(flow: &Flow, node: &Node) -> Option<Self> {
        let dims = flow.kind(node.outputs[0]).image()?.dims;
        if let Prim::Crop { .. } = node.prim {
            // Any row of the image is at hand, whatever its extents are.
            return Some(Self {
                dims,
                edge: Edge::None,
                is_guest: true,
                kept: 0,
            });
        }
        for id in node.inputs.iter().chain(&node.outputs) {
            match flow.kind(*id) {
                ValueKind::Image(image) if image.dims == dims => {}
                ValueKind::List {
                    dtype: DType::F64, ..
                } => {}
                _ => return None,
            }
        }
        // Extents are those of an input.
        let mut inputs = node.inputs.iter();
        inputs.find(|id| flow.kind(**id).image().is_some())?;
        let edge = match &node.prim {
            Prim::Taps(taps) if taps.axis == 1 => Edge::of(taps.boundary),
            Prim::Window {
                axis: 1, boundary, ..
            } => Edge::of(*boundary),
            Prim::Taps(taps) if taps.axis == 2 => Edge::None,
            Prim::Window { axis: 2, .. } => Edge::None,
            Prim::Map { dag, .. } => {
                let fits = dag.outputs().len() <= MOST && Tape::new(dag).is_some();
                let loads = dag.nodes().iter().filter_map(|(term, _)| match term {
                    Term::Load { at, boundary, .. } => Some((dag.offset(*at), *boundary)),
                    _ => None,
                });
                let beyond = loads.filter(|(at, _)| at.is_some_and(|at| at[1] != 0));
                let edges = beyond.map(|(_, boundary)| Edge::of(boundary));
                fits.then(|| edges.fold(Edge::None, Edge::with))?
            }
            _ => return None,
        };
        Some(Self {
            dims,
            edge,
            is_guest: false,
            kept: kept(flow, node),
        })
    }
}

/// Rows that are kept for what goes with a sum or window down columns beside those that it reaches: some
/// for itself, for the one along rows, and for an expression.
const BESIDE: u64 = 96;

/// Bytes of rows that a pass keeps for a node, about; none for one that reads its own row only.
fn kept(flow: &Flow, node: &Node) -> u64 {
    let reach = reach(&node.prim);
    if reach == 0 {
        return 0;
    }
    let kind = flow.kind(node.outputs[0]);
    (reach + BESIDE) * kind.dims()[2] * kind.dtype().bytes()
}

/// Rows above and below its own that a primitive reads.
fn reach(prim: &Prim) -> u64 {
    match prim {
        Prim::Taps(taps) if taps.axis == 1 => {
            let taps = weights(&taps.weights);
            (taps.before() + taps.after()) as u64
        }
        Prim::Window {
            axis: 1, radius, ..
        } => 2 * u64::from(*radius),
        _ => 0,
    }
}
