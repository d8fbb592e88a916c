//! Which thread of the trace a span is drawn on: each layer of a lane is one.

use crate::layer::Layers;
use crate::recording::{Recording, Span};

use super::process;

/// Where in a trace something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Address {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// One thread of the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    pub(super) at: Address,
    lane: usize,
    layer: usize,
}

impl Track {
    pub(super) fn name(&self, recording: &Recording) -> String {
        let lane = &recording.lanes[self.lane];
        let sort = if lane.place.is_queue() {
            "queue"
        } else {
            "thread"
        };
        match self.layer {
            0 => format!("{sort} {}", lane.name),
            layer => format!("{sort} {} +{layer}", lane.name),
        }
    }
}

/// All threads of a trace, and which spans are on which.
#[derive(Debug)]
pub(super) struct Tracks {
    all: Vec<Track>,
    /// For each lane, the place of its first track.
    first: Vec<usize>,
    layers: Layers,
}

impl Tracks {
    pub(super) fn of(recording: &Recording) -> Self {
        let layers = Layers::of(recording);
        let (mut all, mut first) = (Vec::new(), Vec::new());
        for (lane, &count) in layers.of_lane.iter().enumerate() {
            first.push(all.len());
            let pid = process(recording, recording.lanes[lane].place.device());
            for layer in 0..count {
                let tid = u32::try_from(all.len()).map_or(u32::MAX, |at| at.saturating_add(1));
                let at = Address { pid, tid };
                all.push(Track { at, lane, layer });
            }
        }
        Self { all, first, layers }
    }

    pub(super) fn all(&self) -> &[Track] {
        &self.all
    }

    /// Every span with its place, by lane and time.
    pub(super) fn placed(&self) -> impl Iterator<Item = (Span, Address)> {
        self.layers.placed.iter().map(|placed| {
            let track = self.first[placed.span.lane.index()] + placed.layer;
            (placed.span, self.all[track].at)
        })
    }
}
