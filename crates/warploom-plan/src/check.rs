//! What can be said of a pipeline where nobody has looked for devices, and where records may not be
//! known either: for editors, and for machines that will never run it.

use warploom_core::nearest;
use warploom_kernels::op::{self, Gives, OpError, OpInfo, Params, ScalarRule};

use crate::channel::of_branches;
use crate::compile::{ordered, typed};
use crate::diagnostic::{Diagnostic, Problem, merge};
use crate::output;
use crate::pipeline::Pipeline;
use crate::resolve::{Graph, Late, Op, Ref, resolve};
use crate::sources::Sources;
use crate::target;
use crate::typed::{given, not_late, refusal};

/// Tells everything that is wrong with a pipeline on every machine: names, circles, operations and
/// their parameters, files of results, names of memory and backends; with `sources`, types as well.
/// Errors come first, then warnings; a pipeline without errors may still ask for devices that are
/// not there, or not fit, which [`compile`](crate::compile()) tells.
///
/// ```
/// use warploom_plan::{Pipeline, check};
///
/// let pipeline = Pipeline::from_toml("[[step]]\nop = \"gaussian\"\nsigma = -2")?;
/// assert_eq!(check(&pipeline, None)[0].code.to_string(), "WL0606");
/// # Ok::<(), Vec<warploom_plan::Diagnostic>>(())
/// ```
pub fn check(pipeline: &Pipeline, sources: Option<&Sources>) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    if let Some(sources) = sources {
        typed(pipeline, sources, &mut findings);
    } else {
        let graphs = resolve(pipeline, None, &mut findings);
        output::check(pipeline, of_branches(pipeline).len(), &mut findings);
        for graph in &graphs {
            let mut found = Vec::new();
            output::endings(graph, &mut found);
            untyped(pipeline, graph, &mut found);
            merge(&mut findings, found);
        }
    }
    target::names(pipeline, None, false, &mut findings);
    ordered(findings)
}

/// What of a graph is wrong whatever its images are.
fn untyped(pipeline: &Pipeline, graph: &Graph<'_>, findings: &mut Vec<Diagnostic>) {
    let infos = graph.ops.iter().map(|op| op::find(&op.used.op.value).ok());
    let infos: Vec<Option<&OpInfo>> = infos.collect();
    let gives = |of: Ref| match of {
        Ref::Op(at) => infos[at].map(|info| info.gives),
        _ => None,
    };
    let name = |of: Ref| match of {
        Ref::Op(at) => graph.ops[at].name.as_str(),
        Ref::Input(at) => graph.inputs[at].0.as_str(),
        Ref::Constant(at) => pipeline.constants[at].name.value.as_str(),
    };
    for op in &graph.ops {
        let before = findings.len();
        for (read, place) in op.reads.iter().zip(&op.places) {
            let what = match gives(*read) {
                Some(Gives::Scalars(_)) => "it gives numbers",
                Some(Gives::Table(_)) => "it gives a table",
                _ => continue,
            };
            let message = format!(
                "step `{}` reads `{}`, which is no image: {what}",
                op.name,
                name(*read)
            );
            let finding = Diagnostic::error(Problem::WrongValue, message);
            let help = "use numbers as a parameter, `{ from = \"...\", item = ... }`, and write tables with an `[[output]]`";
            let place = place.or_else(|| op.step.place());
            findings.push(finding.step(&op.name).at(place).help(help));
        }
        for late in &op.late {
            let source = (name(late.from), gives(late.from));
            findings.extend(not_late(op, late).or_else(|| wrong_source(op, late, source)));
        }
        if findings.len() == before
            && let Err(error) = call(op)
        {
            findings.push(refusal(op, &error, &[]));
        }
    }
}

/// An operation with its parameters and so many images of any kind.
fn call(op: &Op<'_>) -> Result<(), OpError> {
    let info = op::find(&op.used.op.value)?;
    let computed: Vec<&str> = op.late.iter().map(|l| l.param.value.as_str()).collect();
    Params::read_with(info, &given(op), &computed)?;
    let (least, most) = info.input_count();
    let count = op.reads.len();
    if (least..=most).contains(&count) {
        Ok(())
    } else {
        Err(OpError::InputCount {
            op: info,
            given: count,
        })
    }
}

/// Refuses a number of what gives no numbers, or none of that name.
fn wrong_source(
    op: &Op<'_>,
    late: &Late<'_>,
    (name, gives): (&str, Option<Gives>),
) -> Option<Diagnostic> {
    let finding = match gives {
        Some(Gives::Scalars(ScalarRule::Named(names))) => {
            let item = late.item.value.as_str();
            let index = item.parse::<usize>().ok();
            if names.contains(&item) || index.is_some_and(|index| index < names.len()) {
                return None;
            }
            let message = format!("`{name}` has no number `{item}`");
            let help = match nearest(item, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it gives {}", names.join(", ")),
            };
            Diagnostic::error(Problem::NoItem, message).help(help)
        }
        // How many there are may depend on the images, and what an unknown operation gives is open.
        Some(Gives::Scalars(_)) => return None,
        None if matches!(late.from, Ref::Op(_)) => return None,
        Some(Gives::Table(_)) => no_numbers(op, late, name, "a table"),
        Some(Gives::Image { .. }) | None => no_numbers(op, late, name, "an image"),
    };
    Some(finding.step(&op.name).at(late.item.place))
}

fn no_numbers(op: &Op<'_>, late: &Late<'_>, name: &str, what: &str) -> Diagnostic {
    let message = format!(
        "`{name}` gives no numbers for parameter `{}` of step `{}`, but {what}",
        late.param, op.name
    );
    let finding = Diagnostic::error(Problem::WrongValue, message);
    finding.help("name a step that gives numbers, such as `totals` or `percentiles`")
}
