//! `warploom check`: whether files make sense, by themselves and, when records are described, with
//! them. No device is looked for, so that it says the same on every machine.

use std::path::Path;
use std::process::ExitCode;

use warploom::plan::{self, Diagnostic, Pipeline, Severity, Sources, language};

use super::{Answer, Source, read, records, rendered, with_constants};
use crate::args;
use crate::output;
use crate::report::{self, remark};

/// The file makes no sense.
const REFUSED: u8 = 2;

pub(crate) fn check(args: &args::Check) -> ExitCode {
    if args.schema {
        return output::json(&language::schema());
    }
    let sources = args.record.as_deref().map(records::described).transpose();
    let sources = match sources {
        Ok(sources) => sources,
        Err(problem) => return report::print(&problem),
    };
    let mut worst = 0;
    let mut all: Vec<(Source, Vec<Diagnostic>)> = Vec::new();
    for path in &args.files {
        match read(path) {
            Ok(source) => {
                let findings = found(&source, path, sources.as_ref());
                all.push((source, findings));
            }
            // The others are looked at all the same.
            Err(problem) => {
                remark(&problem);
                worst = REFUSED;
            }
        }
    }
    for (source, findings) in &all {
        let mut list = findings.iter();
        let wrong = list.any(|finding| finding.severity == Severity::Error);
        if wrong {
            worst = REFUSED;
        }
        if !args.json {
            for finding in findings {
                remark(rendered(source, finding));
            }
            if !wrong {
                remark(format_args!("{}: ok", source.path));
            }
        }
    }
    if args.json {
        let answers = all.iter().flat_map(|(source, findings)| {
            findings
                .iter()
                .map(move |finding| Answer::of(source, finding))
        });
        let answers: Vec<Answer<'_>> = answers.collect();
        let printed = output::json(&answers);
        if worst == 0 {
            return printed;
        }
    }
    ExitCode::from(worst)
}

/// What there is to say about a file, errors first.
fn found(source: &Source, path: &Path, sources: Option<&Sources>) -> Vec<Diagnostic> {
    let pipeline = match Pipeline::from_toml(&source.text) {
        Ok(pipeline) => pipeline,
        Err(findings) => return findings,
    };
    match sources.map(|sources| with_constants(sources.clone(), &pipeline, path)) {
        Some(Ok(sources)) => plan::check(&pipeline, Some(&sources)),
        // Without the types of its constants the rest of the file can still be told of.
        Some(Err(problem)) => {
            let problem = problem.to_string();
            let mut findings = vec![Diagnostic::error(plan::Problem::RecordMismatch, problem)];
            findings.extend(plan::check(&pipeline, None));
            findings
        }
        None => plan::check(&pipeline, None),
    }
}
