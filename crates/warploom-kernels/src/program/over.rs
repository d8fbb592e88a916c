//! Results that are written over what they are made of.
//!
//! An expression that reads of an image nothing but the very pixel it makes may write its result there,
//! if nobody reads the image later. The kernel then has one buffer for both, so that no two arguments of
//! a launch ever share a byte.

use super::compile::Step;
use crate::flow::{Flow, Node, ValueId};
use crate::gpu::{self, Tuning};

/// For each value of a flow the one that is written over it, if one is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Over {
    next: Vec<Option<ValueId>>,
    /// Which values are written over another.
    taken: Vec<bool>,
    /// The steps that do.
    steps: Vec<usize>,
}

impl Over {
    pub(super) fn none(values: usize) -> Self {
        Self {
            next: vec![None; values],
            taken: vec![false; values],
            steps: Vec::new(),
        }
    }

    /// The last of all that lie where this value lies.
    pub(super) fn last(&self, mut id: ValueId) -> ValueId {
        while let Some(next) = self.next[id as usize] {
            id = next;
        }
        id
    }

    /// Has a step write `to` over `from`, if neither has a part in it so far.
    pub(super) fn add(&mut self, step: usize, from: ValueId, to: ValueId) -> bool {
        let free = self.next[from as usize].is_none() && !self.taken[to as usize];
        if free {
            self.next[from as usize] = Some(to);
            self.taken[to as usize] = true;
            self.steps.push(step);
        }
        free
    }

    /// Which of these inputs have one of these outputs written over them: places in both lists.
    pub(super) fn among(&self, inputs: &[ValueId], outputs: &[ValueId]) -> Vec<(usize, usize)> {
        let place = |id: &ValueId| outputs.iter().position(|output| output == id);
        let inputs = inputs.iter().enumerate();
        inputs
            .filter_map(|(at, id)| Some((at, place(&self.next[*id as usize]?)?)))
            .collect()
    }

    /// The steps that write something over what they read, each once and in order.
    pub(super) fn steps(&self) -> Vec<usize> {
        let mut steps = self.steps.clone();
        steps.sort_unstable();
        steps.dedup();
        steps
    }
}

/// The expression that a step is, if its result may be written over what it reads.
pub(super) fn expression<'f>(
    flow: &'f Flow,
    step: &Step,
    tuning: Option<Tuning>,
) -> Option<&'f Node> {
    let nodes = match (step, tuning) {
        (Step::Host(pass), None) => &pass.nodes,
        (Step::Launch(launch), Some(_)) => &launch.nodes,
        _ => return None,
    };
    // Of several nodes in one pass, one may read beyond the pixel that another makes.
    match nodes[..] {
        [at] => Some(&flow.nodes()[at]),
        _ => None,
    }
}

/// May a step write one value over another?
pub(super) fn allows(
    flow: &Flow,
    step: &Step,
    node: &Node,
    (from, to): (ValueId, ValueId),
) -> bool {
    match step {
        Step::Host(pass) => {
            let input = pass.inputs.iter().position(|id| *id == from);
            let output = pass.outputs.iter().position(|id| *id == to);
            let both = input.zip(output);
            both.is_some_and(|(input, output)| pass.in_place(flow, input, output))
        }
        Step::Launch(_) => flow.in_place(node, from, to),
    }
}

/// A step with one buffer for what is written over another value.
pub(super) fn replanned(flow: &Flow, step: &mut Step, over: &Over, tuning: Option<Tuning>) {
    let (Step::Launch(launch), Some(tuning)) = (step, tuning) else {
        // On the processor the engine is told when it runs.
        return;
    };
    let [at] = launch.nodes[..] else {
        return;
    };
    let node = &flow.nodes()[at];
    let pairs = over.among(&node.inputs, &node.outputs).into_iter();
    let pairs: Vec<(ValueId, ValueId)> = pairs
        .map(|(input, output)| (node.inputs[input], node.outputs[output]))
        .collect();
    let plan = gpu::plan_over(flow, node, &pairs, &tuning);
    let own = plan.and_then(|plan| plan.launches.into_iter().next());
    let own = own.expect("what is launched is launched with fewer buffers too");
    *launch = gpu::Launch {
        nodes: vec![at],
        ..own
    };
}
