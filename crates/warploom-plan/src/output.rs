//! Files that results go to: every result has one of its own, below the folder the user names.

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Problem};
use crate::pipeline::{At, Output, Pipeline};

/// Tells files that two results of records with so many channels would go to, and names that cannot
/// be.
pub(crate) fn check(pipeline: &Pipeline, channels: usize, findings: &mut Vec<Diagnostic>) {
    // Channels that are not named as inputs go through the pipeline one after the other.
    let each_channel = channels > 1 && pipeline.inputs.is_empty();
    let mut files: BTreeMap<&str, &Output> = BTreeMap::new();
    for output in pipeline
        .outputs
        .iter()
        .filter(|o| !o.write.value.is_empty())
    {
        let file = &output.write;
        name(file, findings);
        if let Some(other) = files.insert(file.value.as_str(), output) {
            let message = format!(
                "`{}` and `{}` are both written to {file}",
                other.of, output.of
            );
            let finding = Diagnostic::error(Problem::DuplicateName, message).at(file.place);
            findings.push(finding.help("give each a file of its own"));
        } else if each_channel && !file.value.contains("{channel}") {
            let message = format!(
                "`{}` of {channels} channels would be written to one file, {file}",
                output.of
            );
            let finding = Diagnostic::error(Problem::DuplicateName, message).at(file.place);
            findings.push(finding.help("put `{channel}` into the name"));
        }
    }
}

fn name(file: &At<String>, findings: &mut Vec<Diagnostic>) {
    let text = file.value.as_str();
    let outside = |part: &str| part == "..";
    let root = text.starts_with(['/', '\\']) || text.get(1..3).is_some_and(|at| at == ":\\");
    if root || text.split(['/', '\\']).any(outside) || text.contains('\0') {
        let message = format!(
            "`{}` is not below the folder of results",
            text.escape_debug()
        );
        let finding = Diagnostic::error(Problem::BadName, message).at(file.place);
        findings.push(finding.help("write a path without a root and without `..`"));
    }
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let inside = &rest[open + 1..];
        let word = inside.split_once('}').map(|(word, _)| word);
        // Which fields records have is known when they are found; here, whether it can be one.
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if !word.is_some_and(|word| !word.is_empty() && word.chars().all(is_letter)) {
            let shown = word.unwrap_or(inside);
            let message = format!("`{{{}}}` stands for nothing", shown.escape_debug());
            let finding = Diagnostic::error(Problem::UnknownWord, message).at(file.place);
            let help = "`{record}`, `{channel}` and fields of the records' names are written so";
            findings.push(finding.help(help));
            return;
        }
        rest = inside;
    }
}
