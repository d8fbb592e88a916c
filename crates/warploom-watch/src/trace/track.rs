//! Which thread of the trace a span is drawn on.
//!
//! Viewers draw what happens on one thread as a stack of boxes, so two spans of one thread either
//! nest or do not meet. Spans that the host timed can overlap otherwise: two batches in one queue,
//! both of which the host knows to be begun and not to be done. Those go to threads of their own.

use crate::recording::{Recording, Span};

use super::process;

/// Overlaps of less than this are no overlaps: times of a device were converted to the host's
/// clock, each with its own rounding. The later span begins so much later.
const SLACK: u64 = 1_000;

/// Where in a trace something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Address {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// One thread of the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    pub(super) pid: u32,
    pub(super) tid: u32,
    lane: usize,
    /// 0 for the lane itself, more for what overlaps.
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
    tracks: Vec<Track>,
    /// Spans in the order of lanes and times: which one, its track, when it begins.
    placed: Vec<(usize, usize, u64)>,
}

impl Tracks {
    pub(super) fn of(recording: &Recording) -> Self {
        let lanes = recording.lanes.len();
        let spans = recording.spans.iter().enumerate();
        let mut order: Vec<usize> = spans
            .filter(|(_, span)| span.lane.index() < lanes && span.begin <= span.end)
            .map(|(at, _)| at)
            .collect();
        let spans = &recording.spans;
        // Of spans that begin together the longest first, so that the others nest in it.
        order.sort_by_key(|&at| (spans[at].lane, spans[at].begin, u64::MAX - spans[at].end));
        let mut all = Self {
            tracks: Vec::new(),
            placed: Vec::with_capacity(order.len()),
        };
        let mut rest = order.as_slice();
        for lane in 0..lanes {
            let here = rest
                .iter()
                .take_while(|&&at| spans[at].lane.index() == lane)
                .count();
            let (mine, others) = rest.split_at(here);
            all.place(recording, lane, mine);
            rest = others;
        }
        all
    }

    /// Puts each span of a lane on the first of its threads where it fits.
    fn place(&mut self, recording: &Recording, lane: usize, spans: &[usize]) {
        let first = self.tracks.len();
        self.add(recording, lane, 0);
        // For each thread, the spans that are open, outermost first: where they begin and end.
        let mut open: Vec<Vec<(u64, u64)>> = vec![Vec::new()];
        for &at in spans {
            let span = &recording.spans[at];
            let mut layer = 0;
            let begin = loop {
                if layer == open.len() {
                    open.push(Vec::new());
                    self.add(recording, lane, layer);
                }
                if let Some(begin) = fits(&mut open[layer], span) {
                    break begin;
                }
                layer += 1;
            };
            open[layer].push((begin, span.end));
            self.placed.push((at, first + layer, begin));
        }
    }

    fn add(&mut self, recording: &Recording, lane: usize, layer: usize) {
        let pid = process(recording, recording.lanes[lane].place.device());
        let tid = u32::try_from(self.tracks.len()).map_or(u32::MAX, |at| at.saturating_add(1));
        self.tracks.push(Track {
            pid,
            tid,
            lane,
            layer,
        });
    }

    pub(super) fn all(&self) -> &[Track] {
        &self.tracks
    }

    /// Every span with its place, by lane and time.
    pub(super) fn placed<'a>(
        &'a self,
        recording: &'a Recording,
    ) -> impl Iterator<Item = (Span, Address)> + 'a {
        self.placed.iter().map(|&(at, track, begin)| {
            let Track { pid, tid, .. } = self.tracks[track];
            let span = Span {
                begin,
                ..recording.spans[at]
            };
            (span, Address { pid, tid })
        })
    }
}

/// When the span can begin on a thread with these spans open; `None` if it overlaps one of them.
fn fits(open: &mut Vec<(u64, u64)>, span: &Span) -> Option<u64> {
    while let Some(&(begin, end)) = open.last() {
        if end <= span.begin {
            open.pop();
        } else if span.end <= end {
            // One that was moved may now begin after what would lie in it.
            return (begin <= span.begin).then_some(span.begin);
        } else if end - span.begin < SLACK && open.len() == 1 {
            open.pop();
            return Some(end);
        } else {
            return None;
        }
    }
    Some(span.begin)
}
