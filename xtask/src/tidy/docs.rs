//! Prose and code say the same.

use std::collections::BTreeSet;

use super::Finding;
use super::sources::Sources;

const README: &str = "README.md";
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// The README has a table whose first column is headed `feature`, with a row for each.
pub(super) fn features(sources: &Sources) -> Vec<Finding> {
    let Some(facade) = sources
        .packages
        .iter()
        .find(|package| package.name == "warploom")
    else {
        return Vec::new();
    };
    let Some(readme) = sources.file(README) else {
        return vec![Finding::new(README, "there is none", "write one")];
    };
    let listed = feature_table(&readme.text);
    let known = facade.features.iter().map(String::as_str);
    let known: BTreeSet<&str> = known.filter(|name| *name != "default").collect();
    let missing = known.difference(&listed).map(|name| {
        let what = format!("feature `{name}` of `warploom` is not in the feature table");
        Finding::new(
            README,
            what,
            format!("add a row that starts with | `{name}` |"),
        )
    });
    let stale = listed.difference(&known).map(|name| {
        let what = format!("the feature table lists `{name}`, which `warploom` does not have");
        Finding::new(README, what, "remove the row, or add the feature")
    });
    missing.chain(stale).collect()
}

/// The names in the first column of the table headed `feature`.
fn feature_table(markdown: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in markdown.lines() {
        let Some(row) = line.trim().strip_prefix('|') else {
            inside = false;
            continue;
        };
        let cell = row.split('|').next().unwrap_or_default().trim();
        if inside {
            let name = cell
                .strip_prefix('`')
                .and_then(|rest| rest.split('`').next());
            names.extend(name);
        } else {
            let head = cell.to_ascii_lowercase();
            inside = head == "feature" || head == "features";
        }
    }
    names
}

/// An invariant that code appeals to has to be written down.
pub(super) fn invariants(sources: &Sources) -> Vec<Finding> {
    let prose = sources.file(ARCHITECTURE).map_or("", |file| &file.text);
    let written: BTreeSet<&str> = prose.split(|c: char| !c.is_alphanumeric()).collect();
    let mut findings = Vec::new();
    for file in sources.rust_files() {
        for (number, line) in file.text.lines().enumerate() {
            for name in named_invariants(line) {
                if !written.contains(name.as_str()) {
                    let place = format!("{}:{}", file.path, number + 1);
                    let what = format!("invariant {name} is not in {ARCHITECTURE}");
                    findings.push(Finding::new(
                        place,
                        what,
                        "number it there, or correct it here",
                    ));
                }
            }
        }
    }
    findings
}

/// Invariants are appealed to as `I7: …` at the start of a comment or a text, as ` (I7)`, or by a
/// test as `fn i7_…`. A bare `I8` is left alone: it is also the name of an element type.
fn named_invariants(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    names.extend(guarded_invariant(line));
    for (at, _) in line.match_indices('I') {
        let rest = &line[at + 1..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if !(1..=2).contains(&digits) {
            continue;
        }
        let (before, after) = (&line[..at], &rest[digits..]);
        let heads = ["\"", "// ", "/// ", "//! "]
            .iter()
            .any(|end| before.ends_with(end));
        let appeal = heads && after.starts_with(": ");
        let remark = before.ends_with(" (") && after.starts_with(')');
        if appeal || remark {
            names.push(line[at..=at + digits].to_owned());
        }
    }
    names
}

/// The invariant a test is named after.
fn guarded_invariant(line: &str) -> Option<String> {
    let name = line.trim_start().strip_prefix("fn i")?;
    let (digits, _) = name.split_once('_')?;
    let number: u32 = digits.parse().ok()?;
    let is_element_type = [8, 16, 32, 64].contains(&number);
    (!is_element_type).then(|| format!("I{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Package;

    fn with_features(readme: &str) -> Vec<String> {
        let facade = Package {
            name: "warploom".into(),
            features: ["cpu", "cuda", "default"].map(String::from).into(),
            ..Package::default()
        };
        let mut sources = Sources::of(&[(README, readme)]);
        sources.packages.push(facade);
        features(&sources)
            .into_iter()
            .map(|finding| finding.what)
            .collect()
    }

    #[test]
    fn the_feature_table_and_the_manifest_agree() {
        let table = "\
# x
| command | does |
|---|---|
| `detect` | lists |

| Feature | brings |
|---|---|
| `cpu` | a |
| `cuda` (default) | b |
";
        assert_eq!(with_features(table), Vec::<String>::new());
        let stale = "| feature | brings |\n|---|---|\n| `cpu` | |\n| `rocm` | |\n";
        assert_eq!(
            with_features(stale),
            [
                "feature `cuda` of `warploom` is not in the feature table",
                "the feature table lists `rocm`, which `warploom` does not have",
            ]
        );
    }

    #[test]
    fn invariants_are_told_from_element_types() {
        assert_eq!(
            named_invariants("/// I7: nothing of ours holds a device"),
            ["I7"]
        );
        assert_eq!(named_invariants("panic!(\"I10: says what\")"), ["I10"]);
        assert_eq!(
            named_invariants("// Counted once (I2) and only once (I3)."),
            ["I2", "I3"]
        );
        for line in [
            "DType::I8 => 1",
            "Some(I8)",
            "(I16, I32)",
            "x I64: y",
            "I123: ",
        ] {
            assert!(named_invariants(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn an_invariant_that_is_written_nowhere_is_found() {
        let sources = Sources::of(&[
            (ARCHITECTURE, "**I7** after a crash nothing is held."),
            ("tests/a.rs", "// I7: held\n// I8: allocated\n"),
        ]);
        let findings = invariants(&sources);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place, "tests/a.rs:2");
    }
}
