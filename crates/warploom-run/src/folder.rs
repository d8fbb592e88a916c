//! The folder of one run, below the results: what whoever asks how it stands may read.
//!
//! ```text
//! OUT/.warploom/finished.jsonl         which results are done, of all runs; one run at a time writes it
//! OUT/.warploom/run-TIME-PID/          one run, which alone writes here
//!   about.json        what it is of; locked by its process for as long as that lives
//!   outcomes.jsonl    what became of each record, a line as each ends; runs of one process
//!   plan journal logs/ recordings/   of the fleet and its workers; runs on several devices
//!   ended.json        how it ended; not there while it goes on, or when its process was killed
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::RunFailure;
use crate::journal::FOLDER;
use crate::outcome::{Done, News, Summary};
use crate::settings::Settings;

pub(crate) const ABOUT: &str = "about.json";
pub(crate) const ENDED: &str = "ended.json";
pub(crate) const OUTCOMES: &str = "outcomes.jsonl";

/// What a run says of itself when it begins.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct About {
    pub(crate) pid: u32,
    /// The machine; empty where that is not known.
    pub(crate) host: String,
    /// In milliseconds since 1970.
    pub(crate) started: u64,
    pub(crate) pipeline: String,
    pub(crate) plan: String,
    /// What is computed, wherever: plans differ with the memory that is free.
    pub(crate) recipe: String,
    pub(crate) devices: Vec<AboutDevice>,
    /// The records that are to be done, in the order of their numbers.
    pub(crate) open: Vec<String>,
    /// How many more an earlier run has done.
    pub(crate) skipped: u64,
    /// Records that failed before anything ran.
    pub(crate) lacking: Vec<Done>,
    /// What was asked for.
    pub(crate) origin: Option<Origin>,
}

/// What a run was asked for, as far as it is not below its results.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The folder in which it was asked for, by which the others go.
    pub(crate) here: PathBuf,
    pub(crate) file: PathBuf,
    pub(crate) input: String,
}

impl Origin {
    pub(crate) fn new(file: PathBuf, input: String) -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        Self { here, file, input }
    }
}

/// A device of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AboutDevice {
    /// What people call it.
    pub(crate) label: String,
    /// What its driver calls it.
    pub(crate) name: String,
    /// What the journal calls it.
    pub(crate) id: String,
    /// Worker processes; 0 where the run's own process does the work.
    pub(crate) workers: u32,
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Ended {
    pub(crate) at: u64,
    pub(crate) seconds: f64,
    pub(crate) interrupted: bool,
    /// Why it broke off, if it did.
    pub(crate) error: Option<String>,
    pub(crate) changes: Vec<String>,
}

/// A record that ended, and when.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct OutcomeLine {
    /// In milliseconds since 1970.
    pub(crate) at: u64,
    #[serde(flatten)]
    pub(crate) done: Done,
}

/// Now, in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}

/// The folder of a run that goes on, in the process that runs.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    about: About,
    /// Locked, which tells others that this process lives.
    _lock: File,
}

impl RunFolder {
    /// Makes it, below the folder of results.
    pub(crate) fn begin(output: &Path, mut about: About) -> Result<Self, RunFailure> {
        about.pid = std::process::id();
        about.host = host();
        about.started = now();
        let name = format!("run-{}-{}", about.started, about.pid);
        let path = output.join(FOLDER).join(name);
        let made = fs::create_dir_all(&path).and_then(|()| put(&path, &about));
        match made {
            Ok(lock) => Ok(Self {
                path,
                about,
                _lock: lock,
            }),
            Err(error) => Err(RunFailure::Output {
                path: output.to_owned(),
                what: format!("the run cannot be noted down: {error}"),
            }),
        }
    }

    /// What the run is of.
    #[cfg(all(feature = "fleet", target_os = "linux"))]
    pub(crate) fn about(&self) -> &About {
        &self.about
    }

    #[cfg(all(feature = "fleet", target_os = "linux"))]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The same settings, but each record that ends is noted down before anybody is told.
    pub(crate) fn noting(&self, settings: &Settings) -> Settings {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true);
        let file = file.open(self.path.join(OUTCOMES));
        let file = Mutex::new(file.ok());
        let listener = Arc::clone(&settings.listener);
        let mut noting = settings.clone();
        noting.listener = Arc::new(move |news| {
            if let News::Ended { done, .. } = &news {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let (at, done) = (now(), done.clone());
                if let Some(file) = &mut *file
                    && let Ok(mut line) = serde_json::to_vec(&OutcomeLine { at, done })
                {
                    line.push(b'\n');
                    // It is for those who look: what is done is in the list of results.
                    if let Err(error) = file.write_all(&line) {
                        tracing::warn!(%error, "an outcome cannot be noted down");
                    }
                }
            }
            listener(news);
        });
        noting
    }

    /// Says what it came to, and that this is where it was noted down.
    pub(crate) fn conclude(&self, summary: &mut Summary) {
        self.end(Ended {
            seconds: summary.seconds,
            interrupted: summary.interrupted,
            error: summary.error.as_ref().map(|error| error.reason.clone()),
            changes: summary.changes.clone(),
            ..Ended::default()
        });
        self.path.clone_into(&mut summary.run);
    }

    /// Says how it ended.
    pub(crate) fn end(&self, mut ended: Ended) {
        ended.at = now();
        if ended.seconds == 0.0 {
            ended.seconds = ended.at.saturating_sub(self.about.started) as f64 / 1e3;
        }
        if let Err(error) = put_end(&self.path, "ended.part", &ended) {
            tracing::warn!(%error, "how the run ended cannot be noted down");
        }
    }
}

fn put_end(run: &Path, draft: &str, ended: &Ended) -> io::Result<()> {
    let draft = run.join(draft);
    fs::write(&draft, serde_json::to_vec(ended)?)?;
    fs::rename(draft, run.join(ENDED))
}

/// Notes down that this process's run with these results was called off, for a process that ends at once and
/// has no time to end it in order. What it said of its end before stays.
///
/// # Errors
/// When it cannot be written.
pub fn call_off(output: &Path) -> io::Result<()> {
    for run in runs(output) {
        let about: About = serde_json::from_slice(&fs::read(run.join(ABOUT))?)?;
        if about.pid == std::process::id() && about.host == host() {
            let at = now();
            let ended = Ended {
                at,
                seconds: at.saturating_sub(about.started) as f64 / 1e3,
                interrupted: true,
                ..Ended::default()
            };
            if run.join(ENDED).exists() {
                return Ok(());
            }
            return put_end(&run, "called-off.part", &ended);
        }
    }
    Ok(())
}

/// Writes what a run is of, locked before it has its name: nobody sees it unlocked while the run lives.
fn put(folder: &Path, about: &About) -> io::Result<File> {
    let draft = folder.join("about.part");
    let mut file = File::create(&draft)?;
    file.lock()?;
    file.write_all(&serde_json::to_vec(about)?)?;
    fs::rename(&draft, folder.join(ABOUT))?;
    Ok(file)
}

fn host() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    host.trim().to_owned()
}

/// Does the process live that wrote this file and has it locked?
pub(crate) fn is_held(path: &Path) -> bool {
    // Shared, so that two who look do not take each other for the writer; and nobody ever waits for it.
    let file = File::open(path);
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The folders of runs below a folder of results, the newest first.
pub(crate) fn runs(output: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(output.join(FOLDER)).into_iter().flatten();
    let mut found: Vec<(u64, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?.strip_prefix("run-")?;
            let stamp = name.split('-').next()?.parse().ok()?;
            path.join(ABOUT).exists().then_some((stamp, path))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// Who runs something with these results, in words.
pub(crate) fn holder(output: &Path) -> Option<String> {
    let live = runs(output)
        .into_iter()
        .find(|run| is_held(&run.join(ABOUT)))?;
    let about: About = serde_json::from_slice(&fs::read(live.join(ABOUT)).ok()?).ok()?;
    Some(match about.host.as_str() {
        "" => format!("process {}", about.pid),
        host => format!("process {} on {host}", about.pid),
    })
}
