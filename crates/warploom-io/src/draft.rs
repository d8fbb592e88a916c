//! Files and folders that appear when they are complete.
//!
//! What is being written has a name of its own beside the final one, and is locked by its writer. The
//! system drops that lock when a process dies, so what a killed one left is told from what a living
//! one writes without process numbers, which are reused, and which other machines count for themselves.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Fault, FileError};
use crate::pen::Pen;

/// How names of drafts end.
const DRAFT: &str = ".part";
/// The lock of a draft that is a folder.
const LOCK: &str = ".part-lock";
/// A folder that was in the way of a new one.
const OLD: &str = ".part-old";

/// A file or folder beside the one that is to appear. It goes away when it is dropped before it was
/// kept.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
    /// The locked file: the draft itself, or the lock of a folder.
    lock: Option<File>,
    lock_path: Option<PathBuf>,
    kept: bool,
}

/// Whether to wait until what was written is on the disk, so that it survives a loss of power. What a
/// killed process had renamed survives in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sync {
    /// No: the system writes when it likes.
    #[default]
    No,
    /// Yes.
    Yes,
}

impl Draft {
    /// Makes the file at `path`, of about so many bytes, what `content` writes. Where there was a file
    /// it is replaced in one step; after an error nothing has changed.
    pub(crate) fn fill(
        path: &Path,
        bytes: u64,
        sync: Sync,
        content: impl FnOnce(&mut BufWriter<Pen<'_>>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        Self::fill_reserved(path, bytes, 0, sync, content)
    }

    /// The same for what will have at least `reserved` bytes: the system is asked to keep them free
    /// before any is written. A disk without them is told of at once, and a large file costs the
    /// system half of the time, because it looks for one place and not for one per page.
    pub(crate) fn fill_reserved(
        path: &Path,
        bytes: u64,
        reserved: u64,
        sync: Sync,
        content: impl FnOnce(&mut BufWriter<Pen<'_>>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        Self::check(path)?;
        let writing = |error: io::Error| Fault::writing(&error, bytes);
        // A link stays a link: what it points at is replaced, there where it is.
        let target = pointed_at(path);
        let path = target.as_deref().unwrap_or(path);
        let mut draft = Self::beside(path).map_err(writing)?;
        if let Some(file) = &draft.lock {
            reserve(file, reserved).map_err(writing)?;
            let mut writer = BufWriter::with_capacity(1 << 18, Pen::new(file, reserved));
            content(&mut writer).map_err(|fault| fault.sized(bytes))?;
            let pen = writer
                .into_inner()
                .map_err(|error| writing(error.into_error()))?;
            pen.finish().map_err(writing)?;
            if sync == Sync::Yes {
                file.sync_all().map_err(writing)?;
            }
        }
        draft.keep(path).map_err(writing)?;
        sync_folder(path, sync).map_err(writing)
    }

    /// Makes the folder at `path` what `content` puts into an empty one.
    pub(crate) fn fill_folder(
        path: &Path,
        bytes: u64,
        sync: Sync,
        content: impl FnOnce(&Path) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        Self::check_place(path)?;
        let writing = |error: io::Error| Fault::writing(&error, bytes);
        let mut draft = Self::folder_beside(path).map_err(writing)?;
        content(&draft.path).map_err(|fault| fault.sized(bytes))?;
        if path.is_dir() {
            // A folder cannot be replaced in one step. The old one gets out of the way first, so that
            // at no time there is half a new one.
            let old = draft.path.with_extension(&OLD[1..]);
            fs::rename(path, &old).map_err(writing)?;
            if let Err(error) = draft.keep(path) {
                let _ = fs::rename(&old, path);
                return Err(writing(error));
            }
            // The new one is there; what is left of the old one is recognised later.
            let _ = fs::remove_dir_all(&old);
        } else {
            draft.keep(path).map_err(writing)?;
        }
        sync_folder(path, sync).map_err(writing)
    }

    /// Gives it its name.
    fn keep(&mut self, path: &Path) -> io::Result<()> {
        if cfg!(windows) {
            // Windows does not rename an open file.
            self.lock = None;
        }
        fs::rename(&self.path, path)?;
        self.kept = true;
        Ok(())
    }

    /// Whether there is a folder that a file of this name would be in, and no folder in its place.
    pub(crate) fn check(path: &Path) -> Result<(), Fault> {
        if path.is_dir() {
            return Err(Fault::Folder);
        }
        Self::check_place(path)
    }

    /// Whether there is a folder for it.
    pub(crate) fn check_place(path: &Path) -> Result<(), Fault> {
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

    /// A new, locked file in the folder of `path`: only within one file system is renaming one step.
    fn beside(path: &Path) -> io::Result<Self> {
        loop {
            let path = name_beside(path, DRAFT);
            if let Some(file) = locked(&path)? {
                return Ok(Self {
                    path,
                    lock: Some(file),
                    lock_path: None,
                    kept: false,
                });
            }
        }
    }

    /// A new folder in the folder of `path`, with a locked file beside it.
    fn folder_beside(path: &Path) -> io::Result<Self> {
        loop {
            let lock_path = name_beside(path, LOCK);
            let Some(lock) = locked(&lock_path)? else {
                continue;
            };
            let mut draft = Self {
                path: lock_path.with_extension(&DRAFT[1..]),
                lock: Some(lock),
                lock_path: Some(lock_path),
                kept: true,
            };
            match fs::create_dir(&draft.path) {
                Ok(()) => {
                    draft.kept = false;
                    return Ok(draft);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Whatever made the draft fail is being reported; a leftover is the lesser trouble.
        if !self.kept {
            if self.lock_path.is_some() {
                let _ = fs::remove_dir_all(&self.path);
            } else {
                let _ = fs::remove_file(&self.path);
            }
        }
        if let Some(path) = &self.lock_path {
            let _ = fs::remove_file(path);
        }
    }
}

/// What a link points at, there or not yet; nothing for what is no link.
fn pointed_at(path: &Path) -> Option<PathBuf> {
    let link = fs::read_link(path).ok()?;
    let next = path.parent().unwrap_or(Path::new("")).join(link);
    fs::canonicalize(path).ok().or(Some(next))
}

/// Removes what an image or a table was written to, so that nobody takes it for a result any more. A folder
/// goes in one step, as it came: whenever the process is killed, there is all of it or nothing. A folder that
/// is no image stays, and so do links.
pub fn remove_result(path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    let target = pointed_at(path);
    let target = target.as_deref().unwrap_or(path);
    let removed = match fs::symlink_metadata(target) {
        Ok(found) if !found.is_dir() => fs::remove_file(target),
        Ok(_) if target.join("zarr.json").is_file() => {
            let old = name_beside(target, OLD);
            fs::rename(target, &old).and_then(|()| fs::remove_dir_all(&old))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Fault::write(&error).of(path)),
        _ => Ok(()),
    }
}

fn name_beside(path: &Path, ending: &str) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}-{count}{ending}", process::id()));
    path.with_file_name(name)
}

/// A new file that is ours; `None` where somebody has the name, or has just taken it.
fn locked(path: &Path) -> io::Result<Option<File>> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => match file.try_lock() {
            // Somebody cleaned up between the two calls and takes it for a leftover.
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            // Somebody cleaned up between the two calls and is done: this is a file without a name.
            Ok(()) if !path.exists() => Ok(None),
            // On a file system without locks nobody else can lock it, either, so nobody cleans up.
            Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(Some(file)),
        },
        // Left behind by a process of the same number that was killed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// Smaller files are written before the question is answered.
#[cfg(target_os = "linux")]
const WORTH_RESERVING: u64 = 1 << 16;

/// Has the system keep room for so many bytes. Systems of files that cannot are no obstacle.
#[cfg(target_os = "linux")]
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    if bytes < WORTH_RESERVING {
        return Ok(());
    }
    // The size of the file stays what was written, so that half a file never looks like a whole one.
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(error.into()),
        // Everything else is told by the writing itself, if it is more than not knowing the question.
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}

/// The name itself is in the folder, which is a file to be synced as well.
fn sync_folder(path: &Path, sync: Sync) -> io::Result<()> {
    if sync == Sync::No || cfg!(windows) {
        return Ok(());
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// Removes what processes that are no longer alive left half-written in a folder, and says what that
/// was. Drafts of processes that live, on this machine or another, stay.
pub fn remove_leftovers(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>, FileError> {
    let folder = folder.as_ref();
    let entries = fs::read_dir(folder).map_err(|error| Fault::open(&error).of(folder))?;
    let mut removed = Vec::new();
    let mut locks = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let path = entry.path();
        match sort(&name.to_string_lossy()) {
            Some(LOCK) => locks.push(path),
            Some(_) if remove_abandoned(&path) => removed.push(path),
            _ => {}
        }
    }
    // Folders are gone by now, and nobody needs their locks.
    for lock in locks {
        let draft = lock.with_extension(&DRAFT[1..]);
        if !draft.exists() && remove_abandoned(&lock) {
            removed.push(lock);
        }
    }
    removed.sort();
    Ok(removed)
}

/// Which sort of our names this is: `.name.123-4.part`.
fn sort(name: &str) -> Option<&'static str> {
    let ending = [DRAFT, LOCK, OLD]
        .into_iter()
        .find(|ending| name.ends_with(ending))?;
    let rest = name.strip_prefix('.')?.strip_suffix(ending)?;
    let (_, number) = rest.rsplit_once('.')?;
    let (process, count) = number.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_number(process) && is_number(count)).then_some(ending)
}

/// Removes it if nobody has locked it. The lock is held meanwhile, so that a writer that has just made
/// the file, and not locked it yet, learns of it.
fn remove_abandoned(path: &Path) -> bool {
    let is_folder = path.is_dir();
    let lock = if is_folder {
        path.with_extension(&LOCK[1..])
    } else {
        path.to_owned()
    };
    match OpenOptions::new().write(true).open(&lock) {
        Ok(file) => file.try_lock().is_ok() && remove(path).is_ok(),
        // A folder whose lock is gone was given up.
        Err(error) => is_folder && error.kind() == io::ErrorKind::NotFound && remove(path).is_ok(),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

#[cfg(test)]
mod tests;
