//! What of a pipeline is of use: whatever something that is written depends on.

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Problem};
use crate::pipeline::Pipeline;
use crate::resolve::Meaning;

/// What is used, and what is read at all, if only by steps that nobody needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Uses {
    used: BTreeSet<Meaning>,
    read: BTreeSet<Meaning>,
}

impl Uses {
    /// Of steps that read this, each, and of what is written.
    pub(crate) fn new(reads: &[Vec<Meaning>], written: impl Iterator<Item = Meaning>) -> Self {
        let mut uses = Self {
            used: BTreeSet::new(),
            read: reads.iter().flatten().copied().collect(),
        };
        let mut open: Vec<Meaning> = written.collect();
        while let Some(meaning) = open.pop() {
            if uses.used.insert(meaning)
                && let Meaning::Step(at) = meaning
            {
                open.extend(&reads[at]);
            }
        }
        uses
    }

    /// What both use.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.used.extend(other.used);
        self.read.extend(other.read);
        self
    }

    /// Tells everything that is of no use.
    pub(crate) fn warnings(&self, pipeline: &Pipeline) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (at, step) in pipeline.steps.iter().enumerate() {
            let meaning = Meaning::Step(at);
            if self.used.contains(&meaning) {
                continue;
            }
            let name = &step.name;
            let message = if self.read.contains(&meaning) {
                format!(
                    "only steps that nothing uses read what step `{name}` gives: it is left out"
                )
            } else {
                format!("nothing uses what step `{name}` gives: it is left out")
            };
            let help = format!("write it with an `[[output]]` of `{name}`, or remove it");
            let finding = Diagnostic::warning(Problem::Unused, message).step(&name.value);
            found.push(finding.at(step.place()).help(help));
        }
        let inputs = pipeline.inputs.iter().enumerate();
        let inputs = inputs.map(|(at, input)| (Meaning::Input(at), "input", &input.name));
        let constants = pipeline.constants.iter().enumerate();
        let constants =
            constants.map(|(at, constant)| (Meaning::Constant(at), "constant", &constant.name));
        for (meaning, what, name) in inputs.chain(constants) {
            if !self.used.contains(&meaning) {
                let message = format!("nothing that is written depends on {what} `{name}`");
                let finding = Diagnostic::warning(Problem::Unused, message).at(name.place);
                let help = format!("let a step read it with `input = \"{name}\"`, or remove it");
                found.push(finding.help(help));
            }
        }
        found
    }
}
