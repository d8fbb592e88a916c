//! Fewer spans than there were, where a page could not hold them all.

use crate::layer::Placed;
use crate::recording::Span;

/// One box of the drawing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Bar {
    pub(super) span: Span,
    pub(super) layer: usize,
}

/// Joins neighbours on the same layer until there are at most so many bars; they come by lane, layer
/// and time. A joined bar has the stage of its longest part and belongs to no record.
///
/// Only what is shorter than a stretch of time is joined, and the stretch grows until it is enough:
/// long spans stay as they are.
pub(super) fn thin(placed: &[Placed], wall: u64, most: usize) -> Vec<Bar> {
    let mut bars: Vec<Bar> = placed
        .iter()
        .map(|&Placed { span, layer }| Bar { span, layer })
        .collect();
    bars.sort_by_key(|bar| (bar.span.lane, bar.layer));
    let mut stretch = wall / 100_000 + 1;
    while bars.len() > most && stretch <= wall {
        bars = joined(&bars, stretch);
        stretch = stretch.saturating_mul(2);
    }
    bars
}

fn joined(bars: &[Bar], stretch: u64) -> Vec<Bar> {
    let mut kept: Vec<(Bar, u64)> = Vec::with_capacity(bars.len() / 2);
    for bar in bars {
        let fits = |last: &Bar| {
            (last.span.lane, last.layer) == (bar.span.lane, bar.layer)
                && bar.span.end.saturating_sub(last.span.begin) <= stretch
        };
        match kept.last_mut() {
            Some((last, longest)) if fits(last) => {
                if bar.span.length() > *longest {
                    *longest = bar.span.length();
                    last.span.stage = bar.span.stage;
                }
                last.span.end = last.span.end.max(bar.span.end);
                last.span.count = 0;
            }
            _ => kept.push((*bar, bar.span.length())),
        }
    }
    kept.into_iter().map(|(bar, _)| bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Clock, LaneNo, RecordNo, StageNo};

    fn placed(lane: u32, stage: u32, begin: u64, end: u64) -> Placed {
        let span = Span {
            lane: LaneNo(lane),
            stage: StageNo(stage),
            generation: 0,
            first: RecordNo(0),
            count: 1,
            begin,
            end,
            clock: Clock::Host,
        };
        Placed { span, layer: 0 }
    }

    #[test]
    fn few_are_left_alone() {
        let few = [placed(0, 0, 0, 10), placed(0, 0, 10, 20)];
        assert_eq!(thin(&few, 1_000, 2).len(), 2);
    }

    #[test]
    fn short_ones_are_joined_and_long_ones_stay() {
        let mut all: Vec<Placed> = (0..1_000)
            .map(|at| placed(0, u32::from(at % 3 == 0), at * 10, at * 10 + 8))
            .collect();
        all.push(placed(0, 2, 10_000, 900_000));
        all.extend((0..1_000).map(|at| placed(1, 0, at * 10, at * 10 + 8)));
        let thinned = thin(&all, 1_000_000, 200);
        assert!(thinned.len() <= 200, "{}", thinned.len());
        let long = thinned
            .iter()
            .find(|bar| bar.span.stage == StageNo(2))
            .unwrap();
        assert_eq!(
            (long.span.begin, long.span.end, long.span.count),
            (10_000, 900_000, 1)
        );
        for lane in [0, 1] {
            let mine = || thinned.iter().filter(|bar| bar.span.lane == LaneNo(lane));
            let first = mine().next().unwrap();
            assert_eq!((first.span.begin, first.span.count), (0, 0));
            let end = mine().map(|bar| bar.span.end).max().unwrap();
            assert_eq!(end, if lane == 0 { 900_000 } else { 9_998 });
        }
    }

    #[test]
    fn the_stage_of_a_joined_one_is_that_of_its_longest_part() {
        let all = [placed(0, 0, 0, 3), placed(0, 1, 3, 8), placed(0, 2, 8, 9)];
        let thinned = thin(&all, 100, 1);
        assert_eq!(thinned.len(), 1);
        assert_eq!(thinned[0].span.stage, StageNo(1));
        assert_eq!((thinned[0].span.begin, thinned[0].span.end), (0, 9));
    }
}
