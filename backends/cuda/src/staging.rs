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
use crate::lane::{Keep, Lane};

/// Bytes of one half: large enough to reach the bus's full rate, small enough to have per queue.
pub(crate) const HALF: usize = 4 << 20;

/// Pieces start at multiples of this, which the copy engines like.
const ALIGN: usize = 256;

/// The staging memory of one queue; allocated when first needed.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    memory: Option<Arc<PinnedMemory>>,
    /// Which half is being filled.
    half: usize,
    /// How far it is filled.
    filled: usize,
    /// After which point each half is free again.
    busy: [Option<Arc<Point>>; 2],
}

/// Where a device can fetch bytes.
#[derive(Debug)]
pub(crate) struct Staged {
    /// The first of them.
    pub(crate) at: *const u8,
    /// What the lane keeps until they are fetched.
    pub(crate) memory: Keep,
}

impl Staging {
    /// Copies `bytes`, at most a [`HALF`], to where a device can fetch them; `None` when the host
    /// has no memory to lock. The bytes stay in place until the calls issued on `lane` before the
    /// next `put` are done, as long as the lane keeps the memory.
    pub(crate) fn put(
        &mut self,
        context: &Arc<Context>,
        lane: &Lane,
        bytes: &[u8],
    ) -> Result<Option<Staged>> {
        debug_assert!(bytes.len() <= HALF, "a piece fits one half");
        if self.memory.is_none() {
            self.memory = PinnedMemory::allocate(context, 2 * HALF)?.map(Arc::new);
        }
        let Some(memory) = &self.memory else {
            return Ok(None);
        };
        if self.filled + bytes.len() > HALF {
            // Everything in this half was handed to the lane before this mark.
            let mark = lane.mark()?;
            let next = 1 - self.half;
            if let Some(point) = &self.busy[next] {
                point.wait()?;
            }
            // Only now: after a failed wait the other half is not free, and the next call must
            // not take it for free either.
            self.busy[next] = None;
            self.busy[self.half] = Some(mark);
            (self.half, self.filled) = (next, 0);
        }
        let at = self.half * HALF + self.filled;
        let place = memory.address().wrapping_add(at);
        // SAFETY: `at + len` is inside the two halves; the two do not overlap, because nobody
        // else has the staging memory; and the device has fetched what was here before: the half
        // was free when it was begun, and `filled` only grows.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        self.filled = (self.filled + bytes.len()).next_multiple_of(ALIGN);
        Ok(Some(Staged {
            at: place,
            memory: Arc::clone(memory) as Keep,
        }))
    }
}
