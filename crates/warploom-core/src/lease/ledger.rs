//! One device's book in a file that all processes share.
//!
//! # What keeps it whole
//! * The file's lock: whoever reads or writes holds it, for some microseconds, never asleep. The
//!   kernel drops it when the holder dies.
//! * The shares: each desk writes its own lines to a file of its own *before* it writes the
//!   ledger. So the ledger is an index that anybody can make again from the shares of the desks
//!   that live. It may be torn, cut, overwritten or deleted: the next to look heals it, and nobody
//!   loses a lease or a place. A share can only be torn by the death of its owner, and then it is
//!   void anyway; that is why neither needs two copies.
//! * The desk's memory: should both be gone, it puts its own lines back the next time it looks.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::book::{Book, Entry, Owner, Ticket};
use super::error::LeaseError;
use super::folder::{is_at, make_own_file, open_shared_file};
use super::presence::{Presence, random, try_lock};
use super::record::{Damage, MAX_RECORDS, Sort, Stamp, decode, encode};
use super::sheet::{read_beat, read_version, read_whole, write_beat, write_whole};
use super::signal::Signal;
use super::sleepers::Sleepers;

#[derive(Debug)]
pub(crate) struct Ledger {
    presence: Arc<Presence>,
    key: String,
    path: PathBuf,
    file: Option<File>,
    share: Option<File>,
    /// What the file said when it was last read, and what is to be written.
    book: Book,
    stamp: Stamp,
    /// Is there anything to write?
    changed: bool,
    /// Does the share differ from `own`?
    share_is_stale: bool,
    /// This desk's lines, as they were last written.
    own: Vec<Entry>,
    /// Lines to strike out at the next chance.
    owed: Vec<Ticket>,
    /// Somebody already tries to strike them out.
    pub(crate) settling: bool,
    /// This desk's waiting threads.
    bells: Vec<(Ticket, Arc<Signal>)>,
    sleepers: Sleepers,
    /// This desk's own.
    beat: u64,
    /// Kept so that nothing is allocated per lease.
    buffer: Vec<u8>,
}

impl Ledger {
    pub(crate) fn new(presence: Arc<Presence>, dir: &Path, key: &str) -> Self {
        Self {
            presence,
            key: key.to_owned(),
            path: dir.join(format!("{key}.ledger")),
            file: None,
            share: None,
            book: Book::default(),
            stamp: Stamp::default(),
            changed: false,
            share_is_stale: false,
            own: Vec::new(),
            owed: Vec::new(),
            settling: false,
            bells: Vec::new(),
            sleepers: Sleepers::default(),
            beat: 0,
            buffer: Vec::new(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn owner(&self) -> Owner {
        self.presence.owner()
    }

    pub(crate) fn book(&self) -> &Book {
        &self.book
    }

    /// The book, to be changed.
    pub(crate) fn book_mut(&mut self) -> &mut Book {
        self.changed = true;
        &mut self.book
    }

    pub(crate) fn asleep(&self) -> &[Owner] {
        self.sleepers.asleep()
    }

    /// The version as of the last look.
    pub(crate) fn version(&self) -> u64 {
        self.stamp.version
    }

    /// The version right now, without the lock; `None` is "look yourself".
    pub(crate) fn version_now(&self) -> Option<u64> {
        read_version(self.file.as_ref()?)
    }

    /// Strikes this line out at the next chance, and forgets who waited on it.
    pub(crate) fn owe(&mut self, ticket: Ticket) {
        self.owed.push(ticket);
        self.hush(ticket);
    }

    pub(crate) fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Wakes `signal` when this ticket's turn may have come.
    pub(crate) fn wake(&mut self, ticket: Ticket, signal: &Arc<Signal>) {
        self.bells.push((ticket, Arc::clone(signal)));
    }

    /// Nobody sleeps on this ticket any more.
    pub(crate) fn hush(&mut self, ticket: Ticket) {
        self.bells.retain(|(other, _)| *other != ticket);
    }

    /// Locks the file and reads the book. `None`: another process has it locked right now.
    pub(crate) fn enter(&mut self) -> Result<Option<Session<'_>>, LeaseError> {
        if !self.lock().map_err(|error| self.fail(error))? {
            return Ok(None);
        }
        // From here on the session unlocks, whatever happens.
        let session = Session(self);
        let ledger = &mut *session.0;
        ledger.changed = false;
        ledger.read()?;
        ledger.reassert()?;
        for ticket in &ledger.owed {
            ledger.book.remove(*ticket);
            ledger.changed = true;
        }
        Ok(Some(session))
    }

    fn fail(&self, error: impl std::fmt::Display) -> LeaseError {
        LeaseError::ledger(&self.path, error)
    }

    /// Locks the file that is at the path now; the one from last time may have been deleted.
    fn lock(&mut self) -> io::Result<bool> {
        for _ in 0..8 {
            let file = match self.file.take() {
                Some(file) => file,
                None => self.open()?,
            };
            let locked = try_lock(&file)?;
            let file = self.file.insert(file);
            if !locked {
                return Ok(false);
            }
            if is_at(file, &self.path) {
                return Ok(true);
            }
            file.unlock()?;
            self.file = None;
        }
        Err(io::Error::other(
            "it is a link, or is replaced again and again",
        ))
    }

    fn open(&mut self) -> io::Result<File> {
        match open_shared_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::warn!(ledger = %self.path.display(), "the lease ledger's directory is gone; making it again");
                self.presence.announce().map_err(io::Error::other)?;
                open_shared_file(&self.path)
            }
            answer => answer,
        }
    }

    fn read(&mut self) -> Result<(), LeaseError> {
        let Some(file) = &self.file else {
            unreachable!("a session has its file open");
        };
        let bytes = read_whole(file, Sort::Ledger, &mut self.buffer);
        let bytes = bytes.map_err(|error| LeaseError::ledger(&self.path, error))?;
        match decode(bytes, Sort::Ledger, &mut self.book) {
            Ok(stamp) => {
                self.stamp = stamp;
                Ok(())
            }
            Err(damage @ Damage::Format(_)) => Err(self.fail(damage)),
            Err(damage) => {
                if damage != Damage::Empty {
                    tracing::warn!(ledger = %self.path.display(), %damage, "the lease ledger is damaged; making it again from the shares of the desks that live");
                }
                self.rebuild()
            }
        }
    }

    /// Makes the book again from the shares of the desks that live. This one's come from memory.
    fn rebuild(&mut self) -> Result<(), LeaseError> {
        let sharers = self.presence.sharers(&self.key);
        let mut part = Book::default();
        for owner in sharers.map_err(|error| self.fail(error))? {
            if owner == self.owner() {
                continue;
            }
            if !self.presence.is_alive(owner) {
                self.presence.bury(owner, &self.key);
                continue;
            }
            let path = self.presence.share_path(owner, &self.key);
            match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(LeaseError::ledger(&path, error)),
                Ok(file) => {
                    let bytes = read_whole(&file, Sort::Share, &mut self.buffer);
                    let bytes = bytes.map_err(|error| LeaseError::ledger(&path, error))?;
                    match decode(bytes, Sort::Share, &mut part) {
                        // Empty: made, but its first lines could not be written.
                        Ok(_) | Err(Damage::Empty) => {}
                        Err(damage) => {
                            let pid = owner.pid;
                            let why = format!("{damage}, and its process {pid} is still alive");
                            return Err(LeaseError::ledger(&path, why));
                        }
                    }
                }
            }
            self.book.next = self.book.next.max(part.next);
            for entry in part.entries() {
                if entry.ticket.owner == owner {
                    self.book.insert(*entry);
                }
            }
        }
        self.stamp = Stamp {
            beat: 0,
            version: random(),
        };
        self.changed = true;
        Ok(())
    }

    /// Puts this desk's lines back, should the book lack any.
    fn reassert(&mut self) -> Result<(), LeaseError> {
        let mut lacking = false;
        for entry in &self.own {
            let ticket = entry.ticket;
            if !self.owed.contains(&ticket) && !self.book.contains(ticket) {
                self.book.insert(*entry);
                lacking = true;
            }
        }
        if lacking {
            tracing::warn!(ledger = %self.path.display(), "the lease ledger had lost this process's lines; they are back");
            self.changed = true;
            self.presence.announce()?;
            let path = self.presence.share_path(self.owner(), &self.key);
            if !self.share.as_ref().is_some_and(|share| is_at(share, &path)) {
                self.share = None;
            }
            self.share_is_stale = true;
        }
        Ok(())
    }

    /// Strikes out the lines of desks that are dead.
    pub(crate) fn purge(&mut self) {
        let mut dead: Vec<Owner> = self.others(|_| true);
        dead.retain(|owner| !self.presence.is_alive(*owner));
        if dead.is_empty() {
            return;
        }
        for owner in &dead {
            tracing::info!(ledger = %self.path.display(), pid = owner.pid, "reclaiming the leases of a process that died");
            self.presence.bury(*owner, &self.key);
        }
        self.book_mut()
            .retain(|entry| !dead.contains(&entry.ticket.owner));
    }

    /// Finds out which waiting desks are stopped.
    pub(crate) fn find_sleepers(&mut self) {
        let waiting = self.others(|entry| !entry.held);
        self.sleepers.watch(&waiting, Instant::now(), |owner| {
            read_beat(&self.presence.share_path(owner, &self.key))
        });
    }

    /// Every other desk with a line that `wanted` wants, each once.
    fn others(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Owner> {
        let entries = self.book.entries().iter().filter(|entry| wanted(entry));
        let mut owners: Vec<Owner> = entries.map(|entry| entry.ticket.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        owners.retain(|owner| *owner != self.owner());
        owners
    }

    /// Tells the others that this desk's waiters are awake.
    pub(crate) fn beat(&mut self) {
        self.beat = self.beat.wrapping_add(1);
        if let Some(share) = &self.share {
            // A beat that cannot be written makes this desk look asleep: it keeps its place.
            let _ = write_beat(share, self.beat);
        }
    }

    fn write(&mut self) -> Result<(), LeaseError> {
        let count = self.book.entries().len();
        if count > MAX_RECORDS {
            return Err(self.fail(format!(
                "{count} leases and waiters are too many; it takes {MAX_RECORDS}"
            )));
        }
        let me = self.owner();
        let mine = |entry: &Entry| entry.ticket.owner == me;
        let own = self.book.entries().iter().filter(|entry| mine(entry));
        if self.share_is_stale || !own.clone().eq(self.own.iter()) {
            let own: Vec<Entry> = own.copied().collect();
            self.share_is_stale = true;
            self.write_share(mine).map_err(|error| {
                LeaseError::ledger(&self.presence.share_path(me, &self.key), error)
            })?;
            self.write_ledger().map_err(|error| self.fail(error))?;
            self.share_is_stale = false;
            self.own = own;
        } else {
            self.write_ledger().map_err(|error| self.fail(error))?;
        }
        self.owed.clear();
        Ok(())
    }

    fn write_share(&mut self, mine: impl Fn(&Entry) -> bool) -> io::Result<()> {
        let share = if let Some(share) = self.share.take() {
            share
        } else {
            let path = self.presence.share_path(self.owner(), &self.key);
            // What is there under a name with this desk's random number is left from itself.
            let _ = std::fs::remove_file(&path);
            make_own_file(&path)?
        };
        let share = self.share.insert(share);
        self.beat = self.beat.wrapping_add(1);
        let stamp = Stamp {
            beat: self.beat,
            ..Stamp::default()
        };
        encode(Sort::Share, stamp, &self.book, mine, &mut self.buffer);
        write_whole(share, &self.buffer)
    }

    fn write_ledger(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else {
            unreachable!("a session has its file open");
        };
        self.stamp.version = self.stamp.version.wrapping_add(1);
        let (sort, stamp) = (Sort::Ledger, self.stamp);
        encode(sort, stamp, &self.book, |_| true, &mut self.buffer);
        write_whole(file, &self.buffer)
    }

    /// Wakes this desk's thread if the turn is its own.
    fn ring_first(&self) {
        let first = self.book.first_waiting(self.asleep());
        let bell = self.bells.iter().find(|(ticket, _)| Some(*ticket) == first);
        if let Some((_, signal)) = bell {
            signal.ring();
        }
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        if self.share.is_some() {
            let path = self.presence.share_path(self.owner(), &self.key);
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The time during which the file is locked and the book can be trusted.
#[derive(Debug)]
pub(crate) struct Session<'a>(pub(crate) &'a mut Ledger);

impl Session<'_> {
    /// Writes what was changed, then wakes whoever may be next.
    pub(crate) fn commit(self) -> Result<(), LeaseError> {
        if self.0.changed {
            self.0.write()?;
            self.0.ring_first();
        }
        Ok(())
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // Closing unlocks too, should unlocking fail.
        if self.0.file.as_ref().is_some_and(|f| f.unlock().is_err()) {
            self.0.file = None;
        }
    }
}
