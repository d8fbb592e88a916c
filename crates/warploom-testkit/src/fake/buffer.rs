//! Memory of a fake device.

use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use warploom_core::host::HostBuffer;
use warploom_core::{Buffer, DeviceError, DeviceId, MemoryKind, Result, Slice, Space};

use super::device::Shared;
use super::fault::Call;
use super::flaw::Flaw;

/// What fresh memory holds, so that nobody gets used to zeros.
const RUBBISH: u8 = 0xcd;

/// Memory of a fake device. Its bytes exist from the first touch on, so that a test can fill a
/// card of many gigabytes.
#[derive(Debug)]
pub(crate) struct FakeBuffer {
    shared: Arc<Shared>,
    kind: MemoryKind,
    bytes: u64,
    content: OnceLock<Result<Arc<dyn Buffer>>>,
    work: Arc<Work>,
}

/// How much queued work touches a buffer.
#[derive(Debug, Default)]
pub(crate) struct Work {
    queued: Mutex<usize>,
    idle: Condvar,
}

/// A piece of queued work's mark on a buffer; dropped when the work is done.
#[derive(Debug)]
pub(crate) struct Touch(Arc<Work>);

impl Drop for Touch {
    fn drop(&mut self) {
        let mut queued = self.0.queued.lock().unwrap_or_else(PoisonError::into_inner);
        *queued -= 1;
        if *queued == 0 {
            self.0.idle.notify_all();
        }
    }
}

impl FakeBuffer {
    pub(crate) fn new(shared: &Arc<Shared>, kind: MemoryKind, bytes: u64) -> Self {
        if !shared.has(Flaw::MemoryUncounted) {
            shared.ours.fetch_add(bytes, Ordering::SeqCst);
        }
        Self {
            shared: Arc::clone(shared),
            kind,
            bytes,
            content: OnceLock::new(),
            work: Arc::default(),
        }
    }

    /// The fake behind a buffer.
    pub(crate) fn of(buffer: &Arc<dyn Buffer>) -> Result<&Self> {
        let any: &dyn Any = &**buffer;
        any.downcast_ref().ok_or_else(|| {
            let what = format!("a {} buffer, which is not a fake's", buffer.kind());
            DeviceError::unsupported(buffer.device(), what)
        })
    }

    /// The same slice of the bytes themselves, which the host blocks in `warploom-core` can use.
    pub(crate) fn inside(slice: &Slice) -> Result<Slice> {
        let content = Self::of(slice.buffer())?.content()?;
        Slice::new(content, slice.range())
    }

    /// Marks the buffer as used by a piece of work.
    pub(crate) fn touch(&self) -> Touch {
        let mut queued = self
            .work
            .queued
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *queued += 1;
        Touch(Arc::clone(&self.work))
    }

    fn content(&self) -> Result<Arc<dyn Buffer>> {
        let made = self.content.get_or_init(|| {
            let content = HostBuffer::zeroed(self.device(), self.kind, self.bytes)?;
            content.with_host(&mut |bytes| bytes.fill(RUBBISH))?;
            Ok(Arc::new(content))
        });
        made.clone()
    }

    fn settle(&self) {
        self.shared.submit_all();
        let mut queued = self
            .work
            .queued
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while *queued > 0 {
            queued = self
                .work
                .idle
                .wait(queued)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Buffer for FakeBuffer {
    fn bytes(&self) -> u64 {
        if self.shared.has(Flaw::SizeRounded) {
            return self.bytes.next_multiple_of(4);
        }
        self.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn device(&self) -> DeviceId {
        self.shared.id()
    }

    fn with_host(&self, f: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        self.shared.card.enter(Call::WithHost)?;
        if !self.kind.space().host_visible() && !self.shared.has(Flaw::DeviceLent) {
            let what = format!("host access to {}", self.kind);
            return Err(DeviceError::unsupported(self.device(), what));
        }
        if !self.shared.has(Flaw::HostUnsynced) {
            self.settle();
        }
        let content = self.content()?;
        if self.shared.has(Flaw::HostSnapshot) {
            let mut copy = Vec::new();
            content.with_host(&mut |bytes| copy.extend_from_slice(bytes))?;
            f(&mut copy);
            return content.with_host(&mut |bytes| bytes.copy_from_slice(&copy));
        }
        content.with_host(f)
    }
}

impl Drop for FakeBuffer {
    fn drop(&mut self) {
        if self.shared.has(Flaw::MemoryUnreturned) {
            return;
        }
        if !self.shared.has(Flaw::MemoryUncounted) {
            self.shared.ours.fetch_sub(self.bytes, Ordering::SeqCst);
        }
        if self.kind.space() == Space::Device {
            self.shared.card.give_back(self.bytes);
        }
    }
}
