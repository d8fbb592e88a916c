//! From a plan's data back to flows, which programs are made of: whoever runs a plan needs nothing
//! else.

use std::collections::BTreeMap;

use warploom_core::DeviceInfo;
use warploom_kernels::flow::{Flow, ValueId, ValueKind};
use warploom_kernels::lower::{Computed, lower_computed};
use warploom_kernels::op::{Given, OpCall, OpError, Params, find};
use warploom_kernels::program::Program;
use warploom_kernels::{Dims, ImageType};

use super::{PlanOp, PlanValue, Variant};
use crate::diagnostic::{Diagnostic, Problem};

impl Variant {
    /// A value by its name.
    pub fn value(&self, name: &str) -> Option<&PlanValue> {
        self.values.iter().find(|value| value.name == name)
    }

    /// The flow of a step (from 0), its inputs in the order of
    /// [`PlanStep::reads`](super::PlanStep::reads), its outputs in that of
    /// [`PlanStep::gives`](super::PlanStep::gives). [`Variant::program`] makes of it, for the step's
    /// device, the program whose passes and scratch the plan counted.
    ///
    /// With `tile`, the extents of what one tile reads, the flow of a step that goes over tiles.
    ///
    /// # Errors
    /// When the plan was made with another catalogue of operations.
    pub fn flow(&self, step: usize, tile: Option<Dims>) -> Result<Flow, Box<Diagnostic>> {
        let foreign = |what: String| foreign(step, &what);
        let Some(step) = self.steps.get(step) else {
            return Err(foreign("there is no such step".to_owned()));
        };
        let mut flow = Flow::new();
        let mut known: BTreeMap<&str, ValueId> = BTreeMap::new();
        for name in step.reads() {
            let Some(value) = self.value(name) else {
                return Err(foreign(format!("nothing is known of `{name}`")));
            };
            let kind = match (value.kind(), tile) {
                (ValueKind::Image(image), Some(dims)) => {
                    ValueKind::Image(ImageType { dims, ..image })
                }
                (kind, _) => kind,
            };
            known.insert(name, flow.input(kind));
        }
        for op in step.ops() {
            let result = add(&mut flow, &known, op);
            let result = result.map_err(|error| foreign(error.to_string()))?;
            let Some(result) = result else {
                return Err(foreign(format!("`{}` reads what nobody gives", op.name)));
            };
            known.insert(&op.name, result);
        }
        for name in step.gives() {
            let Some(id) = known.get(name.as_str()) else {
                return Err(foreign(format!("nobody gives `{name}`")));
            };
            flow.output(*id);
        }
        Ok(flow)
    }
}

impl Variant {
    /// The program of a step (from 0) on its device, whose `info` this is: that of
    /// [`Variant::flow`], with results written over values where the plan says so.
    ///
    /// # Errors
    /// As [`Variant::flow`], and when the program cannot do that.
    pub fn program(
        &self,
        step: usize,
        tile: Option<Dims>,
        info: &DeviceInfo,
    ) -> Result<Program, Box<Diagnostic>> {
        let program = Program::new(&self.flow(step, tile)?, info);
        let done = &self.steps[step];
        let place = |names: &[String], name: &str| names.iter().position(|other| other == name);
        let pairs = done.in_place().iter().map(|pair| {
            let input = place(done.reads(), &pair.over)?;
            Some((input, place(done.gives(), &pair.value)?))
        });
        let pairs: Option<Vec<(usize, usize)>> = pairs.collect();
        let program = pairs.and_then(|pairs| program.replacing(&pairs));
        program.ok_or_else(|| foreign(step, "it cannot work in place"))
    }
}

/// Tells that a step is of another catalogue of operations.
fn foreign(step: usize, what: &str) -> Box<Diagnostic> {
    let message = format!("step {} cannot be made into a program: {what}", step + 1);
    let finding = Diagnostic::error(Problem::PlanVersion, message);
    Box::new(finding.help("compile the pipeline again"))
}

/// Lowers one operation; `None` when it reads what is not there.
fn add(
    flow: &mut Flow,
    known: &BTreeMap<&str, ValueId>,
    op: &PlanOp,
) -> Result<Option<ValueId>, OpError> {
    let value = |name: &String| known.get(name.as_str()).copied();
    let reads: Option<Vec<ValueId>> = op.reads.iter().map(value).collect();
    let computed: Option<Vec<Computed<'_>>> = op
        .computed
        .iter()
        .map(|computed| {
            Some(Computed {
                param: &computed.param,
                list: value(&computed.from)?,
                index: computed.index,
            })
        })
        .collect();
    let (Some(reads), Some(computed)) = (reads, computed) else {
        return Ok(None);
    };
    let info = find(&op.op)?;
    let mut given = Given::new();
    for (name, text) in &op.params {
        given = given.with(name, text.as_str());
    }
    let late: Vec<&str> = computed.iter().map(|computed| computed.param).collect();
    let params = Params::read_with(info, &given, &late)?;
    let images = reads.iter().map(|id| flow.kind(*id).image());
    let Some(images) = images.collect::<Option<Vec<ImageType>>>() else {
        return Ok(None);
    };
    let call = OpCall::with(info, params, &images)?;
    Ok(lower_computed(flow, &call, &reads, &computed)
        .first()
        .copied())
}
