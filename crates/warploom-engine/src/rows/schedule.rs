//! Which rows are made when, and how many of each value must be kept.

use std::ops::Range;

use warploom_flow::Boundary;

use super::graph::{Place, RowGraph};

/// Rows of results that are asked for at a time: a turned tile's height, and enough for a tall
/// kernel to use what it has in the first cache.
pub(super) const BATCH: i64 = 32;

/// How far each step has come in one strip of rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The next row each step makes.
    pub(super) done: Vec<i64>,
    /// The row after the last it makes in this batch.
    pub(super) target: Vec<i64>,
    first: Vec<i64>,
    end: Vec<i64>,
}

impl RowGraph {
    /// Do rows wrap around? Then rows are numbered on beyond the image's ends, all steps alike.
    pub(super) fn wraps(&self) -> bool {
        self.steps.iter().any(|step| {
            let (before, after, boundary) = step.reach();
            boundary == Boundary::Wrap && before + after > 0
        })
    }

    /// Do all steps that read other rows wrap around?
    pub(super) fn all_wrap(&self) -> bool {
        self.steps.iter().all(|step| {
            let (before, after, boundary) = step.reach();
            boundary == Boundary::Wrap || before + after == 0
        })
    }

    /// Prepares to make the rows `strip` of every output of an image of `rows` rows.
    pub(super) fn begin(&self, strip: Range<i64>, rows: i64, progress: &mut Progress) {
        let count = self.steps.len();
        let Progress {
            done,
            target,
            first,
            end,
        } = progress;
        for list in [&mut *done, &mut *target, &mut *first, &mut *end] {
            list.clear();
            list.resize(count, 0);
        }
        first.fill(i64::MAX);
        end.fill(i64::MIN);
        let bounds = if self.wraps() {
            i64::MIN..i64::MAX
        } else {
            0..rows
        };
        for (at, step) in self.steps.iter().enumerate().rev() {
            if step.is_end(&self.values) {
                first[at] = first[at].min(strip.start);
                end[at] = end[at].max(strip.end);
            }
            if first[at] >= end[at] {
                continue;
            }
            let (before, after, _) = step.reach();
            for &input in &step.from {
                if let Some(maker) = self.values[input].step {
                    first[maker] = first[maker].min((first[at] - before).max(bounds.start));
                    end[maker] = end[maker].max((end[at] + after).min(bounds.end));
                }
            }
        }
        for at in 0..count {
            // A value nobody needs is not made.
            if first[at] >= end[at] {
                (first[at], end[at]) = (0, 0);
            }
            done[at] = first[at];
        }
    }

    /// Sets the targets for the outputs' rows before `to`.
    pub(super) fn aim(&self, to: i64, progress: &mut Progress) {
        let Progress {
            done, target, end, ..
        } = progress;
        target.copy_from_slice(done);
        for (at, step) in self.steps.iter().enumerate().rev() {
            if step.is_end(&self.values) {
                target[at] = target[at].max(to.min(end[at]));
            }
            if target[at] <= done[at] {
                continue;
            }
            let grain = step.grain();
            let whole = (target[at] + grain - 1).div_euclid(grain) * grain;
            let writes = step.to.iter().all(|&v| self.values[v].place == Place::Ring);
            if writes {
                target[at] = whole.min(end[at]);
            }
            let (_, after, _) = step.reach();
            for &input in &step.from {
                if let Some(maker) = self.values[input].step {
                    target[maker] = target[maker].max((target[at] + after).min(end[maker]));
                }
            }
        }
    }

    /// How many rows of each value are in use at once, over the whole strip.
    pub(super) fn capacities(
        &self,
        strip: Range<i64>,
        rows: i64,
        batch: i64,
        progress: &mut Progress,
        kept: &mut [usize],
    ) {
        self.begin(strip.clone(), rows, progress);
        let mut to = strip.start;
        while to < strip.end {
            to = (to + batch).min(strip.end);
            self.aim(to, progress);
            for (at, step) in self.steps.iter().enumerate() {
                let (before, _, _) = step.reach();
                for &input in &step.from {
                    if let Some(maker) = self.values[input].step {
                        let oldest = (progress.done[at] - before).max(progress.first[maker]);
                        let span = progress.target[maker] - oldest;
                        kept[input] = kept[input].max(span.max(1) as usize);
                    }
                }
            }
            progress.done.copy_from_slice(&progress.target);
        }
    }

    /// Rows above and below a strip that are made a second time.
    pub(super) fn halo(&self) -> i64 {
        let mut progress = Progress::default();
        // Far from the ends, where nothing is cut off.
        let middle = i64::from(u32::MAX);
        self.begin(middle..middle + 1, 2 * middle, &mut progress);
        let needed = (0..self.steps.len()).filter(|&at| progress.end[at] > progress.first[at]);
        let spans = needed.map(|at| progress.end[at] - progress.first[at] - 1);
        spans.max().unwrap_or(0)
    }
}
