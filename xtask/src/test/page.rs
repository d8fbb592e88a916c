//! The demo, in the time that it may take; and reports of runs, opened in a browser: they render, are silent,
//! and can be steered. One of them is of the demo's plate.

use std::time::Instant;

use anyhow::Result;

use super::Session;
use super::checks::Checks;
use crate::artifacts::{Artifacts, Sort};
use crate::demo;
use crate::process::Task;

pub(super) fn stage(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let project = session.project;
    let built = Artifacts::build(project, ["--all-targets"])?;
    let folder = project.target.join("report");
    let plate = folder.join("plate");
    let mut is_run = true;
    let begun = Instant::now();
    for task in demo::programs(project, &built, &plate)? {
        is_run &= checks.run(&task)?;
    }
    match demo::complaint(begun.elapsed()) {
        Some(complaint) => checks.fail("the demo in time", &complaint),
        None => checks.pass("the demo in time"),
    }
    let Some(browser) = &session.parts.browser.found else {
        let why = "Chromium is not installed (`cargo xtask setup` gets it where it may)";
        if session.ci {
            checks.fail("reports in a browser", why);
        } else {
            checks.skip("reports in a browser", why);
        }
        return Ok(());
    };
    let program = built.program("warploom-watch", Sort::Example, "browser")?;
    let mut task = Task::new(project, program).args([browser, &folder]);
    if is_run {
        task = task.args([plate.join("cpu-0/report.html")]);
    }
    checks.run(&task)?;
    println!("pages and pictures of them: {}", folder.display());
    Ok(())
}
