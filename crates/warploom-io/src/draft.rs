//! A file that appears when it is complete.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Fault;

/// A file beside the one that is to appear. It goes away when it is dropped before it was kept.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
    kept: bool,
}

impl Draft {
    /// Makes the file at `path` what `content` writes. Where there was a file it is replaced in one
    /// step; after an error nothing has changed.
    pub(crate) fn fill(
        path: &Path,
        content: impl FnOnce(&mut BufWriter<File>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        Self::check(path)?;
        // A link stays a link: what it points at is replaced, there where it is.
        let target = if path.is_symlink() {
            fs::canonicalize(path).ok()
        } else {
            None
        };
        let path = target.as_deref().unwrap_or(path);
        let (mut draft, file) = Self::beside(path).map_err(|error| Fault::write(&error))?;
        let mut writer = BufWriter::with_capacity(1 << 18, file);
        content(&mut writer)?;
        writer
            .flush()
            .and_then(|()| {
                // Windows does not rename an open file.
                drop(writer);
                fs::rename(&draft.path, path)
            })
            .map_err(|error| Fault::write(&error))?;
        draft.kept = true;
        Ok(())
    }

    /// Whether there is a folder that a file of this name would be in, and no folder in its place.
    pub(crate) fn check(path: &Path) -> Result<(), Fault> {
        if path.is_dir() {
            return Err(Fault::Folder);
        }
        match path.parent() {
            Some(folder) if folder != Path::new("") => {
                let found = fs::metadata(folder).map_err(|error| Fault::write(&error))?;
                if found.is_dir() {
                    Ok(())
                } else {
                    Err(Fault::write(&io::ErrorKind::NotADirectory.into()))
                }
            }
            _ => Ok(()),
        }
    }

    /// A new file in the folder of `path`: only within one file system is renaming one step.
    fn beside(path: &Path) -> io::Result<(Self, File)> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let mut name = OsString::from(".");
            name.push(path.file_name().unwrap_or_default());
            name.push(format!(".{}-{count}.part", process::id()));
            let path = path.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((Self { path, kept: false }, file)),
                // Left behind by a process of the same number that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            // Whatever made the draft fail is being reported; a leftover is the lesser trouble.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        fs::write(&path, "old").unwrap();
        Draft::fill(&path, |file| {
            file.write_all(b"new").map_err(|e| Fault::write(&e))?;
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert_eq!(names(folder.path()).len(), 2);
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a.npy"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (link, file) = (folder.path().join("a.npy"), elsewhere.path().join("b"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Draft::fill(&link, |file| {
            file.write_all(b"new").map_err(|e| Fault::write(&e))
        })
        .unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(names(elsewhere.path()), ["b"]);
    }

    #[test]
    fn after_an_error_nothing_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        fs::write(&path, "old").unwrap();
        let fault = Draft::fill(&path, |_| Err(Fault::Folder)).unwrap_err();
        assert_eq!(fault, Fault::Folder);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.npy"]);
    }

    #[test]
    fn a_folder_in_the_way_or_missing_is_said() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Draft::fill(folder.path(), |_| Ok(())), Err(Fault::Folder));
        let nowhere = folder.path().join("none/a.npy");
        assert!(matches!(
            Draft::fill(&nowhere, |_| Ok(())),
            Err(Fault::Write {
                kind: io::ErrorKind::NotFound,
                ..
            })
        ));
    }
}
