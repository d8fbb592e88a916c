//! Reading what others pinned, whatever state they left it in.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use warploom_core::shared_folder::is_at;

use super::error::BoardError;
use super::notice::Notice;

/// A notice is a few hundred bytes; what is longer than this is none.
const LONGEST: u64 = 1 << 20;

/// What is at a path.
#[derive(Debug)]
enum Seen {
    Notice(Box<Notice>),
    /// Its process died.
    Dead,
    /// Nothing that we could read, or nothing any more.
    Nothing,
}

pub(super) fn notices(folder: &Path) -> Result<Vec<Notice>, BoardError> {
    let items = match fs::read_dir(folder) {
        Ok(items) => items,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(BoardError::read(folder, error)),
    };
    let mut notices = Vec::new();
    for item in items {
        let path = item
            .map_err(|error| BoardError::read(folder, error))?
            .path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if !matches!(ending, Some("json" | "new")) {
            continue;
        }
        match look(&path) {
            Seen::Notice(notice) if ending == Some("json") => notices.push(*notice),
            // Another user's file stays, and does no harm.
            Seen::Dead => drop(fs::remove_file(&path)),
            Seen::Notice(_) | Seen::Nothing => {}
        }
    }
    notices.sort_by_key(|notice| (notice.started, notice.pid));
    Ok(notices)
}

/// Looks again while the file is replaced under its eyes.
fn look(path: &Path) -> Seen {
    for _ in 0..8 {
        // Opening a pipe that somebody put there would wait for ever.
        let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        if !is_file {
            return Seen::Nothing;
        }
        let Ok(file) = File::open(path) else {
            return Seen::Nothing;
        };
        // Shared, so that two who look at the same time do not take each other for life.
        let is_locked = file.try_lock_shared().is_err();
        let is_current = is_at(&file, path);
        if !is_current {
            continue;
        }
        if !is_locked {
            return Seen::Dead;
        }
        return read(file).map_or(Seen::Nothing, |notice| Seen::Notice(Box::new(notice)));
    }
    Seen::Nothing
}

fn read(file: File) -> Option<Notice> {
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
