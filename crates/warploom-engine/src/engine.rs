//! One pass of a flow on the CPU.

use super::chain::Chain;
use super::dispatch::{self, image, image_mut};
use super::footprint::Around;
use super::pass::Pass;
use super::rows::Few;
use super::totals::Wanted;
use super::whole;
use warploom_flow::flow::{Flow, Prim};

/// A pass made ready to run in Rust, again and again.
#[derive(Debug)]
pub struct Engine {
    work: Work,
}

#[derive(Debug)]
enum Work {
    /// Where rows suffice.
    Chain(Chain),
    /// One node over neighbourhoods, which has a plan.
    Around { at: usize, around: Around },
    /// Totals, of which only some are read.
    Totals { at: usize, wanted: Wanted },
    /// One node, and which of the pass's inputs each of its own is.
    Node { at: usize, inputs: Vec<usize> },
}

impl Engine {
    /// Makes a pass of `flow` ready.
    ///
    /// # Panics
    /// When its nodes cannot share a pass.
    pub fn new(flow: &Flow, pass: &Pass) -> Self {
        let work = Chain::new(flow, pass).map_or_else(|| Work::node(flow, pass), Work::Chain);
        Self { work }
    }

    /// Runs it: bytes of the pass's inputs and outputs, each at least as long as its value says and
    /// aligned for its elements.
    ///
    /// # Panics
    /// When they are not.
    pub fn run(&self, flow: &Flow, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        self.run_over(flow, inputs, outputs, &[]);
    }

    /// The same where the first of each pair, an input, lies in the memory of the second, an output:
    /// pairs that [`Pass::in_place`] allows. The slices of such inputs are not looked at.
    ///
    /// # Panics
    /// As [`Engine::run`], and when the pass is none that may run so.
    pub fn run_over(
        &self,
        flow: &Flow,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        over: &[(usize, usize)],
    ) {
        if let Work::Chain(chain) = &self.work {
            chain.run(flow, inputs, outputs, over);
            return;
        }
        assert!(over.is_empty(), "only expressions by rows run in place");
        match &self.work {
            Work::Chain(_) => unreachable!("run above"),
            Work::Around { at, around } => {
                let node = &flow.nodes()[*at];
                let source = image(&flow.kind(node.inputs[0]), inputs[0]);
                around.run(source, image_mut(&flow.kind(node.outputs[0]), outputs[0]));
            }
            Work::Totals { at, wanted } => {
                let node = &flow.nodes()[*at];
                let source = image(&flow.kind(node.inputs[0]), inputs[0]);
                let target = image_mut(&flow.kind(node.outputs[0]), outputs[0]);
                whole::some_totals(source, target, *wanted);
            }
            Work::Node { at, inputs: places } => {
                let inputs: Few<&[u8]> = places.iter().map(|place| inputs[*place]).collect();
                dispatch::run(flow, &flow.nodes()[*at], &inputs, outputs);
            }
        }
    }
}

impl Work {
    fn node(flow: &Flow, pass: &Pass) -> Self {
        let [at] = pass.nodes[..] else {
            panic!("only nodes that go by rows share a pass");
        };
        let node = &flow.nodes()[at];
        assert_eq!(
            node.outputs, pass.outputs,
            "such a node writes all it makes"
        );
        if let Some(around) = Around::new(&node.prim, flow.kind(node.inputs[0]).dtype()) {
            return Self::Around { at, around };
        }
        if node.prim == Prim::Totals {
            let wanted = whole::wanted(flow, node.outputs[0]);
            return Self::Totals { at, wanted };
        }
        let place = |id| pass.inputs.iter().position(|input| input == id);
        let inputs = node
            .inputs
            .iter()
            .map(|id| place(id).expect("a pass lists what it reads"));
        Self::Node {
            at,
            inputs: inputs.collect(),
        }
    }
}
