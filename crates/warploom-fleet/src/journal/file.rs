//! The file of a journal: opened by one, appended in groups.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::event::{Entry, Event};
use super::frame::{Frames, HEADER, MAX_PAYLOAD, Tear, push};
use crate::error::FleetError;

/// When events survive the loss of power. The death of processes they survive in every case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// After so many events or so long, whichever comes first.
    Groups {
        /// How many.
        events: u32,
        /// How long.
        within: Duration,
    },
    /// Before the action that they announce. A disk does a few hundred of those a second.
    Each,
    /// When the system likes.
    Never,
}

impl Default for Durability {
    /// 64 events or 50 ms.
    fn default() -> Self {
        Self::Groups {
            events: 64,
            within: Duration::from_millis(50),
        }
    }
}

/// Where a journal stopped making sense when it was opened, and what was done about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torn {
    /// In which way.
    pub tear: Tear,
    /// The first byte that could not be used.
    pub at: u64,
    /// How many bytes were cut off.
    pub bytes: u64,
    /// Where they are now, if there was more than the frame that a dying writer leaves.
    pub kept_in: Option<PathBuf>,
}

/// A journal that was opened for writing.
#[derive(Debug)]
pub struct Opened {
    /// To go on with.
    pub journal: Journal,
    /// What was in it.
    pub entries: Vec<Entry>,
    /// What had to be cut off.
    pub torn: Option<Torn>,
}

/// A journal, locked by its only writer.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    durability: Durability,
    /// Frames that the system has not got yet.
    pending: Vec<u8>,
    /// Events that the system has got and the disk perhaps not.
    unsynced: u32,
    /// When the first of them was written.
    since: Option<Instant>,
    /// The first failure to write: after it the end of the file is not known any more.
    broken: Option<String>,
}

impl Drop for Journal {
    /// Closing would do, were it not for processes that this one is just starting for something else: they
    /// have the descriptor, too, for a moment.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl Journal {
    /// Opens the journal at `path`, or begins one.
    ///
    /// # Errors
    /// [`FleetError::Busy`] when another process writes it, [`FleetError::Journal`] when it cannot be
    /// read or written or is none.
    pub fn open(path: &Path, durability: Durability) -> Result<Opened, FleetError> {
        let failed = |error: io::Error| FleetError::journal(path, error);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(failed)?;
        match locked(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let seen = look(path).map(|seen| seen.entries).unwrap_or_default();
                let holder = seen.into_iter().rev().find_map(|entry| match entry.event {
                    Event::Signed { holder, .. } => Some(holder),
                    _ => None,
                });
                return Err(FleetError::Busy {
                    path: path.to_owned(),
                    holder,
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let found = parse(path, &bytes)?;
        let torn = match found.torn {
            Some(tear) => Some(cut(path, &mut file, &bytes, found.end, tear).map_err(failed)?),
            None => None,
        };
        if found.end == 0 {
            file.seek(SeekFrom::Start(0)).map_err(failed)?;
            file.write_all(&HEADER).map_err(failed)?;
            file.sync_all().map_err(failed)?;
            sync_folder(path).map_err(failed)?;
        }
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let journal = Self {
            path: path.to_owned(),
            file,
            durability,
            pending: Vec::new(),
            unsynced: 0,
            since: None,
            broken: None,
        };
        Ok(Opened {
            journal,
            entries: found.entries,
            torn,
        })
    }

    /// Adds an event. It is in the file after the next [`commit`](Self::commit).
    ///
    /// # Errors
    /// [`FleetError::Journal`] when an event is too long for a frame.
    pub fn push(&mut self, event: Event) -> Result<(), FleetError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
        let payload = postcard::to_stdvec(&Entry { at, event })
            .map_err(|error| FleetError::journal(&self.path, error))?;
        if payload.len() > MAX_PAYLOAD {
            let what = format!(
                "an event of {} bytes; {MAX_PAYLOAD} are the most",
                payload.len()
            );
            return Err(FleetError::journal(&self.path, what));
        }
        push(&mut self.pending, &payload);
        self.unsynced += 1;
        Ok(())
    }

    /// Hands what was added to the system, and to the disk when it is time.
    ///
    /// # Errors
    /// [`FleetError::Journal`] when that fails; from then on always, because nobody knows how much of
    /// the last frame is in the file.
    pub fn commit(&mut self) -> Result<(), FleetError> {
        if let Some(broken) = &self.broken {
            return Err(FleetError::journal(&self.path, broken));
        }
        let now = Instant::now();
        if !self.pending.is_empty() {
            let written = self.file.write_all(&self.pending);
            self.hold(written)?;
            self.pending.clear();
            self.since.get_or_insert(now);
        }
        let due = match self.durability {
            Durability::Never => false,
            Durability::Each => self.unsynced > 0,
            Durability::Groups { events, within } => {
                self.unsynced >= events || self.since.is_some_and(|since| now - since >= within)
            }
        };
        if due { self.sync() } else { Ok(()) }
    }

    /// How long until [`commit`](Self::commit) should be called again though nothing was added.
    pub fn due_in(&self) -> Option<Duration> {
        match (self.durability, self.since) {
            (Durability::Groups { within, .. }, Some(since)) => {
                Some(within.saturating_sub(since.elapsed()))
            }
            _ => None,
        }
    }

    /// Waits for no disk from now on: what a power cut takes then is done again.
    pub(crate) fn hurry(&mut self) {
        self.durability = Durability::Never;
    }

    /// Hands everything to the disk, unless that never happens.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn finish(&mut self) -> Result<(), FleetError> {
        self.commit()?;
        if self.durability == Durability::Never {
            return Ok(());
        }
        self.sync()
    }

    fn sync(&mut self) -> Result<(), FleetError> {
        let synced = self.file.sync_data();
        self.hold(synced)?;
        self.unsynced = 0;
        self.since = None;
        Ok(())
    }

    fn hold(&mut self, result: io::Result<()>) -> Result<(), FleetError> {
        result.map_err(|error| {
            self.broken = Some(error.to_string());
            FleetError::journal(&self.path, error)
        })
    }
}

/// Reads a journal that another process may be writing: what is whole by now.
///
/// # Errors
/// [`FleetError::Journal`] when it cannot be read or is none.
pub fn read(path: &Path) -> Result<Vec<Entry>, FleetError> {
    Ok(look(path)?.entries)
}

/// A journal as somebody sees it who does not write it.
#[derive(Debug)]
pub struct Sight {
    /// What is whole by now.
    pub entries: Vec<Entry>,
    /// Does another process have it open for writing?
    pub is_held: bool,
    /// The first byte that makes no sense, if there is one that no dying or living writer leaves.
    pub damaged_at: Option<u64>,
}

/// Reads a journal that another process may be writing, and changes nothing.
///
/// # Errors
/// [`FleetError::Journal`] when it cannot be read or is none.
pub fn look(path: &Path) -> Result<Sight, FleetError> {
    let failed = |error: io::Error| FleetError::journal(path, error);
    let mut file = File::open(path).map_err(failed)?;
    // Asked first: whoever lets go of it after this has written everything by then. Shared, so that
    // two who look do not take each other for the writer; a writer who comes meanwhile tries again.
    let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    if !is_held {
        file.unlock().map_err(failed)?;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    let found = parse(path, &bytes)?;
    let torn = found.torn.filter(|tear| {
        let rest = bytes.get(found.end..).unwrap_or_default();
        *tear == Tear::Damaged || holds_frame(rest)
    });
    Ok(Sight {
        entries: found.entries,
        is_held,
        damaged_at: torn.map(|_| found.end as u64),
    })
}

/// How long a lock that cannot be had is tried for: those who only look let go of theirs at once. Whoever was
/// killed while it started a process has left its descriptors to that one until it has become another program,
/// which takes a while on a busy machine.
const LOOKS: Duration = Duration::from_secs(2);

fn locked(file: &File) -> Result<(), TryLockError> {
    let end = Instant::now() + LOOKS;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            tried => return tried,
        }
    }
}

/// What the bytes of a journal say.
struct Parsed {
    entries: Vec<Entry>,
    /// The end of the last whole frame; 0 when there is not even a header.
    end: usize,
    torn: Option<Tear>,
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Parsed, FleetError> {
    let Some(body) = bytes.strip_prefix(&HEADER) else {
        // A file that is the beginning of a header was being made when its writer died.
        if HEADER.starts_with(bytes) {
            return Ok(Parsed {
                entries: Vec::new(),
                end: 0,
                torn: (!bytes.is_empty()).then_some(Tear::Cut),
            });
        }
        let what = "it does not begin like a journal of this version";
        return Err(FleetError::journal(path, what));
    };
    let mut frames = Frames::new(body);
    let mut entries = Vec::new();
    let mut end = HEADER.len();
    let mut torn = None;
    while let Some(payload) = frames.next() {
        let Ok(entry) = postcard::from_bytes(payload) else {
            // A check sum that fits and bytes that do not: another version wrote them.
            torn = Some(Tear::Damaged);
            break;
        };
        entries.push(entry);
        end = bytes.len() - frames.left();
    }
    Ok(Parsed {
        entries,
        end,
        torn: torn.or(frames.tear()),
    })
}

/// Cuts off what cannot be read, and keeps it beside the journal when it is more than a torn frame.
fn cut(path: &Path, file: &mut File, bytes: &[u8], end: usize, tear: Tear) -> io::Result<Torn> {
    let rest = &bytes[end..];
    // A flipped length looks like a cut; whole frames behind it tell.
    let tear = if holds_frame(rest) {
        Tear::Damaged
    } else {
        tear
    };
    let kept_in = if tear == Tear::Damaged {
        let aside = path.with_extension(format!("damaged-{end}"));
        fs::write(&aside, rest)?;
        Some(aside)
    } else {
        None
    };
    file.set_len(end as u64)?;
    file.sync_all()?;
    Ok(Torn {
        tear,
        at: end as u64,
        bytes: rest.len() as u64,
        kept_in,
    })
}

/// Is there a whole frame anywhere after the first byte? A dying writer leaves none.
fn holds_frame(rest: &[u8]) -> bool {
    let looked_at = rest.len().min(1 << 20);
    (1..looked_at).any(|start| {
        Frames::new(&rest[start..])
            .next()
            .is_some_and(|f| !f.is_empty())
    })
}

/// Makes a new name survive the loss of power.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if folder != Path::new("") => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}
