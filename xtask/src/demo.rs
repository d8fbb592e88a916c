//! The examples, as a course on whatever this machine has.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::artifacts::{Artifacts, Sort};
use crate::flags;
use crate::process::{Task, Variables};
use crate::project::Project;
use crate::{detect, stand_ins};

pub(crate) const EXAMPLES: &str = "warploom-examples";

/// What is run, and what a person is told about it.
const COURSE: &[(&str, &str)] = &[
    ("02_copy", "Bytes to every device and back"),
    ("03_launch", "A kernel on every device"),
    ("04_lease", "Sharing a device by leases"),
    (
        PLATE,
        "A plate of nuclei, from images to a table, on every device",
    ),
    (
        RECORDS,
        "Images through work of one's own, read ahead and written behind",
    ),
];
/// Those that leave something to look at, in a folder that they are told.
const PLATE: &str = "07_plate";
const RECORDS: &str = "08_records";
/// How long all of it may take on two cores, once it is built.
const LIMIT: Duration = Duration::from_mins(2);

pub(crate) fn run(project: &Project) -> Result<ExitCode> {
    let variables = stand_ins::quiet_runtime(project)?;
    build(project)?;
    let start = Instant::now();
    heading(1, "What this machine has");
    let found = detect::task(project, &flags::Detect::default())?.variables(&variables);
    let mut failed = Vec::new();
    if !found.status()?.success() {
        failed.push(found.shown());
    }
    for (number, (example, title)) in (2..).zip(COURSE) {
        heading(number, title);
        let task = task(project, "run", example, &variables)?;
        if !task.status()?.success() {
            failed.push(task.shown());
        }
    }
    println!();
    if failed.is_empty() {
        let took = start.elapsed();
        println!("All of it worked, in {:.1} s.", took.as_secs_f64());
        if let Some(complaint) = complaint(took) {
            println!("{complaint}");
            return Ok(ExitCode::FAILURE);
        }
        println!("Next: read `examples/`, or run `cargo xtask test`.");
        return Ok(ExitCode::SUCCESS);
    }
    println!("This failed; run it again with:");
    for line in failed {
        println!("    {line}");
    }
    Ok(ExitCode::FAILURE)
}

/// What is wrong with a demo that took so long, builds apart.
pub(crate) fn complaint(took: Duration) -> Option<String> {
    let (took, limit) = (took.as_secs_f64(), LIMIT.as_secs_f64());
    (took > limit).then(|| {
        format!(
            "it took {took:.1} s and may take {limit:.0} s: is the machine busy with something else?"
        )
    })
}

/// Everything that it runs, as programs that are built; the plate's results go to `plate`.
pub(crate) fn programs(project: &Project, built: &Artifacts, plate: &Path) -> Result<Vec<Task>> {
    let found = built.program(detect::CLI, Sort::Bin, "warploom")?;
    let mut tasks = vec![Task::new(project, found).args(["detect"])];
    for (example, _) in COURSE {
        let package = project.package(EXAMPLES);
        let is_bin = package.is_some_and(|package| package.has_target("bin", example));
        let sort = if is_bin { Sort::Bin } else { Sort::Example };
        let task = Task::new(project, built.program(EXAMPLES, sort, example)?);
        tasks.push(match *example {
            PLATE => task.args([plate]),
            RECORDS => task.args([plate.with_file_name("records")]),
            _ => task,
        });
    }
    Ok(tasks)
}

/// Builds all of it first, so that the parts follow each other without a pause.
fn build(project: &Project) -> Result<()> {
    println!("Building; the first time takes a few minutes.");
    let cli = ["build", "--quiet", "--package", detect::CLI];
    let mut tasks = vec![Task::cargo(project, cli)];
    for (example, _) in COURSE {
        tasks.push(task(project, "build", example, &Vec::new())?);
    }
    for task in tasks {
        if !task.status()?.success() {
            bail!("`{}` failed", task.shown());
        }
    }
    Ok(())
}

fn task(project: &Project, verb: &str, example: &str, variables: &Variables) -> Result<Task> {
    let Some(package) = project.package(EXAMPLES) else {
        bail!("this workspace has no package `{EXAMPLES}`");
    };
    let kinds = [("example", "--example"), ("bin", "--bin")];
    let kind = kinds
        .iter()
        .find(|(kind, _)| package.has_target(kind, example));
    let Some((_, flag)) = kind else {
        bail!("package `{EXAMPLES}` has no example `{example}`");
    };
    let mut args: Vec<OsString> = [verb, "--quiet", "--package", EXAMPLES, flag, example]
        .map(OsString::from)
        .into();
    let folder = match example {
        PLATE => Some("demo"),
        RECORDS => Some("demo-records"),
        _ => None,
    };
    if let (Some(folder), "run") = (folder, verb) {
        args.push("--".into());
        args.push(project.target.join(folder).into());
    }
    Ok(Task::cargo(project, args).variables(variables))
}

fn heading(number: u32, title: &str) {
    println!("\n{number}. {title}\n{}", "-".repeat(title.len() + 3));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_that_takes_too_long_is_complained_about() {
        assert_eq!(complaint(LIMIT), None);
        let complaint = complaint(LIMIT + Duration::from_secs(1)).unwrap();
        assert!(complaint.starts_with("it took 121.0 s and may take 120 s"));
    }
}
