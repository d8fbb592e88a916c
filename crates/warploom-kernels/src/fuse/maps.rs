//! Which expressions join.

use super::cost::operations;
use super::join::{Map, join};
use super::note::Note;
use super::options::Options;
use crate::Boundary;
use crate::cpu::{self, Pass};
use crate::flow::{Flow, Node, ValueId};

/// A flow with fewer passes, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct Fused {
    /// The flow; values keep their numbers.
    pub flow: Flow,
    /// Its nodes in the order they run, those together that run as one.
    pub passes: Vec<Pass>,
    /// What was decided.
    pub notes: Vec<Note>,
}

impl Fused {
    /// Every node that is needed a pass of its own.
    pub fn none(flow: &Flow) -> Self {
        let flow = needed(flow);
        let passes = (0..flow.nodes().len()).map(|at| Pass::alone(&flow, at));
        Self {
            passes: passes.collect(),
            flow,
            notes: Vec::new(),
        }
    }
}

/// Joins what can share a pass over memory. The result means the same, bit for bit.
pub fn fuse(flow: &Flow, options: &Options) -> Fused {
    let mut fused = Fused {
        flow: needed(flow),
        passes: Vec::new(),
        notes: Vec::new(),
    };
    while chain(&mut fused, options) {}
    if options.rows {
        fused.passes = cpu::partition(&fused.flow, options.buffers);
        let flow = &fused.flow;
        let shared = fused.passes.iter().filter(|pass| pass.nodes.len() > 1);
        fused
            .notes
            .extend(shared.map(|pass| Note::rows(flow, pass)));
        return fused;
    }
    while beside(&mut fused, options) {}
    let passes = (0..fused.flow.nodes().len()).map(|at| Pass::alone(&fused.flow, at));
    fused.passes = passes.collect();
    fused
}

/// The flow without nodes whose results nobody needs.
fn needed(flow: &Flow) -> Flow {
    let mut wanted: Vec<ValueId> = flow.outputs().to_vec();
    let mut kept: Vec<Node> = Vec::new();
    for node in flow.nodes().iter().rev() {
        if node.outputs.iter().any(|id| wanted.contains(id)) {
            wanted.extend(&node.inputs);
            kept.push(node.clone());
        }
    }
    kept.reverse();
    flow.with_nodes(kept)
}

/// Joins one pair of expressions of which the second reads the first.
fn chain(fused: &mut Fused, options: &Options) -> bool {
    let flow = &fused.flow;
    for (at, node) in flow.nodes().iter().enumerate() {
        for input in &node.inputs {
            let Some(writer) = flow.writer(*input).map(|w| w as usize) else {
                continue;
            };
            let (Some(first), Some(second)) = (Map::of(&flow.nodes()[writer]), Map::of(node))
            else {
                continue;
            };
            let Some(decision) = decide(flow, &first, &second, *input, options) else {
                continue;
            };
            if matches!(decision, Note::Stored { .. }) {
                if !fused.notes.contains(&decision) {
                    fused.notes.push(decision);
                }
                continue;
            }
            let others = |id: &ValueId| {
                flow.outputs().contains(id) || flow.readers(*id).any(|reader| reader != at)
            };
            let keep: Vec<ValueId> = first.node.outputs.iter().copied().filter(others).collect();
            if !keep.is_empty() && (depends_otherwise(flow, writer, at) || moved(&decision)) {
                continue;
            }
            // Rows that others read too are in the cache anyway, and those others may want more of
            // them than this reader.
            let read = |id: &ValueId| flow.readers(*id).any(|reader| reader != at);
            if options.rows && keep.iter().any(read) {
                continue;
            }
            let joined = join(&first, &second, &keep);
            if !fits(&joined, options) {
                continue;
            }
            fused.notes.push(decision);
            fused.flow = replace(flow, [writer, at], joined);
            return true;
        }
    }
    false
}

/// A first map that is computed at other pixels than the second's cannot be stored beside it in
/// fewer bytes than it is now.
fn moved(decision: &Note) -> bool {
    matches!(decision, Note::Recomputed { .. })
}

fn decide(
    flow: &Flow,
    first: &Map<'_>,
    second: &Map<'_>,
    value: ValueId,
    options: &Options,
) -> Option<Note> {
    let (from, to) = (flow.kind(value), flow.kind(second.node.outputs[0]));
    if from.dims() != to.dims() || from.image().is_none() {
        return None;
    }
    let same_extents = |map: &Map<'_>| {
        let mut images = map
            .node
            .inputs
            .iter()
            .filter_map(|id| flow.kind(*id).image());
        images.all(|image| image.dims == to.dims())
    };
    // All that the second reads of the first moves with it.
    let offsets = second.offsets(&first.node.outputs)?;
    let mut places: Vec<[i32; 3]> = offsets.iter().map(|(offset, _)| *offset).collect();
    places.sort_unstable();
    places.dedup();
    let saved = 2 * from.bytes();
    if places.iter().all(|offset| *offset == [0; 3]) {
        return Some(Note::Chained { value, saved });
    }
    // Outside, a zero is seen, not the expression of zeros.
    let zero = |(offset, boundary): &([i32; 3], Boundary)| {
        *boundary == Boundary::Zero && *offset != [0; 3]
    };
    if !first.is_placeless() || !same_extents(first) || offsets.iter().any(zero) {
        return None;
    }
    if options.rows {
        return None;
    }
    let times = places.len();
    let again = operations(first.dag) * (times - 1) as f64 * from.elements() as f64;
    let machine = &options.machine;
    if machine.computing(again) < machine.moving(saved) {
        Some(Note::Recomputed {
            value,
            times,
            saved,
        })
    } else {
        Some(Note::Stored { value, times })
    }
}

/// Joins one pair of expressions that read a common image and do not depend on each other.
fn beside(fused: &mut Fused, options: &Options) -> bool {
    let flow = &fused.flow;
    for (b, second) in flow.nodes().iter().enumerate() {
        for (a, first) in flow.nodes()[..b].iter().enumerate() {
            let (Some(one), Some(two)) = (Map::of(first), Map::of(second)) else {
                continue;
            };
            let same = flow.kind(first.outputs[0]).dims() == flow.kind(second.outputs[0]).dims();
            let shared: u64 = first
                .inputs
                .iter()
                .filter(|id| second.inputs.contains(id) && flow.kind(**id).image().is_some())
                .map(|id| flow.kind(*id).bytes())
                .sum();
            if !same || shared == 0 || reaches(flow, a, b) {
                continue;
            }
            let joined = join(&one, &two, &first.outputs);
            if !fits(&joined, options) {
                continue;
            }
            fused.notes.push(Note::Beside { saved: shared });
            fused.flow = replace(flow, [a, b], joined);
            return true;
        }
    }
    false
}

fn fits(node: &Node, options: &Options) -> bool {
    let buffers = node.inputs.len() + node.outputs.len();
    let terms = Map::of(node).map_or(0, |map| map.dag.nodes().len());
    buffers <= options.buffers && terms <= options.terms
}

fn replace(flow: &Flow, gone: [usize; 2], new: Node) -> Flow {
    let nodes = flow.nodes().iter().enumerate();
    let mut kept: Vec<Node> = nodes
        .filter(|(at, _)| !gone.contains(at))
        .map(|(_, node)| node.clone())
        .collect();
    kept.push(new);
    flow.with_nodes(kept)
}

/// Does `to` need `from`, directly or not?
fn reaches(flow: &Flow, from: usize, to: usize) -> bool {
    let mut needed = vec![false; flow.nodes().len()];
    needed[to] = true;
    for at in (from..=to).rev() {
        if needed[at] {
            let writers = flow.nodes()[at]
                .inputs
                .iter()
                .filter_map(|id| flow.writer(*id));
            writers.for_each(|writer| needed[writer as usize] = true);
        }
    }
    needed[from]
}

/// Does `to` need `from` through some third node? Then one node cannot be both.
fn depends_otherwise(flow: &Flow, from: usize, to: usize) -> bool {
    let between = from + 1..to;
    between
        .filter(|at| reaches(flow, from, *at))
        .any(|at| reaches(flow, at, to))
}

#[cfg(test)]
mod tests;
