//! Buffers, their parts, and the pinned ones' visits to the host.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use warploom_core::{Booking, Buffer, DeviceError, DeviceId, MemoryKind, Result, Space};

use crate::cl;
use crate::device::Opened;
use crate::error::Driven;

/// Sub-buffers kept per buffer. A pipeline cuts a buffer in the same few places again and again.
const MOST_PARTS: usize = 64;

/// Memory of one opened device.
#[derive(Debug)]
pub(crate) struct OpenClBuffer {
    opened: Arc<Opened>,
    kind: MemoryKind,
    bytes: u64,
    parts: Mutex<Parts>,
    mem: cl::Mem,
    /// For pinned buffers only, and locked while the host looks inside: OpenCL leaves undefined
    /// what a command does to a mapped buffer, so nobody may enqueue one meanwhile.
    uses: Option<Mutex<Uses>>,
    /// Last, so that the bytes are given back after the memory.
    _booking: Booking,
}

impl OpenClBuffer {
    pub(crate) fn new(
        opened: Arc<Opened>,
        mem: cl::Mem,
        kind: MemoryKind,
        bytes: u64,
        booking: Booking,
    ) -> Self {
        Self {
            opened,
            kind,
            bytes,
            parts: Mutex::default(),
            mem,
            uses: (kind.space() == Space::Pinned).then(Mutex::default),
            _booking: booking,
        }
    }

    /// A buffer of `opened`, or an error: objects of other contexts must not reach the driver.
    pub(crate) fn of<'b>(buffer: &'b Arc<dyn Buffer>, opened: &Arc<Opened>) -> Result<&'b Self> {
        let own = (&**buffer as &dyn Any).downcast_ref::<Self>();
        own.filter(|own| Arc::ptr_eq(&own.opened, opened))
            .ok_or_else(|| {
                let what = format!("a buffer of another opened device, {}", buffer.device());
                DeviceError::unsupported(opened.id, what)
            })
    }

    /// The whole buffer.
    pub(crate) fn mem(&self) -> &cl::Mem {
        &self.mem
    }

    /// May the host look inside?
    pub(crate) fn is_pinned(&self) -> bool {
        self.uses.is_some()
    }

    /// The part for a kernel argument, or `None` when that is the whole buffer.
    pub(crate) fn part(&self, start: u64, len: u64) -> Driven<Option<Arc<cl::Mem>>> {
        if (start, len) == (0, self.bytes) {
            return Ok(None);
        }
        lock(&self.parts).find(&self.mem, start, len).map(Some)
    }
}

/// Enqueues a command that touches `buffers` (the same one twice, if there is only one), and notes
/// it with those the host may look into. Waits while the host is looking.
pub(crate) fn enqueue(
    queue: &Arc<cl::Queue>,
    mut buffers: [&OpenClBuffer; 2],
    command: impl FnOnce() -> Driven<cl::Event>,
) -> Driven<()> {
    // One order for all threads, so that two copies cannot hold each other's buffers.
    buffers.sort_by_key(|buffer| std::ptr::from_ref(*buffer).addr());
    let [first, second] = buffers;
    let one = std::ptr::eq(first, second);
    let uses = [Some(first), (!one).then_some(second)];
    let locked = uses.map(|buffer| buffer?.uses.as_ref().map(lock));
    let event = command()?;
    if locked.iter().any(Option::is_some) {
        let event = Arc::new(event);
        for mut uses in locked.into_iter().flatten() {
            uses.note(queue, &event);
        }
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole after every step, so a panic elsewhere breaks nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sub-buffers, the least recently used first.
#[derive(Debug, Default)]
struct Parts(Vec<(u64, u64, Arc<cl::Mem>)>);

impl Parts {
    fn find(&mut self, whole: &cl::Mem, start: u64, len: u64) -> Driven<Arc<cl::Mem>> {
        let same = |part: &(u64, u64, Arc<cl::Mem>)| (part.0, part.1) == (start, len);
        let part = match self.0.iter().rposition(same) {
            Some(at) => self.0.remove(at).2,
            None => Arc::new(whole.part(start, len)?),
        };
        if self.0.len() == MOST_PARTS {
            // Whoever still uses it holds it; commands do so through the runtime.
            self.0.remove(0);
        }
        self.0.push((start, len, Arc::clone(&part)));
        Ok(part)
    }
}

/// The last command of each queue that touches a pinned buffer. Queues are in order, so the last
/// one stands for all before it.
#[derive(Debug, Default)]
struct Uses(Vec<Use>);

#[derive(Debug)]
struct Use {
    /// Weak: a queue that is dropped was flushed then, and its commands end without it.
    queue: Weak<cl::Queue>,
    event: Arc<cl::Event>,
}

impl Uses {
    fn note(&mut self, queue: &Arc<cl::Queue>, event: &Arc<cl::Event>) {
        let event = Arc::clone(event);
        let same = |other: &&mut Use| std::ptr::eq(other.queue.as_ptr(), Arc::as_ptr(queue));
        if let Some(last) = self.0.iter_mut().find(same) {
            last.event = event;
            return;
        }
        // Queues come and go; what they left behind is forgotten once it is done.
        self.0
            .retain(|old| old.queue.strong_count() > 0 || !matches!(old.event.is_done(), Ok(true)));
        self.0.push(Use {
            queue: Arc::downgrade(queue),
            event,
        });
    }

    /// Submits and waits for all of it. What failed is over too, and is reported once.
    fn finish(&mut self) -> Driven<()> {
        let mut outcome = Ok(());
        for last in self.0.drain(..) {
            let flushed = last.queue.upgrade().map_or(Ok(()), |queue| queue.flush());
            let ended = flushed.and_then(|()| last.event.wait());
            outcome = outcome.and(ended);
        }
        outcome
    }
}

/// A mapped buffer; unmapped when dropped, even when the host's code panics.
struct Mapped<'b> {
    buffer: &'b OpenClBuffer,
    at: *mut u8,
    len: usize,
}

impl<'b> Mapped<'b> {
    fn map(buffer: &'b OpenClBuffer) -> Driven<Self> {
        let service = buffer.opened.service();
        Ok(Self {
            at: service.map(&buffer.mem, buffer.bytes)?,
            len: usize::try_from(buffer.bytes).unwrap_or(0),
            buffer,
        })
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the runtime mapped `len` bytes at `at` for reading and writing, memory of its own
        // that Rust knows nothing else about; the lock on the buffer's uses, which the only caller
        // holds, keeps commands and other mappings away.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }

    fn unmap(self) -> Driven<()> {
        let ended = self.give_back();
        std::mem::forget(self);
        ended
    }

    fn give_back(&self) -> Driven<()> {
        let service = self.buffer.opened.service();
        // SAFETY: `at` is from `map`, and the slice made of it borrowed `self`, so it is gone.
        unsafe { service.unmap(&self.buffer.mem, self.at) }?.wait()
    }
}

impl Drop for Mapped<'_> {
    fn drop(&mut self) {
        if let Err(failure) = self.give_back() {
            tracing::debug!(call = failure.call, %failure, "a pinned buffer stays mapped");
        }
    }
}

impl Buffer for OpenClBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn device(&self) -> DeviceId {
        self.opened.id
    }

    fn with_host(&self, f: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let Some(uses) = &self.uses else {
            let what = format!("host access to {}", self.kind);
            return Err(DeviceError::unsupported(self.opened.id, what));
        };
        let mut uses = lock(uses);
        let visit = uses.finish().and_then(|()| {
            let mut mapped = Mapped::map(self)?;
            f(mapped.bytes());
            mapped.unmap()
        });
        visit.map_err(|failure| failure.using(self.opened.id, self.kind, self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use warploom_core::memory::OPENCL_PINNED;

    use super::*;

    fn pinned(opened: &Arc<Opened>) -> OpenClBuffer {
        let mem = cl::Mem::create(&opened.context, 64, true).unwrap();
        let entry = warploom_core::Account::new(0).book(64).unwrap();
        OpenClBuffer::new(Arc::clone(opened), mem, OPENCL_PINNED, 64, entry)
    }

    fn queue(opened: &Opened) -> Arc<cl::Queue> {
        Arc::new(cl::Queue::create(&opened.context, opened.device).unwrap())
    }

    #[test]
    fn failed_work_is_reported_once_by_the_next_visit() {
        let Some(opened) = Opened::first() else {
            return;
        };
        let (buffer, queue) = (pinned(&opened), queue(&opened));
        let event = cl::Event::by_hand(&opened.context);
        event.end(-5);
        enqueue(&queue, [&buffer; 2], || Ok(event)).unwrap();
        let mut visits = 0;
        assert!(buffer.with_host(&mut |_| visits += 1).is_err());
        assert_eq!(visits, 0, "nobody sees what failed work left");
        buffer.with_host(&mut |_| visits += 1).unwrap();
        assert_eq!(visits, 1);
    }

    #[test]
    fn uses_are_one_per_queue_and_forget_queues_that_are_gone() {
        let Some(opened) = Opened::first() else {
            return;
        };
        let buffer = pinned(&opened);
        let count = || lock(buffer.uses.as_ref().unwrap()).0.len();
        let done = || {
            let event = cl::Event::by_hand(&opened.context);
            event.end(0);
            Ok(event)
        };
        let (first, second) = (queue(&opened), queue(&opened));
        for _ in 0..3 {
            enqueue(&first, [&buffer; 2], done).unwrap();
            enqueue(&second, [&buffer; 2], done).unwrap();
        }
        assert_eq!(count(), 2);
        drop(first);
        let third = queue(&opened);
        enqueue(&third, [&buffer; 2], done).unwrap();
        assert_eq!(count(), 2, "the first is gone and done");
        buffer.with_host(&mut |_| {}).unwrap();
        assert_eq!(count(), 0);
    }

    #[test]
    fn the_same_part_is_the_same_sub_buffer_until_it_is_old() {
        let Some(opened) = Opened::first() else {
            return;
        };
        let len = 1 << 20;
        let mem = cl::Mem::create(&opened.context, len, false).unwrap();
        let mut parts = Parts::default();
        let first = parts.find(&mem, 4096, 64).unwrap();
        for at in 0..MOST_PARTS as u64 + 10 {
            parts.find(&mem, at * 4096, 128).unwrap();
            let again = parts.find(&mem, 4096, 64).unwrap();
            assert!(Arc::ptr_eq(&again, &first), "used all the time, so kept");
        }
        assert_eq!(parts.0.len(), MOST_PARTS);
        let oldest = parts.0.iter().all(|part| (part.0, part.1) != (0, 128));
        assert!(oldest, "not used again, so gone");
    }
}
