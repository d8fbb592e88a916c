//! Waiting until files are on the disk.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// With more files than this the whole file system is asked once: each file by itself costs the disk a
/// commit.
#[cfg(target_os = "linux")]
const MANY: usize = 128;

/// Waits until these files and folders, with everything in them and their names, are on the disk, so that
/// they survive a loss of power. Those that are no longer there are left out.
pub fn settle(paths: &[PathBuf]) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if paths.len() > MANY {
        // All below one folder of results, which is on one file system or on a few.
        let folders: BTreeSet<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
        let mut asked = BTreeSet::new();
        for folder in folders {
            use std::os::unix::fs::MetadataExt as _;
            let Ok(file) = File::open(folder) else {
                continue;
            };
            if asked.insert(file.metadata()?.dev()) {
                rustix::fs::syncfs(&file)?;
            }
        }
        return Ok(());
    }
    let mut folders = BTreeSet::new();
    for path in paths {
        match sync(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
        folders.extend(path.parent().map(Path::to_owned));
    }
    if !cfg!(windows) {
        for folder in folders {
            sync_one(&folder)?;
        }
    }
    Ok(())
}

fn sync(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            sync(&entry?.path())?;
        }
        if cfg!(windows) {
            return Ok(());
        }
    }
    sync_one(path)
}

fn sync_one(path: &Path) -> io::Result<()> {
    if cfg!(windows) {
        // Windows wants the right to write for it.
        return File::options().write(true).open(path)?.sync_all();
    }
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_folders_and_what_is_gone_are_settled() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a.zarr/c");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("0"), b"chunk").unwrap();
        let mut paths = vec![folder.path().join("a.zarr"), folder.path().join("gone")];
        settle(&paths).unwrap();
        paths.extend((0..200).map(|at| folder.path().join(at.to_string())));
        for path in &paths[2..] {
            fs::write(path, b"x").unwrap();
        }
        settle(&paths).unwrap();
    }
}
