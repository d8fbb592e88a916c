//! Every CUDA kernel of the workspace, as files.
//!
//! A crate with kernels has an example whose name starts with `kernels_`, which writes them to the
//! folder it is told. The kernels of examples and whole-system tests stand in their text, where a
//! reader wants them, and are taken from there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::Task;
use crate::project::Project;

/// How the examples that write kernels are called.
const PREFIX: &str = "kernels_";

/// Where kernels stand in the text of programs.
const IN_TEXT: &[&str] = &["examples", "tests/suite"];

/// What makes a text a kernel.
const MARK: &str = "__global__";

/// The package and the name of every program that writes kernels.
pub(super) fn writers(project: &Project) -> Vec<(&str, &str)> {
    let mut writers = Vec::new();
    for package in &project.packages {
        for target in &package.targets {
            if target.kind == "example" && target.name.starts_with(PREFIX) {
                writers.push((package.name.as_str(), target.name.as_str()));
            }
        }
    }
    writers
}

/// Writes every kernel to a folder below `work`, and answers where. The name of a file says where it
/// comes from: see [`origin`].
pub(super) fn collect(project: &Project, writers: &[PathBuf], work: &Path) -> Result<PathBuf> {
    let mut texts = Vec::new();
    for writer in writers {
        let name = writer.file_stem().unwrap_or_default().to_string_lossy();
        let from = name.strip_prefix(PREFIX).unwrap_or(&name).to_owned();
        let own = work.join("written").join(&from);
        fs::create_dir_all(&own)?;
        Task::new(project, writer).args([&own]).stdout()?;
        let files = files(&own, "cu")?;
        if files.is_empty() {
            bail!("{name} wrote no kernel");
        }
        for file in files {
            texts.push((from.clone(), stem(&file), fs::read_to_string(&file)?));
        }
    }
    for place in IN_TEXT {
        for file in files(&project.root.join(place), "rs")? {
            let rust = fs::read_to_string(&file)?;
            let path = file.strip_prefix(&project.root).unwrap_or(&file);
            let found = kernels_in(&rust).with_context(|| format!("in {}", path.display()))?;
            let from = path.with_extension("").to_string_lossy().into_owned();
            for (number, text) in found.into_iter().enumerate() {
                texts.push((from.clone(), number.to_string(), text.to_owned()));
            }
        }
    }
    let folder = work.join("sources");
    fs::create_dir_all(&folder)?;
    for (from, name, text) in &texts {
        let file = format!("{}@{name}.cu", from.replace('/', "@"));
        fs::write(folder.join(file), text)?;
    }
    Ok(folder)
}

/// Where the kernels of a file come from: all of its name but the last part.
pub(super) fn origin(stem: &str) -> String {
    let (from, _) = stem.rsplit_once('@').unwrap_or((stem, ""));
    from.replace('@', "/")
}

/// The raw texts in a Rust file that are CUDA C. That there is some outside a raw text is an error:
/// it would escape.
fn kernels_in(mut rust: &str) -> Result<Vec<&str>> {
    let mut found = Vec::new();
    while let Some((before, after)) = rust.split_once("r#\"") {
        let (text, after) = after
            .split_once("\"#")
            .context("a raw text that does not end")?;
        refuse_loose(before)?;
        if text.contains(MARK) {
            found.push(text);
        }
        rust = after;
    }
    refuse_loose(rust)?;
    Ok(found)
}

fn refuse_loose(rust: &str) -> Result<()> {
    let mut code = rust.lines().filter(|line| !line.trim().starts_with("//"));
    match code.find(|line| line.contains(MARK)) {
        Some(line) => bail!(
            "CUDA C outside of r#\"…\"#, where it is not found and so not checked: `{}`",
            line.trim()
        ),
        None => Ok(()),
    }
}

/// The files of a folder and those below it, in the order of their names.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn stem(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_among_other_texts() {
        let rust = r##"
/// A `__global__` function.
const WGSL: &str = r#"fn a() {}"#;
const CUDA: &str = r#"
extern "C" __global__ void a() {}
"#;
fn b() { c(r#"extern "C" __global__ void d() {}"#); }
"##;
        let expected = [
            "\nextern \"C\" __global__ void a() {}\n",
            "extern \"C\" __global__ void d() {}",
        ];
        assert_eq!(kernels_in(rust).unwrap(), expected);
        assert_eq!(kernels_in("fn main() {}").unwrap(), Vec::<&str>::new());
    }

    #[test]
    fn a_kernel_that_would_be_missed_is_an_error() {
        let rust = "const A: &str = \"extern \\\"C\\\" __global__ void a() {}\";";
        let error = kernels_in(rust).unwrap_err().to_string();
        assert!(error.starts_with("CUDA C outside"), "{error}");
        let behind = format!("r#\"x\"# {rust}");
        assert!(kernels_in(&behind).is_err());
        assert!(kernels_in("r#\"never ends").is_err());
    }

    #[test]
    fn the_name_of_a_file_says_where_it_is_from() {
        assert_eq!(origin("testkit@saxpy"), "testkit");
        assert_eq!(origin("examples@03_launch@0"), "examples/03_launch");
    }

    #[test]
    fn any_crate_can_have_a_writer() {
        use crate::project::{Package, Target};
        let target = |name: &str, kind: &str| Target {
            name: name.into(),
            kind: kind.into(),
        };
        let package = Package {
            name: "a".into(),
            targets: vec![
                target("kernels_a", "example"),
                target("kernels_b", "test"),
                target("other", "example"),
            ],
            ..Package::default()
        };
        let project = Project {
            root: ".".into(),
            target: "target".into(),
            cargo: "cargo".into(),
            packages: vec![package],
        };
        assert_eq!(writers(&project), [("a", "kernels_a")]);
    }
}
