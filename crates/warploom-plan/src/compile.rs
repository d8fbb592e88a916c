//! From a pipeline to a plan, or to every reason why there is none.

use std::collections::BTreeMap;

use warploom_core::Status;
use warploom_kernels::ImageType;
use warploom_kernels::flow::ValueKind;

use crate::chain::Expected;
use crate::diagnostic::{Diagnostic, Problem, Severity, merge, shortened};
use crate::draft::{Draft, info};
use crate::options::Options;
use crate::output;
use crate::pipeline::Pipeline;
use crate::place::Placing;
use crate::plan::{
    Estimate, ExecutionPlan, Memory, Placed, PlanValue, Reason, Source, Units, VERSION, Variant,
};
use crate::resolve::resolve;
use crate::sources::Sources;
use crate::stack::stack;
use crate::target::{asks, names};
use crate::tile::warnings;
use crate::typed::{Typed, check};
use crate::world::World;

/// Compiles a pipeline for records of this kind on the machine that `status` describes; without
/// one, for the processor alone.
///
/// # Errors
/// Everything that is wrong, at once, in the order of the file.
pub fn compile(
    pipeline: &Pipeline,
    sources: &Sources,
    status: Option<&Status>,
    options: &Options,
) -> Result<ExecutionPlan, Vec<Diagnostic>> {
    compile_expecting(pipeline, sources, status, options, &[])
}

/// As [`compile`], of steps that must give what a type says.
pub(crate) fn compile_expecting(
    pipeline: &Pipeline,
    sources: &Sources,
    status: Option<&Status>,
    options: &Options,
    expected: &[(String, Expected)],
) -> Result<ExecutionPlan, Vec<Diagnostic>> {
    let mut findings = Vec::new();
    let typed = typed(pipeline, sources, &mut findings);
    for graph in typed.iter().flatten() {
        mistyped(graph, expected, &mut findings);
    }
    if options.budget == Some(0) || options.depth == Some(0) {
        let message = "a budget of 0 bytes, or a depth of 0 records, holds nothing";
        let finding = Diagnostic::error(Problem::BadBudget, message);
        findings.push(finding.help("give a number above 0, such as `--budget 4GiB`"));
    }
    let complete = !typed.is_empty() && typed.iter().all(Option::is_some);
    let known: Vec<Typed<'_>> = typed.into_iter().flatten().map(Typed::of_use).collect();
    names(pipeline, status, !complete, &mut findings);
    let asked = complete.then(|| asks(&known, status, &mut findings));
    let (Some(asked), false) = (asked.flatten(), any_error(&findings)) else {
        return Err(sorted(findings));
    };
    let world = World::of(status);
    let placing = Placing {
        pipeline,
        graphs: &known,
        asks: &asked,
        world: &world,
        status,
        options,
    };
    let (card, chosen, reasons) = match placing.best() {
        Ok(best) => best,
        Err(refusals) => {
            findings.extend(refusals);
            return Err(sorted(findings));
        }
    };
    findings.extend(warnings(&chosen.moved));
    Ok(placing.plan(sources, card, chosen, reasons, &findings))
}

/// A pipeline with the types that records of this kind give it: a graph for each branch, or nothing
/// where something has no type.
pub(crate) fn typed<'p>(
    pipeline: &'p Pipeline,
    sources: &Sources,
    findings: &mut Vec<Diagnostic>,
) -> Vec<Option<Typed<'p>>> {
    let graphs = resolve(pipeline, Some(&sources.record), findings);
    output::check(pipeline, sources.record.channels.len(), findings);
    let typed = graphs.iter().map(|graph| {
        let mut found = Vec::new();
        output::endings(graph, &mut found);
        let typed = check(pipeline, graph, sources, &mut found);
        merge(findings, found);
        typed
    });
    typed.collect()
}

/// Tells what is something else than its type says.
fn mistyped(graph: &Typed<'_>, expected: &[(String, Expected)], findings: &mut Vec<Diagnostic>) {
    for (name, expected) in expected {
        let ops = graph.ops.iter();
        let mut ops = ops.filter(|op| op.name == *name);
        if let Some(op) = ops.find(|op| !expected.is(op.call.output())) {
            let value = op.call.output();
            let message = format!("step `{name}` should give {expected}, and gives {value}");
            let finding = Diagnostic::error(Problem::WrongValue, message);
            let help = "the type of this step in the chain is not its operation's";
            findings.push(finding.step(name).help(help));
        }
    }
}

fn any_error(findings: &[Diagnostic]) -> bool {
    let mut findings = findings.iter();
    findings.any(|finding| finding.severity == Severity::Error)
}

fn sorted(findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    assert!(any_error(&findings), "I10: a refusal without a reason");
    ordered(findings)
}

/// Errors before warnings, each in the order of the file.
pub(crate) fn ordered(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    findings.sort_by_key(|finding| (finding.severity, finding.place));
    shortened(findings)
}

/// A variant whose images are stacked when it saw planes of stacks.
fn put_together(mut variant: Variant, planes: u64) -> Variant {
    for output in &mut variant.outputs {
        let value = variant
            .values
            .iter()
            .find(|value| value.name == output.value);
        output.planes = planes;
        if let Some(ValueKind::Image(image)) = value.map(PlanValue::kind)
            && planes > 1
            && let Ok(one) = stack(&[image])
        {
            let [_, y, x] = one.dims;
            output.whole = ImageType::stack(one.dtype, planes, y, x).to_string();
        }
    }
    variant
}

impl Placing<'_, '_> {
    /// What was chosen, written down.
    fn plan(
        &self,
        sources: &Sources,
        card: usize,
        draft: Draft,
        reasons: Vec<Reason>,
        findings: &[Diagnostic],
    ) -> ExecutionPlan {
        let (_, planes) = sources.record.unit(self.pipeline.foreach);
        let channels = sources.record.channels.len().max(1) as u64;
        // A branch runs once per channel of its own; inputs by name see all channels at once.
        let shared = self.graphs.len() > 1 || !self.pipeline.inputs.is_empty();
        let units = if shared { planes } else { planes * channels };
        let mut used: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for face in &draft.faces {
            let id = info(self.world, *face).id.to_string();
            used.entry(face.card).or_default().push(id);
        }
        let placed = |at: usize, faces: Vec<String>| {
            let card = &self.world.cards[at];
            Placed {
                name: card.name.clone(),
                key: card.ledger_key(),
                label: card.label.clone(),
                faces,
            }
        };
        let own = used.remove(&card).unwrap_or_default();
        let first = &self.graphs[0];
        let inputs = first.inputs.iter().map(|(name, channel, image)| Source {
            name: name.clone(),
            channel: channel.clone(),
            file: None,
            image: image.to_string(),
            bytes: image.bytes(),
        });
        let constants = first.constants.iter().zip(&self.pipeline.constants);
        let constants = constants.map(|((name, image), constant)| Source {
            name: name.clone(),
            channel: None,
            file: Some(constant.path.value.clone()),
            image: image.to_string(),
            bytes: image.bytes(),
        });
        let record = &sources.record;
        let record = Units {
            dtype: record.dtype,
            dims: record.dims,
            rank: record.rank,
            channels: record.channels.clone(),
            planes,
            each_channel: !shared,
        };
        ExecutionPlan {
            version: VERSION,
            hash: String::new(),
            pipeline: self.pipeline.name.value.clone(),
            foreach: self.pipeline.foreach,
            math: self.pipeline.math,
            device: placed(card, own),
            others: used
                .into_iter()
                .map(|(at, faces)| placed(at, faces))
                .collect(),
            record,
            sources: inputs.chain(constants).collect(),
            memory: Memory {
                depth: draft.depth,
                pools: draft.pools,
            },
            estimate: Estimate {
                units,
                seconds: draft.seconds * units as f64,
                paced: draft.paced.0 * units as f64,
                limit: draft.paced.1,
                measured: draft.measured,
            },
            variants: draft
                .variants
                .into_iter()
                .map(|variant| put_together(variant, planes))
                .collect(),
            reasons,
            warnings: findings.iter().map(ToString::to_string).collect(),
        }
        .sealed()
    }
}
