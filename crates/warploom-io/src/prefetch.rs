//! Reading ahead: threads that read the records to come while the ones before are worked on.
//!
//! A record is claimed together with a buffer, so the oldest record that is not yet delivered always has
//! one, and reading ahead cannot lock itself up. Errors belong to their record.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use warploom_core::{DType, Shape};

use crate::error::{Fault, FileError};
use crate::header::Header;
use crate::image::{Image, ImageError};
use crate::records::{Record, RecordReader};

/// How far and how widely to read ahead.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ahead {
    /// Threads that read; at least one.
    pub threads: usize,
    /// Images in memory at once, those included that were handed out; at least one.
    pub buffers: usize,
    /// The most bytes a record may have: with `buffers`, the bound of all memory for pixels.
    pub most_bytes: u64,
    /// The type and extent that every record has to have, where they have to be alike.
    pub expected: Option<(DType, Shape)>,
}

impl Default for Ahead {
    fn default() -> Self {
        Self {
            threads: 2,
            buffers: 4,
            most_bytes: u64::MAX,
            expected: None,
        }
    }
}

/// Records, read ahead and handed out in order.
///
/// Dropping it at any time ends reading between two pieces of a file, and joins all threads. Images that
/// were handed out stay as they are.
#[derive(Debug)]
pub struct Prefetch {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// A record that was read, or why it was not.
#[derive(Debug)]
pub struct Loaded {
    /// Its place among all, from 0.
    pub index: usize,
    /// The record; `None` where it was not even found out what it is.
    pub record: Option<Record>,
    /// What it is and its pixels.
    pub image: Result<Lent, FileError>,
}

/// What [`Prefetch::next_within`] comes to.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is moved once per record, and a box would be an allocation per record"
)]
pub enum Next {
    /// The next record.
    Record(Loaded),
    /// There are no more, or reading was stopped.
    End,
    /// It takes longer.
    Late,
}

/// An image in a buffer that is used again when this is dropped.
pub struct Lent {
    header: Header,
    image: Image,
    shared: Arc<Shared>,
    /// Taken for good.
    is_kept: bool,
}

/// A buffer while it is filled; `None` for one that is still to be made.
struct Buffer<'s> {
    image: Option<Image>,
    shared: &'s Arc<Shared>,
    /// It went along with the record.
    is_lent: bool,
}

/// Ends reading from anywhere.
#[derive(Clone, Debug)]
pub struct Stopper {
    shared: Arc<Shared>,
}

type Records = Box<dyn Iterator<Item = Result<Record, FileError>> + Send>;

struct Shared {
    ahead: Ahead,
    stop: Arc<AtomicBool>,
    state: Mutex<State>,
    /// Buffers or places became free, or all is over.
    room: Condvar,
    /// A record was read, or all is over.
    arrived: Condvar,
}

struct State {
    /// `None` once there are no more.
    records: Option<Records>,
    /// Buffers that nobody uses.
    free: Vec<Image>,
    /// Buffers that there are in all.
    made: usize,
    /// Records that were claimed and not handed out: read, or still being read.
    slots: VecDeque<Option<Loaded>>,
    /// The number of the first of those.
    first: usize,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("ahead", &self.ahead)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic happens under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let mut state = self.lock();
        let records = state.records.take();
        // What was read and not handed out is of no use any more; its buffers go back, which takes the
        // lock.
        let slots = std::mem::take(&mut state.slots);
        state.first += slots.len();
        drop(state);
        drop(slots);
        drop(records);
        self.room.notify_all();
        self.arrived.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The next record to be read, with a buffer for it; `None` when there are no more.
    fn claim(self: &Arc<Self>) -> Option<(usize, Result<Record, FileError>, Buffer<'_>)> {
        let mut state = self.lock();
        loop {
            if self.is_stopped() || state.records.is_none() {
                return None;
            }
            let has_buffer = !state.free.is_empty() || state.made < self.ahead.buffers;
            // Errors need no buffer; records that fail do not run ahead without end.
            let has_place = state.slots.len() < 2 * self.ahead.buffers;
            if has_buffer && has_place {
                break;
            }
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let mut records = state.records.take()?;
        // The lock is kept: numbers have to be in the order of records.
        let next = catch_unwind(AssertUnwindSafe(|| records.next()));
        let record = match next {
            Ok(Some(record)) => {
                state.records = Some(records);
                record
            }
            Ok(None) => {
                drop(state);
                self.room.notify_all();
                self.arrived.notify_all();
                return None;
            }
            Err(_) => Err(Fault::damaged("listing records panicked").of(Path::new("the input"))),
        };
        let image = state.free.pop();
        if image.is_none() {
            state.made += 1;
        }
        let index = state.first + state.slots.len();
        state.slots.push_back(None);
        drop(state);
        let buffer = Buffer {
            image,
            shared: self,
            is_lent: false,
        };
        Some((index, record, buffer))
    }

    /// Puts a record in its place.
    fn deliver(&self, loaded: Loaded) {
        let mut state = self.lock();
        let place = loaded.index.checked_sub(state.first);
        let slot = place.and_then(|place| state.slots.get_mut(place));
        // After a stop there is no place for it.
        let unwanted = match slot {
            Some(slot) => slot.replace(loaded),
            None => Some(loaded),
        };
        drop(state);
        drop(unwanted);
        self.arrived.notify_all();
    }

    /// Takes a buffer back, or learns that one is gone.
    fn give_back(&self, image: Option<Image>) {
        let mut state = self.lock();
        match image {
            Some(image) => state.free.push(image),
            None => state.made = state.made.saturating_sub(1),
        }
        drop(state);
        self.room.notify_one();
    }
}

fn work(shared: &Arc<Shared>) {
    let mut reader = RecordReader::with_stop(Arc::clone(&shared.stop));
    while let Some((index, record, mut buffer)) = shared.claim() {
        let (record, image) = match record {
            Err(error) => (None, Err(error)),
            Ok(record) => {
                // A reader that panics is a mistake of ours, which is no reason to lose other records.
                let read = catch_unwind(AssertUnwindSafe(|| buffer.load(&mut reader, &record)));
                let image = read.unwrap_or_else(|_| {
                    reader = RecordReader::with_stop(Arc::clone(&shared.stop));
                    Err(Fault::damaged("reading it panicked").of(record.path()))
                });
                (Some(record), image)
            }
        };
        // What was not lent goes back before the record is told of.
        drop(buffer);
        shared.deliver(Loaded {
            index,
            record,
            image,
        });
    }
}

impl Prefetch {
    /// Starts reading. Records may be found out as they are needed, as those of a long series are; one
    /// that cannot be is an error in its place.
    pub fn start(
        records: impl Iterator<Item = Result<Record, FileError>> + Send + 'static,
        ahead: Ahead,
    ) -> std::io::Result<Self> {
        let ahead = Ahead {
            threads: ahead.threads.max(1),
            buffers: ahead.buffers.max(1),
            ..ahead
        };
        let threads = ahead.threads;
        let shared = Arc::new(Shared {
            stop: Arc::new(AtomicBool::new(false)),
            state: Mutex::new(State {
                records: Some(Box::new(records)),
                free: Vec::with_capacity(ahead.buffers),
                made: 0,
                slots: VecDeque::with_capacity(2 * ahead.buffers),
                first: 0,
            }),
            room: Condvar::new(),
            arrived: Condvar::new(),
            ahead,
        });
        // What was started is joined by dropping, should one of them not start.
        let mut prefetch = Self {
            shared,
            threads: Vec::new(),
        };
        for at in 0..threads {
            let shared = Arc::clone(&prefetch.shared);
            let thread = thread::Builder::new()
                .name(format!("warploom-read-{at}"))
                .spawn(move || work(&shared))?;
            prefetch.threads.push(thread);
        }
        Ok(prefetch)
    }

    /// The next record, waiting for it as long as it takes; `None` after the last, or after a stop.
    ///
    /// Whoever holds all buffers waits until another thread drops one of them.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator invites `collect`, which would hold all buffers and wait for ever"
    )]
    pub fn next(&mut self) -> Option<Loaded> {
        match self.wait(None) {
            Next::Record(loaded) => Some(loaded),
            Next::End | Next::Late => None,
        }
    }

    /// The next record, if it comes within this time.
    pub fn next_within(&mut self, time: Duration) -> Next {
        self.wait(Instant::now().checked_add(time))
    }

    fn wait(&mut self, deadline: Option<Instant>) -> Next {
        let mut state = self.shared.lock();
        loop {
            if self.shared.is_stopped() {
                return Next::End;
            }
            match state.slots.front() {
                Some(Some(_)) => {
                    let Some(Some(loaded)) = state.slots.pop_front() else {
                        return Next::End;
                    };
                    state.first += 1;
                    drop(state);
                    self.shared.room.notify_one();
                    return Next::Record(loaded);
                }
                None if state.records.is_none() => return Next::End,
                _ => {}
            }
            let arrived = &self.shared.arrived;
            state = match deadline {
                None => arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Next::Late;
                    }
                    let woken = arrived.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Something that ends reading from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to say; its record is an error already.
            let _ = thread.join();
        }
    }
}

impl Stopper {
    /// Ends reading between two pieces of a file. What is waited for comes to its end.
    pub fn stop(&self) {
        self.shared.stop();
    }
}

impl Buffer<'_> {
    /// Reads a record into it and lends it.
    fn load(&mut self, reader: &mut RecordReader, record: &Record) -> Result<Lent, FileError> {
        let header = reader.header(record)?;
        let ahead = &self.shared.ahead;
        if let Some((dtype, shape)) = ahead.expected
            && (dtype, shape) != (header.dtype, header.shape)
        {
            let wanted = Header::new(dtype, shape);
            return Err(Fault::differs(&header, &wanted).of(record.path()));
        }
        let bytes = header.bytes();
        let (dtype, shape) = (header.dtype, header.shape);
        let no_room = |error: ImageError| Fault::from(error).of(record.path());
        if bytes > ahead.most_bytes {
            return Err(no_room(ImageError::Memory {
                shape,
                dtype,
                bytes,
            }));
        }
        match &mut self.image {
            Some(image) => image.become_like(dtype, shape),
            none => Image::zeroed(dtype, shape).map(|image| *none = Some(image)),
        }
        .map_err(no_room)?;
        let Some(image) = &mut self.image else {
            return Err(Fault::NoMemory { bytes }.of(record.path()));
        };
        reader.read_into(record, image.bytes_mut())?;
        let image = image.take();
        self.is_lent = true;
        Ok(Lent {
            header,
            image,
            shared: Arc::clone(self.shared),
            is_kept: false,
        })
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        if !self.is_lent {
            self.shared.give_back(self.image.take());
        }
    }
}

impl Lent {
    /// What it is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The image for good; a new buffer is made in its place.
    pub fn into_image(mut self) -> Image {
        self.is_kept = true;
        self.image.take()
    }
}

impl Deref for Lent {
    type Target = Image;
    fn deref(&self) -> &Image {
        &self.image
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Image {
        &mut self.image
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lent({:?})", self.image)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let image = (!self.is_kept).then(|| self.image.take());
        self.shared.give_back(image);
    }
}
