//! Where ledgers live, and files that every user of the machine can open.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The folder of files that belong to one desk each.
pub(crate) const DESKS: &str = "desks";

/// The directory in which the processes of a machine agree: `/tmp/warploom`, or one in the system's
/// own temporary directory where that does not exist.
///
/// It is the same for every user on purpose: a card knows no users. It is not in `/dev/shm`, where
/// `systemd` deletes what a user made when that user logs out, jobs still running or not. A
/// container or service with a `/tmp` of its own sees only itself, unless it is given another
/// directory that all share.
pub fn default_ledger_dir() -> PathBuf {
    let tmp = Path::new("/tmp");
    let parent = if cfg!(unix) && tmp.is_dir() {
        tmp.to_owned()
    } else {
        std::env::temp_dir()
    };
    parent.join("warploom")
}

/// Makes a directory in which everybody may add files and nobody may delete another's.
///
/// It gets its mode under another name first, so that no other user meets it half open.
pub(crate) fn make_shared_dir(path: &Path, random: u64) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{random:016x}.new"));
    let draft = PathBuf::from(draft);
    fs::create_dir(&draft)?;
    let made = set_mode(&draft, 0o1777).and_then(|()| fs::rename(&draft, path));
    if made.is_err() {
        // Somebody else may just have made it, which is as good.
        let _ = fs::remove_dir(&draft);
        if !path.is_dir() {
            return made;
        }
    }
    Ok(())
}

/// Opens a file that all users read and write, or makes it.
///
/// Never both in one call: kernels refuse `O_CREAT` on another user's file in a sticky directory.
pub(crate) fn open_shared_file(path: &Path) -> io::Result<File> {
    let mut tries = 0;
    loop {
        let answer = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => make_shared_file(path),
            Ok(file) => {
                // Whoever made it may have died before opening it up. Only its user can do that
                // now, so failing is normal; and a link could lead to a file of another sort.
                if is_at(&file, path) {
                    let _ = set_file_mode(&file, 0o666);
                }
                Ok(file)
            }
            answer => answer,
        };
        match answer {
            // Another process made it between the two calls, or its user has not opened it up yet.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::AlreadyExists | ErrorKind::PermissionDenied
                ) && tries < 20 =>
            {
                tries += 1;
                thread::sleep(Duration::from_millis(1));
            }
            answer => return answer,
        }
    }
}

fn make_shared_file(path: &Path) -> io::Result<File> {
    let file = new_file(path)?;
    set_file_mode(&file, 0o666)?;
    Ok(file)
}

/// Makes a file that all users read and this one writes. It must not exist.
///
/// # Errors
/// Those of the file system.
pub fn make_own_file(path: &Path) -> io::Result<File> {
    let file = new_file(path)?;
    set_file_mode(&file, 0o644)?;
    Ok(file)
}

fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).open(path)
}

/// Is the open file still the one at `path`? A symbolic link never is: following one that another
/// user left in a shared directory would write to a file of their choice.
#[cfg(unix)]
pub fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Is the open file still the one at `path`? Here an open file keeps its name.
#[cfg(not(unix))]
pub fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(unix)]
fn set_file_mode(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn set_file_mode(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it exists").permissions().mode() & 0o7777
    }

    #[test]
    fn everybody_may_add_files_and_write_ledgers() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/b");
        make_shared_dir(&dir, 1).unwrap();
        make_shared_dir(&dir, 2).unwrap();
        assert_eq!(mode(&dir), 0o1777);
        let ledger = dir.join("x.ledger");
        let file = open_shared_file(&ledger).unwrap();
        assert_eq!(mode(&ledger), 0o666);
        assert!(is_at(&file, &ledger));
        make_own_file(&dir.join("own")).unwrap();
        assert_eq!(mode(&dir.join("own")), 0o644);
        fs::remove_file(&ledger).unwrap();
        assert!(!is_at(&file, &ledger));
    }

    #[test]
    fn a_link_is_not_the_file_it_leads_to() {
        let temp = tempfile::tempdir().unwrap();
        let (target, link) = (temp.path().join("target"), temp.path().join("link"));
        make_own_file(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let file = open_shared_file(&link).unwrap();
        assert!(is_at(&file, &target));
        assert!(!is_at(&file, &link));
    }

    #[test]
    fn the_directory_is_the_same_for_everybody() {
        assert_eq!(default_ledger_dir().file_name().unwrap(), "warploom");
    }
}
