//! The other end: a process that works.
//!
//! A worker is any program that calls [`serve`] when it is told to be one. Its standard input is the socket
//! to its coordinator; what it prints goes to a log.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, getppid, kill_process, set_parent_process_death_signal};

use crate::journal::BatchId;
use crate::wire::{
    Arena, Body, FromWorker, INLINE, Inbox, MAX_FRAME, Shelf, Start, ToWorker, push, receive,
};
use crate::work::{Answers, Assigned, Batch, Refusal, Trouble, Work};

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
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| lost(error.into()))?;
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
    let work = match begin::<W>(&start, environment) {
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
    run(work, &desk, &inward, &orders)
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
    })?;
    if start.probe {
        work.probe()?;
    }
    Ok(work)
}

/// What there is to do.
enum Order {
    Batch(BatchId, Vec<(u64, Body)>),
    Retire,
}

fn run<W: Work>(
    mut work: W,
    desk: &Desk,
    inward: &Arena,
    orders: &Receiver<Order>,
) -> Result<(), WorkerError> {
    while let Ok(Order::Batch(batch, bodies)) = orders.recv() {
        desk.tell(&FromWorker::Begun { batch });
        let mut records = Vec::with_capacity(bodies.len());
        for (record, body) in bodies {
            let bytes = match body {
                Body::Here(bytes) => bytes,
                Body::There { at, bytes } => {
                    let mut copy = Vec::new();
                    if inward.take(at, bytes, &mut copy).is_err() {
                        end_now();
                    }
                    copy
                }
            };
            records.push((record, bytes));
        }
        let mut answers = Voice { desk, batch };
        let ended = work.process(&mut Batch::new(&records, &mut answers));
        desk.tell(&match ended {
            Ok(()) => FromWorker::Finished { batch },
            Err(Trouble::OutOfMemory { asked }) => FromWorker::OutOfMemory { batch, asked },
            Err(Trouble::Failed(text)) => FromWorker::BatchFailed { batch, text },
            Err(Trouble::DeviceLost(text)) => {
                let told = text.clone();
                desk.tell(&FromWorker::DeviceLost { batch, text: told });
                return Err(WorkerError::DeviceLost(text));
            }
        });
    }
    Ok(())
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

/// Ends the process without asking the work, which may be stuck in a driver.
fn end_now() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    loop {
        thread::park();
    }
}

/// Where messages to the coordinator are written.
struct Desk {
    out: Mutex<Out>,
    /// Rung when the coordinator has read an answer.
    freed: Condvar,
    arena: Arena,
    progress: AtomicU64,
}

struct Out {
    socket: UnixStream,
    bytes: Vec<u8>,
    shelf: Shelf,
}

impl Desk {
    fn new(socket: UnixStream, arena: Arena) -> Self {
        let out = Out {
            socket,
            bytes: Vec::new(),
            shelf: Shelf::new(arena.bytes()),
        };
        Self {
            out: Mutex::new(out),
            freed: Condvar::new(),
            arena,
            progress: AtomicU64::new(0),
        }
    }

    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, message: &FromWorker) {
        self.out().tell(message);
    }

    fn beat(&self) {
        let progress = self.progress.load(Ordering::Relaxed);
        self.tell(&FromWorker::Beat { progress });
    }

    fn free(&self, at: u64) {
        self.out().shelf.give(at);
        self.freed.notify_one();
    }

    fn advance(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    fn done(&self, batch: BatchId, record: u64, answer: &[u8]) {
        self.advance();
        let mut out = self.out();
        let bytes = answer.len() as u64;
        let mut place = None;
        if answer.len() > INLINE && bytes <= self.arena.bytes() {
            // The coordinator gives back whatever it reads, so there will be room.
            place = out.shelf.take(bytes);
            while place.is_none() {
                out = self.freed.wait(out).unwrap_or_else(PoisonError::into_inner);
                place = out.shelf.take(bytes);
            }
        }
        let body = match place {
            // The lock is given up while the bytes are copied, so that signs of life go on.
            Some(at) => {
                drop(out);
                if self.arena.put(at, answer).is_err() {
                    end_now();
                }
                out = self.out();
                Body::There { at, bytes }
            }
            None if answer.len() + 64 > MAX_FRAME => {
                let limit = (MAX_FRAME as u64 - 64).max(self.arena.bytes());
                out.tell(&FromWorker::TooLong {
                    batch,
                    record,
                    bytes,
                    limit,
                });
                return;
            }
            None => Body::Here(answer.to_vec()),
        };
        out.tell(&FromWorker::Done {
            batch,
            record,
            body,
        });
    }
}

impl Out {
    fn tell(&mut self, message: &FromWorker) {
        self.bytes.clear();
        if push(&mut self.bytes, message).is_err() {
            end_now();
        }
        // A coordinator that is gone is noticed by whoever listens.
        let _ = self.socket.write_all(&self.bytes);
    }
}

/// Answers of one batch.
struct Voice<'a> {
    desk: &'a Desk,
    batch: BatchId,
}

impl Answers for Voice<'_> {
    fn done(&mut self, record: u64, answer: &[u8]) {
        self.desk.done(self.batch, record, answer);
    }

    fn failed(&mut self, record: u64, mut reason: String) {
        self.desk.advance();
        if reason.len() > MAX_REASON {
            let mut end = MAX_REASON;
            while !reason.is_char_boundary(end) {
                end -= 1;
            }
            reason.truncate(end);
        }
        self.desk.tell(&FromWorker::Failed {
            batch: self.batch,
            record,
            text: reason,
        });
    }

    fn advance(&mut self) {
        self.desk.advance();
    }
}

/// The most bytes of a reason that are kept.
const MAX_REASON: usize = 16 << 10;
