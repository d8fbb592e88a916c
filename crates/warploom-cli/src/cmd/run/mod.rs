//! `warploom run`: a pipeline over images, every one of them accounted for.

mod asked;
mod board;
mod fleet;
mod interrupt;
mod metrics;
mod papers;
mod progress;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use warploom::plan::{Options, Pipeline};
use warploom::run::{Input, Job, Outcome, Preview, RunFailure, Settings, Summary};
use warploom::sched::RunError;
use warploom::{Bytes, CancelToken, Registry};

use crate::args;
use crate::calibration;
use crate::cmd::plan::{bytes, read, refuse};
use crate::cmd::status::text::{quoted, times};
use crate::output;
use crate::report::{self, Problem, remark};
use crate::settings::{self, Environment};
use asked::Asked;
use board::Posting;
use interrupt::Interrupt;
use papers::Papers;
use progress::Progress;

/// Failed records that are told of one by one; the others are in the JSON.
const TOLD: usize = 20;

pub(crate) fn run(args: &args::Run, environment: &Environment) -> ExitCode {
    let asked = asked::of(args).and_then(|asked| Ok((read(&asked.file)?, asked)));
    let (source, asked) = match asked {
        Ok(asked) => asked,
        Err(problem) => return report::print(&problem),
    };
    let pipeline = match Pipeline::from_toml(&source.text) {
        Ok(pipeline) => pipeline,
        Err(findings) => return refuse(&source, &findings, args.json),
    };
    match work((args, &asked), environment, pipeline, &source.text) {
        Ok(code) => code,
        Err(Refusal::Findings(findings)) => refuse(&source, &findings, args.json),
        Err(Refusal::Problem(problem)) => report::print(&problem),
    }
}

/// Why nothing ran.
enum Refusal {
    Findings(Vec<warploom::plan::Diagnostic>),
    Problem(Problem),
}

impl<E: Into<Problem>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Problem(error.into())
    }
}

fn refusal(failure: RunFailure) -> Refusal {
    match failure {
        RunFailure::Refused(findings) => Refusal::Findings(findings),
        other => Refusal::Problem(other.into()),
    }
}

fn work(
    (args, asked): (&args::Run, &Asked),
    environment: &Environment,
    pipeline: Pipeline,
    text: &str,
) -> Result<ExitCode, Refusal> {
    let cancel = CancelToken::new();
    let progress = Arc::new(Progress::new(args));
    let mut settings = settings_of(args, &cancel)?;
    let bar = Arc::clone(&progress);
    let interrupt = Interrupt {
        cancel,
        stop: (!asked.devices.is_empty()).then(|| settings.stop.clone()),
        output: asked.output.clone(),
    };
    interrupt.watch(move || bar.interrupted())?;
    let input = Input::find_in_time(&asked.input, &settings).map_err(refusal)?;
    let folder = asked.file.parent().unwrap_or(Path::new("."));
    let job = Job::new(pipeline, folder, input, &asked.output)
        .with_text(text)
        .with_origin(&asked.file, &asked.input);
    let registry = Registry::linked();
    let status = registry.initialize(&settings::backends(environment)?)?;
    settings.resume = asked.is_resumed;
    let known = calibration::known(environment, args.calibration.as_deref())?;
    settings.plan.calibration = known.speeds(&status.survey);
    settings.ceilings = calibration::ceilings(environment);
    let planned = (&job, &settings.plan);
    let crew = fleet::crew(args, &asked.devices, &status, planned)?;
    if args.dry_run {
        let preview = match &crew {
            Some(crew) => job.preview_on(crew, &registry, &settings),
            None => job.preview(&registry, &settings),
        };
        return Ok(tell_preview(args, &preview.map_err(refusal)?));
    }
    let papers = Papers::new(args)?;
    let title = asked.output.display().to_string();
    let total = job.input().records.len() as u64;
    let (leases, metrics) = (environment.leases(), args.metrics.as_deref());
    let posting = Posting::new(&title, job.name(), total, &leases, metrics)?;
    let posting = Arc::new(posting);
    let (bar, board) = (Arc::clone(&progress), Arc::clone(&posting));
    settings.listener = Arc::new(move |news| {
        bar.hear(&news);
        board.hear(&news);
    });
    if settings.cancel.is_cancelled() {
        // Nothing was begun, and what is there stays.
        return Err(refusal(RunError::Cancelled { delivered: 0 }.into()));
    }
    let summary = match crew {
        Some(crew) => job.run_on(&crew, &registry, &settings),
        None => job.run(&registry, &settings),
    };
    progress.close();
    let mut summary = summary.map_err(refusal)?;
    // What became of the records is told, whatever cannot be written about it.
    if let Some(recording) = &summary.recording {
        summary.changes.extend(papers.write(recording));
    }
    let posted = posting.finish(summary.recording.as_ref());
    summary.changes.extend(posted.err());
    Ok(tell(args, &summary, &progress))
}

fn settings_of(args: &args::Run, cancel: &CancelToken) -> Result<Settings, Problem> {
    let mut options = Options::default();
    options.budget = args.budget.as_deref().map(bytes).transpose()?;
    options.depth = args.depth;
    options.placement = args.placement.map(Into::into);
    options.devices.extend(args.device.clone());
    let mut settings = Settings::default();
    settings.plan = options;
    settings.batch = args.batch;
    settings.readers = args.readers.map(usize::from);
    settings.failover = !args.no_failover;
    settings.check_races |= args.check_races;
    settings.patience = Duration::from_secs(args.patience);
    settings.batch_limit = args.batch_limit.map(Duration::from_secs);
    settings.record = args.trace.is_some() || args.report.is_some();
    settings.cancel = cancel.clone();
    Ok(settings)
}

fn tell_preview(args: &args::Run, preview: &Preview) -> ExitCode {
    if args.json {
        let mut answer = serde_json::json!({
            "records": preview.records.len(),
            "skipped": preview.skipped,
            "files": preview.records,
            "batch": preview.batch,
            "bytes": preview.bytes,
            "plan": preview.plan,
        });
        if !preview.crew.is_empty() {
            answer["devices"] = serde_json::json!(preview.crew);
        }
        return output::json(&answer);
    }
    let mut text = preview.plan.summary();
    let count = preview.records.len();
    // Writing to a text cannot fail.
    for hire in &preview.crew {
        let _ = writeln!(
            text,
            "  {} on {} ({}), each with {} and {} of its memory",
            counted(hire.workers as u64, "worker"),
            hire.device,
            hire.name,
            counted(hire.batch, "image"),
            Bytes(hire.bytes)
        );
    }
    if preview.batch > 1 && preview.crew.is_empty() {
        let _ = writeln!(
            text,
            "  {} images go through together, so {} of {} are taken",
            preview.batch,
            Bytes(preview.bytes),
            preview.plan.device.name
        );
    }
    let _ = writeln!(
        text,
        "\n{count} records, {} of them done before",
        preview.skipped
    );
    for (record, files) in preview.records.iter().take(5) {
        let files: Vec<String> = files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        let _ = writeln!(text, "  {record} -> {}", files.join(", "));
    }
    if count > 5 {
        let _ = writeln!(text, "  and {} more", count - 5);
    }
    output::text(&text)
}

fn counted(number: u64, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {what}{ending}")
}

/// What became of it all; the exit code is the contract's.
fn tell(args: &args::Run, summary: &Summary, progress: &Progress) -> ExitCode {
    if !progress.conclude(summary) {
        remarks(summary, progress);
    }
    let written = if args.json {
        output::json(summary)
    } else {
        output::text(&lines(summary))
    };
    if summary.interrupted {
        ExitCode::from(130)
    } else if summary.is_ok() {
        written
    } else {
        ExitCode::from(3)
    }
}

/// What people should know beside the numbers.
fn remarks(summary: &Summary, progress: &Progress) {
    for change in progress.untold(&summary.changes) {
        remark(format_args!("warning: {change}"));
    }
    let failed = summary
        .records
        .iter()
        .filter_map(|done| match &done.outcome {
            Outcome::Failed(failure) => Some((&done.record, failure)),
            _ => None,
        });
    for (record, failure) in failed.clone().take(TOLD) {
        let code = failure
            .code
            .as_ref()
            .map_or_else(String::new, |code| format!("[{code}]"));
        let quoted = quoted(failure.log.as_deref());
        let times = times(failure.attempts);
        let reason = format!(
            "failed{code}: {record}: {}{times}\n{quoted}",
            failure.reason
        );
        remark(reason.trim_end());
        if let Some(help) = &failure.help {
            remark(format_args!("  = help: {help}"));
        }
    }
    let more = failed.count().saturating_sub(TOLD);
    if more > 0 {
        remark(format_args!("and {more} more, all of which `--json` lists"));
    }
    if let Some(error) = &summary.error {
        report::print(&error.into());
    }
}

fn lines(summary: &Summary) -> String {
    let tally = summary.tally;
    let mut parts = vec![format!("{} ok", tally.ok)];
    let others = [
        (tally.skipped, "done before"),
        (tally.failed, "failed"),
        (tally.not_started, "not started"),
    ];
    parts.extend(
        others
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}")),
    );
    format!(
        "{} records: {} in {:.2} s on {} ({}), {:.1} Mpix/s\n",
        tally.total(),
        parts.join(", "),
        summary.seconds,
        summary.device,
        summary.faces.join(", "),
        summary.mpix_per_second
    )
}
