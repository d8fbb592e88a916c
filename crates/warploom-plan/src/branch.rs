//! Work whose pieces are large: prices alone leave a gap between what is possible and what is dealt.
//!
//! The longest pieces are put on one card after the other, and for each such beginning prices are
//! found for the rest. The most promising beginning is looked at next, until what is dealt is near
//! enough to the least that any open beginning allows, which is then the bound.

use crate::batch::{Dealt, Market, complete};

/// Nearer to the bound than this is not looked for.
const NEAR: f64 = 1.05;
/// Where there are more prices of pieces on cards than these, nothing is tried.
const ENTRIES: usize = 256;
/// The most beginnings that are looked at; fewer where there are many prices.
const MOST: usize = 400;
/// What is further from the bound than this is worth as many times as many beginnings.
const FAR: f64 = 1.10;
const PATIENCE: usize = 16;
/// Rounds in which the prices of a beginning become those of one with a piece more.
const ROUNDS: usize = 150;

/// Some pieces are dealt already.
struct Beginning {
    dealt: Vec<Vec<usize>>,
    loads: Vec<f64>,
    left: Vec<usize>,
    /// The kind that was dealt last, and to which card.
    last: Option<(usize, usize)>,
    market: Market,
    /// No way to go on ends sooner.
    bound: f64,
}

impl Beginning {
    fn new(
        costs: &[Vec<f64>],
        (dealt, loads, left): (Vec<Vec<usize>>, Vec<f64>, Vec<usize>),
        before: Option<(&Self, (usize, usize))>,
    ) -> Self {
        let market = match before {
            None => Market::of(costs, &left),
            Some((before, _)) => before.market.next(costs, &left, &loads, ROUNDS),
        };
        let full = loads.iter().copied().fold(market.value, f64::max);
        // Each kind by itself, of which cards do whole pieces only.
        let kinds = (0..costs.len()).filter(|kind| left[*kind] > 0);
        let ends = kinds.map(|kind| whole_pieces(&costs[kind], &loads, left[kind]));
        let bound = ends.filter(|end| end.is_finite()).fold(full, f64::max);
        Self {
            bound: before.map_or(bound, |(before, _)| bound.max(before.bound)),
            last: before.map(|(_, last)| last),
            dealt,
            loads,
            left,
            market,
        }
    }

    /// The kind of which a piece is dealt next: the one with the longest pieces. Pieces of one kind are
    /// alike, so that they go to one card after the other.
    fn next(&self, costs: &[Vec<f64>]) -> Option<(usize, usize)> {
        let least = |kind: usize| {
            let costs = costs[kind].iter().copied();
            costs
                .filter(|cost| cost.is_finite())
                .fold(
                    0.0,
                    |least: f64, cost| {
                        if least == 0.0 { cost } else { least.min(cost) }
                    },
                )
        };
        let kinds = (0..costs.len()).filter(|kind| self.left[*kind] > 0);
        let kind = kinds.max_by(|a, b| least(*a).total_cmp(&least(*b)).then(b.cmp(a)))?;
        let first = self.last.filter(|(last, _)| *last == kind);
        Some((kind, first.map_or(0, |(_, card)| card)))
    }
}

/// When cards that have these loads can have done so many pieces of one kind, at the earliest.
fn whole_pieces(costs: &[f64], loads: &[f64], count: usize) -> f64 {
    let done = |end: f64| -> f64 {
        let cards = costs.iter().zip(loads).filter(|(cost, _)| cost.is_finite());
        let each = cards.map(|(cost, load)| ((end - load).max(0.0) / cost + 1e-9).floor());
        each.sum()
    };
    let ends = costs.iter().zip(loads);
    let ends = ends.map(|(cost, load)| load + cost * count as f64);
    let (mut early, mut late) = (0.0, ends.fold(f64::INFINITY, f64::min));
    if !late.is_finite() {
        return late;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(early, late);
        if done(middle) >= count as f64 {
            late = middle;
        } else {
            early = middle;
        }
    }
    early
}

/// Deals all pieces, and says what no way to deal them can beat.
pub(crate) fn deal(costs: &[Vec<f64>], counts: &[usize]) -> Dealt {
    let cards = costs.first().map_or(0, Vec::len);
    let none = vec![vec![0; costs.len()]; cards];
    let start = (none, vec![0.0; cards], counts.to_vec());
    let root = Beginning::new(costs, start, None);
    let all = |beginning: &Beginning| {
        let begun = (beginning.dealt.clone(), beginning.loads.clone());
        complete(costs, &beginning.left, &beginning.market, begun)
    };
    let mut best = all(&root);
    let entries = (costs.len() * cards).max(1);
    let budget = if entries <= ENTRIES {
        (MOST * 21 / entries).clamp(60, MOST)
    } else {
        0
    };
    let mut spent = 0;
    let mut open = vec![root];
    loop {
        let places = 0..open.len();
        let next = places.min_by(|a, b| open[*a].bound.total_cmp(&open[*b].bound));
        // Where nothing is open, every other way was seen to end no sooner.
        let bound = next.map_or(best.makespan, |at| open[at].bound.min(best.makespan));
        best.bound = bound;
        let is_far = best.makespan > bound * FAR;
        let budget = if is_far { PATIENCE * budget } else { budget };
        let Some(at) = next.filter(|_| best.makespan > bound * NEAR && spent < budget) else {
            return best;
        };
        let beginning = open.swap_remove(at);
        let Some((kind, first)) = beginning.next(costs) else {
            // All is dealt, and it ends when the best does or later.
            continue;
        };
        for card in first..cards {
            let end = beginning.loads[card] + costs[kind][card];
            if end >= best.makespan * (1.0 - 1e-9) {
                continue;
            }
            spent += 1;
            let (mut dealt, mut loads) = (beginning.dealt.clone(), beginning.loads.clone());
            let mut left = beginning.left.clone();
            dealt[card][kind] += 1;
            loads[card] = end;
            left[kind] -= 1;
            let before = Some((&beginning, (kind, card)));
            let child = Beginning::new(costs, (dealt, loads, left), before);
            if child.bound >= best.makespan * (1.0 - 1e-9) {
                continue;
            }
            let found = all(&child);
            if found.makespan < best.makespan {
                best = found;
            }
            open.push(child);
        }
    }
}
