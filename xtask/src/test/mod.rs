//! Everything CI checks, stage by stage, with a table at the end.

mod checks;
mod cuda;
mod files;
mod fleets;
mod oracle;
mod page;
mod report;
mod stages;
mod surroundings;
pub(crate) mod tally;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::flags;
use crate::process::{Task, Variables, is_ci};
use crate::project::Project;
use crate::setup::Parts;
use crate::stand_ins;
use checks::Checks;
use report::Row;
use stages::STAGES;

/// What all stages of one run know.
#[derive(Debug)]
struct Session<'a> {
    project: &'a Project,
    parts: Parts,
    flags: flags::Test,
    ci: bool,
    /// Whether `cargo nextest` is installed.
    nextest: bool,
}

/// One line of the closing table, and how to get there.
#[derive(Debug)]
struct Stage {
    name: &'static str,
    about: &'static str,
    /// Part of `--quick`.
    quick: bool,
    run: fn(&Session<'_>, &mut Checks) -> Result<()>,
}

/// The names `--only` takes.
pub(crate) fn stage_names() -> impl Iterator<Item = &'static str> {
    STAGES.iter().map(|stage| stage.name)
}

/// Names and one-line descriptions, for the help text.
pub(crate) fn stage_table() -> impl Iterator<Item = (&'static str, &'static str)> {
    STAGES.iter().map(|stage| (stage.name, stage.about))
}

pub(crate) fn run(project: &Project, flags: flags::Test) -> ExitCode {
    let mut session = Session {
        project,
        parts: Parts::installed(),
        flags,
        ci: is_ci(),
        nextest: answers(project, "nextest"),
    };
    let chosen: Vec<&Stage> = STAGES
        .iter()
        .filter(|stage| is_chosen(stage, &session.flags))
        .collect();
    let mut rows = Vec::new();
    for (number, stage) in chosen.iter().enumerate() {
        println!(
            "\n=== {}/{} {}: {}",
            number + 1,
            chosen.len(),
            stage.name,
            stage.about
        );
        let start = Instant::now();
        let mut checks = Checks::default();
        if let Err(error) = (stage.run)(&session, &mut checks) {
            checks.fail(stage.name, &format!("{error:#}"));
        }
        let row = Row::new(stage.name, checks, start.elapsed());
        println!("=== {}: {} in {}", stage.name, row.verdict(), row.time());
        rows.push(row);
        // The first stage may have installed something.
        session.parts = Parts::installed();
    }
    print!("{}", report::closing(&rows));
    if rows.iter().any(Row::is_failed) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn is_chosen(stage: &Stage, flags: &flags::Test) -> bool {
    if flags.filter.is_some() {
        return stage.name == "tests";
    }
    if !flags.only.is_empty() {
        return flags.only.iter().any(|name| name == stage.name);
    }
    stage.quick || !flags.quick
}

/// Whether a cargo subcommand is installed.
fn answers(project: &Project, subcommand: &str) -> bool {
    let ask = Task::cargo(project, [subcommand, "--version"]);
    let answer = ask.capture(std::time::Duration::from_secs(30));
    answer.is_ok_and(|answer| answer.status.success())
}

impl Session<'_> {
    /// What tests see of this machine: the stand-ins, or with `--real-gpu` the machine itself.
    fn devices(&self) -> Result<Variables> {
        if self.flags.real_gpu {
            return Ok(Vec::new());
        }
        let mut variables = stand_ins::several_devices(self.project, &self.parts)?;
        if self.ci {
            variables.extend(stand_ins::required());
        }
        Ok(variables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(flags: &flags::Test) -> Vec<&'static str> {
        let stages = STAGES.iter().filter(|stage| is_chosen(stage, flags));
        stages.map(|stage| stage.name).collect()
    }

    #[test]
    fn all_stages_run_unless_fewer_are_asked_for() {
        let all = chosen(&flags::Test::default());
        assert_eq!(all.len(), STAGES.len());
        let quick = flags::Test {
            quick: true,
            ..flags::Test::default()
        };
        assert_eq!(chosen(&quick), ["fmt", "tidy", "clippy", "tests"]);
        let filtered = flags::Test {
            filter: Some("lease".into()),
            ..flags::Test::default()
        };
        assert_eq!(chosen(&filtered), ["tests"]);
        let only = flags::Test {
            only: vec!["shuttle".into()],
            quick: true,
            ..flags::Test::default()
        };
        assert_eq!(chosen(&only), ["shuttle"]);
    }

    #[test]
    fn stage_names_differ() {
        let mut names: Vec<_> = stage_names().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STAGES.len());
    }
}
