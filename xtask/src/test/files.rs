//! Image files of other programs in ours, and ours in theirs: tifffile, zarr, ome-zarr and pyarrow, in
//! `tests/files`.

use anyhow::Result;

use super::Session;
use super::checks::Checks;
use crate::artifacts::{Artifacts, Sort};
use crate::python::Python;

const REQUIREMENTS: &str = "tests/files/requirements.txt";

pub(super) fn stage(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let project = session.project;
    let python = match Python::with(project, "files-venv", REQUIREMENTS) {
        Ok(python) => python,
        Err(error) if session.ci => return Err(error),
        Err(error) => {
            checks.skip("the other programs", &format!("{error:#}"));
            return Ok(());
        }
    };
    let built = Artifacts::build(project, ["--all-targets"])?;
    let program = built.program("warploom-io", Sort::Example, "convert")?;
    let task = python.package(project, "tests", "files");
    checks.run(&task.args(["--program"]).args([program]))?;
    Ok(())
}
