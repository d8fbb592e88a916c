//! What fusion means: one pair after another, from the start each time, a new flow for each. Slow, and
//! short enough to be seen to be right.

use super::super::join::{Map, join};
use super::*;

/// The nodes and notes that fusion gives, before passes are made of them.
pub(super) fn fused(flow: &Flow, options: &Options) -> (Flow, Vec<Note>) {
    let mut fused = Fused {
        flow: needed(flow),
        passes: Vec::new(),
        notes: Vec::new(),
    };
    while chain(&mut fused, options) {}
    while !options.rows && beside(&mut fused, options) {}
    (fused.flow, fused.notes)
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
