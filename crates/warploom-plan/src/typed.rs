//! Every operation checked against the images it really gets.

use warploom_core::Coded as _;
use warploom_core::DType;
use warploom_kernels::ImageType;
use warploom_kernels::op::{self, Given, OpCall, OpError, Params, ValueType};

use crate::diagnostic::{Diagnostic, Problem};
use crate::pipeline::{Argument, DTypePolicy, OpUse, Pipeline, Step, Whereabouts};
use crate::resolve::{Graph, Late, Op, Ref};
use crate::sources::{Record, Sources};
use warploom_core::nearest;

/// A number that is computed by an earlier operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LateParam {
    pub(crate) param: String,
    pub(crate) from: Ref,
    pub(crate) index: u32,
}

/// Who says where an operation runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AskedBy {
    /// Its step, or it itself in a chain.
    Step,
    /// The pipeline, for all steps that do not say it.
    Pipeline,
    Nobody,
}

/// Where an operation is asked to run: what it says itself counts before what its step says, and
/// that before what the pipeline says.
pub(crate) fn said<'p>(
    pipeline: &'p Pipeline,
    step: &'p Step,
    used: &'p OpUse,
) -> (&'p Whereabouts, AskedBy) {
    let own = [&used.whereabouts, &step.whereabouts];
    match own.into_iter().find(|said| !said.is_silent()) {
        Some(own) => (own, AskedBy::Step),
        None if pipeline.whereabouts.is_silent() => (&pipeline.whereabouts, AskedBy::Nobody),
        None => (&pipeline.whereabouts, AskedBy::Pipeline),
    }
}

/// An operation with its types. Positions of [`Ref::Op`] are those in [`Typed::ops`].
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TypedOp<'p> {
    pub(crate) name: String,
    pub(crate) step: &'p Step,
    /// Where it is asked to run, and by whom.
    pub(crate) whereabouts: &'p Whereabouts,
    pub(crate) asked_by: AskedBy,
    pub(crate) call: OpCall,
    pub(crate) reads: Vec<Ref>,
    pub(crate) late: Vec<LateParam>,
}

/// A graph whose every value has a type.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Typed<'p> {
    pub(crate) channel: Option<String>,
    pub(crate) inputs: Vec<(String, Option<String>, ImageType)>,
    pub(crate) constants: Vec<(String, ImageType)>,
    pub(crate) ops: Vec<TypedOp<'p>>,
    /// Value, file, and the step's name.
    pub(crate) outputs: Vec<(Ref, String, String)>,
}

impl Typed<'_> {
    /// What a value is.
    pub(crate) fn value(&self, of: Ref) -> ValueType {
        match of {
            Ref::Input(at) => ValueType::Image(self.inputs[at].2),
            Ref::Constant(at) => ValueType::Image(self.constants[at].1),
            Ref::Op(at) => self.ops[at].call.output().clone(),
        }
    }

    /// Without operations whose results nothing that is written depends on: nobody runs them.
    pub(crate) fn of_use(mut self) -> Self {
        let mut used = vec![false; self.ops.len()];
        let use_it = |used: &mut [bool], of: &Ref| {
            if let Ref::Op(at) = of {
                used[*at] = true;
            }
        };
        for (of, _, _) in &self.outputs {
            use_it(&mut used, of);
        }
        // Operations come after what they read.
        for (at, op) in self.ops.iter().enumerate().rev() {
            if used[at] {
                let late = op.late.iter().map(|late| &late.from);
                for of in op.reads.iter().chain(late) {
                    use_it(&mut used, of);
                }
            }
        }
        let mut places = Vec::with_capacity(used.len());
        let mut next = 0;
        for used in &used {
            places.push(next);
            next += usize::from(*used);
        }
        let moved = |of: &mut Ref| {
            if let Ref::Op(at) = of {
                *at = places[*at];
            }
        };
        let mut flags = used.iter();
        self.ops.retain(|_| flags.next().is_some_and(|used| *used));
        for op in &mut self.ops {
            op.reads.iter_mut().for_each(moved);
            op.late.iter_mut().for_each(|late| moved(&mut late.from));
        }
        self.outputs.iter_mut().for_each(|(of, _, _)| moved(of));
        self
    }

    /// What people call a value.
    pub(crate) fn name(&self, of: Ref) -> &str {
        match of {
            Ref::Input(at) => &self.inputs[at].0,
            Ref::Constant(at) => &self.constants[at].0,
            Ref::Op(at) => &self.ops[at].name,
        }
    }
}

/// Types a graph; `None` when something in it has no type, which `findings` then tells.
pub(crate) fn check<'p>(
    pipeline: &'p Pipeline,
    graph: &Graph<'p>,
    sources: &Sources,
    findings: &mut Vec<Diagnostic>,
) -> Option<Typed<'p>> {
    let record = sources.record.image();
    let whole = std::iter::once(&record).chain(sources.constants.values());
    for image in whole {
        if !countable(image) {
            let message = format!("images of {image} have more bytes than can be counted");
            let finding = Diagnostic::error(Problem::RecordMismatch, message);
            findings.push(finding.help("take images apart before, or correct the extents"));
            return None;
        }
    }
    let (unit, _) = sources.record.unit(pipeline.foreach);
    let inputs = graph.inputs.iter();
    let constants = constants(pipeline, sources, findings);
    let mut typed = Typed {
        channel: graph.channel.clone(),
        inputs: inputs
            .map(|(name, channel)| (name.clone(), channel.clone(), unit))
            .collect(),
        constants: constants?,
        ops: Vec::new(),
        outputs: Vec::new(),
    };
    if record.pixels() == 0 {
        let Record { dims, .. } = sources.record;
        let message = format!("the records have no pixels: their extents are {dims:?}");
        let finding = Diagnostic::error(Problem::RecordMismatch, message);
        findings.push(finding.help("leave such records out, or correct the extents"));
        return None;
    }
    // Where each operation of the graph went; nowhere when it has no type.
    let mut places: Vec<Option<Ref>> = Vec::new();
    let mut whole = true;
    for op in &graph.ops {
        let moved = |of: &Ref| match of {
            Ref::Op(at) => places[*at],
            other => Some(*other),
        };
        let reads: Option<Vec<Ref>> = op.reads.iter().map(moved).collect();
        let late: Option<Vec<Ref>> = op.late.iter().map(|late| moved(&late.from)).collect();
        // What depends on something wrong is not told to be wrong itself.
        let result = match (reads, late) {
            (Some(reads), Some(late)) => one(pipeline, &mut typed, op, reads, &late, findings),
            _ => None,
        };
        whole &= result.is_some();
        places.push(result);
    }
    let given = |of: &Ref| match of {
        Ref::Op(at) => places[*at],
        other => Some(*other),
    };
    for (step, of) in &graph.passed {
        let value = given(of).map(|of| typed.value(of));
        let asked = step.dtype.unwrap_or(pipeline.dtype);
        if let (Some(ValueType::Image(image)), DTypePolicy::Fixed(dtype)) = (value, asked)
            && image.dtype != dtype
        {
            findings.push(kept(graph, step, image.dtype, dtype));
        }
    }
    for (of, write, name) in &graph.outputs {
        let Some(of) = given(of) else {
            continue;
        };
        typed.outputs.push((of, write.value.clone(), name.clone()));
    }
    whole.then_some(typed)
}

/// Tells that an image that is passed on keeps its element type.
fn kept(graph: &Graph<'_>, step: &Step, is: DType, asked: DType) -> Diagnostic {
    let channel = graph.channel.as_deref().unwrap_or("this");
    let message = format!(
        "step `{}` passes channel {channel} on as it is, in {is}: `dtype = \"{asked}\"` is of what operations give",
        step.name
    );
    let finding = Diagnostic::warning(Problem::Unused, message);
    let finding = finding.step(&step.name.value).at(step.place());
    finding.help(format!(
        "write `[{{ op = \"cast\", type = \"{asked}\" }}]` for this channel"
    ))
}

/// Tells that a step whose result is no image has an element type.
fn no_pixels(op: &Op<'_>, value: &ValueType) -> Option<Diagnostic> {
    let asked = op.step.dtype.filter(|_| op.last)?;
    if value.image().is_some() || asked == DTypePolicy::Operation {
        return None;
    }
    let message = format!(
        "step `{}` gives {value}: its `dtype` changes nothing, as it is of images",
        op.step.name
    );
    let finding = Diagnostic::warning(Problem::Unused, message);
    let finding = finding.step(&op.step.name.value).at(op.step.place());
    Some(finding.help("remove it from this step"))
}

/// Do the bytes of an image, and sums of many such, fit a number?
fn countable(image: &ImageType) -> bool {
    let bytes = image.dtype.bytes();
    let all = image
        .dims
        .iter()
        .try_fold(bytes, |all, extent| all.checked_mul(*extent));
    all.is_some_and(|all| all < 1 << 48)
}

fn constants(
    pipeline: &Pipeline,
    sources: &Sources,
    findings: &mut Vec<Diagnostic>,
) -> Option<Vec<(String, ImageType)>> {
    let mut constants = Vec::new();
    for constant in &pipeline.constants {
        let name = &constant.name.value;
        if let Some(image) = sources.constants.get(name) {
            constants.push((name.clone(), *image));
        } else {
            let message = format!("the type of constant `{name}` is not known");
            let finding = Diagnostic::error(Problem::RecordMismatch, message);
            let help = format!("`{}` must be an image that can be read", constant.path);
            findings.push(finding.at(constant.path.place).help(help));
        }
    }
    (constants.len() == pipeline.constants.len()).then_some(constants)
}

/// What an operation is given in the file.
pub(crate) fn given(op: &Op<'_>) -> Given {
    let mut given = Given::new();
    for (name, argument) in &op.used.arguments {
        if let Argument::Given(value) = &argument.value {
            given = given.with(&name.value, value.clone());
        }
    }
    given
}

/// Types one operation and adds it, with a cast where the policy asks for another element type.
fn one<'p>(
    pipeline: &'p Pipeline,
    typed: &mut Typed<'p>,
    op: &Op<'p>,
    reads: Vec<Ref>,
    late: &[Ref],
    findings: &mut Vec<Diagnostic>,
) -> Option<Ref> {
    let before = findings.len();
    let mut images = Vec::new();
    for (at, read) in reads.iter().enumerate() {
        match typed.value(*read) {
            ValueType::Image(image) => images.push(image),
            other => {
                let message = format!(
                    "step `{}` reads `{}`, which is no image: {other}",
                    op.name,
                    typed.name(*read)
                );
                let finding = Diagnostic::error(Problem::WrongValue, message);
                let help = "use numbers as a parameter, `{ from = \"...\", item = ... }`, and write tables with an `[[output]]`";
                let place = op.places.get(at).copied().flatten();
                findings.push(finding.step(&op.name).at(place).help(help));
            }
        }
    }
    let late: Vec<Option<LateParam>> = op
        .late
        .iter()
        .zip(late)
        .map(|(late, from)| self::late(typed, op, late, *from, findings))
        .collect();
    if findings.len() > before {
        return None;
    }
    let late: Vec<LateParam> = late.into_iter().flatten().collect();
    let given = given(op);
    let computed: Vec<&str> = late.iter().map(|late| late.param.as_str()).collect();
    let call = op::find(&op.used.op.value).and_then(|info| {
        let params = Params::read_with(info, &given, &computed)?;
        OpCall::with(info, params, &images)
    });
    let call = match call {
        Ok(call) => call,
        Err(error) => {
            findings.push(refusal(op, &error, &images));
            return None;
        }
    };
    findings.extend(no_pixels(op, call.output()));
    let wanted = wanted(pipeline, op, &call);
    let image = call.output().image();
    let (whereabouts, asked_by) = said(pipeline, op.step, op.used);
    typed.ops.push(TypedOp {
        name: op.name.clone(),
        step: op.step,
        whereabouts,
        asked_by,
        call,
        reads,
        late,
    });
    let mut result = Ref::Op(typed.ops.len() - 1);
    if let (Some(dtype), Some(image)) = (wanted, image)
        && image.dtype != dtype
    {
        let params = Given::new().with("type", dtype.to_string().as_str());
        let call = OpCall::new("cast", &params, &[image]);
        let call = call.expect("every image can be cast to every element type");
        typed.ops.push(TypedOp {
            name: format!("{}.cast", op.name),
            step: op.step,
            whereabouts,
            asked_by,
            call,
            reads: vec![result],
            late: Vec::new(),
        });
        result = Ref::Op(typed.ops.len() - 1);
    }
    Some(result)
}

/// The element type a step's result should have, if it is not the operation's.
fn wanted(pipeline: &Pipeline, op: &Op<'_>, call: &OpCall) -> Option<DType> {
    if !op.last {
        return None;
    }
    match op.step.dtype.unwrap_or(pipeline.dtype) {
        DTypePolicy::Operation => None,
        DTypePolicy::Input => Some(call.image().dtype),
        DTypePolicy::Fixed(dtype) => Some(dtype),
    }
}

/// Refuses a parameter that cannot be computed by a step.
pub(crate) fn not_late(op: &Op<'_>, late: &Late<'_>) -> Option<Diagnostic> {
    let param = late.param.value.as_str();
    let info = op::find(&op.used.op.value).ok();
    if let Some(info) = info
        && info.param(param).is_some()
        && !info.computable().contains(&param)
    {
        let message = format!(
            "parameter `{param}` of {} must be known before anything runs",
            info.name
        );
        let finding = Diagnostic::error(Problem::NotLate, message);
        let help = match info.computable() {
            [] => format!("no parameter of {} can be computed by a step", info.name),
            some => format!("those that can be computed by a step: {}", some.join(", ")),
        };
        let finding = finding.step(&op.name).at(late.param.place);
        return Some(finding.help(help));
    }
    None
}

fn late(
    typed: &Typed<'_>,
    op: &Op<'_>,
    late: &Late<'_>,
    from: Ref,
    findings: &mut Vec<Diagnostic>,
) -> Option<LateParam> {
    if let Some(finding) = not_late(op, late) {
        findings.push(finding);
        return None;
    }
    let param = late.param.value.as_str();
    let value = typed.value(from);
    let ValueType::Scalars { count, names } = &value else {
        let message = format!(
            "`{}` gives no numbers for parameter `{param}` of step `{}`, but {value}",
            typed.name(from),
            op.name
        );
        let finding = Diagnostic::error(Problem::WrongValue, message);
        let help = "name a step that gives numbers, such as `totals` or `percentiles`";
        let finding = finding.step(&op.name).at(late.item.place);
        findings.push(finding.help(help));
        return None;
    };
    let item = late.item.value.as_str();
    let named = names.iter().position(|name| *name == item);
    let index = named.map(|at| at as u64).or_else(|| item.parse().ok());
    if let Some(index) = index.filter(|index| index < count) {
        Some(LateParam {
            param: param.to_owned(),
            from,
            index: u32::try_from(index).ok()?,
        })
    } else {
        let message = format!("`{}` has no number `{item}`", typed.name(from));
        let finding = Diagnostic::error(Problem::NoItem, message);
        let help = match nearest(item, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => format!("it gives {count}: 0 to {}", count - 1),
            None => format!("it gives {}", names.join(", ")),
        };
        let finding = finding.step(&op.name).at(late.item.place);
        findings.push(finding.help(help));
        None
    }
}

/// An operation's own refusal, at the place it is about.
pub(crate) fn refusal(op: &Op<'_>, error: &OpError, images: &[ImageType]) -> Diagnostic {
    let argument = |name: &str| {
        let mut arguments = op.used.arguments.iter();
        arguments.find(|(param, _)| param.value == name)
    };
    let place = match error {
        OpError::UnknownParam { name, .. } => argument(name).and_then(|(param, _)| param.place),
        OpError::RepeatedParam { name, .. } | OpError::BadValue { name, .. } => {
            argument(name).and_then(|(_, value)| value.place)
        }
        _ => None,
    };
    let place = place.or(op.used.op.place);
    let texts: Vec<String> = images.iter().map(ToString::to_string).collect();
    let finding = Diagnostic::error(error.code(), format!("step `{}`: {error}", op.name));
    let finding = finding.step(&op.name).at(place).maybe_help(error.help());
    if texts.is_empty() {
        finding
    } else {
        finding.note(format!("it reads {}", texts.join(" and ")))
    }
}
