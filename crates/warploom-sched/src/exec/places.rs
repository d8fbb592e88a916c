//! Where slots are in memory: whose slot a slice is a part of.

use std::sync::Arc;

use warploom_core::{Buffer, Slice};

/// A slot of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) resource: usize,
    pub(super) slot: usize,
    /// Which buffer it is in, as a number that no other has while it lives.
    buffer: usize,
    /// Its bytes there.
    start: u64,
    end: u64,
}

/// All slots of a pool, by buffer.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<Place>);

fn number(buffer: &Arc<dyn Buffer>) -> usize {
    Arc::as_ptr(buffer).cast::<()>().addr()
}

impl Places {
    pub(super) fn new<'s>(slots: impl Iterator<Item = (usize, usize, &'s Slice)>) -> Self {
        let places = slots.map(|(resource, slot, slice)| Place {
            resource,
            slot,
            buffer: number(slice.buffer()),
            start: slice.start(),
            end: slice.start() + slice.len(),
        });
        let mut places: Vec<Place> = places.collect();
        places.sort_by_key(|place| (place.buffer, place.start));
        Self(places)
    }

    /// The slots that a slice has bytes of; none where it is no memory of the pool's.
    pub(super) fn of(&self, slice: &Slice) -> impl Iterator<Item = &Place> {
        let buffer = number(slice.buffer());
        let first = self.0.partition_point(|place| place.buffer < buffer);
        let (start, end) = (slice.start(), slice.start() + slice.len());
        let own = self.0[first..].iter();
        let own = own.take_while(move |place| place.buffer == buffer);
        own.filter(move |place| place.start < end && start < place.end)
    }
}
