//! Ranges of addresses, backed by pages only where they are used.

use std::io;

/// Bytes of a page, or a multiple: all that is done with pages here is giving them back.
const PAGE: u64 = 64 << 10;

/// A range of addresses that stays ours until the process ends. Every byte can be read and written.
#[derive(Debug)]
pub(crate) struct Reserve {
    base: u64,
    end: u64,
}

impl Reserve {
    pub(crate) fn new(bytes: u64) -> io::Result<Self> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let length = usize::try_from(bytes).map_err(|_| too_large())?;
        // SAFETY: a fresh private mapping at an address the system chooses touches nothing that
        // exists.
        let place = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = place.expose_provenance() as u64;
        Ok(Self {
            base,
            end: base + bytes,
        })
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Gives back the pages that lie in a part of the range wholly. Their bytes become zero; who
    /// still reads or writes them does no harm.
    pub(crate) fn forget(&self, from: u64, to: u64) {
        let from = from.max(self.base).next_multiple_of(PAGE);
        let to = to.min(self.end) / PAGE * PAGE;
        if from >= to {
            return;
        }
        let place = std::ptr::with_exposed_provenance_mut(super::address(from));
        // SAFETY: the part lies in our own mapping, in which nobody keeps Rust references; it stays
        // mapped.
        let answer =
            unsafe { libc::madvise(place, super::address(to - from), libc::MADV_DONTNEED) };
        debug_assert_eq!(answer, 0, "advice about our own mapping is taken");
    }
}
