//! How a run stands, for whoever asks: it may go on, be over, or have been killed.
//!
//! Only what the run wrote down is read, and nothing is changed: its folder below the results, the
//! journal of its fleet if it has one, and who holds their locks. See [`look`].

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use warploom_core::{Code, Coded};
use warploom_watch::recording::Tally;

pub use crate::folder::call_off;
use crate::folder::{ABOUT, About, ENDED, Ended, OUTCOMES, OutcomeLine, is_held, runs};
use crate::journal::FOLDER;
use crate::outcome::{Failure, Outcome};

/// The rate of a run that goes on is that of so many milliseconds.
const LATELY: u64 = 10_000;

/// Whether a run goes on, and if not, how it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Its process lives.
    Running,
    /// It came to its end; records may have failed.
    Finished,
    /// It was called off, and ended in order.
    Interrupted,
    /// It broke off and said why.
    Broken,
    /// Its process is gone and said nothing: killed, or the machine was.
    Died,
}

impl RunState {
    /// `running`, `finished`, `interrupted`, `broken`, `died`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Broken => "broken",
            Self::Died => "died",
        }
    }
}

/// How a run stands.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct RunStatus {
    /// Its folder.
    pub run: PathBuf,
    /// Does it go on?
    pub state: RunState,
    /// Why it broke off.
    pub error: Option<String>,
    /// What of it cannot be read; counts are of the rest.
    pub damage: Option<String>,
    /// The pipeline.
    pub pipeline: String,
    /// The plan's fingerprint.
    pub plan: String,
    /// The process that runs or ran it.
    pub pid: u32,
    /// The machine; empty where that is not known.
    pub host: String,
    /// When it began, in milliseconds since 1970.
    pub started: u64,
    /// How long it has taken, as far as is known.
    pub seconds: f64,
    /// How many records ended how; those of a run that goes on may still be begun.
    pub tally: Tally,
    /// Records at workers.
    pub under_way: u64,
    /// Records a second: lately while it goes on, else of all of it.
    pub rate: Option<f64>,
    /// Seconds that the rest takes at this rate, while it goes on.
    pub left: Option<f64>,
    /// Its devices.
    pub devices: Vec<DeviceStatus>,
    /// Records that failed, in the order in which they did.
    pub failures: Vec<FailedRecord>,
    /// What happened to devices and workers, in its order.
    pub incidents: Vec<String>,
}

/// How one device of a run stands.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct DeviceStatus {
    /// What people call it.
    pub label: String,
    /// What its driver calls it.
    pub name: String,
    /// `working`, `idle`, `quarantined`, `given-up`; `ended` when the run is over.
    pub state: String,
    /// Its worker processes; 0 where the run's own process does the work.
    pub workers: u32,
    /// Records it did.
    pub ok: u64,
    /// Records that failed on it.
    pub failed: u64,
    /// Records that are at it.
    pub under_way: u64,
    /// Records of its latest batch.
    pub batch: Option<u64>,
    /// Records a second.
    pub rate: Option<f64>,
    /// How often a worker came to grief on it.
    pub griefs: u64,
    /// How often it got no work for a while.
    pub quarantines: u64,
}

/// A record that failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct FailedRecord {
    /// What it is called.
    pub record: String,
    /// Why, and how often it was tried.
    #[serde(flatten)]
    pub failure: Failure,
}

/// Why nobody can tell how a run stands.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatusError {
    /// There is no run. (WL0851)
    #[error("there is no run in {}: {what}", path.display())]
    NoRun {
        /// Where it was looked for.
        path: PathBuf,
        /// What is there instead.
        what: String,
    },
    /// What a run says of itself is damaged. (WL0852)
    #[error("the run in {} cannot be read: {what}", path.display())]
    Damaged {
        /// Which run.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl Coded for StatusError {
    fn code(&self) -> Code {
        Code(match self {
            Self::NoRun { .. } => 851,
            Self::Damaged { .. } => 852,
        })
    }

    fn help(&self) -> Option<String> {
        let text = match self {
            Self::NoRun { .. } => {
                "name the folder that `warploom run` writes results to, or one of its runs"
            }
            Self::Damaged { .. } => {
                "results that have their names are whole; run again with `--resume` for the rest"
            }
        };
        Some(text.to_owned())
    }
}

/// How the run in this folder stands at `now`, in milliseconds since 1970. The folder is one of results,
/// whose newest run is meant, or that of a run itself.
///
/// # Errors
/// When there is no run, or nothing of it can be read.
pub fn look(path: &Path, now: u64) -> Result<RunStatus, StatusError> {
    let run = find(path)?;
    if !run.join(ABOUT).exists() {
        return bare(&run, now);
    }
    // Asked first: whoever lets go of it after this has written everything by then.
    let lives = is_held(&run.join(ABOUT));
    let about: About = read(&run, ABOUT)?.unwrap_or_default();
    let ended: Option<Ended> = read(&run, ENDED)?;
    let mut status = RunStatus::of(&run, &about, ended.as_ref(), lives);
    let is_alone = about.devices.iter().all(|device| device.workers == 0);
    let ends = if is_alone {
        alone(&run, &mut status)
    } else {
        crew(&run, &about, &mut status)?
    };
    status.finish(&about, ended.as_ref(), &ends, now);
    Ok(status)
}

/// What a run was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Asked {
    /// The file of its pipeline.
    pub file: PathBuf,
    /// Its input: a file, a folder or a pattern.
    pub input: String,
    /// The folder of its results.
    pub output: PathBuf,
    /// Its devices, where it had several, or worker processes on one.
    pub devices: Vec<String>,
}

/// What the run in this folder was asked for, so that it can be asked for again. The folder is one of results,
/// whose newest run is meant, or that of a run itself.
///
/// # Errors
/// When there is no run, or it does not say.
pub fn asked(path: &Path) -> Result<Asked, StatusError> {
    let run = find(path)?;
    let run = std::path::absolute(&run).unwrap_or(run);
    let none = |what: &str| StatusError::NoRun {
        path: run.clone(),
        what: what.to_owned(),
    };
    let about: Option<About> = read(&run, ABOUT)?;
    let about = about.ok_or_else(|| none("what is there is of a fleet of one's own"))?;
    let origin = about.origin.ok_or_else(|| {
        none("it does not say of which pipeline and input it was; name them, `-o` and `--resume`")
    })?;
    let below = run.parent().and_then(Path::parent);
    let output = below.ok_or_else(|| none("it is not below a folder of results"))?;
    let is_here = std::env::current_dir().is_ok_and(|here| here == origin.here);
    let input = match origin.here.to_str() {
        // What is said as it was said: folders may have names that patterns would take for something else.
        Some(here) if !is_here && !Path::new(&origin.input).is_absolute() => {
            format!("{here}/{}", origin.input)
        }
        _ => origin.input,
    };
    let workers = about.devices.iter().filter(|device| device.workers > 0);
    Ok(Asked {
        file: origin.here.join(origin.file),
        input,
        output: output.to_owned(),
        devices: workers.map(|device| device.label.clone()).collect(),
    })
}

/// When records ended, and at which of the devices.
pub(crate) type Ends = Vec<(u64, Option<usize>)>;

impl RunStatus {
    pub(crate) fn of(run: &Path, about: &About, ended: Option<&Ended>, lives: bool) -> Self {
        let error = ended.and_then(|ended| ended.error.clone());
        let state = match ended {
            // What it wrote last is there before its lock is gone.
            Some(_) if error.is_some() => RunState::Broken,
            Some(ended) if ended.interrupted => RunState::Interrupted,
            Some(_) => RunState::Finished,
            None if lives => RunState::Running,
            None => RunState::Died,
        };
        let devices = about.devices.iter().map(|device| DeviceStatus {
            label: device.label.clone(),
            name: device.name.clone(),
            workers: device.workers,
            ..DeviceStatus::default()
        });
        let mut status = Self {
            run: run.to_owned(),
            state,
            error,
            damage: None,
            pipeline: about.pipeline.clone(),
            plan: about.plan.clone(),
            pid: about.pid,
            host: about.host.clone(),
            started: about.started,
            seconds: 0.0,
            tally: Tally {
                skipped: about.skipped,
                ..Tally::default()
            },
            under_way: 0,
            rate: None,
            left: None,
            devices: devices.collect(),
            failures: Vec::new(),
            incidents: Vec::new(),
        };
        for done in &about.lacking {
            if let Outcome::Failed(failure) = &done.outcome {
                status.fail(&done.record, failure.clone());
            }
        }
        status
    }

    pub(crate) fn fail(&mut self, record: &str, failure: Failure) {
        self.tally.failed += 1;
        self.failures.push(FailedRecord {
            record: record.to_owned(),
            failure,
        });
    }

    /// What follows from everything that was read.
    pub(crate) fn finish(&mut self, about: &About, ended: Option<&Ended>, ends: &Ends, now: u64) {
        let running = self.state == RunState::Running;
        let all = about.open.len() as u64 + about.lacking.len() as u64;
        let done = self.tally.ok + self.tally.failed;
        self.tally.not_started = all.saturating_sub(done);
        let last = ends.iter().map(|(at, _)| *at).max();
        let until = match ended {
            Some(ended) => ended.at,
            None if running => now,
            // Nobody knows when it died; after that it did nothing.
            None => last.unwrap_or(about.started),
        };
        let took = until.saturating_sub(about.started);
        self.seconds = ended.map_or(took as f64 / 1e3, |ended| ended.seconds);
        let window = if running { took.min(LATELY) } else { took };
        let rate = |device: Option<usize>| {
            let recent = ends.iter().filter(|(at, of)| {
                at.saturating_add(window) >= until && (device.is_none() || *of == device)
            });
            let count = recent.count();
            (count > 0 && window > 0).then(|| count as f64 / (window as f64 / 1e3))
        };
        self.rate = rate(None);
        if running {
            let rest = self.tally.not_started as f64;
            self.left = self.rate.map(|rate| rest / rate);
        }
        for (at, device) in self.devices.iter_mut().enumerate() {
            device.rate = rate(Some(at));
            if !running {
                device.under_way = 0;
            }
            if device.state.is_empty() {
                let word = match (running, device.under_way) {
                    (false, _) => "ended",
                    (true, 0) if device.workers > 0 => "idle",
                    (true, _) => "working",
                };
                word.clone_into(&mut device.state);
            }
        }
        self.under_way = self.devices.iter().map(|device| device.under_way).sum();
        if let Some(ended) = ended {
            self.incidents.clone_from(&ended.changes);
        }
    }
}

/// The folder of the run that is meant.
fn find(path: &Path) -> Result<PathBuf, StatusError> {
    let none = |what: &str| {
        Err(StatusError::NoRun {
            path: path.to_owned(),
            what: what.to_owned(),
        })
    };
    match fs::metadata(path) {
        Err(error) => return none(&error.to_string()),
        Ok(found) if !found.is_dir() => return none("it is a file"),
        Ok(_) => {}
    }
    if path.join(ABOUT).is_file() || path.join("journal").is_file() {
        return Ok(path.to_owned());
    }
    if let Some(newest) = runs(path).into_iter().next() {
        return Ok(newest);
    }
    if path.join(FOLDER).is_dir() {
        return none("results may go there, but nothing has run");
    }
    none("no run has written to this folder")
}

/// What a file of a run says; `None` when it is not there.
fn read<T: DeserializeOwned>(run: &Path, name: &str) -> Result<Option<T>, StatusError> {
    let damaged = |what: String| StatusError::Damaged {
        path: run.to_owned(),
        what: format!("{name} {what}"),
    };
    match fs::read(run.join(name)) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| damaged(format!("makes no sense: {error}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(damaged(format!("cannot be opened: {error}"))),
    }
}

/// What a run of one process noted down.
fn alone(run: &Path, status: &mut RunStatus) -> Ends {
    let bytes = fs::read(run.join(OUTCOMES)).unwrap_or_default();
    let mut ends = Vec::new();
    // A line without an end is being written, or its writer was killed.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let lines = bytes[..whole].split(|byte| *byte == b'\n');
    for (number, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
        let Ok(line) = serde_json::from_slice::<OutcomeLine>(line) else {
            let what = format!("line {} of {OUTCOMES} makes no sense", number + 1);
            status.damage.get_or_insert(what);
            continue;
        };
        ends.push((line.at, Some(0)));
        let mut device = status.devices.first_mut();
        match line.done.outcome {
            Outcome::Ok { .. } => {
                status.tally.ok += 1;
                if let Some(device) = &mut device {
                    device.ok += 1;
                }
            }
            Outcome::Failed(failure) => {
                if let Some(device) = &mut device {
                    device.failed += 1;
                }
                status.fail(&line.done.record, failure);
            }
            Outcome::Skipped | Outcome::NotStarted => {}
        }
    }
    ends
}

#[cfg(all(feature = "fleet", target_os = "linux"))]
use crate::crew_status::{bare, crew};

#[cfg(not(all(feature = "fleet", target_os = "linux")))]
fn crew(run: &Path, _: &About, _: &mut RunStatus) -> Result<Ends, StatusError> {
    bare(run, 0).map(|_| Ends::new())
}

#[cfg(not(all(feature = "fleet", target_os = "linux")))]
fn bare(run: &Path, _: u64) -> Result<RunStatus, StatusError> {
    Err(StatusError::NoRun {
        path: run.to_owned(),
        what: "it is of several devices, which this build cannot read".to_owned(),
    })
}
