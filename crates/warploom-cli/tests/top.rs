//! `warploom top` as people and scripts meet it: in a pipe, and in a terminal that `script` makes.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]
#![cfg(unix)]

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use warploom::watch::board::{Board, DeviceNotice, Notice, Phase, Pin};
use warploom::{DeskDevice, LeaseCapacity, LeaseDesk, LeaseRequest};

const PROGRAM: &str = env!("CARGO_BIN_EXE_warploom");

fn pinned(folder: &Path, pipeline: &str) -> Pin {
    let mut notice = Notice::new("plate 7", pipeline, 384);
    (notice.ok, notice.failed, notice.rate) = (120, 2, Some(12.5));
    notice.phase = Phase::Running;
    notice.devices.push(DeviceNotice {
        label: "cpu".into(),
        memory: Some(3 << 20),
        ..DeviceNotice::default()
    });
    Board::beside_leases(folder).pin(&notice).unwrap()
}

/// Once, into a pipe, with no backend but the processor's.
fn once(folder: &Path, flags: &[&str]) -> String {
    let output = Command::new(PROGRAM)
        .args(["top", "--leases"])
        .arg(folder)
        .args(flags)
        .env("WARPLOOM_CPU_ONLY", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_runs_is_shown_and_what_has_ended_is_not() {
    let dir = tempfile::tempdir().unwrap();
    assert!(once(dir.path(), &["--once"]).ends_with("no leases\nno runs\n"));
    let pin = pinned(dir.path(), "nuclei");
    let table = once(dir.path(), &[]);
    let line = table.lines().find(|line| line.contains("nuclei")).unwrap();
    let pid = std::process::id().to_string();
    for word in [
        pid.as_str(),
        "running",
        "cpu",
        "31 % 122/384",
        "12.5/s",
        "3.0 MiB",
        "20s",
    ] {
        assert!(line.contains(word), "{word} in {line}");
    }
    let answer: Value = serde_json::from_str(&once(dir.path(), &["--json"])).unwrap();
    assert_eq!(answer["schema"], 1);
    assert_eq!(answer["runs"][0]["pipeline"], "nuclei");
    assert_eq!(answer["devices"][0]["name"], "cpu");
    assert_eq!(answer["devices"][0]["used"], 3 << 20);
    assert_eq!(answer["devices"][0]["runs"], 1);
    let metrics = once(dir.path(), &["--metrics"]);
    let line =
        format!("warploom_run_records{{pipeline=\"nuclei\",pid=\"{pid}\",outcome=\"ok\"}} 120\n");
    assert!(metrics.contains(&line), "{metrics}");
    drop(pin);
    assert!(once(dir.path(), &["--once"]).ends_with("no runs\n"));
}

#[test]
fn leases_of_other_processes_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    // The processor's ledger has the name of its first face; a desk of that key is the same one.
    let capacity = LeaseCapacity {
        slots: 64,
        bytes: 1 << 40,
    };
    let desk =
        LeaseDesk::shared(vec![DeskDevice::new("cpu", "cpu-0", capacity)], dir.path()).unwrap();
    let lease = desk
        .lease(&LeaseRequest::new(1, 5 << 20).label("nuclei of plate 7"))
        .unwrap();
    let answer: Value = serde_json::from_str(&once(dir.path(), &["--json"])).unwrap();
    let held = &answer["devices"][0]["held"][0];
    assert_eq!(held["label"], "nuclei of plate 7", "{answer:#}");
    assert_eq!(
        (&held["bytes"], &held["pid"]),
        (&(5 << 20).into(), &std::process::id().into())
    );
    assert!(once(dir.path(), &["--once"]).contains("nuclei of plate 7"));
    drop(lease);
    assert!(once(dir.path(), &["--once"]).contains("no leases"));
}

/// A program in a terminal of 80 columns and 24 lines.
struct Played {
    child: Child,
    output: Receiver<Vec<u8>>,
    seen: String,
}

impl Played {
    /// Runs a line of shell, then says how it ended and what state the terminal is in.
    fn start(line: &str) -> Self {
        let whole = format!(
            "stty rows 24 cols 80; {line}; echo \"[ended with $?]\"; stty -a; echo '[over]'"
        );
        let mut child = Command::new("script")
            .args(["-qec", &whole, "/dev/null"])
            .env("WARPLOOM_CPU_ONLY", "1")
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`script` makes a terminal");
        let mut stdout = child.stdout.take().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(read @ 1..) = stdout.read(&mut part) {
                if sender.send(part[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            output,
            seen: String::new(),
        }
    }

    /// Waits until the output so far has this text.
    fn until(&mut self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.seen.contains(text) {
            let rest = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(rest) {
                Ok(part) => self.seen.push_str(&String::from_utf8_lossy(&part)),
                Err(error) => panic!("{error}: no {text:?} in {:?}", self.seen),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(keys.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Checks that the program ended so, and left the terminal as it was.
    fn over(mut self, code: u8) {
        self.until("[over]");
        assert!(
            self.seen.contains(&format!("[ended with {code}]")),
            "{:?}",
            self.seen
        );
        let (_, left) = self.seen.split_once("[ended with").unwrap();
        for mode in ["icanon", "echo", "isig", "icrnl", "opost"] {
            assert!(
                left.split_whitespace().any(|word| word == mode),
                "{mode} in {left}"
            );
        }
        let entered = self
            .seen
            .rfind("\u{1b}[?1049h")
            .expect("another screen was entered");
        let exited = self.seen.rfind("\u{1b}[?1049l").expect("it was left");
        assert!(exited > entered && self.seen.find("[ended with").unwrap() > exited);
        let shown = self.seen.rfind("\u{1b}[?25h").expect("the cursor is back");
        assert!(shown > entered);
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn top(folder: &Path) -> Played {
    Played::start(&format!("'{PROGRAM}' top --leases '{}'", folder.display()))
}

#[test]
fn the_screen_is_refreshed_and_q_gives_the_terminal_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut played = top(dir.path());
    played.until("nothing runs");
    let pin = pinned(dir.path(), "appeared");
    played.until("appeared");
    played.press("s");
    // Only letters that change are drawn.
    played.until("pipeline");
    drop(pin);
    played.seen.clear();
    played.until("nothing runs");
    played.seen.push_str("\u{1b}[?1049h");
    played.press("q");
    played.over(0);
}

#[test]
fn ctrl_c_gives_the_terminal_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut played = top(dir.path());
    played.until("Devices");
    played.press("\u{3}");
    played.over(130);
}

#[test]
fn a_signal_from_elsewhere_gives_the_terminal_back() {
    let dir = tempfile::tempdir().unwrap();
    let line = format!(
        "'{PROGRAM}' top --leases '{}' & pid=$!; sleep 1.5; kill -TERM $pid; wait $pid",
        dir.path().display()
    );
    // In the background of a shell without job control it may still draw and read.
    let mut played = Played::start(&line);
    played.until("Devices");
    played.over(130);
}

/// A window that is closed takes everything in it along.
#[test]
fn a_terminal_that_goes_away_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    // Deaf to the signal that comes with it, as under `nohup`, and not.
    for prefix in ["", "trap '' HUP; "] {
        let mut played = Played::start(&format!(
            "sh -c \"{prefix}echo '[pid '\\$\\$']'; exec '{PROGRAM}' top --leases '{}'\"",
            dir.path().display()
        ));
        played.until("nothing runs");
        let (_, rest) = played.seen.split_once("[pid ").unwrap();
        let pid = rest.split_once(']').unwrap().0.to_owned();
        let lives = || Path::new("/proc").join(&pid).exists();
        assert!(lives() || !Path::new("/proc/self").exists(), "{pid}");
        drop(played);
        let deadline = Instant::now() + Duration::from_secs(10);
        while lives() {
            assert!(
                Instant::now() < deadline,
                "{pid} goes on without a terminal"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
