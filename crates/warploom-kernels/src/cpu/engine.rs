//! One node of a flow on the CPU.

use crate::flow::Flow;

/// A node made ready to run in Rust, again and again.
#[derive(Debug)]
pub struct Engine {
    node: usize,
}

impl Engine {
    /// Makes node `at` of `flow` ready.
    pub fn new(_flow: &Flow, at: usize) -> Self {
        Self { node: at }
    }

    /// Runs it: bytes of the inputs and of the outputs, in the node's order, each at least as long
    /// as its value says and aligned for its elements.
    ///
    /// # Panics
    /// When they are not.
    pub fn run(&self, flow: &Flow, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        super::dispatch::run(flow, &flow.nodes()[self.node], inputs, outputs);
    }
}
