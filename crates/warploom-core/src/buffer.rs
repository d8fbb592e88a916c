//! Memory on a device, and parts of it.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::device::DeviceId;
use crate::error::{Result, UsageError};
use crate::memory::MemoryKind;

/// An allocation. Shared: every asynchronous call keeps its own handle until the work is done, so
/// callers may drop theirs at any time.
pub trait Buffer: Any + fmt::Debug + Send + Sync {
    /// Its size.
    fn bytes(&self) -> u64;

    /// Where it lives.
    fn kind(&self) -> MemoryKind;

    /// Whose it is.
    fn device(&self) -> DeviceId;

    /// Lends the bytes to the host, exclusively: it first submits and waits for all queued work
    /// that touches the buffer. Kinds the host cannot see answer `Unsupported`.
    ///
    /// Inside `f`, do not lend the same buffer again, submit work on it, or wait for work that
    /// needs it: that would wait for itself. A backend that notices answers `Unsupported`. Whoever
    /// lends several buffers at once does so in one order everywhere, or two threads can wait for
    /// each other.
    fn with_host(&self, f: &mut dyn FnMut(&mut [u8])) -> Result<()>;
}

/// A byte range of a buffer, checked when it is made.
#[derive(Clone, Debug)]
pub struct Slice {
    buffer: Arc<dyn Buffer>,
    start: u64,
    len: u64,
}

impl Slice {
    /// Bytes `range` of `buffer`.
    ///
    /// # Errors
    /// When the range is empty, reversed or reaches past the end.
    pub fn new(buffer: Arc<dyn Buffer>, range: Range<u64>) -> Result<Self> {
        let bytes = buffer.bytes();
        if range.start >= range.end || range.end > bytes {
            return Err(UsageError::Range {
                device: buffer.device(),
                start: range.start,
                end: range.end,
                bytes,
            }
            .into());
        }
        Ok(Self {
            buffer,
            start: range.start,
            len: range.end - range.start,
        })
    }

    /// The whole buffer.
    pub fn whole(buffer: &Arc<dyn Buffer>) -> Self {
        Self {
            start: 0,
            len: buffer.bytes(),
            buffer: Arc::clone(buffer),
        }
    }

    /// A part of this slice, counted from its start.
    ///
    /// # Errors
    /// When the range is empty, reversed or reaches past the end of this slice.
    pub fn part(&self, range: Range<u64>) -> Result<Self> {
        if range.start >= range.end || range.end > self.len {
            return Err(UsageError::Range {
                device: self.buffer.device(),
                start: range.start,
                end: range.end,
                bytes: self.len,
            }
            .into());
        }
        Ok(Self {
            buffer: Arc::clone(&self.buffer),
            start: self.start + range.start,
            len: range.end - range.start,
        })
    }

    /// The buffer it is part of.
    pub fn buffer(&self) -> &Arc<dyn Buffer> {
        &self.buffer
    }

    /// Where it starts in the buffer.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Its length in bytes; never 0.
    #[expect(clippy::len_without_is_empty, reason = "a slice is never empty")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Its place in the buffer.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + self.len
    }

    /// Its place in the buffer as host indices.
    ///
    /// # Panics
    /// When the buffer is larger than the host can address, which no host-visible buffer is.
    pub fn host_range(&self) -> Range<usize> {
        let index = |at| usize::try_from(at).expect("a host-visible buffer fits the host");
        index(self.start)..index(self.start + self.len)
    }

    /// Do the two share a byte?
    pub fn overlaps(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.buffer, &other.buffer)
            && self.start < other.start + other.len
            && other.start < self.start + self.len
    }
}
