//! The memory of a device that there is not.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::marks::{leave, process};

/// A device's memory, which a file stands for: whoever has a part of it is in there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Which file.
    pub(crate) file: PathBuf,
    /// How many bytes there are.
    pub(crate) room: u64,
    /// How many a worker takes.
    pub(crate) takes: u64,
    /// Whose workers these are.
    pub(crate) whose: String,
}

impl Memory {
    /// Takes a worker's part, until it dies; false if there is not so much. Leaves a mark when workers of two
    /// owners have some at once.
    pub(crate) fn take(&self, marks: &Path) -> bool {
        let options = File::options().create(true).append(true).read(true).clone();
        let mut file = options.open(&self.file).expect("a file of memory");
        file.lock().expect("a lock");
        let text = fs::read_to_string(&self.file).expect("a file of memory");
        let lives = |line: &&str| {
            let (owner, _) = line.split_once('|').expect("two parts");
            let number = owner.split(' ').next().and_then(|pid| pid.parse().ok());
            number.and_then(process).as_deref() == Some(owner)
        };
        let holders: Vec<&str> = text.lines().filter(lives).collect();
        if holders.iter().any(|line| !line.ends_with(&self.whose)) {
            leave(marks, "together");
        }
        if (holders.len() as u64 + 1) * self.takes > self.room {
            leave(marks, "out-of-memory");
            return false;
        }
        let own = process(std::process::id()).expect("ourselves");
        writeln!(file, "{own}|{}", self.whose).expect("a line");
        true
    }
}
