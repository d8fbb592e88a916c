//! One node of a flow on the CPU.

use super::chain::Chain;
use warploom_flow::flow::Flow;

/// A node made ready to run in Rust, again and again.
#[derive(Debug)]
pub struct Engine {
    node: usize,
    /// Where rows suffice.
    chain: Option<Chain>,
}

impl Engine {
    /// Makes node `at` of `flow` ready.
    pub fn new(flow: &Flow, at: usize) -> Self {
        let node = &flow.nodes()[at];
        // A chain leaves out results that nobody reads, and takes no input twice.
        let plain = |chain: &Chain| {
            chain.outputs() == node.outputs && chain.inputs().eq(node.inputs.iter().copied())
        };
        Self {
            node: at,
            chain: Chain::new(flow, &[at]).filter(plain),
        }
    }

    /// Runs it: bytes of the inputs and of the outputs, in the node's order, each at least as long
    /// as its value says and aligned for its elements.
    ///
    /// # Panics
    /// When they are not.
    pub fn run(&self, flow: &Flow, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        match &self.chain {
            Some(chain) => chain.run(flow, inputs, outputs),
            None => super::dispatch::run(flow, &flow.nodes()[self.node], inputs, outputs),
        }
    }
}
