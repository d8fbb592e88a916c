//! Names become references: the steps of a pipeline as operations in an order in which they can
//! run.

use std::collections::{BTreeMap, BTreeSet};

use crate::channel::{branches, inputs, normal};
use crate::diagnostic::{Diagnostic, MOST, Place, Problem, merge};
use crate::pipeline::{Argument, At, OpUse, Pipeline, Step, Work};
use crate::sources::Record;
use crate::uses::Uses;
use warploom_core::nearest;

/// The most operations a pipeline may have: more than anybody writes, and so few that the worst of
/// them is planned or refused within a second.
pub(crate) const MAX_OPS: usize = 2_000;

/// What the one image of a record is called when nothing else is said.
pub(crate) const IMAGE: &str = "image";

/// Something an operation reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Ref {
    /// An image of the record, by position among [`Graph::inputs`].
    Input(usize),
    /// A constant, by position among the pipeline's.
    Constant(usize),
    /// What an operation gives.
    Op(usize),
}

/// A number an earlier operation computes, as a parameter.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Late<'p> {
    pub(crate) param: &'p At<String>,
    pub(crate) from: Ref,
    pub(crate) item: &'p At<String>,
}

/// An operation of the pipeline.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Op<'p> {
    /// The step's name; with a position where a step has several operations.
    pub(crate) name: String,
    pub(crate) step: &'p Step,
    pub(crate) used: &'p OpUse,
    /// Is it the last of its step?
    pub(crate) last: bool,
    pub(crate) reads: Vec<Ref>,
    /// Where each of `reads` was written.
    pub(crate) places: Vec<Option<Place>>,
    pub(crate) late: Vec<Late<'p>>,
}

/// A pipeline for one channel, or for all alike.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Graph<'p> {
    /// The branch it is for.
    pub(crate) channel: Option<String>,
    /// The record's images by name, each with its channel.
    pub(crate) inputs: Vec<(String, Option<String>)>,
    /// Operations, each after those it reads.
    pub(crate) ops: Vec<Op<'p>>,
    /// What is written, and where to.
    pub(crate) outputs: Vec<(Ref, At<String>, String)>,
    /// Steps that pass on what they read, as it is.
    pub(crate) passed: Vec<(&'p Step, Ref)>,
}

/// Resolves a pipeline for records of this kind, or of any: a graph for each branch.
pub(crate) fn resolve<'p>(
    pipeline: &'p Pipeline,
    record: Option<&Record>,
    findings: &mut Vec<Diagnostic>,
) -> Vec<Graph<'p>> {
    let names = Names::of(pipeline, findings);
    let inputs = inputs(pipeline, record, findings);
    let branches = branches(pipeline, record, findings);
    for step in &pipeline.steps {
        if matches!(&step.work, Work::Chain(ops) if ops.is_empty()) {
            let message = format!("step `{}` has no operation", step.name);
            let finding = Diagnostic::error(Problem::MissingField, message);
            let help = "name one with `op`, or several with `chain`";
            let finding = finding.step(&step.name.value).at(step.name.place);
            findings.push(finding.help(help));
        }
    }
    let mut graphs = Vec::new();
    // What some branch uses is used; nothing can be said where a branch is not known.
    let mut uses = Some(Uses::default());
    for channel in branches {
        let mut found = Vec::new();
        let graph = Wiring {
            pipeline,
            names: &names,
            channel: channel.as_deref(),
            findings: &mut found,
        }
        .graph(&inputs);
        let (graph, own) = graph.unzip();
        uses = uses.zip(own.flatten()).map(|(all, own)| all.and(own));
        graphs.extend(graph);
        merge(findings, found);
    }
    if let Some(uses) = uses {
        merge(findings, uses.warnings(pipeline));
    }
    graphs
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Meaning {
    Input(usize),
    Constant(usize),
    Step(usize),
}

struct Names<'p> {
    of: BTreeMap<&'p str, Meaning>,
}

impl<'p> Names<'p> {
    fn of(pipeline: &'p Pipeline, findings: &mut Vec<Diagnostic>) -> Self {
        let mut names = Self {
            of: BTreeMap::new(),
        };
        if pipeline.inputs.is_empty() {
            names.of.insert(IMAGE, Meaning::Input(0));
        }
        let inputs = pipeline.inputs.iter().enumerate();
        let inputs = inputs.map(|(at, input)| (&input.name, Meaning::Input(at)));
        let constants = pipeline.constants.iter().enumerate();
        let constants = constants.map(|(at, constant)| (&constant.name, Meaning::Constant(at)));
        let steps = pipeline.steps.iter().enumerate();
        let steps = steps.map(|(at, step)| (&step.name, Meaning::Step(at)));
        for (name, meaning) in inputs.chain(constants).chain(steps) {
            names.add(name, meaning, findings);
        }
        names
    }

    fn add(&mut self, name: &'p At<String>, meaning: Meaning, findings: &mut Vec<Diagnostic>) {
        let text = name.value.as_str();
        let mut letters = text.chars();
        let starts = letters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic());
        let usable = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        if !starts || !letters.all(usable) || text.len() > 64 {
            let shown: String = text.chars().take(64).collect();
            let message = format!("`{}` cannot be a name", shown.escape_debug());
            let finding = Diagnostic::error(Problem::BadName, message).at(name.place);
            findings.push(finding.help("letters, digits, `_` and `-`, a letter first, 64 at most"));
        }
        if self.of.contains_key(text) {
            let message = format!("the name `{text}` is taken twice");
            let finding = Diagnostic::error(Problem::DuplicateName, message).at(name.place);
            findings.push(finding.help("give one of them another `name`"));
            return;
        }
        self.of.insert(text, meaning);
    }

    fn find(&self, name: &At<String>, findings: &mut Vec<Diagnostic>) -> Option<Meaning> {
        let found = self.of.get(name.value.as_str()).copied();
        if found.is_none() {
            let message = format!("there is no step, input or constant `{name}`");
            let finding = Diagnostic::error(Problem::UnknownName, message).at(name.place);
            // Looking for what was meant takes long where there are many names and many slips.
            let look = findings.len() < MOST / 10;
            let near = look.then(|| nearest(&name.value, self.of.keys().copied()));
            let finding = if let Some(near) = near.flatten() {
                finding.help(format!("did you mean `{near}`?"))
            } else {
                let known: Vec<&str> = self.of.keys().copied().take(20).collect();
                finding.help(format!("there are: {}", known.join(", ")))
            };
            findings.push(finding);
        }
        found
    }
}

/// What a step reads, by step.
struct Reads {
    /// Was every name found?
    whole: bool,
    inputs: Vec<(Meaning, Option<Place>)>,
    late: Vec<Meaning>,
}

struct Wiring<'a, 'p> {
    pipeline: &'p Pipeline,
    names: &'a Names<'p>,
    channel: Option<&'a str>,
    findings: &'a mut Vec<Diagnostic>,
}

impl<'p> Wiring<'_, 'p> {
    /// The operations a step is made of, on this channel.
    fn ops(&self, step: &'p Step) -> &'p [OpUse] {
        match &step.work {
            Work::Chain(ops) => ops,
            Work::Branch { chains, .. } => {
                let here = self.channel.map(normal);
                let chain = chains
                    .iter()
                    .find(|(key, _)| Some(normal(&key.value)) == here);
                chain.map_or(&[], |(_, ops)| ops)
            }
        }
    }

    fn reads(&mut self, at: usize) -> Reads {
        let step = &self.pipeline.steps[at];
        let mut inputs = Vec::new();
        let before = self.findings.len();
        for name in &step.inputs {
            let meaning = self.names.find(name, self.findings);
            inputs.extend(meaning.map(|meaning| (meaning, name.place)));
        }
        if step.inputs.is_empty() {
            let meaning = match at.checked_sub(1) {
                Some(before) => Meaning::Step(before),
                None => Meaning::Input(0),
            };
            inputs.push((meaning, step.name.place));
        }
        let mut late = Vec::new();
        for used in self.ops(step) {
            for (_, argument) in &used.arguments {
                if let Argument::Computed { from, .. } = &argument.value {
                    late.extend(self.names.find(from, self.findings));
                }
            }
        }
        let whole = self.findings.len() == before;
        Reads {
            whole,
            inputs,
            late,
        }
    }

    /// The graph, and what in the pipeline is of use to it, if every name was found.
    fn graph(mut self, inputs: &[(String, Option<String>)]) -> Option<(Graph<'p>, Option<Uses>)> {
        let steps = &self.pipeline.steps;
        let count: usize = steps.iter().map(|step| self.ops(step).len()).sum();
        if count > MAX_OPS {
            let message = format!("the pipeline has {count} operations, {MAX_OPS} at most");
            let finding = Diagnostic::error(Problem::TooLarge, message);
            let help = "make several pipelines of it, each reading what the one before it wrote";
            self.findings.push(finding.help(help));
            return None;
        }
        let reads: Vec<Reads> = (0..steps.len()).map(|at| self.reads(at)).collect();
        let order = self.order(&reads)?;
        let mut graph = Graph {
            channel: self.channel.map(str::to_owned),
            inputs: inputs.to_vec(),
            ops: Vec::new(),
            outputs: Vec::new(),
            passed: Vec::new(),
        };
        let mut gives: Vec<Option<Ref>> = vec![None; steps.len()];
        for at in order {
            let step = &steps[at];
            let given = |meaning: &Meaning| match meaning {
                Meaning::Input(at) => Some(Ref::Input(*at)),
                Meaning::Constant(at) => Some(Ref::Constant(*at)),
                Meaning::Step(at) => gives[*at],
            };
            let first: Option<Vec<Ref>> = reads[at].inputs.iter().map(|(m, _)| given(m)).collect();
            let places: Vec<Option<Place>> = reads[at].inputs.iter().map(|(_, p)| *p).collect();
            // A name that nothing has was told above.
            let Some(mut current) = first.filter(|_| reads[at].whole) else {
                continue;
            };
            let ops = self.ops(step);
            if let (true, Some(of)) = (ops.is_empty(), current.first()) {
                graph.passed.push((step, *of));
            }
            for (position, used) in ops.iter().enumerate() {
                let late = used.arguments.iter().filter_map(|(param, argument)| {
                    let Argument::Computed { from, item } = &argument.value else {
                        return None;
                    };
                    let meaning = self.names.of.get(from.value.as_str())?;
                    let from = given(meaning)?;
                    Some(Late { param, from, item })
                });
                let late = late.collect();
                let last = position + 1 == ops.len();
                graph.ops.push(Op {
                    name: if last {
                        step.name.value.clone()
                    } else {
                        format!("{}.{}", step.name, position + 1)
                    },
                    step,
                    used,
                    last,
                    reads: current,
                    places: places.clone(),
                    late,
                });
                current = vec![Ref::Op(graph.ops.len() - 1)];
            }
            gives[at] = current.first().copied();
        }
        self.outputs(&mut graph, &gives);
        let whole = reads.iter().all(|reads| reads.whole);
        let uses = whole.then(|| self.uses(&graph, &reads));
        Some((graph, uses))
    }

    /// Steps in an order in which they can run, the file's where it can.
    fn order(&mut self, reads: &[Reads]) -> Option<Vec<usize>> {
        let needs: Vec<BTreeSet<usize>> = reads
            .iter()
            .map(|reads| {
                let inputs = reads.inputs.iter().map(|(meaning, _)| meaning);
                let steps = inputs
                    .chain(&reads.late)
                    .filter_map(|meaning| match meaning {
                        Meaning::Step(at) => Some(*at),
                        _ => None,
                    });
                steps.collect()
            })
            .collect();
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
        let mut open: Vec<usize> = needs.iter().map(BTreeSet::len).collect();
        for (at, needs) in needs.iter().enumerate() {
            for need in needs {
                readers[*need].push(at);
            }
        }
        let ready = (0..needs.len()).filter(|at| open[*at] == 0);
        let mut ready: BTreeSet<usize> = ready.collect();
        let mut order = Vec::with_capacity(needs.len());
        while let Some(at) = ready.pop_first() {
            order.push(at);
            for reader in &readers[at] {
                open[*reader] -= 1;
                if open[*reader] == 0 {
                    ready.insert(*reader);
                }
            }
        }
        if order.len() == needs.len() {
            return Some(order);
        }
        // Whoever is left waits; following one need after another must close a circle.
        let mut at = (0..needs.len()).find(|at| open[*at] > 0)?;
        let mut path: Vec<usize> = Vec::new();
        while !path.contains(&at) {
            path.push(at);
            at = *needs[at].iter().find(|need| open[**need] > 0)?;
        }
        let start = path.iter().position(|on| *on == at)?;
        let steps = &self.pipeline.steps;
        let circle: Vec<String> = path[start..]
            .iter()
            .chain([&at])
            .map(|at| format!("`{}`", steps[*at].name))
            .collect();
        let message = format!(
            "steps read each other in a circle: {}",
            circle.join(" reads ")
        );
        let finding = Diagnostic::error(Problem::Cycle, message);
        let finding = finding.step(&steps[at].name.value).at(steps[at].name.place);
        let help = "let one of them read something that is there before, such as `image`";
        self.findings.push(finding.help(help));
        None
    }

    fn outputs(&mut self, graph: &mut Graph<'p>, gives: &[Option<Ref>]) {
        let pipeline = self.pipeline;
        if pipeline.outputs.is_empty()
            && let Some((step, Some(last))) = pipeline.steps.iter().zip(gives).next_back()
        {
            let name = step.name.value.clone();
            graph.outputs.push((*last, String::new().into(), name));
        }
        for output in &pipeline.outputs {
            let given = match self.names.find(&output.of, self.findings) {
                Some(Meaning::Step(at)) => gives[at],
                Some(Meaning::Input(at)) => Some(Ref::Input(at)),
                Some(Meaning::Constant(at)) => Some(Ref::Constant(at)),
                None => None,
            };
            if let Some(given) = given {
                let name = output.of.value.clone();
                graph.outputs.push((given, output.write.clone(), name));
            }
        }
    }

    fn uses(&self, graph: &Graph<'p>, reads: &[Reads]) -> Uses {
        let reads = reads.iter().map(|reads| {
            let inputs = reads.inputs.iter().map(|(meaning, _)| *meaning);
            inputs.chain(reads.late.iter().copied()).collect()
        });
        let names = graph.outputs.iter().map(|(_, _, name)| name.as_str());
        let written = names.filter_map(|name| self.names.of.get(name).copied());
        Uses::new(&reads.collect::<Vec<_>>(), written)
    }
}
