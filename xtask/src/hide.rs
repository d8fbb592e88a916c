//! A view of this machine in which no driver library is installed.
//!
//! Variables can only point a loader at a wrong file, which is a broken driver; an absent one
//! needs the file to be gone. In a mount namespace of its own, each library folder is replaced by
//! a folder of links to everything in it except the drivers. The namespace ends with the process,
//! and nothing outside it changes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use crate::process::Task;
use crate::project::Project;
use crate::setup::library_dirs;

/// Names that are left out of the view, as shell patterns.
const HIDDEN: &str = "libOpenCL.so* libvulkan.so* libcuda.so* libnvrtc* libnvidia-*";

/// `$1` is an empty folder to build in, then come the library folders, `--`, and the command.
const SCRIPT: &str = r#"
set -eu
work=$1
shift
mount -t tmpfs tmpfs "$work"
number=0
while [ "$1" != -- ]; do
    folder=$1
    shift
    number=$((number + 1))
    real=$work/$number/real
    view=$work/$number/view
    mkdir -p "$real" "$view"
    mount --bind "$folder" "$real"
    find "$real" -mindepth 1 -maxdepth 1 -exec ln -s -t "$view" {} +
    for pattern in $HIDDEN; do
        rm -f "$view"/$pattern
    done
    mount --bind "$view" "$folder"
done
shift
exec "$@"
"#;

/// The command wrapped so that it sees no driver library; `Err(why)` where that is not permitted.
pub(crate) fn without_libraries(
    project: &Project,
    command: &[&Path],
) -> Result<std::result::Result<Task, String>> {
    let work = project.target.join("stand-ins").join("hidden");
    std::fs::create_dir_all(&work)?;
    let folders = with_drivers(&library_dirs(Path::new("/")));
    let probe = wrapped(project, &work, &folders, &[Path::new("true")]);
    let refused = match probe.capture(Duration::from_mins(1)) {
        Ok(answer) if answer.status.success() => None,
        Ok(answer) => {
            let said = answer.stderr.lines().next().unwrap_or("no reason given");
            Some(format!("no private mount namespace here ({said})"))
        }
        Err(error) => Some(format!("{error:#}")),
    };
    Ok(match refused {
        Some(why) => Err(why),
        None => Ok(wrapped(project, &work, &folders, command)),
    })
}

fn wrapped(project: &Project, work: &Path, folders: &[PathBuf], command: &[&Path]) -> Task {
    Task::new(project, "unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh"])
        .args([work])
        .args(folders)
        .args(["--"])
        .args(command)
        .variable("HIDDEN", HIDDEN)
}

/// The folders that hold a driver library at all; the others need no view.
fn with_drivers(folders: &[PathBuf]) -> Vec<PathBuf> {
    let holds = |folder: &&PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .any(|name| is_hidden(&name))
    };
    folders.iter().filter(holds).cloned().collect()
}

fn is_hidden(name: &str) -> bool {
    let mut patterns = HIDDEN
        .split(' ')
        .map(|pattern| pattern.trim_end_matches('*'));
    patterns.any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaders_are_hidden_and_their_neighbours_are_not() {
        for name in [
            "libOpenCL.so.1.0.0",
            "libvulkan.so.1",
            "libcuda.so",
            "libnvrtc-builtins.so",
        ] {
            assert!(is_hidden(name), "{name}");
        }
        for name in [
            "libc.so.6",
            "libvulkan_lvp.so",
            "libOpenGL.so.0",
            "libcudart-not.so",
        ] {
            assert!(!is_hidden(name), "{name}");
        }
    }
}
