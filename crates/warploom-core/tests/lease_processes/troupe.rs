//! The processes of a test. Every one is killed when its handle is dropped, also by a panic.

use std::cell::Cell;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::journal::Journal;
use crate::roles::ENOUGH;

/// Waits until something is true, and fails when it takes too long.
pub(crate) fn until(what: &str, time: Duration, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + time;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {time:?}: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Where one test plays.
pub(crate) struct Cast {
    dir: TempDir,
    hired: Cell<usize>,
}

impl Cast {
    pub(crate) fn new() -> Self {
        Self {
            dir: TempDir::new().expect("a temporary directory"),
            hired: Cell::new(0),
        }
    }

    pub(crate) fn ledgers(&self) -> PathBuf {
        self.dir.path().join("ledgers")
    }

    /// Takes this many leases, of random sizes on random devices.
    pub(crate) fn worker(&self, leases: usize) -> Actor {
        self.hire_worker("worker", leases)
    }

    /// Takes one slot of the first device, over and over.
    pub(crate) fn small_worker(&self) -> Actor {
        self.hire_worker("small", usize::MAX)
    }

    fn hire_worker(&self, role: &str, leases: usize) -> Actor {
        let seed = self.hired.get() + 1;
        let journal = self.dir.path().join(format!("journal{seed}"));
        let path = journal.to_str().expect("a plain path").to_owned();
        let words = [path, seed.to_string(), leases.to_string()];
        let mut actor = self.hire(role, &words);
        actor.journal = journal;
        actor
    }

    /// Holds slots of a device, until it is killed; returns when it does.
    pub(crate) fn holder(&self, device: &str, slots: u32) -> Actor {
        let actor = self.waiter(device, slots);
        actor.until_it_holds(ENOUGH);
        actor
    }

    /// Waits for slots of a device, then holds them until it is killed.
    pub(crate) fn waiter(&self, device: &str, slots: u32) -> Actor {
        self.hire("holder", &[device.to_owned(), slots.to_string()])
    }

    fn hire(&self, role: &str, words: &[String]) -> Actor {
        self.hired.set(self.hired.get() + 1);
        let program = std::env::current_exe().expect("this binary");
        let mut child = Command::new(program)
            .args(["--role", role])
            .arg(self.ledgers())
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let out = child.stdout.take().expect("its words are piped");
        let (tell, said) = mpsc::channel();
        // Ends with the process, which ends with the actor.
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Actor {
            child,
            said,
            journal: PathBuf::new(),
        }
    }
}

/// One process.
pub(crate) struct Actor {
    child: Child,
    said: mpsc::Receiver<String>,
    journal: PathBuf,
}

impl Actor {
    pub(crate) fn journal(&self) -> Journal {
        Journal::read(&self.journal)
    }

    /// `kill -9`, and what it had noted.
    pub(crate) fn kill(mut self) -> Journal {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it dies");
        self.journal()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(status.expect("kill is there").success());
    }

    pub(crate) fn until_it_holds(&self, time: Duration) {
        assert_eq!(self.said.recv_timeout(time).as_deref(), Ok("held"));
    }

    /// Waits for its end, which has to be a good one.
    pub(crate) fn finish(mut self, time: Duration) -> Journal {
        self.until_it_ends(time);
        self.journal()
    }

    /// Not `wait`, which would close its input and with that end it.
    fn until_it_ends(&mut self, time: Duration) {
        let mut status = None;
        until("a process ends", time, || {
            status = self.child.try_wait().expect("it is a child");
            status.is_some()
        });
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process that reads the ledgers all the time.
pub(crate) struct Auditor {
    actor: Actor,
    stop: PathBuf,
}

/// The most it saw on one device.
#[derive(Debug)]
pub(crate) struct Peak {
    pub(crate) samples: u64,
    pub(crate) slots: u64,
    pub(crate) waiting: u64,
}

impl Auditor {
    pub(crate) fn start(cast: &Cast) -> Self {
        let stop = cast.dir.path().join("stop");
        let word = stop.to_str().expect("a plain path").to_owned();
        let actor = cast.hire("auditor", &[word]);
        Self { actor, stop }
    }

    /// What it saw; it must have seen nothing wrong.
    pub(crate) fn finish(mut self) -> Vec<Peak> {
        fs::write(&self.stop, "").expect("a note to stop");
        // It ends well if it found nothing wrong.
        self.actor.until_it_ends(ENOUGH);
        let peaks = self.actor.said.iter().map(|line| {
            let numbers: Vec<u64> = line
                .split(' ')
                .map(|n| n.parse().expect("a number"))
                .collect();
            Peak {
                samples: numbers[0],
                slots: numbers[1],
                waiting: numbers[2],
            }
        });
        peaks.collect()
    }
}
