//! Runs that go on, and the processes they are.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Bench;

/// The processes that a process has started.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return found;
    };
    for task in tasks.flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(
            list.split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    found
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next().map(str::to_owned));
    state.is_some_and(|state| state != "Z" && state != "X")
}

/// Sends a signal; whether there was a process to send it to.
pub(crate) fn signal(name: &str, pid: u32) -> bool {
    let sent = Command::new("kill").args([name, &pid.to_string()]).output();
    sent.unwrap().status.success()
}

/// A process that may stand still, and is not left behind by a test that fails.
pub(crate) struct Stopped(pub(crate) Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Stops a process where it does not keep others from the ledger of leases, which would be refused after a
/// second. `leases` is its folder.
pub(crate) fn stand_still(pid: u32, leases: &Path) {
    for _ in 0..20 {
        assert!(signal("-STOP", pid));
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        command
            .args(["top", "--json"])
            .env("WARPLOOM_CPU_ONLY", "1");
        command.env("WARPLOOM_LEASES", leases);
        if command.output().unwrap().status.success() {
            return;
        }
        assert!(signal("-CONT", pid));
        std::thread::sleep(Duration::from_millis(7));
    }
    panic!("process {pid} always has the ledger");
}

pub(crate) fn wait_within(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !is_so() {
        assert!(Instant::now() < end, "{what} did not happen in {limit:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn wait_for(what: &str, is_so: impl FnMut() -> bool) {
    wait_within(Duration::from_mins(2), what, is_so);
}

/// What `warploom status --json` says of a folder: exit code and answer; nothing where there is no run.
pub(crate) fn status(path: &Path) -> (i32, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let told = command.arg("status").arg(path).arg("--json");
    let told = told.output().unwrap();
    let answer = serde_json::from_slice(&told.stdout).unwrap_or(Value::Null);
    (told.status.code().unwrap(), answer)
}

/// Starts a run that hangs over an image: its file is a pipe that nobody writes to from the moment on at
/// which the run has looked at its images. Nothing where a worker was quicker and has the image.
pub(crate) fn start_hung(bench: &Bench, image: u32, output: &str, args: &[&str]) -> Option<Child> {
    let (file, pipe) = (bench.input(image), bench.path("pipe"));
    // Whoever writes to a pipe would hang as well.
    let _ = fs::remove_file(&file);
    bench.image(image, image);
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let runs = || {
        let runs = fs::read_dir(bench.path(output).join(".warploom"));
        let runs = runs.into_iter().flatten().flatten();
        runs.filter(|run| run.path().join("about.json").exists())
            .count()
    };
    let before = runs();
    let mut child = bench.start(&[&["-o", output, "-q"], args].concat());
    wait_for("a run", || {
        runs() > before || child.try_wait().unwrap().is_some()
    });
    fs::rename(&pipe, &file).unwrap();
    let mut since = None;
    let is_hung = |since: &mut Option<Instant>| {
        let (_, answer) = status(&bench.path(output));
        let has_workers = answer["devices"][0]["workers"].as_u64() > Some(0);
        let is_last = answer["state"] == "running"
            && answer["tally"]["not_started"] == 1
            && (!has_workers || answer["under_way"] == 1);
        *since = is_last.then(|| since.unwrap_or_else(Instant::now));
        since.is_some_and(|since| since.elapsed() > Duration::from_millis(200))
    };
    wait_for("a hung run", || {
        is_hung(&mut since) || child.try_wait().unwrap().is_some()
    });
    child.try_wait().unwrap().is_none().then_some(child)
}
