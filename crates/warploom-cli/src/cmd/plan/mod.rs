//! `warploom plan` and `warploom check`: everything that can be decided before anything runs.

mod check;
mod records;

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;
use warploom::plan::{Diagnostic, ExecutionPlan, Options, Pipeline, Severity, Sources, compile};
use warploom::{Bytes, Registry};

use crate::args;
use crate::calibration;
use crate::output;
use crate::report::{self, Problem, remark};
use crate::settings::{self, Environment};

pub(crate) use check::check;

/// The same with the types of constants, whose files are beside the pipeline's.
fn with_constants(sources: Sources, pipeline: &Pipeline, path: &Path) -> Result<Sources, Problem> {
    let folder = path.parent().unwrap_or(Path::new("."));
    Ok(warploom::run::with_constants(sources, pipeline, folder)?)
}

/// A pipeline file that was read.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn plan(args: &args::Plan, environment: &Environment) -> ExitCode {
    if args.schema {
        return output::json(&ExecutionPlan::schema());
    }
    match compiled(args, environment) {
        Ok((_, Ok(plan))) => {
            // The texts for people have them already.
            if args.json || args.dot {
                for warning in &plan.warnings {
                    remark(warning);
                }
            }
            if args.json {
                output::text(&(plan.to_json() + "\n"))
            } else if args.dot {
                output::text(&plan.dot())
            } else if args.explain {
                output::text(&plan.explanation())
            } else {
                output::text(&plan.summary())
            }
        }
        Ok((source, Err(findings))) => refuse(&source, &findings, args.json),
        Err(problem) => report::print(&problem),
    }
}

type Compiled = Result<ExecutionPlan, Vec<Diagnostic>>;

fn compiled(args: &args::Plan, environment: &Environment) -> Result<(Source, Compiled), Problem> {
    let Some(path) = &args.file else {
        return Err(Problem::usage(
            "no pipeline was named",
            "warploom plan FILE",
        ));
    };
    let source = read(path)?;
    let pipeline = match Pipeline::from_toml(&source.text) {
        Ok(pipeline) => pipeline,
        Err(findings) => return Ok((source, Err(findings))),
    };
    let sources = match (&args.input, &args.record) {
        (Some(input), _) => records::found(input)?,
        (None, Some(record)) => records::described(record)?,
        (None, None) => {
            return Err(Problem::usage(
                "what the records look like is not known",
                "name some with `-i INPUT`, or describe them, `--record 2048x2048:u16`",
            ));
        }
    };
    let sources = with_constants(sources, &pipeline, path)?;
    let registry = Registry::linked();
    let status = registry.initialize(&settings::backends(environment)?)?;
    let mut options = Options::default();
    options.budget = args.budget.as_deref().map(bytes).transpose()?;
    options.depth = args.depth;
    options.placement = args.placement.map(Into::into);
    options.devices.clone_from(&args.devices);
    let known = calibration::known(environment, args.calibration.as_deref())?;
    options.calibration = known.speeds(&status.survey);
    options.loads = warploom::run::loads(&registry);
    let plan = compile(&pipeline, &sources, Some(&status), &options);
    Ok((source, plan))
}

pub(crate) fn bytes(text: &str) -> Result<u64, Problem> {
    let bytes: Result<Bytes, _> = text.parse();
    let bytes = bytes.map_err(|error| Problem::usage(error, "such as `--budget 4GiB`"))?;
    Ok(bytes.0)
}

pub(crate) fn read(path: &Path) -> Result<Source, Problem> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Problem::usage(
            format!("cannot read {}: {error}", path.display()),
            "name a pipeline file; examples/pipelines has some",
        )
    })?;
    Ok(Source {
        path: path.display().to_string(),
        text,
    })
}

/// A finding for programs: with its file, line and column.
#[derive(Serialize)]
struct Answer<'f> {
    file: &'f str,
    line: Option<usize>,
    column: Option<usize>,
    #[serde(flatten)]
    finding: &'f Diagnostic,
}

impl<'f> Answer<'f> {
    fn of(source: &'f Source, finding: &'f Diagnostic) -> Self {
        let at = finding.place.map(|place| place.line_column(&source.text));
        Self {
            file: &source.path,
            line: at.map(|(line, _)| line),
            column: at.map(|(_, column)| column),
            finding,
        }
    }
}

/// What is wrong, at its place in the file; exit code 2.
pub(crate) fn refuse(source: &Source, findings: &[Diagnostic], json: bool) -> ExitCode {
    if json {
        let answers = findings.iter().map(|finding| Answer::of(source, finding));
        let answers: Vec<Answer<'_>> = answers.collect();
        // Whether anybody read it or not, the file is refused.
        let _ = output::json(&answers);
    } else {
        for finding in findings {
            remark(rendered(source, finding));
        }
    }
    ExitCode::from(2)
}

fn rendered(source: &Source, finding: &Diagnostic) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let code = finding.code.to_string();
    let mut group = Group::with_title(level.primary_title(&finding.message).id(&code));
    if let Some(place) = finding.place {
        // The reader of a file counts bytes; a finding about all of it marks its first line.
        let whole = place.start == 0 && place.end >= source.text.len();
        let end = if whole {
            source.text.find('\n').unwrap_or(source.text.len())
        } else {
            place.end
        };
        let mark = AnnotationKind::Primary.span(place.start..end.min(source.text.len()));
        let mark = mark.label(finding.label.as_deref());
        let snippet = Snippet::source(&source.text).path(&source.path);
        group = group.element(snippet.annotation(mark));
    }
    for note in &finding.notes {
        group = group.element(Level::NOTE.message(note));
    }
    if let Some(help) = &finding.help {
        group = group.element(Level::HELP.message(help));
    }
    let renderer = if std::io::stderr().is_terminal() {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[group])
}
