//! Staging memory of the backend's own: taken from a pool, given back when the device is done.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wgpu::BufferUsages;

use crate::mapping::{MapError, Mapped};

/// The largest piece in which bytes are staged: large enough that a submit costs little beside it,
/// small enough that a large transfer keeps host and device busy at once.
pub(crate) const LARGE: u64 = 4 << 20;
const SMALL: u64 = 256 << 10;
const FEED: u64 = 64 << 10;

/// What a chunk is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Kernel scalars.
    Feed,
    /// Towards the device.
    Up,
    /// Towards the host.
    Down,
}

impl Class {
    fn usage(self) -> BufferUsages {
        match self {
            Self::Feed => BufferUsages::MAP_WRITE | BufferUsages::UNIFORM,
            // A kernel reads from it where bytes are not aligned to words.
            Self::Up => BufferUsages::MAP_WRITE | BufferUsages::COPY_SRC | BufferUsages::STORAGE,
            Self::Down => BufferUsages::MAP_READ | BufferUsages::COPY_DST,
        }
    }

    /// The size of the chunk that holds `bytes`, at most [`LARGE`].
    fn size(self, bytes: u64) -> u64 {
        match self {
            Self::Feed => FEED,
            Self::Up | Self::Down if bytes <= SMALL => SMALL,
            Self::Up | Self::Down => LARGE,
        }
    }

    /// How many free chunks of a size are worth keeping. Feeds are all kept, because bind groups
    /// refer to them.
    fn kept(self, size: u64) -> usize {
        match (self, size) {
            (Self::Feed, _) => usize::MAX,
            (Self::Up, LARGE) => 8,
            (Self::Down, LARGE) => 4,
            _ => 16,
        }
    }
}

/// Free chunks of one opened device.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Mutex<Vec<(Class, Mapped)>>,
}

/// A chunk in use; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Chunk {
    class: Class,
    memory: Option<Mapped>,
    pool: Arc<Pool>,
    gauge: Arc<AtomicU64>,
}

impl Pool {
    /// A chunk with room for `bytes`, at most [`LARGE`]; `gauge` counts its bytes while it is in use.
    pub(crate) fn take(
        self: &Arc<Self>,
        device: &wgpu::Device,
        class: Class,
        bytes: u64,
        gauge: &Arc<AtomicU64>,
    ) -> Result<Chunk, MapError> {
        let size = class.size(bytes);
        let fits = |(c, memory): &(Class, Mapped)| *c == class && memory.len() == size;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.iter().position(fits).map(|at| free.swap_remove(at).1);
        drop(free);
        let memory = match found {
            Some(memory) => memory,
            None => Mapped::new(device, class.usage(), size)?,
        };
        gauge.fetch_add(size, Ordering::Relaxed);
        Ok(Chunk {
            class,
            memory: Some(memory),
            pool: Arc::clone(self),
            gauge: Arc::clone(gauge),
        })
    }
}

impl Deref for Chunk {
    type Target = Mapped;
    fn deref(&self) -> &Mapped {
        self.memory
            .as_ref()
            .expect("a chunk has its memory until it is dropped")
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else {
            return;
        };
        self.gauge.fetch_sub(memory.len(), Ordering::Relaxed);
        let mut free = self
            .pool
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let same =
            |(class, other): &&(Class, Mapped)| *class == self.class && other.len() == memory.len();
        if free.iter().filter(same).count() < self.class.kept(memory.len()) {
            free.push((self.class, memory));
        }
    }
}

/// A chunk that is filled from its start, by one owner.
#[derive(Debug)]
pub(crate) struct Fill {
    pub(crate) chunk: Arc<Chunk>,
    used: u64,
}

impl Fill {
    pub(crate) fn new(chunk: Chunk) -> Self {
        Self {
            chunk: Arc::new(chunk),
            used: 0,
        }
    }

    /// Where the next `bytes` go when they must lie `offset` bytes after a multiple of `align`;
    /// `None` when the chunk is full.
    pub(crate) fn place(&mut self, bytes: u64, align: u64, offset: u64) -> Option<u64> {
        let start = self.used.next_multiple_of(align) + offset;
        let end = start + bytes;
        (end <= self.chunk.len()).then(|| {
            self.used = end;
            start
        })
    }
}
