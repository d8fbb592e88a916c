//! Coordinators that are killed, interrupted, and resumed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use warploom_fleet::journal::{Event, read};
use warploom_fleet::{Record, Report, Stopper};

use crate::Test;
use crate::faulty::{Helper, Plan, answer};
use crate::ground::{Ground, alive, builder, nobody_is_left, records};

pub(crate) const TESTS: &[Test] = &[
    ("i2_i7_a_coordinator_killed_a_hundred_times", killed),
    ("i7_ctrl_c_once_drains_and_twice_stops", interrupted),
    ("i7_ctrl_c_twice_ends_workers_that_hang", interrupted_twice),
    ("a_second_coordinator_is_refused", second),
    (
        "i7_workers_that_were_stopped_die_with_their_coordinator",
        stopped,
    ),
];

/// Instead of the time that a record takes: it takes for ever.
const HANGING: u64 = u64::MAX;
/// Records of the runs here; some of them go wrong, so that kills also meet griefs and halvings.
const RECORDS: u64 = 400;
const POISON: u64 = 17;

fn plan(marks: PathBuf, service: u64) -> Plan {
    Plan {
        marks,
        service,
        poison: vec![POISON],
        fits: 24,
        kill_once: vec![100, 200],
        // Whatever workers start has to be gone with them.
        helper: Helper::Taken,
        ..Plan::default()
    }
}

/// Two of three workers hang and would not end if they were asked to; the third has nothing to do then.
fn hanging(marks: PathBuf) -> Plan {
    Plan {
        marks,
        hang: vec![0, 1],
        ignore_term: true,
        ..Plan::default()
    }
}

/// Runs a fleet in the folder it is given, and writes each answer into a file.
pub(crate) fn main(mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let mut next = || arguments.next().expect("FOLDER SERVICE RECORDS");
    let folder = PathBuf::from(next());
    let service = next().parse().expect("microseconds");
    let count = next().parse().expect("a number of records");
    let plan = match service {
        HANGING => hanging(folder.join("marks")),
        _ => plan(folder.join("marks"), service),
    };
    fs::create_dir_all(&plan.marks).unwrap();
    fs::create_dir_all(folder.join("outputs")).unwrap();
    let stopper = Stopper::new().unwrap();
    let _listening = stopper.on_signals().unwrap();
    let fleet = builder(&plan, &folder.join("run"), 3).stopper(&stopper);
    let report = fleet.build().unwrap().run(&records(count), |delivery| {
        let Some(answer) = delivery.answer else {
            return Ok(());
        };
        let path = folder.join("outputs").join(delivery.record.to_string());
        let draft = path.with_extension("part");
        let written = fs::write(&draft, answer).and_then(|()| fs::rename(&draft, &path));
        written.map_err(|error| error.to_string())
    });
    match report {
        Ok(report) if report.is_complete() => ExitCode::SUCCESS,
        Ok(Report {
            interrupted: true, ..
        }) => ExitCode::from(130),
        Ok(_) => ExitCode::from(3),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(4)
        }
    }
}

fn start(folder: &Path, service: u64, count: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("be-coordinator").arg(folder);
    command.arg(service.to_string()).arg(count.to_string());
    command.stdin(Stdio::null()).spawn().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Every answer is there and right, and the journal settles every record once.
fn check(folder: &Path, all: &[Record]) {
    for (number, record) in (0..).zip(all) {
        let found = fs::read(folder.join("outputs").join(number.to_string())).ok();
        let expected = (number != POISON).then(|| answer(number, &record.body, 0));
        assert!(found == expected, "record {number}");
    }
    let entries = read(&folder.join("run/journal")).unwrap();
    let mut settled = vec![0; all.len()];
    for entry in entries {
        if let Event::Ok { record, .. } | Event::Failed { record, .. } = entry.event {
            settled[usize::try_from(record).unwrap()] += 1;
        }
    }
    assert!(settled.iter().all(|&times| times == 1), "{settled:?}");
}

/// Test 5 of the acceptance list.
fn killed() {
    let ground = Ground::new();
    let all = records(RECORDS);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let (mut kills, mut runs, mut resumed) = (0, 0, 0);
    while kills < 100 {
        let folder = ground.path(&format!("killed-{runs}"));
        runs += 1;
        loop {
            let mut child = start(&folder, 3000, RECORDS);
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let wait = Duration::from_millis(random % 400);
            let deadline = Instant::now() + wait;
            let ended = loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break Some(status);
                }
                if Instant::now() >= deadline && kills < 100 {
                    break None;
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            if let Some(status) = ended {
                assert!(status.success(), "it ended with {status}");
                nobody_is_left(&folder.join("marks"));
                break;
            }
            signal(&child, Signal::KILL);
            child.wait().unwrap();
            kills += 1;
            resumed += 1;
            nobody_is_left(&folder.join("marks"));
        }
        check(&folder, &all);
    }
    assert!(resumed >= 100 && runs >= 1);
}

/// Test 7 of the acceptance list.
fn interrupted() {
    let ground = Ground::new();
    let folder = ground.path("once");
    let mut child = start(&folder, 2000, 20_000);
    let some_done = || {
        let files = fs::read_dir(folder.join("outputs"));
        files.is_ok_and(|files| files.count() > 10)
    };
    wait_until(some_done);
    signal(&child, Signal::INT);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    ended_in_order(&folder);
}

/// It ended in order, left nobody, and says so in its journal.
fn ended_in_order(folder: &Path) {
    nobody_is_left(&folder.join("marks"));
    let entries = read(&folder.join("run/journal")).unwrap();
    let last = entries.last().map(|entry| entry.event.clone());
    assert_eq!(last, Some(Event::Ended { complete: false }));
}

/// Test 7 of the acceptance list, where the first Ctrl-C cannot end the run.
fn interrupted_twice() {
    let ground = Ground::new();
    let folder = ground.path("twice");
    let marks = folder.join("marks");
    let mut child = start(&folder, HANGING, 3);
    let hung = |record: u64| marks.join(format!("hung-{record}")).exists();
    wait_until(|| hung(0) && hung(1) && alive(&marks) == 3);
    signal(&child, Signal::INT);
    // The first one has been heard when the worker that has nothing to do is gone.
    wait_until(|| alive(&marks) == 2);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(alive(&marks), 2, "draining ends nobody who has records");
    assert!(child.try_wait().unwrap().is_none());
    signal(&child, Signal::INT);
    let second = Instant::now();
    let status = child.wait().unwrap();
    let took = second.elapsed();
    assert!(took < Duration::from_secs(1), "it ended after {took:?}");
    assert_eq!(alive(&marks), 0, "it waited for its workers");
    assert_eq!(status.code(), Some(130));
    ended_in_order(&folder);
}

/// They cannot hear of its death while they are stopped. Their groups lose whoever they belong to, though, and the
/// system tells stopped groups of that and has them go on.
fn stopped() {
    let ground = Ground::new();
    let folder = ground.path("stopped");
    let marks = folder.join("marks");
    let mut child = start(&folder, HANGING, 3);
    let hung = |record: u64| marks.join(format!("hung-{record}")).exists();
    wait_until(|| hung(0) && hung(1) && alive(&marks) == 3);
    let pids = fs::read_dir(marks.join("pids")).unwrap();
    let pids = pids.map(|pid| pid.unwrap().file_name().to_str().unwrap().parse().unwrap());
    let pids: Vec<i32> = pids.collect();
    for &pid in &pids {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
    }
    // All their threads have to be, or they are not stopped yet for the system.
    let is_stopped = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        status
            .rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('T'))
    };
    wait_until(|| {
        pids.iter().all(|pid| {
            let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
            threads.flatten().all(is_stopped)
        })
    });
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    nobody_is_left(&marks);
}

fn second() {
    let ground = Ground::new();
    let folder = ground.path("shared");
    let mut first = start(&folder, 2000, 20_000);
    wait_until(|| folder.join("run/journal").exists() && folder.join("run/plan").exists());
    let second = start(&folder, 2000, 20_000).wait().unwrap();
    assert_eq!(second.code(), Some(4));
    signal(&first, Signal::KILL);
    first.wait().unwrap();
    nobody_is_left(&folder.join("marks"));
}

fn wait_until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(2);
    while !holds() {
        assert!(Instant::now() < deadline, "it never happens");
        std::thread::sleep(Duration::from_millis(5));
    }
}
