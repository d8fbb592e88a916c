//! Python environments of our own, below the target directory: what a list of requirements names,
//! from wherever pip gets its packages, and nothing that is installed on the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::Task;
use crate::project::Project;
use crate::wheels::reason;

/// The longest that pip may take.
const DEADLINE: Duration = Duration::from_mins(15);

/// The file in an environment that says for which requirements it was made.
const MADE_FOR: &str = "made-for.txt";

/// A Python with the packages of one list.
#[derive(Debug)]
pub(crate) struct Python {
    program: PathBuf,
}

impl Python {
    /// The environment `name` with the packages that `requirements`, a file below the root, lists.
    ///
    /// # Errors
    /// Mostly that there is no Python, or nothing that pip could reach.
    pub(crate) fn with(project: &Project, name: &str, requirements: &str) -> Result<Self> {
        let list = project.root.join(requirements);
        let wanted = fs::read_to_string(&list)
            .with_context(|| format!("{} cannot be read", list.display()))?;
        let folder = project.target.join(name);
        if !is_made_for(&folder, &wanted) {
            // Half an environment must not look like a whole one: it gets its name at the end.
            let own = project
                .target
                .join(format!(".{name}-{}", std::process::id()));
            drop(fs::remove_dir_all(&own));
            eprintln!("making {} of {requirements}", folder.display());
            if let Err(error) = make(project, &own, &list, &wanted) {
                drop(fs::remove_dir_all(&own));
                return Err(error.context(format!("no Python with the packages of {requirements}")));
            }
            replace(&own, &folder, &wanted)?;
        }
        Ok(Self {
            program: program(&folder),
        })
    }

    /// Runs a package of ours from the folder it is in.
    pub(crate) fn package(&self, project: &Project, folder: &str, name: &str) -> Task {
        Task::new(project, &self.program)
            .inside(project.root.join(folder))
            .args(["-m", name])
            // Compiled files would lie between the sources.
            .variable("PYTHONDONTWRITEBYTECODE", "1")
    }
}

fn is_made_for(folder: &Path, wanted: &str) -> bool {
    program(folder).exists()
        && fs::read_to_string(folder.join(MADE_FOR)).is_ok_and(|found| found == wanted)
}

fn program(folder: &Path) -> PathBuf {
    if cfg!(windows) {
        folder.join("Scripts/python.exe")
    } else {
        folder.join("bin/python")
    }
}

fn make(project: &Project, folder: &Path, list: &Path, wanted: &str) -> Result<()> {
    let venv = Task::new(project, "python3")
        .args(["-m", "venv"])
        .args([folder]);
    let answer = venv.capture(DEADLINE)?;
    if !answer.status.success() {
        bail!("`{}` says: {}", venv.named(), reason(&answer.stderr));
    }
    let pip = Task::new(project, program(folder))
        .args(["-m", "pip", "install", "--quiet", "--no-input"])
        .args(["--disable-pip-version-check", "--only-binary", ":all:"])
        .args(["--requirement"])
        .args([list]);
    let answer = pip.capture(DEADLINE)?;
    if !answer.status.success() {
        bail!("pip says: {}", reason(&answer.stderr));
    }
    fs::write(folder.join(MADE_FOR), wanted)?;
    Ok(())
}

/// Gives the new environment its name. Another process may have been faster.
fn replace(own: &Path, folder: &Path, wanted: &str) -> Result<()> {
    if is_made_for(folder, wanted) {
        drop(fs::remove_dir_all(own));
        return Ok(());
    }
    drop(fs::remove_dir_all(folder));
    fs::rename(own, folder).with_context(|| format!("{} cannot be made", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_for_other_packages_is_not_taken() {
        let root = std::env::temp_dir().join(format!("xtask-python-{}", std::process::id()));
        let (own, folder) = (root.join("own"), root.join("folder"));
        for place in [&own, &folder] {
            let python = program(place);
            fs::create_dir_all(python.parent().unwrap()).unwrap();
            fs::write(python, "").unwrap();
        }
        fs::write(own.join(MADE_FOR), "b==2\n").unwrap();
        assert!(!is_made_for(&folder, "b==2\n"), "it says nothing");
        fs::write(folder.join(MADE_FOR), "a==1\n").unwrap();
        assert!(!is_made_for(&folder, "b==2\n"), "it is for others");
        replace(&own, &folder, "b==2\n").unwrap();
        let (is_new, is_moved) = (is_made_for(&folder, "b==2\n"), !own.exists());
        fs::remove_dir_all(&root).unwrap();
        assert!(is_new && is_moved);
    }
}
