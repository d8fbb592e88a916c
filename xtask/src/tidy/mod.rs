//! The rules no compiler checks. Each is a pure function from the sources to findings, so each is
//! tested on sources made up for it.

mod codes;
mod docs;
mod edges;
mod layout;
mod sources;
mod text;

use std::process::ExitCode;

use anyhow::Result;

use crate::project::Project;
use sources::Sources;

/// Something that is wrong, where, and what would be right.
#[derive(Debug, Clone, PartialEq)]
struct Finding {
    /// A file, or a file and a line.
    place: String,
    what: String,
    help: String,
    /// Worth knowing, but no failure.
    remark: bool,
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
            help: help.into(),
            remark: false,
        }
    }

    fn remark(mut self) -> Self {
        self.remark = true;
        self
    }
}

/// A rule: what it demands, and how to find what breaks it.
struct Rule {
    demands: &'static str,
    find: fn(&Sources) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule {
        demands: "crates depend downwards, as in the table of edges",
        find: edges::check,
    },
    Rule {
        demands: "`unsafe` is forbidden where it is not needed",
        find: layout::unsafe_forbidden,
    },
    Rule {
        demands: "the top level has only the agreed folders",
        find: layout::top_level,
    },
    Rule {
        demands: "every backend has the same files",
        find: layout::backend_files,
    },
    Rule {
        demands: "files are called after what is in them",
        find: layout::file_names,
    },
    Rule {
        demands: "source files stay short",
        find: text::lengths,
    },
    Rule {
        demands: "no file names a folder of one machine",
        find: text::machine_paths,
    },
    Rule {
        demands: "no work is left for later in a comment",
        find: text::unfinished,
    },
    Rule {
        demands: "an error code has one meaning",
        find: codes::check,
    },
    Rule {
        demands: "the README lists the facade's features",
        find: docs::features,
    },
    Rule {
        demands: "invariants named in code are in ARCHITECTURE.md",
        find: docs::invariants,
    },
];

/// What all rules found.
pub(crate) struct Report(Vec<(&'static str, Vec<Finding>)>);

/// Reads the workspace and applies every rule.
pub(crate) fn inspect(project: &Project) -> Result<Report> {
    let sources = Sources::read(project)?;
    Ok(Report::of(&sources))
}

impl Report {
    fn of(sources: &Sources) -> Self {
        let rules = RULES.iter();
        Self(
            rules
                .map(|rule| (rule.demands, (rule.find)(sources)))
                .collect(),
        )
    }

    /// The rules nothing breaks.
    pub(crate) fn clean_rules(&self) -> u32 {
        let broken = |findings: &[Finding]| findings.iter().any(|finding| !finding.remark);
        let clean = self.0.iter().filter(|(_, findings)| !broken(findings));
        u32::try_from(clean.count()).unwrap_or(u32::MAX)
    }

    /// One line per failure.
    pub(crate) fn failures(&self) -> Vec<String> {
        let findings = self.0.iter().flat_map(|(_, findings)| findings);
        findings
            .filter(|finding| !finding.remark)
            .map(|finding| format!("{}: {}", finding.place, finding.what))
            .collect()
    }

    /// Every rule with what it found.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (demands, findings) in &self.0 {
            let broken = findings.iter().filter(|finding| !finding.remark).count();
            let verdict = if broken == 0 { "ok    " } else { "BROKEN" };
            text.push_str(&format!("{verdict}  {demands}\n"));
            for finding in findings {
                let sort = if finding.remark { "note: " } else { "" };
                text.push_str(&format!(
                    "        {sort}{}: {}\n",
                    finding.place, finding.what
                ));
                if !finding.help.is_empty() {
                    text.push_str(&format!("          help: {}\n", finding.help));
                }
            }
        }
        text
    }
}

/// `cargo xtask tidy`.
pub(crate) fn run(project: &Project) -> Result<ExitCode> {
    let report = inspect(project)?;
    print!("{}", report.text());
    Ok(if report.failures().is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_shown_and_break_nothing() {
        let findings = vec![
            Finding::new("a.rs", "510 lines", "").remark(),
            Finding::new("b.rs", "700 lines", "split it"),
        ];
        let report = Report(vec![
            ("files stay short", findings),
            ("all is well", vec![]),
        ]);
        assert_eq!(report.clean_rules(), 1);
        assert_eq!(report.failures(), ["b.rs: 700 lines"]);
        let expected = "\
BROKEN  files stay short
        note: a.rs: 510 lines
        b.rs: 700 lines
          help: split it
ok      all is well
";
        assert_eq!(report.text(), expected);
    }
}
