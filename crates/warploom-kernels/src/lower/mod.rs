//! From an operation of the catalogue to primitives: each operation written once, like its formula.
//!
//! Parameters that change from image to image become numbers of an expression, which a kernel is
//! given when it runs; only what changes the shape of the work (radii, weights, iterations) is
//! part of a primitive.

mod binary;
mod blur;
mod boxes;
mod combine;
mod compare;
mod filter;
mod fourier;
mod geometry;
mod label;
mod lowering;
mod morphology;
mod normalize;
#[cfg(test)]
mod numbers;
#[cfg(test)]
mod plain;
mod pointwise;
mod rank;
mod recipe;
mod reduce;
mod restore;
#[cfg(test)]
mod tests;
mod threshold;

use crate::flow::{Flow, ValueId, ValueKind};
use crate::op::{Family, OpCall, ParamValue};
use lowering::Lowering;

pub use blur::{cut_gaussian, gaussian};
pub use label::ROWS;
pub use lowering::Computed;
pub use recipe::Recipe;

/// A flow of one operation: its images are the flow's inputs, its results the outputs.
pub fn lower(call: &OpCall) -> Flow {
    lower_rows(call, ROWS)
}

/// As [`lower`], with room for this many rows in tables. A table begins with the number of rows it
/// should have; when that is more, this makes the flow that has room for them.
pub fn lower_rows(call: &OpCall, rows: u64) -> Flow {
    let mut flow = Flow::new();
    let inputs = call.inputs.iter();
    let inputs: Vec<ValueId> = inputs
        .map(|image| flow.input(ValueKind::Image(*image)))
        .collect();
    for output in lower_into_rows(&mut flow, call, &inputs, rows, &[]) {
        flow.output(output);
    }
    flow
}

/// Adds an operation to a flow, reading values that are there: so do operations become chains.
///
/// # Panics
/// When `inputs` are not the images the call was checked with.
pub fn lower_into(flow: &mut Flow, call: &OpCall, inputs: &[ValueId]) -> Vec<ValueId> {
    lower_computed(flow, call, inputs, &[])
}

/// As [`lower_into`], of an operation some of whose parameters are computed in the same flow.
///
/// # Panics
/// When `inputs` are not the images the call was checked with, or `computed` not its computed
/// parameters.
pub fn lower_computed(
    flow: &mut Flow,
    call: &OpCall,
    inputs: &[ValueId],
    computed: &[Computed<'_>],
) -> Vec<ValueId> {
    let late = |name: &str| computed.iter().any(|computed| computed.param == name);
    for (name, value) in call.params.iter() {
        assert_eq!(
            *value == ParamValue::Computed,
            late(name),
            "{name} of {call}"
        );
    }
    lower_into_rows(flow, call, inputs, ROWS, computed)
}

fn lower_into_rows(
    flow: &mut Flow,
    call: &OpCall,
    inputs: &[ValueId],
    rows: u64,
    computed: &[Computed<'_>],
) -> Vec<ValueId> {
    let given: Vec<_> = inputs.iter().map(|id| flow.image(*id)).collect();
    assert_eq!(given, call.inputs, "{call} was checked with other images");
    let at = &mut Lowering::new(flow, call, inputs, rows, computed);
    let output = match call.op.family {
        Family::Pointwise => pointwise::lower(at),
        Family::Compare => compare::lower(at),
        Family::Combine => combine::lower(at),
        Family::Normalize => normalize::lower(at),
        Family::Filter => filter::lower(at),
        Family::Rank => rank::lower(at),
        Family::Morphology => morphology::lower(at),
        Family::Binary => binary::lower(at),
        Family::Threshold => threshold::lower(at),
        Family::Label => label::lower(at),
        Family::Reduce => reduce::lower(at),
        Family::Geometry => geometry::lower(at),
        Family::Fourier => fourier::lower(at),
        Family::Restore => restore::lower(at),
    };
    vec![output]
}
