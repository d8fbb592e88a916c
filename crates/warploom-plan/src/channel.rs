//! Channels: which of them branches and named inputs mean.

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Problem};
use crate::pipeline::{At, Pipeline, Work};
use crate::resolve::IMAGE;
use crate::sources::Record;

/// `02` and `2` are one channel.
pub(crate) fn normal(key: &str) -> String {
    key.trim()
        .parse::<u64>()
        .map_or_else(|_| key.trim().to_owned(), |number| number.to_string())
}

/// The channels that the first step that branches has chains for.
pub(crate) fn of_branches(pipeline: &Pipeline) -> Vec<String> {
    let mut steps = pipeline.steps.iter();
    let chains = steps.find_map(|step| match &step.work {
        Work::Branch { chains, .. } => Some(chains),
        Work::Chain(_) => None,
    });
    let keys = chains.into_iter().flatten();
    let keys: BTreeSet<String> = keys.map(|(key, _)| normal(&key.value)).collect();
    keys.into_iter().collect()
}

/// The branches a pipeline is compiled for. Where no records are known, the first step that branches
/// says which channels they have.
pub(crate) fn branches(
    pipeline: &Pipeline,
    record: Option<&Record>,
    findings: &mut Vec<Diagnostic>,
) -> Vec<Option<String>> {
    let mut branched = false;
    let mut first: Option<&str> = None;
    let channels = match record {
        Some(record) => record.channels.clone(),
        None => of_branches(pipeline),
    };
    for step in &pipeline.steps {
        let Work::Branch { by, chains } = &step.work else {
            continue;
        };
        branched = true;
        if let Some(input) = pipeline.inputs.first() {
            let message = format!(
                "step `{}` branches by {by}, and the pipeline names inputs such as `{}`",
                step.name, input.name
            );
            let finding = Diagnostic::error(Problem::BranchOfInputs, message);
            let help = "make each chain a step that reads the input of its channel";
            let finding = finding.step(&step.name.value).at(by.place);
            findings.push(finding.help(help));
            continue;
        }
        if record.is_some() && channels.is_empty() {
            let message = format!(
                "step `{}` branches by {by}, and the records have no such axis",
                step.name
            );
            let finding = Diagnostic::error(Problem::RecordMismatch, message);
            let help = "find records by a pattern with `{channel}`, or write `chain` instead";
            let finding = finding.step(&step.name.value).at(by.place);
            findings.push(finding.help(help));
            continue;
        }
        let have: BTreeSet<String> = channels.iter().map(|name| normal(name)).collect();
        let asked: Vec<String> = chains.iter().map(|(key, _)| normal(&key.value)).collect();
        let unique: BTreeSet<&String> = asked.iter().collect();
        if unique.len() < asked.len() {
            let message = format!("step `{}` has two chains for one channel", step.name);
            let finding = Diagnostic::error(Problem::BranchKeys, message);
            let help = "keep one of them; keys that are numbers are compared as numbers";
            let finding = finding.step(&step.name.value).at(by.place);
            findings.push(finding.help(help));
        }
        let asked: BTreeSet<String> = asked.into_iter().collect();
        if asked != have {
            let text = |set: &BTreeSet<String>| {
                let names: Vec<&str> = set.iter().map(String::as_str).collect();
                names.join(", ")
            };
            let others = match first {
                Some(first) => format!("step `{first}` for"),
                None => "the records have".to_owned(),
            };
            let message = format!(
                "step `{}` has chains for the channels {}, {others} {}",
                step.name,
                text(&asked),
                text(&have)
            );
            let mut finding = Diagnostic::error(Problem::BranchKeys, message);
            let lacking: Vec<&str> = have.difference(&asked).map(String::as_str).collect();
            let surplus: Vec<&str> = asked.difference(&have).map(String::as_str).collect();
            if !lacking.is_empty() {
                finding = finding.help(format!(
                    "add chains for {}; an empty list passes the image on",
                    lacking.join(", ")
                ));
            } else if !surplus.is_empty() {
                finding = finding.help(format!("remove {}", surplus.join(", ")));
            }
            let wrong = chains
                .iter()
                .find(|(key, _)| !have.contains(&normal(&key.value)));
            let place = wrong.map_or(by.place, |(key, _)| key.place);
            findings.push(finding.step(&step.name.value).at(place));
        }
        if record.is_none() {
            first = first.or(Some(&step.name.value));
        }
    }
    if branched && !channels.is_empty() && pipeline.inputs.is_empty() {
        channels.into_iter().map(Some).collect()
    } else {
        vec![None]
    }
}

/// The images of a record by name, each with its channel.
pub(crate) fn inputs(
    pipeline: &Pipeline,
    record: Option<&Record>,
    findings: &mut Vec<Diagnostic>,
) -> Vec<(String, Option<String>)> {
    if pipeline.inputs.is_empty() {
        return vec![(IMAGE.to_owned(), None)];
    }
    let Some(record) = record else {
        // Any of them may be a channel that records have.
        let named = pipeline.inputs.iter().map(|input| {
            let channel = input.channel.as_ref().map(|channel| channel.value.clone());
            (input.name.value.clone(), channel)
        });
        return named.collect();
    };
    let mut inputs = Vec::new();
    for input in &pipeline.inputs {
        let asked = input.channel.as_ref();
        let known = |wanted: &At<String>| {
            let mut channels = record.channels.iter();
            channels.find(|name| normal(name) == normal(&wanted.value))
        };
        let channel = match asked {
            Some(wanted) if known(wanted).is_none() => {
                let have = if record.channels.is_empty() {
                    "have no channels".to_owned()
                } else {
                    format!("have {}", record.channels.join(", "))
                };
                let message = format!(
                    "input `{}` is channel {wanted}, and the records {have}",
                    input.name
                );
                let finding = Diagnostic::error(Problem::RecordMismatch, message);
                let help = if record.channels.is_empty() {
                    "leave `channel` out, or find records by a pattern with `{channel}`".to_owned()
                } else {
                    format!("`channel` is one of {}", record.channels.join(", "))
                };
                findings.push(finding.at(wanted.place).help(help));
                None
            }
            None if record.channels.len() > 1 => {
                let message = format!(
                    "input `{}` does not say which of the channels {} it is",
                    input.name,
                    record.channels.join(", ")
                );
                let finding = Diagnostic::error(Problem::RecordMismatch, message);
                let help = format!("add `channel = \"{}\"`", record.channels[0]);
                findings.push(finding.at(input.name.place).help(help));
                None
            }
            _ => asked.and_then(known).cloned(),
        };
        inputs.push((input.name.value.clone(), channel));
    }
    inputs
}
