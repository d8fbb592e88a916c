//! One worker process, from the coordinator's side.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use warploom_core::Lease;

use super::ledger::Attempted;
use crate::crew::Program;
use crate::journal::BatchId;
use crate::record::Record;
use crate::wire::{
    Arena, Body, INLINE, Link, MAX_FRAME, Shelf, Start, ToWorker, Violation, connect,
};

/// How many lines of a log a failure quotes, and how many bytes are looked at for them.
const TAIL_LINES: usize = 40;
const TAIL_BYTES: u64 = 16 << 10;

/// How long dropping waits for a process that was killed.
const LAST_WAIT: Duration = Duration::from_millis(500);

/// A worker process.
#[derive(Debug)]
pub(super) struct Child {
    process: std::process::Child,
    pid: Pid,
    /// Readable when the process is gone.
    pub(super) death: OwnedFd,
    pub(super) link: Link,
    /// What goes to the worker, and which of it is in use by which batch.
    inward: Arena,
    shelf: Shelf,
    lent: HashMap<BatchId, Vec<u64>>,
    outward: Arena,
    log: File,
    /// Where its part of the log begins.
    log_from: u64,
    reaped: bool,
    /// Is there still something to hear from it?
    pub(super) open: bool,
    /// Released when it is gone.
    _lease: Option<Lease>,
}

impl Child {
    /// Starts a worker in a process group of its own.
    pub(super) fn spawn(
        program: &Program,
        start: Start,
        log: Option<&Path>,
        lease: Option<Lease>,
    ) -> io::Result<Self> {
        let (inward, inward_memory) = Arena::create(start.limits.arena)?;
        let (outward, outward_memory) = Arena::create(start.limits.arena)?;
        let (mut link, end) = connect(inward_memory.as_fd(), outward_memory.as_fd())?;
        let log = match log {
            Some(path) => OpenOptions::new()
                .create(true)
                .append(true)
                .read(true)
                .open(path)?,
            None => File::from(memfd_create("warploom-fleet-log", MemfdFlags::CLOEXEC)?),
        };
        let log_from = log.metadata()?.len();
        let mut command = Command::new(&program.path);
        command
            .args(&program.arguments)
            .envs(program.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(end))
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log.try_clone()?))
            .process_group(0);
        for (name, value) in &start.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if link.send(&ToWorker::Start(start)).is_err() {
            return Err(io::Error::other("the setup is too long for a message"));
        }
        let mut process = command.spawn()?;
        let pid = Pid::from_child(&process);
        let death = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(death) => death,
            Err(error) => {
                // Without it nobody would notice its death: it must not live.
                let _ = process.kill();
                let _ = process.wait();
                return Err(error.into());
            }
        };
        let shelf = Shelf::new(inward.bytes());
        Ok(Self {
            process,
            pid,
            death,
            link,
            inward,
            shelf,
            lent: HashMap::new(),
            outward,
            log,
            log_from,
            reaped: false,
            open: true,
            _lease: lease,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Signals the worker and whatever it has started. The process has not been waited for, so its number
    /// is still its own.
    pub(super) fn signal(&self, signal: Signal) {
        if !self.reaped {
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Sends a batch that is in the journal; the length of it if it is too long for a message.
    pub(super) fn send(
        &mut self,
        attempted: &Attempted,
        records: &[(u64, &Record)],
    ) -> Result<(), usize> {
        let batch = attempted.batch;
        let mut lent = Vec::new();
        let bodies = records.iter().map(|&(number, record)| {
            let bytes = record.body.len() as u64;
            let long = record.body.len() > INLINE;
            let place = if long { self.shelf.take(bytes) } else { None };
            let body = match place {
                Some(at) if self.inward.put(at, &record.body).is_ok() => {
                    lent.push(at);
                    Body::There { at, bytes }
                }
                _ => Body::Here(record.body.clone()),
            };
            (number, body)
        });
        let mut records: Vec<(u64, Body)> = Vec::new();
        let mut inline = 0;
        for (number, body) in bodies {
            let bytes = match &body {
                Body::Here(bytes) => bytes.len(),
                Body::There { .. } => 0,
            };
            if inline + bytes > MAX_FRAME / 2 && !records.is_empty() {
                let part = std::mem::take(&mut records);
                self.link.send(&ToWorker::Part { records: part })?;
                inline = 0;
            }
            inline += bytes;
            records.push((number, body));
        }
        self.lent.insert(batch, lent);
        self.link.send(&ToWorker::Batch { batch, records })
    }

    /// A batch is over: what it had of the memory is free.
    pub(super) fn settle(&mut self, batch: BatchId) {
        for at in self.lent.remove(&batch).unwrap_or_default() {
            self.shelf.give(at);
        }
    }

    /// Copies an answer, and tells the worker that it has been read.
    pub(super) fn fetch(&mut self, body: Body, into: &mut Vec<u8>) -> Result<(), Violation> {
        match body {
            Body::Here(bytes) => *into = bytes,
            Body::There { at, bytes } => {
                self.outward.take(at, bytes, into)?;
                // A message of a few bytes is never too long.
                let _ = self.link.send(&ToWorker::Free { at });
            }
        }
        Ok(())
    }

    pub(super) fn retire(&mut self) {
        let _ = self.link.send(&ToWorker::Retire);
    }

    /// Asks what it is doing, which it writes to its log.
    pub(super) fn ask(&mut self) {
        tracing::debug!(pid = self.pid(), "a worker is asked what it is doing");
        let _ = self.link.send(&ToWorker::Tell);
    }

    /// How the process ended, if it has. Whatever it had started ends with it.
    pub(super) fn reap(&mut self) -> Option<String> {
        // The number of a process that has ended is its own until it is waited for.
        self.signal_if_dead();
        match self.process.try_wait() {
            Ok(Some(status)) => {
                self.reaped = true;
                Some(ending(status))
            }
            Ok(None) => None,
            Err(error) => {
                self.reaped = true;
                Some(format!("nobody knows how: {error}"))
            }
        }
    }

    fn signal_if_dead(&self) {
        if self.is_dead(Duration::ZERO) {
            self.signal(Signal::KILL);
        }
    }

    fn is_dead(&self, within: Duration) -> bool {
        let mut death = [PollFd::new(&self.death, PollFlags::IN)];
        let pause = Timespec::try_from(within).ok();
        matches!(poll(&mut death, pause.as_ref()), Ok(count) if count > 0)
    }

    /// The last lines that it wrote.
    pub(super) fn tail(&self) -> String {
        let end = self.log.metadata().map_or(0, |metadata| metadata.len());
        let from = self.log_from.max(end.saturating_sub(TAIL_BYTES));
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(from)).unwrap_or(0)];
        if self.log.read_exact_at(&mut bytes, from).is_err() {
            return String::new();
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

impl Drop for Child {
    /// On every way out, a panic included, nothing of ours is left.
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.signal(Signal::KILL);
        if self.is_dead(LAST_WAIT) {
            let _ = self.process.wait();
            self.reaped = true;
        }
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with status {code}"),
        (None, Some(signal)) => format!("it ended by signal {signal}"),
        (None, None) => "it ended".into(),
    }
}
