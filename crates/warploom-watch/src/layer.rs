//! Spans that overlap, side by side.
//!
//! What happens on one lane is drawn as boxes in a row, or as a stack where they nest, so two spans
//! of a row either nest or do not meet. Spans that the host timed can overlap otherwise: two
//! batches in one queue, both of which the host knows to be begun and not to be done. Those go to
//! layers of their own.

use crate::recording::{Recording, Span};

/// Overlaps of less than this are no overlaps: times of a device were converted to the host's
/// clock, each with its own rounding. The later span begins so much later.
const SLACK: u64 = 1_000;

/// One span in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    /// The span, with its beginning where it is drawn.
    pub(crate) span: Span,
    /// 0 for the lane itself, more for what overlaps.
    pub(crate) layer: usize,
}

/// All spans that can be drawn, by lane and time.
#[derive(Debug)]
pub(crate) struct Layers {
    /// How many layers each lane needs; one at least.
    pub(crate) of_lane: Vec<usize>,
    /// In the order of lanes, and of time on each.
    pub(crate) placed: Vec<Placed>,
}

impl Layers {
    /// Those of a recording. Spans of no lane, and such that end before they begin, are left out.
    pub(crate) fn of(recording: &Recording) -> Self {
        let lanes = recording.lanes.len();
        let sound = |span: &&Span| span.lane.index() < lanes && span.begin <= span.end;
        let mut spans: Vec<Span> = recording.spans.iter().filter(sound).copied().collect();
        // Of spans that begin together the longest first, so that the others nest in it.
        spans.sort_by_key(|span| (span.lane, span.begin, u64::MAX - span.end));
        let mut all = Self {
            of_lane: Vec::with_capacity(lanes),
            placed: Vec::with_capacity(spans.len()),
        };
        let mut rest = spans.as_slice();
        for lane in 0..lanes {
            let here = rest
                .iter()
                .take_while(|span| span.lane.index() == lane)
                .count();
            let (mine, others) = rest.split_at(here);
            all.place(mine);
            rest = others;
        }
        all
    }

    /// Puts each span of a lane on the first of its layers where it fits.
    fn place(&mut self, spans: &[Span]) {
        // For each layer, the spans that are open, outermost first: where they begin and end.
        let mut open: Vec<Vec<(u64, u64)>> = vec![Vec::new()];
        for &span in spans {
            let mut layer = 0;
            let begin = loop {
                if layer == open.len() {
                    open.push(Vec::new());
                }
                if let Some(begin) = fits(&mut open[layer], &span) {
                    break begin;
                }
                layer += 1;
            };
            open[layer].push((begin, span.end));
            let span = Span { begin, ..span };
            self.placed.push(Placed { span, layer });
        }
        self.of_lane.push(open.len());
    }
}

/// When the span can begin on a layer with these spans open; `None` if it overlaps one of them.
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
