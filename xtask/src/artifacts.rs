//! What cargo built, and where it put it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::Task;
use crate::project::Project;

/// The files of one build, as cargo told of them.
#[derive(Debug)]
pub(crate) struct Artifacts {
    made: Vec<Value>,
    /// The command, for those who miss something.
    by: String,
}

/// Which of a package's targets, in cargo's words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Sort {
    Bin,
    Example,
    Test,
    /// The unit tests of a library.
    UnitTests,
}

impl Artifacts {
    /// Builds; what cargo has to say goes to standard error, so that standard output stays free.
    pub(crate) fn build<A: AsRef<OsStr>>(
        project: &Project,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Self> {
        let task = Task::cargo(project, ["build"]).args(args);
        let by = task.named();
        eprintln!("$ {by}");
        let messages = task
            .args(["--message-format", "json-render-diagnostics"])
            .stdout()?;
        Ok(Self::told(&messages, by))
    }

    fn told(messages: &str, by: String) -> Self {
        let messages = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let made = messages
            .filter(|message| message["reason"] == "compiler-artifact")
            .collect();
        Self { made, by }
    }

    /// The program of this name; tests of several packages may have the same.
    pub(crate) fn program(&self, package: &str, sort: Sort, name: &str) -> Result<PathBuf> {
        let mut found = self.made.iter().filter(|artifact| {
            let (kind, tested) = match sort {
                Sort::Bin => ("bin", false),
                Sort::Example => ("example", false),
                Sort::Test => ("test", true),
                Sort::UnitTests => ("lib", true),
            };
            // The test harness of a binary has the binary's name.
            is_of(artifact, package)
                && artifact["target"]["kind"][0] == kind
                && artifact["target"]["name"] == name
                && artifact["profile"]["test"] == tested
        });
        found
            .find_map(|artifact| artifact["executable"].as_str().map(PathBuf::from))
            .with_context(|| format!("`{}` built no `{name}` of `{package}`", self.by))
    }

    /// The shared library of a package.
    pub(crate) fn shared_library(&self, package: &str) -> Result<PathBuf> {
        let artifacts = self.made.iter().filter(|it| is_of(it, package));
        let mut files = artifacts.flat_map(|it| it["filenames"].as_array().into_iter().flatten());
        files
            .find_map(|file| {
                let file = Path::new(file.as_str()?);
                let suffix = std::env::consts::DLL_EXTENSION;
                (file.extension()? == suffix).then(|| file.to_owned())
            })
            .with_context(|| format!("`{}` built no shared library of `{package}`", self.by))
    }
}

/// Whether an artifact is of this package. Cargo's ids are `path+file:///w/backends/cuda#name@1.0`,
/// or without the name where the folder has it.
fn is_of(artifact: &Value, package: &str) -> bool {
    let id = artifact["package_id"].as_str().unwrap_or_default();
    let (path, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    match fragment.split_once('@') {
        Some((name, _)) => name == package,
        None => path.rsplit('/').next() == Some(package),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifacts() -> Artifacts {
        let messages = r#"
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/warploom#0.1.0","target":{"name":"warploom","kind":["lib"]},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/warploom#0.1.0","target":{"name":"warploom","kind":["lib"]},"profile":{"test":true},"executable":"deps/warploom-2"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/warploom-cli#0.1.0","target":{"name":"warploom","kind":["bin"]},"profile":{"test":true},"executable":"deps/warploom-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/warploom-cli#0.1.0","target":{"name":"warploom","kind":["bin"]},"profile":{"test":false},"executable":"debug/warploom"}
not JSON
{"reason":"compiler-artifact","package_id":"path+file:///w/backends/cpu#warploom-cpu@0.1.0","target":{"name":"conformance","kind":["test"]},"profile":{"test":true},"executable":"deps/conformance-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/backends/cuda#warploom-cuda@0.1.0","target":{"name":"conformance","kind":["test"]},"profile":{"test":true},"executable":"deps/conformance-2"}
{"reason":"build-finished","success":true}
"#;
        Artifacts::told(messages, "cargo build".into())
    }

    #[test]
    fn the_binary_is_told_from_its_test_harness() {
        let found = artifacts().program("warploom-cli", Sort::Bin, "warploom");
        assert_eq!(found.unwrap(), Path::new("debug/warploom"));
        let found = artifacts().program("warploom", Sort::UnitTests, "warploom");
        assert_eq!(found.unwrap(), Path::new("deps/warploom-2"));
    }

    #[test]
    fn tests_of_one_name_are_told_apart_by_package() {
        let found = artifacts().program("warploom-cuda", Sort::Test, "conformance");
        assert_eq!(found.unwrap(), Path::new("deps/conformance-2"));
    }

    #[test]
    fn what_was_not_built_is_named() {
        let error = artifacts()
            .program("warploom-cli", Sort::Bin, "other")
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "`cargo build` built no `other` of `warploom-cli`"
        );
    }

    #[test]
    fn a_shared_library_is_found_among_its_siblings() {
        let name = format!("debug/libx.{}", std::env::consts::DLL_EXTENSION);
        let message = serde_json::json!({
            "reason": "compiler-artifact", "package_id": "path+file:///w/x#0.1.0",
            "target": {"name": "x", "kind": ["cdylib", "rlib"]},
            "filenames": ["debug/libx.rlib", name],
        });
        let artifacts = Artifacts::told(&message.to_string(), "cargo build".into());
        assert_eq!(artifacts.shared_library("x").unwrap(), Path::new(&name));
        assert!(artifacts.shared_library("y").is_err());
    }
}
