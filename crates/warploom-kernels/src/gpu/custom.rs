//! Operations that somebody else wrote, in a device's own language.

use std::any::Any;

use thiserror::Error;

use crate::flow::{
    Custom, CustomInput, CustomOp, CustomOutput, Flow, Node, Number, Prim, ValueId, ValueKind,
};
use crate::kernel::{Access, BufferDecl, KernelDef, ScalarDecl, Target};

use super::launch::{Args, Plan};
use super::tuning::Tuning;

/// The function that computes an operation on the processor.
type Reference = dyn Fn(&[CustomInput<'_>], &mut [CustomOutput<'_>]) + Send + Sync;

/// An operation given as source, in as many languages as its author likes, and once in Rust.
///
/// The processor runs the Rust function. A device runs the source in its language; without one, the
/// program copies to the host, runs the Rust function and copies back, which
/// [`Program::detours`](crate::program::Program::detours) tells.
///
/// A kernel has the operation's name and these parameters, in order: the elements of each input, the
/// elements of each output, the extents `nz`, `ny`, `nx` of each of them as `int`, then the
/// operation's numbers. It runs for every pixel of the first output, x being the work item's first
/// axis and z its third; groups are whole, so items beyond the extents must do nothing. In WGSL
/// elements are bound one after the other from 0 on as `array<u32>` or `array<f32>`, small ones
/// packed into words, and the numbers follow as one uniform struct.
pub struct SourceOp {
    name: String,
    group: [u32; 3],
    numbers: Vec<Number>,
    sources: Vec<(Target, String)>,
    reference: Box<Reference>,
}

/// Why there is no such operation.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SourceOpError {
    /// It could not be the name of a function.
    #[error(
        "`{name}` cannot be an operation's name, because its kernels are functions of that name: letters, digits and `_`, no digit first"
    )]
    Name {
        /// What was given.
        name: String,
    },
    /// No device has such groups.
    #[error(
        "operation `{name}` asks for work groups of {} x {} x {} items, but a group has 1 to 1024",
        .group[0], .group[1], .group[2]
    )]
    Group {
        /// The operation.
        name: String,
        /// What was given.
        group: [u32; 3],
    },
    /// The source does not have the function.
    #[error("the {} source of operation `{name}` has no function `{name}`", .target.language())]
    NoFunction {
        /// The operation.
        name: String,
        /// The language.
        target: Target,
    },
}

impl std::fmt::Debug for SourceOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let languages: Vec<Target> = self.sources.iter().map(|(target, _)| *target).collect();
        f.debug_struct("SourceOp")
            .field("name", &self.name)
            .field("group", &self.group)
            .field("numbers", &self.numbers)
            .field("languages", &languages)
            .finish_non_exhaustive()
    }
}

impl SourceOp {
    /// An operation that so far only the processor knows. `group` is the work group of its kernels,
    /// in x, y, z.
    ///
    /// # Errors
    /// When the name is none a function could have, or no device has such groups.
    pub fn new(
        name: &str,
        group: [u32; 3],
        reference: impl Fn(&[CustomInput<'_>], &mut [CustomOutput<'_>]) + Send + Sync + 'static,
    ) -> Result<Self, SourceOpError> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let digit = name.starts_with(|c: char| c.is_ascii_digit());
        if name.is_empty() || digit || !name.chars().all(is_word) {
            return Err(SourceOpError::Name { name: name.into() });
        }
        let items = group.iter().try_fold(1_u32, |all, n| all.checked_mul(*n));
        if !items.is_some_and(|items| (1..=1024).contains(&items)) {
            let name = name.into();
            return Err(SourceOpError::Group { name, group });
        }
        Ok(Self {
            name: name.into(),
            group,
            numbers: Vec::new(),
            sources: Vec::new(),
            reference: Box::new(reference),
        })
    }

    /// With numbers that its kernels get behind the extents. The Rust function knows them already.
    #[must_use]
    pub fn with_numbers(mut self, numbers: &[Number]) -> Self {
        self.numbers = numbers.to_vec();
        self
    }

    /// With a source in WGSL, which cannot reach beyond its elements.
    ///
    /// # Errors
    /// When it has no function of the operation's name.
    pub fn with_wgsl(self, text: &str) -> Result<Self, SourceOpError> {
        self.with(Target::Wgsl, text)
    }

    /// With a source in OpenCL C or CUDA C, on the caller's word.
    ///
    /// # Errors
    /// When it has no function of the operation's name.
    ///
    /// # Safety
    /// The function has the parameters that the [type's](Self) text lists, and for all values that
    /// the operation is added to a flow with, it touches only elements within the extents it is
    /// given, writes only to outputs, and ends.
    #[expect(
        unsafe_code,
        reason = "C can reach anywhere, so whoever wrote it says that it does not"
    )]
    pub unsafe fn with_c(self, target: Target, text: &str) -> Result<Self, SourceOpError> {
        self.with(target, text)
    }

    fn with(mut self, target: Target, text: &str) -> Result<Self, SourceOpError> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !text.split(|c| !is_word(c)).any(|word| word == self.name) {
            let name = self.name;
            return Err(SourceOpError::NoFunction { name, target });
        }
        self.sources.retain(|(other, _)| *other != target);
        self.sources.push((target, text.to_owned()));
        Ok(self)
    }

    /// Adds the operation to a flow; what comes out is said in `gives`.
    pub fn add(self, flow: &mut Flow, inputs: &[ValueId], gives: ValueKind) -> ValueId {
        flow.add(Prim::Custom(Custom::new(self)), inputs, gives)
    }
}

impl CustomOp for SourceOp {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, inputs: &[CustomInput<'_>], outputs: &mut [CustomOutput<'_>]) {
        (self.reference)(inputs, outputs);
    }
}

/// One launch, if there is a source in the device's language.
pub(super) fn plan(flow: &Flow, node: &Node, custom: &Custom, tuning: &Tuning) -> Option<Plan> {
    let op: &dyn Any = custom.op();
    let op: &SourceOp = op.downcast_ref()?;
    let (_, text) = op.sources.iter().find(|it| it.0 == tuning.target)?;
    let mut args = Args::new();
    let mut buffers = Vec::new();
    let inputs = node.inputs.iter().map(|id| (*id, "in", Access::Read));
    let outputs = node.outputs.iter().map(|id| (*id, "out", Access::Write));
    let values: Vec<_> = inputs.chain(outputs).collect();
    for (at, (id, name, access)) in values.iter().enumerate() {
        buffers.push(BufferDecl {
            name: format!("{name}{at}"),
            dtype: flow.kind(*id).dtype(),
            access: *access,
            atomic: false,
        });
        args = args.value(*id);
    }
    let extents = values.iter().map(|(id, ..)| flow.kind(*id));
    args = extents.fold(args, Args::dims);
    args = op.numbers.iter().fold(args, |args, n| args.number(*n));
    let extents = (0..3 * values.len()).map(|_| crate::expr::Ty::I32);
    let numbers = op.numbers.iter().map(|number| number.ty());
    let scalars = extents.chain(numbers).enumerate().map(|(at, ty)| {
        let name = format!("p{at}");
        ScalarDecl { name, ty }
    });
    let def = KernelDef {
        name: op.name.clone(),
        buffers,
        scalars: scalars.collect(),
        arrays: Vec::new(),
        group: op.group,
        nodes: Vec::new(),
        body: Vec::new(),
        written: Some(text.clone()),
    };
    let [z, y, x] = flow.kind(node.outputs[0]).dims();
    let mut plan = Plan::default();
    plan.launch(def, [x, y, z], args);
    Some(plan)
}
