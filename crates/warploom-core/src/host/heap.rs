//! Host memory as buffers, counted.

use std::sync::{Arc, Mutex, PoisonError};

use crate::account::{Account, Booking};
use crate::buffer::{Buffer, Slice};
use crate::device::DeviceId;
use crate::error::{DeviceError, Result};
use crate::memory::{MemoryKind, MemoryUse};

/// A device's memory: host memory up to a limit, counted until the last handle is dropped.
#[derive(Clone, Debug)]
pub struct HostHeap {
    device: DeviceId,
    limit: u64,
    account: Arc<Account>,
}

impl HostHeap {
    /// At most `limit` bytes for `device`.
    pub fn new(device: DeviceId, limit: u64) -> Self {
        Self {
            device,
            limit,
            account: Account::new(limit),
        }
    }

    /// How full it is.
    pub fn usage(&self) -> MemoryUse {
        MemoryUse {
            total: self.limit,
            free: Some(self.account.left()),
            ours: self.account.held(),
        }
    }

    /// `bytes` zeros.
    ///
    /// # Errors
    /// When the limit or the allocator has no room.
    pub fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>> {
        let booking = self
            .account
            .book(bytes)
            .map_err(|left| DeviceError::OutOfMemory {
                device: self.device,
                kind,
                asked: bytes,
                free: Some(left),
            })?;
        let mut buffer = HostBuffer::zeroed(self.device, kind, bytes)?;
        buffer.booking = Some(booking);
        Ok(Arc::new(buffer))
    }
}

/// Host memory behind a lock.
#[derive(Debug)]
pub struct HostBuffer {
    device: DeviceId,
    kind: MemoryKind,
    bytes: u64,
    // Words, so that any element type finds itself aligned.
    content: Mutex<Vec<u128>>,
    booking: Option<Booking>,
}

impl HostBuffer {
    /// `bytes` zeros.
    ///
    /// # Errors
    /// When the allocator has no room.
    pub fn zeroed(device: DeviceId, kind: MemoryKind, bytes: u64) -> Result<Self> {
        let full = || DeviceError::OutOfMemory {
            device,
            kind,
            asked: bytes,
            free: None,
        };
        let len = usize::try_from(bytes).map_err(|_| full())?;
        let words = len.div_ceil(size_of::<u128>());
        let mut content = Vec::new();
        content.try_reserve_exact(words).map_err(|_| full())?;
        content.resize(words, 0);
        Ok(Self {
            device,
            kind,
            bytes,
            content: Mutex::new(content),
            booking: None,
        })
    }
}

impl Buffer for HostBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn kind(&self) -> MemoryKind {
        self.kind
    }
    fn device(&self) -> DeviceId {
        self.device
    }
    fn with_host(&self, f: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        // A kernel that panicked leaves bytes, not a broken invariant.
        let mut words = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let len = usize::try_from(self.bytes).unwrap_or(bytes.len());
        f(&mut bytes[..len]);
        Ok(())
    }
}

/// What is copied at a time between two buffers, which are not lent to anybody together: whoever has
/// one could wait for the other.
const PIECE: u64 = 64 << 10;

/// Copies between host-visible buffers at once; they may be one buffer.
pub fn copy_now(src: &Slice, dst: &Slice) -> Result<()> {
    if Arc::ptr_eq(src.buffer(), dst.buffer()) {
        let (from, to) = (src.host_range(), dst.host_range().start);
        return src
            .buffer()
            .with_host(&mut |bytes| bytes.copy_within(from.clone(), to));
    }
    let mut piece = Vec::new();
    let mut at = 0;
    while at < src.len() {
        let part = at..(at + PIECE).min(src.len());
        let (from, to) = (src.part(part.clone())?, dst.part(part.clone())?);
        piece.clear();
        from.buffer()
            .with_host(&mut |bytes| piece.extend_from_slice(&bytes[from.host_range()]))?;
        to.buffer()
            .with_host(&mut |bytes| bytes[to.host_range()].copy_from_slice(&piece))?;
        at = part.end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BackendId;
    use crate::memory::HOST;

    #[test]
    fn copies_of_any_length_arrive_whole_and_may_overlap() {
        let heap = HostHeap::new(DeviceId::new(BackendId::CPU, 0), 1 << 30);
        for bytes in [1, PIECE - 1, PIECE, 2 * PIECE + 7] {
            let [from, to] = [(); 2].map(|()| heap.alloc(HOST, bytes + 9).unwrap());
            let fill = |at: usize| u8::try_from(at % 251).unwrap();
            from.with_host(&mut |all| {
                for (at, byte) in all.iter_mut().enumerate() {
                    *byte = fill(at);
                }
            })
            .unwrap();
            let part = |buffer, at| Slice::new(Arc::clone(buffer), at..at + bytes).unwrap();
            copy_now(&part(&from, 3), &part(&to, 5)).unwrap();
            let whole = |moved: usize| move |(at, byte): (usize, &u8)| *byte == fill(at + moved);
            to.with_host(&mut |all| {
                let end = all.len() - 4;
                assert!(all[5..end].iter().enumerate().all(whole(3)), "{bytes}");
                assert_eq!((&all[..5], &all[end..]), (&[0; 5][..], &[0; 4][..]));
            })
            .unwrap();
            copy_now(&part(&from, 0), &part(&from, 9)).unwrap();
            from.with_host(&mut |all| {
                assert!(all[9..].iter().enumerate().all(whole(0)), "{bytes}");
            })
            .unwrap();
        }
    }

    #[test]
    fn a_heap_counts_and_refuses_with_numbers() {
        let heap = HostHeap::new(DeviceId::new(BackendId::CPU, 0), 100);
        let first = heap.alloc(HOST, 60).unwrap();
        let error = heap.alloc(HOST, 41).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cpu:0 has no room for 41 B of host, 40 B free"
        );
        assert_eq!(heap.usage().ours, 60);
        let second = heap.alloc(HOST, 40).unwrap();
        drop(first);
        assert_eq!(
            heap.usage(),
            MemoryUse {
                total: 100,
                free: Some(60),
                ours: 40
            }
        );
        drop(second);
        assert_eq!(heap.usage().ours, 0);
    }
}
