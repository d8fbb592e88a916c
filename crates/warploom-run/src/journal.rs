//! Which records are done: one line for each, written when all its files have their names.
//!
//! Nobody waits for the disk before a line is written. A killed process loses nothing by that, a loss of power
//! may: then a file can have its name and its length, and not its bytes. So lines tell under which start of
//! the system they were written, files are settled on the disk a little later, and that is written down
//! too. After another start only what was settled is believed.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::error::RunFailure;
use crate::folder;
use crate::settler::Settler;

/// Whoever keeps what is done: the list of results, or another process that has it.
pub(crate) type Keeper = Arc<dyn Fn(&Line) -> std::io::Result<()> + Send + Sync>;

/// The folder below the results that is ours.
pub const FOLDER: &str = ".warploom";
const FILE: &str = "finished.jsonl";

/// A record that is done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) record: String,
    /// What was computed.
    pub(crate) recipe: String,
    /// Of which pixels.
    pub(crate) content: String,
    /// What the system said of the files the pixels were in.
    pub(crate) stamp: String,
    /// What came of it, below the folder of results, with what [`measure`] says of each.
    pub(crate) files: Vec<(PathBuf, u64)>,
}

/// Whatever a line of the list says.
#[derive(Deserialize)]
#[serde(untagged)]
enum Word {
    Line(Line),
    /// What follows was written under this start of the system.
    Boot {
        boot: String,
    },
    Settled(Settled),
}

/// The results of these records are on the disk.
#[derive(Serialize, Deserialize)]
pub(crate) struct Settled {
    pub(crate) settled: Vec<String>,
}

/// The list of what is done below one folder of results. One run at a time has it.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    output: PathBuf,
    known: HashMap<String, Line>,
    /// Records whose results are on the disk.
    settled: HashSet<String>,
    /// Lines were left out that nobody can believe.
    has_doubtful: bool,
    boot: Option<String>,
    /// Has it been said under which start of the system this one writes?
    has_said: bool,
    settler: Option<Settler>,
}

/// What tells one start of the system from another; `None` where it does not tell, and everything is
/// believed.
fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// What the lines of a list come to.
#[derive(Default)]
struct Said {
    known: HashMap<String, Line>,
    settled: HashSet<String>,
    has_doubtful: bool,
}

impl Said {
    fn of(bytes: &[u8], now: Option<&str>) -> Self {
        let lines = bytes.split(|byte| *byte == b'\n');
        let words = lines.filter_map(|line| serde_json::from_slice::<Word>(line).ok());
        let mut said = Self::default();
        let mut under: HashMap<String, Option<String>> = HashMap::new();
        let mut boot = None;
        for word in words {
            match word {
                Word::Boot { boot: next } => boot = Some(next),
                Word::Settled(Settled { settled }) => said.settled.extend(settled),
                Word::Line(line) => {
                    // What was settled before were other files.
                    said.settled.remove(&line.record);
                    under.insert(line.record.clone(), boot.clone());
                    said.known.insert(line.record.clone(), line);
                }
            }
        }
        let before = said.known.len();
        let settled = &said.settled;
        said.known.retain(|record, _| {
            let then = under.get(record).and_then(Option::as_deref);
            // Lists of older programs say nothing about it.
            let is_same = then.is_none() || now.is_none() || then == now;
            is_same || settled.contains(record)
        });
        said.has_doubtful = said.known.len() < before;
        said
    }
}

/// How long the lock is waited for. A run that was killed while it started a worker has left its descriptors
/// to that one until it has become another program.
const LINGER: Duration = Duration::from_secs(2);

/// How often what was written is settled on the disk.
const EVERY: Duration = Duration::from_secs(2);

impl Drop for Journal {
    /// Closing would do, were it not for processes that are just being started for something else.
    fn drop(&mut self) {
        drop(self.settler.take());
        let _ = self.file.unlock();
    }
}

impl Journal {
    /// Opens it and locks it until it is dropped or the process ends, however that happens.
    pub(crate) fn open(output: &Path) -> Result<Self, RunFailure> {
        let folder = output.join(FOLDER);
        let failed = |what: &str, error: &std::io::Error| RunFailure::Output {
            path: output.to_owned(),
            what: format!("{what}: {error}"),
        };
        fs::create_dir_all(&folder).map_err(|error| failed("it cannot be made", &error))?;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(folder.join(FILE))
            .map_err(|error| failed("its list of results cannot be opened", &error))?;
        let begun = Instant::now();
        while let Err(error) = file.try_lock() {
            match error {
                fs::TryLockError::WouldBlock if begun.elapsed() < LINGER => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                fs::TryLockError::WouldBlock => {
                    return Err(RunFailure::Busy {
                        path: output.to_owned(),
                        holder: folder::holder(output),
                    });
                }
                fs::TryLockError::Error(error) => {
                    return Err(failed("it cannot be locked", &error));
                }
            }
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|error| failed("its list of results cannot be read", &error))?;
        // A line without an end is one whose writer was killed.
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64)
                .and_then(|()| file.seek(SeekFrom::End(0)).map(drop))
                .map_err(|error| failed("its list of results cannot be mended", &error))?;
        }
        let boot = boot();
        let said = Said::of(&bytes[..whole], boot.as_deref());
        Ok(Self {
            file,
            output: output.to_owned(),
            known: said.known,
            settled: said.settled,
            has_doubtful: said.has_doubtful,
            boot,
            has_said: false,
            settler: None,
        })
    }

    /// What is known of a record: the last that was said.
    pub(crate) fn line(&self, record: &str) -> Option<&Line> {
        self.known.get(record)
    }

    /// Takes records off the list that are done again, or cannot be, and removes what came of them: a record that
    /// fails this time is not to look as if it were done.
    pub(crate) fn forget(&mut self, records: &[&str]) -> std::io::Result<()> {
        let known = &mut self.known;
        let records = records.iter();
        let lines: Vec<Line> = records.filter_map(|record| known.remove(*record)).collect();
        if lines.is_empty() && !self.has_doubtful {
            return Ok(());
        }
        let mut text = self.said_boot()?;
        for line in self.known.values() {
            text.extend(serde_json::to_vec(line)?);
            text.push(b'\n');
        }
        self.settled
            .retain(|record| self.known.contains_key(record));
        let settled = self.settled.iter().cloned().collect();
        text.extend(serde_json::to_vec(&Settled { settled })?);
        text.push(b'\n');
        (self.has_said, self.has_doubtful) = (true, false);
        // Killed in between, the list has fewer lines, and what they named is done again.
        self.file.set_len(0)?;
        self.file.write_all(&text)?;
        let kept: HashSet<&PathBuf> = files(self.known.values()).collect();
        for path in files(&lines).filter(|path| !kept.contains(path) && is_below(path)) {
            // Whoever cannot remove it cannot replace it either, and then it is told of.
            if let Err(error) = warploom_io::remove_result(self.output.join(path)) {
                tracing::warn!(%error, "an old result stays");
            }
        }
        Ok(())
    }

    /// Adds a record that is done, in one piece: what is written by one call is there or is not,
    /// whenever the process is killed; a torn line is left out by the next reader.
    pub(crate) fn add(&mut self, line: &Line) -> std::io::Result<()> {
        if !self.has_said {
            let text = self.said_boot()?;
            self.file.write_all(&text)?;
            self.has_said = true;
        }
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.write_all(&text)?;
        if self.settler.is_none() {
            let file = self.file.try_clone()?;
            self.settler = Some(Settler::start(file, &self.output, EVERY));
        }
        if let Some(settler) = &self.settler {
            settler.add(line);
        }
        Ok(())
    }

    /// The line about the start of the system, where it has one.
    fn said_boot(&self) -> std::io::Result<Vec<u8>> {
        let Some(boot) = &self.boot else {
            return Ok(Vec::new());
        };
        let mut text = serde_json::to_vec(&serde_json::json!({ "boot": boot }))?;
        text.push(b'\n');
        Ok(text)
    }
}

/// What came of these.
fn files<'l>(lines: impl IntoIterator<Item = &'l Line>) -> impl Iterator<Item = &'l PathBuf> {
    let files = lines.into_iter().flat_map(|line| &line.files);
    files.map(|(path, _)| path)
}

/// Does it lead nowhere else? The list is a file that anybody may have written to.
fn is_below(path: &Path) -> bool {
    let mut parts = path.components();
    parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

impl Line {
    /// Is what came of it still there, as it was?
    pub(crate) fn is_there(&self, output: &Path) -> bool {
        let mut files = self.files.iter();
        files.all(|(path, measured)| measure(&output.join(path)).is_ok_and(|now| now == *measured))
    }
}

/// What tells a result that is whole from one that is not, without reading it: the length of a file; of a folder
/// a fingerprint of the names and lengths of all files in it, so that chunks that are gone, cut short or
/// others are noticed.
pub(crate) fn measure(path: &Path) -> std::io::Result<u64> {
    let found = fs::metadata(path)?;
    if !found.is_dir() {
        return Ok(found.len());
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let found = fs::metadata(&path)?;
            if found.is_dir() {
                folders.push(path);
            } else {
                files.push((path, found.len()));
            }
        }
    }
    files.sort();
    let mut print = Xxh3::new();
    for (file, bytes) in &files {
        let name = file.strip_prefix(path).unwrap_or(file);
        for part in name.components() {
            print.update(part.as_os_str().as_encoded_bytes());
            print.update(b"/");
        }
        print.update(&bytes.to_le_bytes());
    }
    Ok(print.digest())
}

#[cfg(test)]
mod tests;
