//! The other end: a process that works.
//!
//! A worker is any program that calls [`serve`] when it is told to be one. Its standard input is the socket
//! to its coordinator; what it prints goes to a log.

mod account;
mod desk;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Signal, getpgrp, getpid, getppid, kill_process, kill_process_group,
    set_parent_process_death_signal,
};
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

use crate::journal::BatchId;
use crate::wire::{Arena, Body, FromWorker, Inbox, Start, ToWorker, receive};
use crate::work::{Answers, Assigned, Load, Refusal, Trouble, Work};
use desk::Desk;

/// Why a worker ended otherwise than when it was told to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// It was not started by a fleet.
    #[error("this program is started by a fleet, with a socket as its standard input: {0}")]
    NoCoordinator(String),
    /// It cannot work.
    #[error("this worker cannot work: {0}")]
    Refused(#[from] Refusal),
    /// Its device is lost, and another process has to try.
    #[error("the device is lost: {0}")]
    DeviceLost(String),
    /// It cannot go on.
    #[error("this worker cannot go on: {0}")]
    Broken(String),
}

/// Works for the coordinator at standard input until it says that there is nothing left.
///
/// `environment` is this process's own, which the caller reads: a worker that was not given exactly the
/// variables its coordinator meant refuses to touch a device. The process dies with its coordinator, even
/// in the middle of a batch.
///
/// # Errors
/// When it was not started by a fleet, cannot work, or has lost its device. The caller returns from `main`
/// then, in whatever way: the coordinator has been told.
pub fn serve<W: Work>(
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<(), WorkerError> {
    let lost = |error: io::Error| WorkerError::NoCoordinator(error.to_string());
    let socket = take_stdin().map_err(lost)?;
    die_with_parent().map_err(lost)?;
    let handles = receive(socket).map_err(lost)?;
    let mut reader = handles.socket.try_clone().map_err(lost)?;
    let mut inbox = Inbox::after_greeting();
    let Some(ToWorker::Start(start)) = next(&mut reader, &mut inbox) else {
        let said = "it said nothing to start with".to_owned();
        return Err(WorkerError::NoCoordinator(said));
    };
    // The signal is only sent for a parent that dies after it was asked for.
    let parent = getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    if i64::from(parent) != i64::from(start.coordinator) {
        return Err(WorkerError::NoCoordinator("it has died".into()));
    }
    let inward = Arena::open(handles.inward).map_err(lost)?;
    let outward = Arena::open(handles.outward).map_err(lost)?;
    let desk = Arc::new(Desk::new(handles.socket, outward));
    let (sender, orders) = channel();
    let ear = Arc::clone(&desk);
    let beat = Duration::from_millis(start.limits.beat.max(1));
    thread::Builder::new()
        .name("fleet-ear".into())
        .spawn(move || listen(reader, inbox, &ear, &sender, beat))
        .map_err(lost)?;
    let mut work = match begin::<W>(&start, environment) {
        Ok(work) => work,
        Err(refusal) => {
            desk.tell(&FromWorker::Refused {
                why: refusal.to_string(),
                wrong_device: matches!(refusal, Refusal::WrongDevice { .. }),
            });
            return Err(refusal.into());
        }
    };
    desk.tell(&FromWorker::Ready);
    let batches = Batches {
        orders,
        inward,
        desk,
    };
    work.stream(batches).map_err(|trouble| match trouble {
        Trouble::DeviceLost(text) => WorkerError::DeviceLost(text),
        other => WorkerError::Broken(other.to_string()),
    })
}

/// Ends this process and its helpers when the thread that started it is gone. The signal of that goes to this
/// process alone, so it is one that is caught: SIGKILL would leave the helpers. The closed socket says the same
/// to whoever listens there.
fn die_with_parent() -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP])?;
    thread::Builder::new()
        .name("fleet-parent".into())
        .spawn(move || {
            if signals.forever().next().is_some() {
                end_now();
            }
        })?;
    Ok(set_parent_process_death_signal(Some(Signal::HUP))?)
}

/// Standard input becomes the socket, and stays so for nobody who reads standard input by mistake.
fn take_stdin() -> io::Result<UnixStream> {
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(UnixStream::from(socket))
}

fn begin<W: Work>(
    start: &Start,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<W, Refusal> {
    let environment: Vec<(String, String)> = environment.into_iter().collect();
    for (name, wanted) in &start.environment {
        let found = environment.iter().find(|(known, _)| known == name);
        let found = found.map(|(_, value)| value);
        if found != wanted.as_ref() {
            return Err(Refusal::WrongDevice {
                assigned: format!("{name}={}", wanted.as_deref().unwrap_or("(unset)")),
                seen: vec![format!(
                    "{name}={}",
                    found.map_or("(unset)", String::as_str)
                )],
            });
        }
    }
    let assignment = &start.assignment;
    let mut work = W::init(&Assigned {
        slot: assignment.slot as usize,
        device: assignment.device.clone(),
        model: assignment.model.clone(),
        ordinal: assignment.ordinal,
        identity: assignment.identity.clone(),
        setup: start.setup.clone(),
        ceiling: assignment.ceiling,
    })?;
    if start.probe {
        work.probe()?;
    }
    Ok(work)
}

/// What there is to do.
#[derive(Debug)]
enum Order {
    Batch(BatchId, Vec<(u64, Body)>),
    Retire,
}

/// Batches for the work, as they come. What is taken counts as begun.
#[derive(Debug)]
pub struct Batches {
    orders: Receiver<Order>,
    inward: Arena,
    desk: Arc<Desk>,
}

impl Iterator for Batches {
    type Item = Load;

    /// Waits for the next batch; `None` when there will be none.
    fn next(&mut self) -> Option<Load> {
        let Ok(Order::Batch(batch, bodies)) = self.orders.recv() else {
            return None;
        };
        self.desk.begun(batch, bodies.len());
        let mut records = Vec::with_capacity(bodies.len());
        for (record, body) in bodies {
            let bytes = match body {
                Body::Here(bytes) => bytes,
                Body::There { at, bytes } => {
                    let mut copy = self.desk.spare();
                    if self.inward.take(at, bytes, &mut copy).is_err() {
                        end_now();
                    }
                    copy
                }
            };
            records.push((record, bytes));
        }
        let desk: Arc<dyn Answers> = Arc::clone(&self.desk) as _;
        Some(Load::new(batch, records, desk))
    }
}

/// Hears the coordinator while the work goes on, and shows signs of life. When the coordinator is gone the
/// process ends at once, whatever it is doing: nobody would take its results.
fn listen(
    mut socket: UnixStream,
    mut inbox: Inbox,
    desk: &Desk,
    orders: &Sender<Order>,
    beat: Duration,
) {
    let pause = Timespec::try_from(beat).ok();
    let mut parts = Vec::new();
    loop {
        match poll(
            &mut [PollFd::new(&socket.as_fd(), PollFlags::IN)],
            pause.as_ref(),
        ) {
            Ok(0) => {
                desk.beat();
                continue;
            }
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => end_now(),
        }
        let Some(message) = next(&mut socket, &mut inbox) else {
            end_now();
        };
        let mut message = Some(message);
        while let Some(told) = message {
            let order = match told {
                ToWorker::Part { records } => {
                    parts.extend(records);
                    None
                }
                ToWorker::Batch { batch, records } => {
                    let mut all = std::mem::take(&mut parts);
                    all.extend(records);
                    Some(Order::Batch(batch, all))
                }
                ToWorker::Retire => Some(Order::Retire),
                ToWorker::Tell => {
                    desk.account();
                    None
                }
                ToWorker::Free { at } => {
                    desk.free(at);
                    None
                }
                ToWorker::Start(_) => end_now(),
            };
            if let Some(order) = order
                && orders.send(order).is_err()
            {
                // The work has ended, and the process is about to.
                return;
            }
            message = inbox.next().unwrap_or_else(|_| end_now());
        }
        desk.beat();
    }
}

/// The next message; nothing when the coordinator is gone or talks nonsense.
fn next(socket: &mut UnixStream, inbox: &mut Inbox) -> Option<ToWorker> {
    let mut buffer = [0; 1 << 14];
    loop {
        match inbox.next() {
            Ok(Some(message)) => return Some(message),
            Ok(None) => {}
            Err(_) => return None,
        }
        match socket.read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => inbox.put(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Ends the process and whatever it has started, without asking the work, which may be stuck in a driver.
fn end_now() -> ! {
    let own = getpid();
    // Started by hand it may be in somebody else's group.
    if getpgrp() == own {
        let _ = kill_process_group(own, Signal::KILL);
    }
    let _ = kill_process(own, Signal::KILL);
    loop {
        thread::park();
    }
}
