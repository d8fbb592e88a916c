//! Other people's schedulers, which benches of ours take turns with: small programs in
//! `tests/bench/native`, built where their libraries are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{Task, Variables};
use crate::project::Project;
use crate::setup;

const FOLDER: &str = "tests/bench/native";

/// A library and the program that uses it.
struct Rival {
    name: &'static str,
    package: &'static str,
    /// What `pkg-config` calls it.
    library: &'static str,
    source: &'static str,
    compiler: &'static [&'static str],
    /// How a bench is told where the program is.
    variable: &'static str,
}

const RIVALS: [Rival; 2] = [
    Rival {
        name: "StarPU",
        package: "libstarpu-dev",
        library: "starpu-1.3",
        source: "starpu.c",
        compiler: &["cc", "-O2"],
        variable: "WARPLOOM_PEER_STARPU",
    },
    Rival {
        name: "oneTBB",
        package: "libtbb-dev",
        library: "tbb",
        source: "tbb.cpp",
        compiler: &["c++", "-O2", "-std=c++17"],
        variable: "WARPLOOM_PEER_TBB",
    },
];

/// What a compiler has to be told to use a library; `None` where it is not installed.
fn flags(library: &str) -> Option<Vec<String>> {
    let asked = Command::new("pkg-config")
        .args(["--cflags", "--libs", library])
        .output();
    let asked = asked.ok().filter(|asked| asked.status.success())?;
    let text = String::from_utf8_lossy(&asked.stdout).into_owned();
    Some(text.split_whitespace().map(str::to_owned).collect())
}

/// Builds what can be built, installing libraries where nobody has to be asked, and says why
/// something is left out. The variables are for the benches.
pub(crate) fn build(project: &Project) -> Result<Variables> {
    let is_missing = |rival: &&Rival| flags(rival.library).is_none();
    let missing: Vec<&str> = RIVALS
        .iter()
        .filter(is_missing)
        .map(|r| r.package)
        .collect();
    if !missing.is_empty() {
        setup::install_if_allowed(&[&missing[..], &["pkg-config"]].concat())?;
    }
    let mut variables = Variables::new();
    for rival in &RIVALS {
        let Some(flags) = flags(rival.library) else {
            eprintln!(
                "{} is not here and is left out; on Debian or Ubuntu: sudo apt-get install -y {} pkg-config",
                rival.name, rival.package
            );
            continue;
        };
        match rival.compile(project, &flags)? {
            Some(program) => variables.push((rival.variable, OsString::from(program))),
            None => eprintln!("{} is left out: its program does not compile", rival.name),
        }
    }
    Ok(variables)
}

impl Rival {
    fn compile(&self, project: &Project, flags: &[String]) -> Result<Option<PathBuf>> {
        let folder = project.target.join("rivals");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        let program = folder.join(Path::new(self.source).with_extension(""));
        let source = Path::new(FOLDER).join(self.source);
        let [compiler, options @ ..] = self.compiler else {
            return Ok(None);
        };
        let task = Task::new(project, *compiler)
            .args(options)
            .args([source.as_os_str(), "-o".as_ref(), program.as_os_str()])
            .args(flags);
        // A machine without a compiler for C has no peers either.
        let is_built = task.status().is_ok_and(|status| status.success());
        Ok(is_built.then_some(program))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rival_has_its_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for rival in &RIVALS {
            let source = root.join(FOLDER).join(rival.source);
            assert!(source.is_file(), "{}", source.display());
        }
    }

    #[test]
    fn a_library_that_is_not_there_has_no_flags() {
        assert_eq!(flags("warploom-has-no-such-library"), None);
    }
}
