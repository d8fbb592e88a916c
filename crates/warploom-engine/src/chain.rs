//! Nodes of a flow that run in one pass over rows.
//!
//! Nothing is computed twice in a chain but the few rows around a strip, and nothing between its
//! nodes is written to memory.

use warploom_core::DType;

use super::dispatch::{image, image_mut, weights};
use super::pass::Pass;
use super::rows::{Axis, Reads, RowEngine, RowGraph, Value};
use super::window::Fold;
use super::{Image, ImageMut, View};
use warploom_flow::expr::Datum;
use warploom_flow::flow::{Combine, Flow, Node, Number, Prim, ValueId, ValueKind};

/// Nodes made ready to run in one pass, again and again.
#[derive(Debug)]
pub struct Chain {
    /// What it reads, and whether that is an image.
    sources: Vec<(ValueId, bool)>,
    outputs: Vec<ValueId>,
    engine: RowEngine,
}

impl Chain {
    /// Makes a pass of `flow` ready; `None` when rows do not suffice for its nodes.
    ///
    /// # Panics
    /// When a node comes before one it depends on.
    pub fn new(flow: &Flow, pass: &Pass) -> Option<Self> {
        if !pass.by_rows(flow) {
            return None;
        }
        let mut graph = RowGraph::new();
        let mut reads: Vec<Option<Reads>> = vec![None; flow.values().len()];
        let mut sources = Vec::with_capacity(pass.inputs.len());
        for id in &pass.inputs {
            reads[*id as usize] = Some(match flow.kind(*id) {
                ValueKind::Image(image) => {
                    sources.push((*id, true));
                    Reads::Image(graph.input(image.dtype))
                }
                ValueKind::List {
                    dtype: DType::F64, ..
                } => {
                    sources.push((*id, false));
                    Reads::List(graph.list())
                }
                ValueKind::List { .. } => return None,
            });
        }
        for node in pass.nodes.iter().map(|&at| &flow.nodes()[at]) {
            let wanted = node.inputs.iter().map(|id| {
                let known = reads[*id as usize];
                known.expect("a pass lists what it reads, and its nodes in order")
            });
            let wanted: Vec<Reads> = wanted.collect();
            let results = add(&mut graph, flow, node, &wanted)?;
            for (&id, result) in node.outputs.iter().zip(results) {
                reads[id as usize] = Some(Reads::Image(result));
            }
        }
        for id in &pass.outputs {
            let Some(Reads::Image(value)) = reads[*id as usize] else {
                return None;
            };
            graph.output(value, flow.kind(*id).dtype());
        }
        Some(Self {
            sources,
            outputs: pass.outputs.clone(),
            engine: graph.finish(),
        })
    }

    /// Runs it: bytes of the pass's inputs and outputs, each at least as long as its value says and
    /// aligned for its elements; but for inputs that lie in the memory of an output, as `over` says.
    ///
    /// # Panics
    /// When they are not.
    pub fn run(
        &self,
        flow: &Flow,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        over: &[(usize, usize)],
    ) {
        let mut images: Vec<Image<'_>> = Vec::with_capacity(inputs.len());
        let mut lists: Vec<&[f64]> = Vec::new();
        let mut lies: Vec<(usize, usize)> = Vec::with_capacity(over.len());
        for (at, ((id, is_image), bytes)) in self.sources.iter().zip(inputs).enumerate() {
            let kind = flow.kind(*id);
            if let Some((_, output)) = over.iter().find(|(input, _)| *input == at) {
                lies.push((images.len(), *output));
                images.push(Image::U8(View::packed(&[], [0; 3])));
            } else if *is_image {
                images.push(image(&kind, bytes));
            } else {
                lists.push(bytemuck::cast_slice(&bytes[..kind.bytes() as usize]));
            }
        }
        let targets: Vec<ImageMut<'_>> = self
            .outputs
            .iter()
            .zip(outputs)
            .map(|(id, bytes)| image_mut(&flow.kind(*id), bytes))
            .collect();
        self.engine.run_over(&images, &lists, targets, &lies);
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
