//! Putting up a notice, and taking it down.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use warploom_core::shared_folder::{is_at, make_folder, make_own_file, unique_number};

use super::Board;
use super::error::BoardError;
use super::notice::{Notice, now};

/// Keeps a notice up, until it is dropped.
#[derive(Debug)]
#[must_use = "dropping a pin takes the notice down at once"]
pub struct Pin {
    folder: PathBuf,
    path: PathBuf,
    draft: PathBuf,
    /// What is at `path`, locked.
    file: File,
}

impl Pin {
    pub(super) fn new(board: &Board, notice: &Notice) -> Result<Self, BoardError> {
        let stem = format!("{}-{:016x}", std::process::id(), unique_number());
        let folder = board.folder.clone();
        let path = folder.join(format!("{stem}.json"));
        let draft = folder.join(format!("{stem}.new"));
        let file = put_up(&folder, &draft, &path, notice);
        let file = file.map_err(|error| BoardError::written(&path, error))?;
        Ok(Self {
            folder,
            path,
            draft,
            file,
        })
    }

    /// Replaces the notice. A few times a second is often enough: readers look once a second.
    ///
    /// # Errors
    /// When the folder or the file cannot be written; then the last notice stays up.
    pub fn update(&mut self, notice: &Notice) -> Result<(), BoardError> {
        let file = put_up(&self.folder, &self.draft, &self.path, notice);
        // Only now is the lock of the old file let go, which nobody can see any more.
        self.file = file.map_err(|error| BoardError::written(&self.path, error))?;
        Ok(())
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        // First the name and then, with the file, the lock: nobody takes it for a dead one's.
        if is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// How often a draft may be taken away before it is locked. Each time somebody has to look in that very
/// moment; three times has happened where many looked all the time.
const TRIES: u32 = 100;

/// Writes and locks a file under another name first: under its own it is never seen unlocked, or
/// half written.
fn put_up(folder: &Path, draft: &Path, path: &Path, notice: &Notice) -> io::Result<File> {
    let notice = Notice {
        updated: now(),
        ..notice.clone()
    };
    let text = serde_json::to_vec(&notice)?;
    let mut tries = 0;
    loop {
        let written = write(draft, path, &text);
        match written {
            // Somebody tidied up: the whole folder, or a draft that was not locked yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => {
                if let Some(parent) = folder.parent() {
                    make_folder(parent)?;
                }
                make_folder(folder)?;
                tries += 1;
            }
            written => {
                if written.is_err() {
                    let _ = fs::remove_file(draft);
                }
                return written;
            }
        }
    }
}

fn write(draft: &Path, path: &Path, text: &[u8]) -> io::Result<File> {
    let mut file = make_own_file(draft)?;
    file.lock()?;
    file.write_all(text)?;
    fs::rename(draft, path)?;
    Ok(file)
}
