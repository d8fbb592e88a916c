//! Nodes of a flow that share one pass over rows.
//!
//! [`partition`] cuts a flow into such chains; what cannot join one stands alone. Nothing is
//! computed twice in a chain but the few rows around a strip, and nothing between its nodes is
//! written to memory, so joining is always worth it.

use warploom_core::DType;

use super::dispatch::{image, image_mut, weights};
use super::rows::{Axis, Reads, RowEngine, RowGraph, Value};
use super::window::Fold;
use super::{Image, ImageMut};
use warploom_flow::Boundary;
use warploom_flow::expr::Datum;
use warploom_flow::flow::{Combine, Flow, Node, Number, Prim, ValueId, ValueKind};

/// Nodes made ready to run in one pass, again and again.
#[derive(Debug)]
pub struct Chain {
    images: Vec<ValueId>,
    lists: Vec<ValueId>,
    outputs: Vec<ValueId>,
    engine: RowEngine,
}

/// Along which rows do neighbours of a pixel lie, and what lies outside?
fn edge(node: &Node) -> Option<Boundary> {
    match &node.prim {
        Prim::Taps(taps) if taps.axis == 1 => Some(taps.boundary),
        Prim::Window {
            axis: 1, boundary, ..
        } => Some(*boundary),
        Prim::Map { dag, .. } => dag.nodes().iter().find_map(|(node, _)| match node {
            warploom_flow::expr::Node::Load { at, boundary, .. } => dag
                .offset(*at)
                .filter(|offset| offset[1] != 0)
                .map(|_| *boundary),
            _ => None,
        }),
        _ => None,
    }
}

/// Can a node be computed row by row, all by itself?
fn rowwise(flow: &Flow, node: &Node) -> bool {
    let images = node
        .inputs
        .iter()
        .chain(&node.outputs)
        .filter_map(|id| flow.kind(*id).image());
    let mut dims = images.map(|image| image.dims);
    let first = dims.next();
    let fits = match &node.prim {
        Prim::Taps(taps) => taps.axis > 0,
        Prim::Window { axis, .. } => *axis > 0,
        Prim::Map { dag, .. } => dag.stencil().is_some() && dag.outputs().len() <= 8,
        _ => false,
    };
    fits && first.is_some_and(|first| dims.all(|other| other == first))
}

/// Does a node read other planes of a value?
fn reads_planes(node: &Node, value: ValueId) -> bool {
    let Prim::Map { dag, .. } = &node.prim else {
        return false;
    };
    let loads = dag.stencil().unwrap_or_default();
    loads
        .iter()
        .any(|(at, offset)| offset[0] != 0 && node.inputs[*at as usize] == value)
}

/// Cuts a flow into runs of nodes, each computed in one pass; in an order in which they can run.
pub fn partition(flow: &Flow) -> Vec<Vec<usize>> {
    let mut chains: Vec<Vec<usize>> = Vec::new();
    // The chain that writes each value.
    let mut home: Vec<Option<usize>> = vec![None; flow.values().len()];
    for (at, node) in flow.nodes().iter().enumerate() {
        let needs: Vec<usize> = node
            .inputs
            .iter()
            .filter_map(|id| home[*id as usize])
            .collect();
        // Chains are in order: the last one it needs is the only one it can join, for all others
        // it needs have run by then, and none of them can need that one.
        let place = needs.iter().copied().max().filter(|&chain| {
            let others = &chains[chain];
            let alike = |other: &usize| {
                let (a, b) = (&flow.nodes()[*other], node);
                let extents = |node: &Node| flow.kind(node.outputs[0]).dims();
                let edges = edge(a).zip(edge(b));
                let wraps =
                    edges.is_none_or(|(a, b)| (a == Boundary::Wrap) == (b == Boundary::Wrap));
                let planes = a.outputs.iter().any(|value| reads_planes(b, *value));
                rowwise(flow, a) && extents(a) == extents(b) && wraps && !planes
            };
            rowwise(flow, node) && others.iter().all(alike)
        });
        let place = place.unwrap_or_else(|| {
            chains.push(Vec::new());
            chains.len() - 1
        });
        chains[place].push(at);
        for id in &node.outputs {
            home[*id as usize] = Some(place);
        }
    }
    chains
}

impl Chain {
    /// Makes nodes of `flow` ready; `None` when they cannot share a pass.
    ///
    /// # Panics
    /// When a node comes before one it depends on.
    pub fn new(flow: &Flow, nodes: &[usize]) -> Option<Self> {
        let inside = |id: ValueId| {
            flow.writer(id)
                .is_some_and(|at| nodes.contains(&(at as usize)))
        };
        let mut graph = RowGraph::new();
        let mut made: Vec<Option<Value>> = vec![None; flow.values().len()];
        let (mut images, mut lists, mut lists_in) = (Vec::new(), Vec::new(), Vec::new());
        for node in nodes.iter().map(|&at| &flow.nodes()[at]) {
            if !rowwise(flow, node) {
                return None;
            }
            for &id in &node.inputs {
                match flow.kind(id) {
                    ValueKind::Image(image) if made[id as usize].is_none() => {
                        made[id as usize] = Some(graph.input(image.dtype));
                        images.push(id);
                    }
                    ValueKind::List {
                        dtype: DType::F64, ..
                    } if !lists.contains(&id) => {
                        lists.push(id);
                        lists_in.push(graph.list());
                    }
                    ValueKind::List { dtype, .. } if dtype != DType::F64 => return None,
                    _ => {}
                }
            }
            let reads: Vec<Reads> = node
                .inputs
                .iter()
                .map(|id| {
                    if let Some(value) = made[*id as usize] {
                        return Reads::Image(value);
                    }
                    let at = lists.iter().position(|list| list == id);
                    Reads::List(lists_in[at.expect("it was just added")])
                })
                .collect();
            let results = add(&mut graph, flow, node, &reads)?;
            for (&id, result) in node.outputs.iter().zip(results) {
                made[id as usize] = Some(result);
            }
        }
        let wanted = |id: &ValueId| {
            let readers = flow.nodes().iter().enumerate();
            let mut outside = readers.filter(|(at, _)| !nodes.contains(at));
            flow.outputs().contains(id) || outside.any(|(_, node)| node.inputs.contains(id))
        };
        let values = nodes.iter().flat_map(|&at| &flow.nodes()[at].outputs);
        let outputs: Vec<ValueId> = values
            .copied()
            .filter(|id| wanted(id) && inside(*id))
            .collect();
        for id in &outputs {
            let value = made[*id as usize].expect("every node's results were added");
            graph.output(value, flow.kind(*id).dtype());
        }
        Some(Self {
            images,
            lists,
            outputs,
            engine: graph.finish(),
        })
    }

    /// What it reads: images, then lists of numbers.
    pub fn inputs(&self) -> impl Iterator<Item = ValueId> {
        self.images.iter().chain(&self.lists).copied()
    }

    /// What it writes.
    pub fn outputs(&self) -> &[ValueId] {
        &self.outputs
    }

    /// Runs it: bytes of [`Chain::inputs`] and of [`Chain::outputs`], each at least as long as its
    /// value says and aligned for its elements.
    ///
    /// # Panics
    /// When they are not.
    pub fn run(&self, flow: &Flow, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        let (pictures, numbers) = inputs.split_at(self.images.len());
        let sources: Vec<Image<'_>> = self
            .images
            .iter()
            .zip(pictures)
            .map(|(id, bytes)| image(&flow.kind(*id), bytes))
            .collect();
        let lists: Vec<&[f64]> = self
            .lists
            .iter()
            .zip(numbers)
            .map(|(id, bytes)| bytemuck::cast_slice(&bytes[..flow.kind(*id).bytes() as usize]))
            .collect();
        let targets: Vec<ImageMut<'_>> = self
            .outputs
            .iter()
            .zip(outputs)
            .map(|(id, bytes)| image_mut(&flow.kind(*id), bytes))
            .collect();
        self.engine.run_with(&sources, &lists, targets);
    }
}

/// Adds a node's work to a graph.
fn add(graph: &mut RowGraph, flow: &Flow, node: &Node, reads: &[Reads]) -> Option<Vec<Value>> {
    let first = match reads.first() {
        Some(Reads::Image(value)) => Some(*value),
        _ => None,
    };
    let axis = |axis: u8| if axis == 1 { Axis::Y } else { Axis::X };
    match &node.prim {
        Prim::Taps(taps) => {
            let weights = weights(&taps.weights);
            Some(vec![graph.taps(
                first?,
                axis(taps.axis),
                &weights,
                taps.boundary,
            )])
        }
        Prim::Window {
            axis: along,
            radius,
            combine,
            boundary,
        } => {
            let fold = match combine {
                Combine::Sum => Fold::Sum,
                Combine::Min => Fold::Min,
                Combine::Max => Fold::Max,
            };
            let mut value = first?;
            if fold == Fold::Sum {
                value = graph.cast(value, flow.kind(node.outputs[0]).dtype());
            }
            let radius = *radius as usize;
            Some(vec![graph.window(
                value,
                axis(*along),
                fold,
                radius,
                *boundary,
            )])
        }
        Prim::Map { dag, numbers } => {
            let numbers: Vec<Datum> = numbers
                .iter()
                .map(|number| match *number {
                    Number::I32(v) => Datum::I32(v),
                    Number::U32(v) => Datum::U32(v),
                    Number::F32(v) => Datum::F32(v),
                    Number::F64(v) => Datum::F64(v),
                })
                .collect();
            graph.map(dag, reads, &numbers)
        }
        _ => None,
    }
}
