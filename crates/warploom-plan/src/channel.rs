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

/// The branches a pipeline is compiled for.
pub(crate) fn branches(
    pipeline: &Pipeline,
    record: &Record,
    findings: &mut Vec<Diagnostic>,
) -> Vec<Option<String>> {
    let mut branched = false;
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
        if record.channels.is_empty() {
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
        let have: BTreeSet<String> = record.channels.iter().map(|name| normal(name)).collect();
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
            let message = format!(
                "step `{}` has chains for the channels {}, the records have {}",
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
    }
    if branched && !record.channels.is_empty() && pipeline.inputs.is_empty() {
        record.channels.iter().cloned().map(Some).collect()
    } else {
        vec![None]
    }
}

/// The images of a record by name, each with its channel.
pub(crate) fn inputs(
    pipeline: &Pipeline,
    record: &Record,
    findings: &mut Vec<Diagnostic>,
) -> Vec<(String, Option<String>)> {
    if pipeline.inputs.is_empty() {
        return vec![(IMAGE.to_owned(), None)];
    }
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
