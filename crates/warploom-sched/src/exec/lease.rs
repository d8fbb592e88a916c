//! The right to use a slot, while a stage has its turn.

use warploom_core::Slice;

/// The right to read a slot, while a stage has its turn.
#[derive(Debug)]
pub struct ReadLease<'t> {
    pub(super) slice: &'t Slice,
}

impl<'t> ReadLease<'t> {
    /// The bytes, for code that takes slices. A copy that is kept after the turn is good for nothing: queues of
    /// the pipeline refuse it in turns that do not hold the slot, and where it would be written.
    pub fn slice(&self) -> &'t Slice {
        self.slice
    }
}

/// The right to write a slot, while a stage has its turn.
#[derive(Debug)]
pub struct WriteLease<'t> {
    pub(super) slice: &'t Slice,
}

impl<'t> WriteLease<'t> {
    /// The bytes, for code that takes slices. A copy that is kept after the turn is good for nothing: queues of
    /// the pipeline refuse it in turns that do not hold the slot.
    pub fn slice(&self) -> &'t Slice {
        self.slice
    }
}
