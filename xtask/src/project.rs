//! Where the workspace is and what cargo says is in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The workspace around this program.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) cargo: OsString,
    pub(crate) packages: Vec<Package>,
}

/// A member of the workspace.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Where it is below the root, with `/` between the parts.
    pub(crate) dir: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) features: Vec<String>,
    pub(crate) targets: Vec<Target>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Only for tests, examples and benches of the package itself.
    pub(crate) dev: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// `lib`, `bin`, `test`, `example`, ….
    pub(crate) kind: String,
}

impl Project {
    /// Asks cargo, from the directory that `cargo run` names, or from the current one.
    pub(crate) fn find() -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut ask = Command::new(&cargo);
        ask.args(["metadata", "--no-deps", "--format-version", "1"]);
        if let Some(dir) = std::env::var_os("CARGO_MANIFEST_DIR") {
            ask.current_dir(dir);
        }
        let answer = ask
            .output()
            .context("cargo could not be started; is it on PATH?")?;
        if !answer.status.success() {
            bail!(
                "`cargo metadata` failed:\n{}",
                String::from_utf8_lossy(&answer.stderr).trim_end()
            );
        }
        let value: Value =
            serde_json::from_slice(&answer.stdout).context("`cargo metadata` gave no JSON")?;
        Self::from_metadata(cargo, &value)
    }

    fn from_metadata(cargo: OsString, value: &Value) -> Result<Self> {
        let root = PathBuf::from(text(value, "workspace_root")?);
        let target = PathBuf::from(text(value, "target_directory")?);
        let mut packages = Vec::new();
        for package in list(value, "packages") {
            packages.push(Package::from_metadata(&root, package)?);
        }
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            root,
            target,
            cargo,
            packages,
        })
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

impl Package {
    fn from_metadata(root: &Path, value: &Value) -> Result<Self> {
        let manifest = Path::new(text(value, "manifest_path")?);
        let dir = manifest
            .parent()
            .and_then(|dir| dir.strip_prefix(root).ok())
            .with_context(|| format!("{} is outside the workspace", manifest.display()))?;
        let dependencies = list(value, "dependencies").map(|dependency| {
            Ok(Dependency {
                name: text(dependency, "name")?.to_owned(),
                dev: dependency["kind"].as_str() == Some("dev"),
            })
        });
        let targets = list(value, "targets").map(|target| {
            Ok(Target {
                name: text(target, "name")?.to_owned(),
                kind: target["kind"][0].as_str().unwrap_or_default().to_owned(),
            })
        });
        let features = value["features"].as_object();
        Ok(Self {
            name: text(value, "name")?.to_owned(),
            dir: dir.to_string_lossy().replace('\\', "/"),
            dependencies: dependencies.collect::<Result<_>>()?,
            features: features.map_or_else(Vec::new, |map| map.keys().cloned().collect()),
            targets: targets.collect::<Result<_>>()?,
        })
    }

    pub(crate) fn has_target(&self, kind: &str, name: &str) -> bool {
        let wanted = |target: &&Target| target.kind == kind && target.name == name;
        self.targets.iter().any(|target| wanted(&target))
    }

    pub(crate) fn has_feature(&self, name: &str) -> bool {
        self.features.iter().any(|feature| feature == name)
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key]
        .as_str()
        .with_context(|| format!("`cargo metadata` has no text `{key}` where it should"))
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_becomes_packages() {
        let metadata = json!({
            "workspace_root": "/w", "target_directory": "/w/target",
            "packages": [{
                "name": "b", "manifest_path": "/w/backends/b/Cargo.toml",
                "dependencies": [
                    {"name": "core", "kind": null},
                    {"name": "kit", "kind": "dev"},
                ],
                "features": {"default": ["x"], "x": []},
                "targets": [{"name": "conformance", "kind": ["test"]}],
            }],
        });
        let project = Project::from_metadata("cargo".into(), &metadata).unwrap();
        let package = project.package("b").unwrap();
        assert_eq!(package.dir, "backends/b");
        assert!(!package.dependencies[0].dev && package.dependencies[1].dev);
        assert!(package.has_feature("x") && !package.has_feature("y"));
        assert!(package.has_target("test", "conformance"));
        assert!(!package.has_target("bin", "conformance"));
        assert!(project.package("c").is_none());
    }

    #[test]
    fn a_package_outside_is_an_error() {
        let metadata = json!({
            "workspace_root": "/w", "target_directory": "/w/target",
            "packages": [{"name": "b", "manifest_path": "/elsewhere/Cargo.toml"}],
        });
        let error = Project::from_metadata("cargo".into(), &metadata).unwrap_err();
        assert!(error.to_string().contains("outside the workspace"));
    }
}
