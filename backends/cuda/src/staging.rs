//! Page-locked memory through which uploads pass.
//!
//! A copy from ordinary memory would make the driver do the same, but it does not promise when the
//! source is free. Here it is free when its bytes are in the staging memory, and while one half is
//! on its way to the device the other is filled.

use std::sync::Arc;

use warploom_core::Result;

use crate::buffer::PinnedMemory;
use crate::context::Context;
use crate::event::Point;
use crate::lane::Lane;

/// Bytes of one half: large enough to reach the bus's full rate, small enough to have per queue.
pub(crate) const HALF: usize = 4 << 20;

/// Pieces start at multiples of this, which the copy engines like.
const ALIGN: usize = 256;

/// The staging memory of one queue; allocated when first needed.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    memory: Option<PinnedMemory>,
    /// Which half is being filled.
    half: usize,
    /// How far it is filled.
    filled: usize,
    /// After which point each half is free again.
    busy: [Option<Arc<Point>>; 2],
}

impl Staging {
    /// Copies `bytes`, at most a [`HALF`], to where a device can fetch them; `None` when the host
    /// has no memory to lock. The place stays valid until the calls issued on `lane` before the
    /// next `put` are done, and as long as `self`.
    pub(crate) fn put(
        &mut self,
        context: &Arc<Context>,
        lane: &Lane,
        bytes: &[u8],
    ) -> Result<Option<*const u8>> {
        debug_assert!(bytes.len() <= HALF, "a piece fits one half");
        if self.memory.is_none() {
            self.memory = PinnedMemory::allocate(context, 2 * HALF)?;
        }
        let Some(memory) = &self.memory else {
            return Ok(None);
        };
        if self.filled + bytes.len() > HALF {
            // Everything in this half was handed to the lane before this mark.
            self.busy[self.half] = Some(lane.mark()?);
            self.half = 1 - self.half;
            self.filled = 0;
            if let Some(point) = self.busy[self.half].take() {
                point.wait()?;
            }
        }
        let at = self.half * HALF + self.filled;
        let place = memory.address().wrapping_add(at);
        // SAFETY: `at + len` is inside the two halves; the two do not overlap, because nobody
        // else has the staging memory; and the device has fetched what was here before: the half
        // was free when it was begun, and `filled` only grows.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        self.filled = (self.filled + bytes.len()).next_multiple_of(ALIGN);
        Ok(Some(place))
    }
}
