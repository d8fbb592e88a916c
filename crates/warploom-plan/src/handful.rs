//! A handful of pieces: prices say little where there are few of them, so every way to deal them is
//! looked at that can still end sooner than the best one so far.

use crate::batch::Dealt;

/// The most pieces that are dealt like this.
const PIECES: usize = 12;
/// The most ways that are begun; where there are more, nothing is claimed.
const WAYS: usize = 200_000;

/// The way to deal `counts[k]` pieces of each kind `k` that ends first, if they are few enough to
/// know it.
pub(crate) fn best(costs: &[Vec<f64>], counts: &[usize]) -> Option<Dealt> {
    let count: usize = counts
        .iter()
        .fold(0, |sum, count| sum.saturating_add(*count));
    if count == 0 || count > PIECES {
        return None;
    }
    let least = |kind: usize| costs[kind].iter().copied().fold(f64::INFINITY, f64::min);
    let mut kinds: Vec<usize> = (0..costs.len()).filter(|kind| counts[*kind] > 0).collect();
    // Long pieces first: what comes late then changes little, and whole families are left out.
    kinds.sort_by(|a, b| least(*b).total_cmp(&least(*a)));
    let pieces = kinds.iter().flat_map(|kind| vec![*kind; counts[*kind]]);
    let pieces: Vec<usize> = pieces.collect();
    let mut left = vec![0.0; pieces.len() + 1];
    for (at, kind) in pieces.iter().enumerate().rev() {
        left[at] = left[at + 1] + least(*kind);
    }
    let cards = costs.first().map_or(0, Vec::len);
    let mut search = Search {
        costs,
        pieces: &pieces,
        left: &left,
        loads: vec![0.0; cards],
        places: Vec::new(),
        best: None,
        ways: 0,
    };
    if !search.go() {
        return None;
    }
    let (makespan, places) = search.best?;
    let mut counts = vec![vec![0; costs.len()]; cards];
    for (kind, card) in pieces.iter().zip(places) {
        counts[card][*kind] += 1;
    }
    Some(Dealt {
        counts,
        makespan,
        bound: makespan,
    })
}

struct Search<'a> {
    costs: &'a [Vec<f64>],
    /// The kind of each piece.
    pieces: &'a [usize],
    /// Seconds that each piece and those after it take at the least.
    left: &'a [f64],
    loads: Vec<f64>,
    /// The card of each piece that is dealt.
    places: Vec<usize>,
    best: Option<(f64, Vec<usize>)>,
    ways: usize,
}

impl Search<'_> {
    /// Deals the next piece in every way; false when there are too many.
    fn go(&mut self) -> bool {
        let at = self.places.len();
        let Some(kind) = self.pieces.get(at).copied() else {
            let end = self.loads.iter().copied().fold(0.0, f64::max);
            self.best = Some((end, self.places.clone()));
            return true;
        };
        // Pieces of one kind are alike, so it is enough to deal them card by card.
        let first = match at.checked_sub(1) {
            Some(before) if self.pieces[before] == kind => self.places[before],
            _ => 0,
        };
        let cost = |card: &usize| self.costs[kind][*card];
        let mut cards: Vec<usize> = (first..self.loads.len()).collect();
        cards.retain(|card| cost(card).is_finite());
        cards.sort_by(|a, b| {
            let (a, b) = (self.loads[*a] + cost(a), self.loads[*b] + cost(b));
            a.total_cmp(&b)
        });
        for card in cards {
            let before = self.loads[card];
            let end = before + self.costs[kind][card];
            let all: f64 = self.loads.iter().sum::<f64>() - before + end + self.left[at + 1];
            let hopeless = |best: f64| {
                let limit = best * (1.0 - 1e-9);
                end >= limit || all / self.loads.len() as f64 >= limit
            };
            if self.best.as_ref().is_some_and(|(best, _)| hopeless(*best)) {
                continue;
            }
            self.ways += 1;
            if self.ways > WAYS {
                return false;
            }
            self.loads[card] = end;
            self.places.push(card);
            let whole = self.go();
            self.places.pop();
            self.loads[card] = before;
            if !whole {
                return false;
            }
        }
        true
    }
}
