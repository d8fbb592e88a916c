//! What the rules look at: the packages, and every file that is or will be in the repository.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::project::{Package, Project};

/// The workspace as data.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) packages: Vec<Package>,
    /// Sorted by path.
    pub(super) files: Vec<File>,
}

#[derive(Debug)]
pub(super) struct File {
    /// Below the root, with `/` between the parts.
    pub(super) path: String,
    /// Empty for a file that is not text.
    pub(super) text: String,
}

impl Sources {
    /// Files that git knows or would take; what it ignores is nobody's business.
    pub(super) fn read(project: &Project) -> Result<Self> {
        let listed = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(&project.root)
            .output()
            .context("git could not be started")?;
        if !listed.status.success() {
            bail!(
                "`git ls-files` failed: {}",
                String::from_utf8_lossy(&listed.stderr).trim_end()
            );
        }
        let mut files = Vec::new();
        for path in String::from_utf8_lossy(&listed.stdout).split('\0') {
            // A file that is deleted but not yet committed is still listed.
            let Ok(bytes) = std::fs::read(project.root.join(path)) else {
                continue;
            };
            files.push(File {
                path: path.to_owned(),
                text: String::from_utf8(bytes).unwrap_or_default(),
            });
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        Ok(Self {
            packages: project.packages.clone(),
            files,
        })
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn rust_files(&self) -> impl Iterator<Item = &File> {
        let is_rust = |file: &&File| Path::new(&file.path).extension() == Some("rs".as_ref());
        self.files.iter().filter(is_rust)
    }

    /// Whether anything lies below this folder.
    pub(super) fn has_folder(&self, folder: &str) -> bool {
        let start = format!("{folder}/");
        self.files.iter().any(|file| file.path.starts_with(&start))
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| File {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        });
        Self {
            packages: Vec::new(),
            files: files.collect(),
        }
    }
}
