//! Reports of runs, opened in a browser: they render, are silent, and can be steered.

use anyhow::Result;

use super::Session;
use super::checks::Checks;
use crate::artifacts::{Artifacts, Sort};
use crate::process::Task;

pub(super) fn stage(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let project = session.project;
    let Some(browser) = &session.parts.browser.found else {
        let why = "Chromium is not installed (`cargo xtask setup` gets it where it may)";
        if session.ci {
            checks.fail("reports in a browser", why);
        } else {
            checks.skip("reports in a browser", why);
        }
        return Ok(());
    };
    let built = Artifacts::build(project, ["--all-targets"])?;
    let program = built.program("warploom-watch", Sort::Example, "browser")?;
    let folder = project.target.join("report");
    checks.run(&Task::new(project, program).args([browser, &folder]))?;
    println!("pages and pictures of them: {}", folder.display());
    Ok(())
}
