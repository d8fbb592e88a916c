//! Nodes of a flow that run in one pass over rows.
//!
//! Nothing is computed twice in a chain but the few rows around a strip, and nothing between its
//! nodes is written to memory.

use warploom_core::DType;

use super::dispatch::{image, image_mut, weights};
use super::gather::{Collector, Gather, Idle};
use super::pass::Pass;
use super::rows::{Axis, Few, Frame, Reads, RowEngine, RowGraph, Value};
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
    /// What is gathered, in the order of the graph.
    ends: Vec<End>,
    engine: RowEngine,
}

/// A reduction at the end of a chain.
#[derive(Debug)]
struct End {
    gather: Gather,
    dtype: DType,
    /// Which of the lists has its limits.
    list: Option<usize>,
    /// Which of the outputs it writes.
    output: usize,
    /// Where the image is when it looks at it again.
    again: Option<Again>,
    idle: Idle,
}

/// An input or an output of a pass.
#[derive(Clone, Copy, Debug)]
enum Again {
    Input(usize),
    Output(usize),
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
        let mut lists = Vec::new();
        let mut ends = Vec::new();
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
                    lists.push(*id);
                    Reads::List(graph.list())
                }
                ValueKind::List { .. } => return None,
            });
        }
        for node in pass.nodes.iter().map(|&at| &flow.nodes()[at]) {
            if let Some(gather) = Gather::of(flow, node) {
                ends.push((node, gather));
                continue;
            }
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
        let images = |id: &&ValueId| flow.kind(**id).image().is_some();
        let mut last = Vec::new();
        for id in pass.outputs.iter().filter(images) {
            last.push(flow.readers(*id).all(|at| pass.nodes.contains(&at)));
            let Some(Reads::Image(value)) = reads[*id as usize] else {
                return None;
            };
            graph.output(value, flow.kind(*id).dtype());
        }
        let place = |ids: &[ValueId], id: ValueId| ids.iter().position(|other| *other == id);
        let ends = ends.into_iter().map(|(node, gather)| {
            let image = node.inputs[0];
            let Some(Reads::Image(value)) = reads[image as usize] else {
                return None;
            };
            graph.gather(value);
            let input = place(&pass.inputs, image).map(Again::Input);
            let output = || place(&pass.outputs, image).map(Again::Output);
            let again = input.or_else(output);
            assert!(
                again.is_some() || !gather.looks_again(),
                "a pass gives what is looked at again"
            );
            Some(End {
                gather,
                dtype: flow.kind(image).dtype(),
                list: node.inputs.get(1).and_then(|id| place(&lists, *id)),
                output: place(&pass.outputs, node.outputs[0])?,
                again,
                idle: Idle::default(),
            })
        });
        let ends: Option<Vec<End>> = ends.collect();
        Some(Self {
            sources,
            outputs: pass.outputs.clone(),
            ends: ends?,
            engine: graph.finish().with_last(last),
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
        let mut images: Few<Image<'_>> = Few::new();
        let mut lists: Few<&[f64]> = Few::new();
        let mut lies: Few<(usize, usize)> = Few::new();
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
        let collectors = self.ends.iter().map(|end| {
            let list = end.list.map(|at| lists[at]);
            Collector::new(&end.gather, end.dtype, list, &end.idle)
        });
        let collectors: Few<Collector<'_>> = collectors.collect();
        let kinds = || self.outputs.iter().map(|id| flow.kind(*id));
        let targets: Few<ImageMut<'_>> = kinds()
            .zip(&mut *outputs)
            .filter(|(kind, _)| kind.image().is_some())
            .map(|(kind, bytes)| image_mut(&kind, bytes))
            .collect();
        self.engine
            .gather(&images, &lists, targets, &collectors, &lies);
        for (end, collector) in self.ends.iter().zip(&collectors) {
            // Taken out, so that an output can be read while another is written.
            let target = std::mem::take(&mut outputs[end.output]);
            let again = end.again.map(|again| match again {
                Again::Input(at) => image(&flow.kind(self.sources[at].0), inputs[at]),
                Again::Output(at) => image(&flow.kind(self.outputs[at]), outputs[at]),
            });
            collector.finish(
                again,
                image_mut(&flow.kind(self.outputs[end.output]), target),
            );
            outputs[end.output] = target;
        }
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
        Prim::Crop {
            start,
            boundary,
            fill,
        } => {
            let frame = Frame {
                start: *start,
                boundary: *boundary,
                fill: *fill,
                dims: flow.kind(node.outputs[0]).dims().map(|n| n as usize),
            };
            Some(vec![graph.frame(first?, frame)])
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
