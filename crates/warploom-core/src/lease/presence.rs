//! Which desks are alive: each keeps a file of its own locked for as long as it lives.
//!
//! The kernel drops the lock when the process ends, however it ends. A process id would not do:
//! ids are used again, and differ between containers.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use super::book::Owner;
use super::error::LeaseError;
use super::folder::{DESKS, is_at, make_own_file, make_shared_dir};
use super::sync::{Mutex, lock};

/// A number nobody else has. The standard library seeds its hashers from the system.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The proof that this desk lives.
#[derive(Debug)]
pub(crate) struct Presence {
    owner: Owner,
    dir: PathBuf,
    desks: PathBuf,
    /// Locked; only its name is ever looked at by others.
    file: Mutex<Option<File>>,
}

impl Presence {
    /// Makes the directory where needed, sweeps out what dead desks left, and announces this one.
    pub(crate) fn open(dir: &Path) -> Result<Self, LeaseError> {
        let presence = Self {
            owner: Owner {
                id: random(),
                pid: std::process::id(),
            },
            dir: dir.to_owned(),
            desks: dir.join(DESKS),
            file: Mutex::new(None),
        };
        presence.announce()?;
        presence.sweep();
        Ok(presence)
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Announces this desk, again if somebody deleted the announcement.
    pub(crate) fn announce(&self) -> Result<(), LeaseError> {
        let mut file = lock(&self.file);
        let path = self.alive_path(self.owner);
        if file.as_ref().is_some_and(|file| is_at(file, &path)) {
            return Ok(());
        }
        for dir in [&self.dir, &self.desks] {
            make_shared_dir(dir, random()).map_err(|error| LeaseError::ledger(dir, error))?;
        }
        let mut answer = self.announce_at(&path);
        // A sweeper may mistake the file for a dead one before it is locked, and delete it.
        for _ in 0..3 {
            match answer {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    answer = self.announce_at(&path);
                }
                _ => break,
            }
        }
        *file = Some(answer.map_err(|error| LeaseError::ledger(&path, error))?);
        Ok(())
    }

    /// Locks the file under another name first: under its own it is never seen unlocked.
    fn announce_at(&self, path: &Path) -> io::Result<File> {
        let draft = self.desks.join(format!("{}.new", stem(self.owner)));
        let file = make_own_file(&draft)?;
        file.lock()?;
        fs::rename(&draft, path)?;
        Ok(file)
    }

    /// Does that desk live? In doubt, yes: a lease kept too long is better than one given twice.
    pub(crate) fn is_alive(&self, owner: Owner) -> bool {
        owner == self.owner || is_locked(&self.alive_path(owner))
    }

    /// Deletes what a dead desk left behind. Another user's files stay, and do no harm.
    pub(crate) fn bury(&self, owner: Owner, key: &str) {
        let _ = fs::remove_file(self.share_path(owner, key));
        let _ = fs::remove_file(self.alive_path(owner));
    }

    /// The file in which a desk keeps its own lines of one device's book.
    pub(crate) fn share_path(&self, owner: Owner, key: &str) -> PathBuf {
        self.desks.join(format!("{}.{key}.share", stem(owner)))
    }

    fn alive_path(&self, owner: Owner) -> PathBuf {
        self.desks.join(format!("{}.alive", stem(owner)))
    }

    /// The desks that have a share in this device, dead or alive.
    pub(crate) fn sharers(&self, key: &str) -> io::Result<Vec<Owner>> {
        let ending = format!(".{key}.share");
        let mut owners = Vec::new();
        for item in fs::read_dir(&self.desks)? {
            let name = item?.file_name();
            let stem = name.to_str().and_then(|name| name.strip_suffix(&ending));
            owners.extend(stem.and_then(parse_stem));
        }
        Ok(owners)
    }

    /// Deletes every file of desks that are dead.
    fn sweep(&self) {
        let Ok(items) = fs::read_dir(&self.desks) else {
            return;
        };
        let mut dead = HashMap::new();
        for item in items.flatten() {
            let name = item.file_name();
            let Some(name) = name.to_str() else { continue };
            let Some((stem, kind)) = name.split_once('.') else {
                continue;
            };
            let Some(owner) = parse_stem(stem) else {
                continue;
            };
            let is_dead = if kind == "new" {
                !is_locked(&item.path())
            } else {
                *dead.entry(owner).or_insert_with(|| !self.is_alive(owner))
            };
            if is_dead {
                let _ = fs::remove_file(item.path());
            }
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let file = lock(&self.file).take();
        let path = self.alive_path(self.owner);
        if file.as_ref().is_some_and(|file| is_at(file, &path)) {
            let _ = fs::remove_file(path);
        }
    }
}

fn is_locked(path: &Path) -> bool {
    match File::open(path) {
        // A shared lock, so that two who look at the same time do not take each other for life.
        Ok(file) => !matches!(file.try_lock_shared(), Ok(())),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn stem(owner: Owner) -> String {
    format!("{}-{:016x}", owner.pid, owner.id)
}

fn parse_stem(text: &str) -> Option<Owner> {
    let (pid, id) = text.split_once('-')?;
    Some(Owner {
        id: u64::from_str_radix(id, 16).ok()?,
        pid: pid.parse().ok()?,
    })
}

/// `Ok(false)` when another process has it locked.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
