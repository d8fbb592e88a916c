//! Files that results go to: every result has one of its own, below the folder the user names.

use std::collections::BTreeMap;

use warploom_kernels::op::{self, Gives};

use crate::diagnostic::{Diagnostic, Problem};
use crate::pipeline::{At, Output, Pipeline};
use crate::resolve::{Graph, Ref};

/// Tells files that two results of records with so many channels would go to, and names that cannot
/// be.
pub(crate) fn check(pipeline: &Pipeline, channels: usize, findings: &mut Vec<Diagnostic>) {
    // Channels that are not named as inputs go through the pipeline one after the other.
    let each_channel = channels > 1 && pipeline.inputs.is_empty();
    let mut files: BTreeMap<String, &Output> = BTreeMap::new();
    for output in pipeline
        .outputs
        .iter()
        .filter(|o| !o.write.value.is_empty())
    {
        let file = &output.write;
        name(file, findings);
        if let Some(other) = files.insert(normal(&file.value), output) {
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

/// One text for all names of one file; there are disks to which capitals are small letters. Words in
/// braces are names of fields, to which they are not.
fn normal(path: &str) -> String {
    let parts = path.split(['/', '\\']);
    let parts: Vec<&str> = parts.filter(|part| !["", "."].contains(part)).collect();
    let path = parts.join("/");
    let pieces = path.split_inclusive(['{', '}']).map(|piece| {
        if piece.ends_with('}') {
            piece.to_owned()
        } else {
            piece.to_lowercase()
        }
    });
    pieces.collect()
}

/// What files of each ending can hold: images, numbers, tables.
const ENDINGS: [(&str, [bool; 3]); 8] = [
    ("tif", [true, false, false]),
    ("tiff", [true, false, false]),
    ("png", [true, false, false]),
    ("zarr", [true, false, false]),
    ("npy", [true, true, false]),
    ("json", [false, true, true]),
    ("csv", [false, true, true]),
    ("parquet", [false, false, true]),
];

/// Tells results that their files cannot hold, by the endings of their names.
pub(crate) fn endings(graph: &Graph<'_>, findings: &mut Vec<Diagnostic>) {
    for (of, file, name) in &graph.outputs {
        let info = match of {
            Ref::Op(at) => Some(op::find(&graph.ops[*at].used.op.value)),
            Ref::Input(_) | Ref::Constant(_) => None,
        };
        let (kind, what) = match info.map(|info| info.map(|info| info.gives)) {
            None | Some(Ok(Gives::Image { .. })) => (0, "an image"),
            Some(Ok(Gives::Scalars(_))) => (1, "numbers"),
            Some(Ok(Gives::Table(_))) => (2, "a table"),
            // What an unknown operation gives is open.
            Some(Err(_)) => continue,
        };
        let last = file.value.rsplit(['/', '\\']).next().unwrap_or_default();
        let ending = last.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
        let ending = ending.map_or("", |(_, ending)| ending);
        // Nobody knows yet what a word in braces will be.
        if file.value.is_empty() || ending.contains(['{', '}']) {
            continue;
        }
        let lower = ending.to_lowercase();
        let known = ENDINGS.iter().find(|(known, _)| *known == lower);
        if known.is_some_and(|(_, holds)| holds[kind]) {
            continue;
        }
        let message = match known {
            Some(_) => format!("`{name}` is {what}, which .{lower} files do not hold"),
            None if ending.is_empty() => format!("the name of {file} does not say its format"),
            None => format!("no format of files ends in .{}", ending.escape_debug()),
        };
        let able = ENDINGS.iter().filter(|(_, holds)| holds[kind]);
        let able: Vec<String> = able.map(|(ending, _)| format!(".{ending}")).collect();
        let finding = Diagnostic::error(Problem::BadEnding, message).step(name);
        let finding = finding.at(file.place);
        findings.push(finding.help(format!("{what} can be written to {}", able.join(", "))));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_file_are_one_text() {
        for (a, b, same) in [
            ("a.tif", "./a.tif", true),
            ("A/b.tif", "a//B.TIF", true),
            ("{record}-A.tif", "{record}-a.tif", true),
            ("{Well}.tif", "{well}.tif", false),
            ("a/b.tif", "ab.tif", false),
        ] {
            assert_eq!(normal(a) == normal(b), same, "{a} and {b}");
        }
    }
}
