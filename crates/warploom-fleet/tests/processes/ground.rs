//! What every test here stands on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tempfile::TempDir;
use warploom_fleet::{
    Fleet, FleetBuilder, FleetDevice, Outcome, Program, Reason, Record, Report, Rules,
};

use crate::faulty::{Plan, answer};

/// A folder of its own, and a plan that goes wrong in no way yet.
pub(crate) struct Ground {
    folder: TempDir,
    pub(crate) plan: Plan,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan {
            marks: folder.path().join("marks"),
            ..Plan::default()
        };
        fs::create_dir(&plan.marks).unwrap();
        Self { folder, plan }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A fleet of so many devices with one worker each.
    pub(crate) fn fleet(&self, devices: usize) -> FleetBuilder {
        builder(&self.plan, &self.path("run"), devices)
    }

    /// Runs it, and demands that no process is left.
    pub(crate) fn run(&self, fleet: FleetBuilder, records: &[Record]) -> Report {
        let report = fleet.build().unwrap().run(records, |_| Ok(())).unwrap();
        self.nobody_is_left();
        report
    }

    /// Demands that a second after it every process that left a mark is gone.
    pub(crate) fn nobody_is_left(&self) {
        nobody_is_left(&self.plan.marks);
    }
}

pub(crate) fn builder(plan: &Plan, folder: &Path, devices: usize) -> FleetBuilder {
    let program = Program::new(std::env::current_exe().unwrap()).arg("be-worker");
    let mut fleet = Fleet::builder(program)
        .plan("faulty")
        .folder(folder)
        .setup(postcard::to_stdvec(plan).unwrap())
        .rules(rules())
        .beat(Duration::from_millis(50));
    for device in 0..devices {
        let device = FleetDevice::new(format!("gpu-{device}")).model("pretended");
        fleet = fleet.device(device);
    }
    fleet
}

/// Quick to retry and slow to judge: the machine that tests run on may be busy.
pub(crate) fn rules() -> Rules {
    Rules {
        back_off: Duration::from_millis(5),
        quarantine: Duration::from_millis(300),
        grace: Duration::from_secs(10),
        silence_limit: Duration::from_mins(1),
        ..Rules::default()
    }
}

/// Records of a few bytes, each different.
pub(crate) fn records(count: u64) -> Vec<Record> {
    (0..count)
        .map(|number| Record::new(format!("record {number}")))
        .collect()
}

/// Demands that these records failed, and all others were done with the right answer.
pub(crate) fn check(report: &Report, records: &[Record], failed: &[u64]) {
    assert_eq!(report.outcomes.len(), records.len());
    for (number, (outcome, record)) in (0..).zip(report.outcomes.iter().zip(records)) {
        match outcome {
            Outcome::Ok { result, attempts } => {
                assert!(!failed.contains(&number), "record {number} should fail");
                assert!(*attempts > 0);
                let expected = answer(number, &record.body, 0);
                assert_eq!(result.bytes(), Some(&*expected), "record {number}");
            }
            Outcome::Failed { reason, attempts } => {
                assert!(failed.contains(&number), "record {number}: {reason}");
                assert!(*attempts > 0);
            }
            Outcome::NotStarted { .. } => panic!("record {number} was not started"),
        }
    }
    assert_eq!(report.counts.failed, failed.len() as u64);
    assert!(report.is_complete());
}

/// Why a record failed.
pub(crate) fn reason(report: &Report, record: usize) -> &Reason {
    match &report.outcomes[record] {
        Outcome::Failed { reason, .. } => reason,
        other => panic!("record {record} did not fail: {other:?}"),
    }
}

pub(crate) fn nobody_is_left(marks: &Path) {
    let deadline = Instant::now() + Duration::from_secs(1);
    let Ok(pids) = fs::read_dir(marks.join("pids")) else {
        return;
    };
    for pid in pids.flatten() {
        let process = Path::new("/proc").join(pid.file_name());
        while is_alive(&process) {
            assert!(Instant::now() < deadline, "{} is left", process.display());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The workers that this process has started and that left a mark.
pub(crate) fn workers(marks: &Path) -> Vec<Pid> {
    let pids = fs::read_dir(marks.join("pids")).into_iter().flatten();
    let pids = pids.flatten().filter_map(|pid| {
        let pid: i32 = pid.file_name().to_str()?.parse().ok()?;
        let process = Path::new("/proc").join(pid.to_string());
        let status = fs::read_to_string(process.join("stat")).ok()?;
        // Behind the name: the state, and the parent.
        let parent = status.rsplit_once(')')?.1.split_whitespace().nth(1)?;
        let is_own = parent.parse() == Ok(std::process::id()) && is_alive(&process);
        Pid::from_raw(pid).filter(|_| is_own)
    });
    pids.collect()
}

/// How many processes that left a mark are there.
pub(crate) fn alive(marks: &Path) -> usize {
    let pids = fs::read_dir(marks.join("pids")).into_iter().flatten();
    let processes = pids
        .flatten()
        .map(|pid| Path::new("/proc").join(pid.file_name()));
    processes.filter(|process| is_alive(process)).count()
}

/// Is this process there, and more than an entry that its parent has not looked at? Numbers are used
/// again, so it has to be one of ours.
fn is_alive(process: &Path) -> bool {
    let Ok(status) = fs::read_to_string(process.join("stat")) else {
        return false;
    };
    let command = fs::read(process.join("cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command);
    let ours = command.contains("be-worker") || command.starts_with("sleep");
    let state = status
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest.trim_start());
    ours && !state.starts_with(['Z', 'X'])
}
