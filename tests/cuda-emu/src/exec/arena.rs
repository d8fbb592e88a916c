//! Memory of a worker, with room around it that is nobody's.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// Bytes before and behind the part in use: an index that is off by a row still lands here, and is
/// recognised as belonging to this memory rather than to a stranger's.
const MARGIN: usize = 4096;

/// A value that is a signalling NaN in single and in double precision, and large as an integer.
pub(super) const POISON: u64 = 0x7ff4_dead_7fa0_beef;

/// A stretch of memory that kernels address.
#[derive(Debug)]
pub(super) struct Arena {
    start: *mut u8,
    layout: Layout,
    length: usize,
}

impl Arena {
    pub(super) fn new(length: usize) -> Self {
        let size = length + 2 * MARGIN;
        let layout = Layout::from_size_align(size, MARGIN)
            .expect("the memory of one block is far below the size of the address space");
        // SAFETY: the layout has a size, because of its margins.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        let arena = Self {
            start,
            layout,
            length,
        };
        arena.fill(0, length, 0);
        arena
    }

    /// Address of the first byte in use.
    pub(super) fn base(&self) -> u64 {
        self.start as u64 + MARGIN as u64
    }

    /// Whether an address lies here or in the margins.
    pub(super) fn is_near(&self, address: u64) -> bool {
        let start = self.start as u64;
        address >= start && address - start < self.layout.size() as u64
    }

    fn place(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(offset + length <= self.length, "inside of the arena");
        // SAFETY: offset and margin lie inside of the allocation, as just asserted.
        unsafe { self.start.add(MARGIN + offset) }
    }

    /// Sets bytes to `value`.
    pub(super) fn fill(&self, offset: usize, length: usize, value: u8) {
        let place = self.place(offset, length);
        // SAFETY: `place` checked the range. No reference to the bytes exists: they are reached
        // through addresses only, and by one host thread at a time.
        unsafe { place.write_bytes(value, length) };
    }

    /// Sets bytes to a value that does not go unnoticed.
    pub(super) fn poison(&self, offset: usize, length: usize) {
        for at in (0..length).step_by(8) {
            let bytes = POISON.to_le_bytes();
            self.write(offset + at, &bytes[..(length - at).min(8)]);
        }
    }

    pub(super) fn write(&self, offset: usize, bytes: &[u8]) {
        let place = self.place(offset, bytes.len());
        // SAFETY: `place` checked the range; as in `fill`, there is no reference to it, so `bytes`
        // is elsewhere.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    pub(super) fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        let place = self.place(offset, length);
        let mut bytes = vec![0; length];
        // SAFETY: `place` checked the range, all of which `new` initialised; the vector is new.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(place, length) };
        bytes
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed only here.
        unsafe { dealloc(self.start, self.layout) };
    }
}
