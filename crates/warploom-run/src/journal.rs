//! Which records are done: one line for each, written when all its files have their names.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::RunFailure;
use crate::folder;

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
    /// The files that came of it, below the folder of results, with their lengths.
    pub(crate) files: Vec<(PathBuf, u64)>,
}

/// The list of what is done below one folder of results. One run at a time has it.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    known: HashMap<String, Line>,
}

/// How long the lock is waited for. A run that was killed while it started a worker has left its descriptors
/// to that one until it has become another program.
const LINGER: Duration = Duration::from_secs(2);

impl Drop for Journal {
    /// Closing would do, were it not for processes that are just being started for something else.
    fn drop(&mut self) {
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
        let lines = bytes[..whole].split(|byte| *byte == b'\n');
        let lines = lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok());
        let known = lines.map(|line| (line.record.clone(), line)).collect();
        Ok(Self { file, known })
    }

    /// What is known of a record: the last that was said.
    pub(crate) fn line(&self, record: &str) -> Option<&Line> {
        self.known.get(record)
    }

    /// Takes records off the list that are done again: their files are about to change.
    pub(crate) fn forget(&mut self, records: &[&str]) -> std::io::Result<()> {
        let before = self.known.len();
        for record in records {
            self.known.remove(*record);
        }
        if self.known.len() == before {
            return Ok(());
        }
        let mut text = Vec::new();
        for line in self.known.values() {
            text.extend(serde_json::to_vec(line)?);
            text.push(b'\n');
        }
        // Killed in between, the list has fewer lines, and what they named is done again.
        self.file.set_len(0)?;
        self.file.write_all(&text)
    }

    /// Adds a record that is done, in one piece: what is written by one call is there or is not,
    /// whenever the process is killed; a torn line is left out by the next reader.
    pub(crate) fn add(&mut self, line: &Line) -> std::io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.write_all(&text)
    }
}

impl Line {
    /// Are the files still there, as long as they were?
    pub(crate) fn is_there(&self, output: &Path) -> bool {
        self.files.iter().all(|(path, bytes)| {
            let found = fs::metadata(output.join(path));
            found.is_ok_and(|found| found.is_dir() || found.len() == *bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(record: &str) -> Line {
        Line {
            record: record.to_owned(),
            recipe: "r".to_owned(),
            content: "c".to_owned(),
            stamp: "s".to_owned(),
            files: vec![(PathBuf::from("a.tif"), 3)],
        }
    }

    #[test]
    fn a_list_cut_at_any_byte_keeps_its_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        let names = ["one", "two", "d\u{fc}nn\n"];
        for name in names {
            journal.add(&line(name)).unwrap();
        }
        drop(journal);
        let path = folder.path().join(FOLDER).join(FILE);
        let bytes = fs::read(&path).unwrap();
        for cut in 0..=bytes.len() {
            fs::write(&path, &bytes[..cut]).unwrap();
            let mut journal = Journal::open(folder.path()).unwrap();
            let ends = bytes[..cut].split(|byte| *byte == b'\n').count() - 1;
            for (at, name) in names.iter().enumerate() {
                assert_eq!(journal.line(name).is_some(), at < ends, "{name} at {cut}");
            }
            journal.add(&line("new")).unwrap();
            drop(journal);
            let journal = Journal::open(folder.path()).unwrap();
            assert_eq!(journal.line("new"), Some(&line("new")));
            assert_eq!(journal.known.len(), ends + 1);
        }
    }

    #[test]
    fn two_runs_do_not_write_to_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = Journal::open(folder.path()).unwrap();
        let second = Journal::open(folder.path());
        assert!(matches!(second, Err(RunFailure::Busy { .. })));
        drop(first);
        assert!(Journal::open(folder.path()).is_ok());
    }

    #[test]
    fn files_that_are_gone_or_shorter_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!line("a").is_there(folder.path()));
        fs::write(folder.path().join("a.tif"), b"ab").unwrap();
        assert!(!line("a").is_there(folder.path()));
        fs::write(folder.path().join("a.tif"), b"abc").unwrap();
        assert!(line("a").is_there(folder.path()));
    }
}
