//! One block of host memory: allocated as zeros, aligned, lent out by byte range.
//!
//! The block knows nothing of locks. Who lends bytes from it promises to hold the right
//! [`RangeLock`](crate::range::RangeLock) entry, and every such promise is in `buffer` or `kernel`.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::Range;
use std::ptr::NonNull;

#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::{MmapMut, MmapRaw};

/// A cache line: no vector load of a block's start is split, on any processor we know.
const LINE: usize = 64;

/// A page, for blocks that have many, so that the kernel can back them with whole ones.
const PAGE: usize = 4096;

/// From this size on a block starts at a page.
const LARGE: usize = 256 << 10;

/// A huge page where there are any. Pixels that lie in small pages cost a walk through the tables
/// every few rows, which took half of the time of fused passes.
const HUGE: usize = 2 << 20;

/// From this size on a block is pages of its own, huge ones if the system has them.
const VAST: usize = 2 * HUGE;

/// What every allocator gives for free, and so what `calloc` can serve.
const PLAIN: usize = 16;

/// The allocation's address, free to travel between threads.
#[derive(Debug)]
struct Base(NonNull<u8>);

// SAFETY: an allocation of the global allocator belongs to no thread, nor do pages; any thread may
// use its bytes and free it.
unsafe impl Send for Base {}
// SAFETY: a shared `Base` only tells an address. Bytes behind it are reached through the unsafe
// methods of `Block`, whose callers promise that no two threads race.
unsafe impl Sync for Base {}

/// Whom the memory goes back to.
#[derive(Debug)]
enum Owner {
    Allocator(Layout),
    /// They are given back when this is dropped.
    Pages(#[expect(dead_code, reason = "held for its drop")] MmapRaw),
}

/// Zeroed memory of the global allocator, or pages.
#[derive(Debug)]
pub(crate) struct Block {
    base: Base,
    owner: Owner,
    /// Bytes from the base to the first aligned one.
    skip: usize,
    len: usize,
}

impl Block {
    /// `len` zeros, or `None` when the allocator has no room.
    ///
    /// Zeros make every byte a value, so that reading what nobody wrote is stale, not undefined.
    /// They are free: large blocks come as untouched pages. That holds only for alignments
    /// `calloc` knows; for larger ones the standard library allocates and then writes every byte.
    /// So the block asks for plain alignment and a little more room, and aligns itself.
    pub(crate) fn zeroed(len: u64) -> Option<Self> {
        let len = usize::try_from(len).ok()?;
        if len >= VAST {
            return Self::pages(len);
        }
        let align = if len < LARGE { LINE } else { PAGE };
        let layout = Layout::from_size_align(len.checked_add(align)?, PLAIN).ok()?;
        // SAFETY: the layout's size is at least `align`, so not zero.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let address = base.addr().get();
        let skip = address.next_multiple_of(align) - address;
        let base = Base(base);
        Some(Self {
            base,
            owner: Owner::Allocator(layout),
            skip,
            len,
        })
    }

    /// The same for what is larger than a huge page. The room before the first aligned one is never
    /// touched, so it costs addresses only.
    fn pages(len: usize) -> Option<Self> {
        let room = len.checked_next_multiple_of(HUGE)?.checked_add(HUGE)?;
        isize::try_from(room).ok()?;
        let pages = MmapMut::map_anon(room).ok()?;
        // Where the system has no huge pages, small ones do as well.
        #[cfg(target_os = "linux")]
        let _ = pages.advise(Advice::HugePage);
        let pages = MmapRaw::from(pages);
        let base = NonNull::new(pages.as_mut_ptr())?;
        let address = base.addr().get();
        Some(Self {
            base: Base(base),
            owner: Owner::Pages(pages),
            skip: address.next_multiple_of(HUGE) - address,
            len,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The address of a range's first byte.
    ///
    /// Ranges come from `Slice`s, which were checked against this block's length when they were
    /// made; checking again costs nothing and keeps memory safety a matter of this file.
    fn at(&self, range: &Range<usize>) -> NonNull<u8> {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "a slice's range is inside its buffer"
        );
        // SAFETY: `skip` is less than `align` and `start` at most `len`, so the result is inside
        // the allocation of `len + align` bytes or more, whose size `zeroed` keeps below
        // `isize::MAX`.
        unsafe { self.base.0.add(self.skip + range.start) }
    }

    /// Lends bytes for reading.
    ///
    /// # Safety
    /// While the result lives, nobody writes to the range.
    pub(crate) unsafe fn shared(&self, range: Range<usize>) -> &[u8] {
        let start = self.at(&range);
        // SAFETY: `at` checked that the range is inside the allocation, which lives as long as
        // `self`; its bytes were zeroed, so they are values; the caller excludes writers.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), range.len()) }
    }

    /// Lends bytes for reading and writing.
    ///
    /// # Safety
    /// While the result lives, nobody else reads from or writes to the range.
    #[expect(
        clippy::mut_from_ref,
        reason = "the range lock, not the borrow checker, makes it exclusive; hence unsafe"
    )]
    pub(crate) unsafe fn exclusive(&self, range: Range<usize>) -> &mut [u8] {
        let start = self.at(&range);
        // SAFETY: as in `shared`; the caller excludes everyone else.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), range.len()) }
    }

    /// Copies bytes `from` of this block to `to` of `target`, which may be this block and may
    /// overlap. Where the lengths differ the shorter one counts.
    ///
    /// # Safety
    /// During the call, nobody else writes to either range or reads from `to`.
    pub(crate) unsafe fn copy(&self, from: Range<usize>, target: &Self, to: Range<usize>) {
        let (src, dst) = (self.at(&from), target.at(&to));
        let len = from.len().min(to.len());
        // SAFETY: `at` checked both ranges; `copy` allows them to overlap; the caller excludes
        // everyone else.
        unsafe { std::ptr::copy(src.as_ptr(), dst.as_ptr(), len) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Owner::Allocator(layout) = self.owner else {
            return;
        };
        // SAFETY: allocated in `zeroed` with this very layout, and freed only here. No view is
        // left: each borrows `self`.
        unsafe { dealloc(self.base.0.as_ptr(), layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(1, LINE)]
    #[case(LARGE - 1, LINE)]
    #[case(LARGE, PAGE)]
    #[case(VAST - 1, PAGE)]
    #[case(VAST, HUGE)]
    #[case(3 * VAST + 5, HUGE)]
    fn blocks_are_aligned_zeros(#[case] len: usize, #[case] align: usize) {
        for _ in 0..4 {
            let block = Block::zeroed(len as u64).unwrap();
            // SAFETY: nobody else has the block.
            let bytes = unsafe { block.exclusive(0..len) };
            assert!(bytes.as_ptr().addr().is_multiple_of(align));
            assert!(bytes.iter().all(|byte| *byte == 0));
            // So that memory that comes back from the allocator is not zero by chance.
            bytes.fill(0xA5);
        }
    }

    #[rstest::rstest]
    #[case(u64::MAX)]
    #[case(1 << 63)]
    fn no_room_is_no_block(#[case] len: u64) {
        assert!(Block::zeroed(len).is_none());
    }

    #[test]
    fn nothing_is_a_block_too() {
        let block = Block::zeroed(0).unwrap();
        // SAFETY: nobody else has the block.
        assert!(unsafe { block.shared(0..0) }.is_empty());
    }

    #[test]
    fn a_copy_onto_itself_moves_the_bytes() {
        let block = Block::zeroed(8).unwrap();
        // SAFETY: nobody else has the block, and the view ends in this statement.
        unsafe { block.exclusive(0..8) }.copy_from_slice(&[0, 1, 2, 3, 4, 5, 6, 7]);
        // SAFETY: nobody else has the block.
        unsafe { block.copy(0..6, &block, 2..8) };
        // SAFETY: nobody writes any more.
        assert_eq!(unsafe { block.shared(0..8) }, [0, 1, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    #[should_panic(expected = "inside its buffer")]
    fn a_range_outside_is_never_lent() {
        let block = Block::zeroed(8).unwrap();
        // SAFETY: nobody else has the block.
        unsafe { block.shared(4..9) };
    }
}
