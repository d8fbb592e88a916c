//! Where in one piece of memory each temporary value lies.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// How long a value is needed, and how much room it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetime {
    /// Bytes.
    pub bytes: u64,
    /// The first step that touches it.
    pub first: usize,
    /// The last step that touches it.
    pub last: usize,
}

impl Lifetime {
    fn meets(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Offsets, and how much memory they need.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// Where each value starts.
    pub offsets: Vec<u64>,
    /// Bytes in all.
    pub bytes: u64,
}

/// Places values so that no two that live at the same step share a byte. Values are placed one
/// after the other, each as low as it fits; of several orders the one that needs least memory
/// counts. The value on top of the pile is then placed earlier, again and again, until hardly any
/// memory is wasted or patience ends.
pub fn lay_out(lives: &[Lifetime], align: u64) -> Layout {
    let least = bound(lives, align);
    let tight = tight(lives, align);
    let length = |at: usize| (lives[at].last - lives[at].first + 1) as u64;
    let orders: [&dyn Fn(usize) -> u64; 3] = [
        &|at| lives[at].bytes,
        &|at| lives[at].bytes.saturating_mul(length(at)),
        &length,
    ];
    let mut best: Option<(Layout, Vec<usize>)> = None;
    for rank in orders {
        let mut order: Vec<usize> = (0..lives.len()).collect();
        order.sort_by_key(|at| (std::cmp::Reverse(rank(*at)), *at));
        let layout = place(lives, &order, align);
        if best
            .as_ref()
            .is_none_or(|(best, _)| layout.bytes < best.bytes)
        {
            best = Some((layout, order));
        }
        // None can be smaller.
        if best.as_ref().is_some_and(|(best, _)| best.bytes == tight) {
            break;
        }
    }
    let Some((mut best, mut order)) = best else {
        return Layout::default();
    };
    // Placing takes time that grows with the square of the number of values; two percent more than
    // the least is near enough. More than five percent is worth looking much longer, where it is
    // cheap: one graph in ten thousand needs it.
    let patience = (1_000_000 / (lives.len() * lives.len()).max(1)).min(1000);
    let longer = if lives.len() <= 300 { 20 } else { 1 };
    let (enough, bearable) = (least + least / 50, least + least / 20);
    let mut dice = Dice(lives.len() as u64);
    for turn in 0..longer * patience {
        if best.bytes <= enough || (turn >= patience && best.bytes <= bearable) {
            break;
        }
        let end = |at: &usize| best.offsets[*at] + lives[*at].bytes;
        let on_top = |at: &usize| end(&order[*at]) == best.bytes;
        let Some(top) = (0..order.len()).rfind(on_top) else {
            break;
        };
        let mut other = order.clone();
        // The one on top comes earlier; now and then two others change places, to leave dead ends.
        let value = other.remove(top);
        other.insert(dice.below(top + 1), value);
        if dice.below(2) == 0 {
            other.swap(dice.below(lives.len()), dice.below(lives.len()));
        }
        let layout = place(lives, &other, align);
        if layout.bytes <= best.bytes {
            (best, order) = (layout, other);
        }
    }
    best
}

/// Numbers that look random and are the same every time, so that plans are.
struct Dice(u64);

impl Dice {
    /// A number below `limit`, which is above 0.
    fn below(&mut self, limit: usize) -> usize {
        const FACTOR: u64 = 6_364_136_223_846_793_005;
        self.0 = self
            .0
            .wrapping_mul(FACTOR)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit
    }
}

/// The least that any layout needs: the most bytes that live at one step.
fn bound(lives: &[Lifetime], align: u64) -> u64 {
    let end = lives.iter().map(|life| life.last + 1).max().unwrap_or(0);
    // Bytes come and go; the sum in between is what lives.
    let (mut come, mut go) = (vec![0_u64; end + 1], vec![0_u64; end + 1]);
    for life in lives {
        let bytes = life.bytes.next_multiple_of(align);
        come[life.first] += bytes;
        go[life.last + 1] += bytes;
    }
    let (mut live, mut most) = (0, 0);
    for (come, go) in come.into_iter().zip(go) {
        live = live + come - go;
        most = live.max(most);
    }
    // Only the topmost need not fill its last unit.
    most.saturating_sub(align - 1)
}

/// As [`bound`], to the byte: of what lives at a step, the topmost may be the one that fills least of its
/// last unit. Takes longer.
fn tight(lives: &[Lifetime], align: u64) -> u64 {
    let end = lives.iter().map(|life| life.last + 1).max().unwrap_or(0);
    let mut come: Vec<Vec<usize>> = vec![Vec::new(); end];
    let mut go: Vec<Vec<usize>> = vec![Vec::new(); end];
    for (at, life) in lives.iter().enumerate() {
        come[life.first].push(at);
        go[life.last].push(at);
    }
    let rounded = |at: usize| lives[at].bytes.next_multiple_of(align);
    let mut spare: BTreeSet<(u64, usize)> = BTreeSet::new();
    let (mut live, mut most) = (0, 0);
    for (come, go) in come.into_iter().zip(go) {
        for at in come {
            live += rounded(at);
            spare.insert((rounded(at) - lives[at].bytes, at));
        }
        let least = live - spare.last().map_or(0, |(spare, _)| *spare);
        most = least.max(most);
        for at in go {
            live -= rounded(at);
            spare.remove(&(rounded(at) - lives[at].bytes, at));
        }
    }
    most
}

/// Values that are placed, from the lowest up; and by the blocks of steps in which they live, because most
/// live shortly and then need not be compared with all.
struct Placed<'l> {
    lives: &'l [Lifetime],
    /// Offset and number.
    sorted: Vec<(u64, usize)>,
    blocks: Vec<Vec<(u64, usize)>>,
}

impl<'l> Placed<'l> {
    /// Steps in a block.
    const BLOCK: usize = 32;

    fn none(lives: &'l [Lifetime]) -> Self {
        let end = lives.iter().map(|life| life.last).max().unwrap_or(0);
        Self {
            lives,
            sorted: Vec::with_capacity(lives.len()),
            blocks: vec![Vec::new(); end / Self::BLOCK + 1],
        }
    }

    fn blocks(life: &Lifetime) -> RangeInclusive<usize> {
        life.first / Self::BLOCK..=life.last / Self::BLOCK
    }

    fn add(&mut self, at: usize, offset: u64) {
        let here = self.sorted.partition_point(|known| *known < (offset, at));
        self.sorted.insert(here, (offset, at));
        for list in &mut self.blocks[Self::blocks(&self.lives[at])] {
            list.push((offset, at));
        }
    }

    /// The lowest room for a value, between those that live when it does.
    fn lowest(&self, life: &Lifetime, align: u64) -> u64 {
        let blocks = &self.blocks[Self::blocks(life)];
        let near: usize = blocks.iter().map(Vec::len).sum();
        // Sorting costs more than looking at some more that are sorted.
        if near * 8 < self.sorted.len() {
            let mut near: Vec<(u64, usize)> = blocks.concat();
            near.sort_unstable();
            self.room(&near, life, align)
        } else {
            self.room(&self.sorted, life, align)
        }
    }

    fn room(&self, sorted: &[(u64, usize)], life: &Lifetime, align: u64) -> u64 {
        let mut offset = 0;
        for (start, other) in sorted {
            let other = &self.lives[*other];
            if !other.meets(life) {
                continue;
            }
            if offset + life.bytes <= *start {
                break;
            }
            offset = offset.max((start + other.bytes).next_multiple_of(align));
        }
        offset
    }
}

/// Places values in this order, each as low as it fits.
fn place(lives: &[Lifetime], order: &[usize], align: u64) -> Layout {
    let mut layout = Layout {
        offsets: vec![0; lives.len()],
        bytes: 0,
    };
    let mut placed = Placed::none(lives);
    for at in order {
        let life = &lives[*at];
        let offset = placed.lowest(life, align);
        layout.offsets[*at] = offset;
        layout.bytes = layout.bytes.max(offset + life.bytes);
        placed.add(*at, offset);
    }
    layout
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What lives at a step, but for what the topmost need not fill.
    fn least_at(lives: &[Lifetime], step: usize) -> u64 {
        let here = lives
            .iter()
            .filter(|life| life.first <= step && step <= life.last);
        let rounded = |bytes: u64| bytes.next_multiple_of(256);
        let spare = here
            .clone()
            .map(|life| rounded(life.bytes) - life.bytes)
            .max();
        let sum: u64 = here.map(|life| rounded(life.bytes)).sum();
        sum - spare.unwrap_or(0)
    }

    proptest! {
        /// The least is what lives at some step, step by step.
        #[test]
        fn the_bound_is_the_most_that_lives_at_once(
            lives in proptest::collection::vec((1..5000_u64, 0..90_usize, 0..70_usize), 1..30)
        ) {
            let lives: Vec<Lifetime> = lives
                .into_iter()
                .map(|(bytes, first, length)| Lifetime { bytes, first, last: first + length })
                .collect();
            let live = |step: usize| -> u64 {
                let here = lives.iter().filter(|life| life.first <= step && step <= life.last);
                here.map(|life| life.bytes.next_multiple_of(256)).sum()
            };
            let most = (0..200).map(live).max().unwrap_or(0);
            prop_assert_eq!(bound(&lives, 256), most - 255);
            prop_assert_eq!(tight(&lives, 256), (0..200).map(|step| least_at(&lives, step)).max().unwrap_or(0));
            // Each as low as it fits, found the plain way.
            let order: Vec<usize> = (0..lives.len()).rev().collect();
            let mut offsets: Vec<(u64, usize)> = Vec::new();
            for at in &order {
                let life = &lives[*at];
                let mut taken: Vec<(u64, u64)> = offsets
                    .iter()
                    .filter(|(_, other)| lives[*other].meets(life))
                    .map(|(offset, other)| (*offset, lives[*other].bytes))
                    .collect();
                taken.sort_unstable();
                let mut offset = 0;
                for (start, bytes) in taken {
                    if offset + life.bytes <= start {
                        break;
                    }
                    offset = offset.max((start + bytes).next_multiple_of(256));
                }
                offsets.push((offset, *at));
            }
            let layout = place(&lives, &order, 256);
            for (offset, at) in offsets {
                prop_assert_eq!(layout.offsets[at], offset);
            }
        }

        #[test]
        fn no_two_living_values_share_a_byte(
            lives in proptest::collection::vec((1..5000_u64, 0..20_usize, 0..6_usize), 0..30)
        ) {
            let lives: Vec<Lifetime> = lives
                .into_iter()
                .map(|(bytes, first, length)| Lifetime { bytes, first, last: first + length })
                .collect();
            let layout = lay_out(&lives, 256);
            for a in 0..lives.len() {
                prop_assert_eq!(layout.offsets[a] % 256, 0);
                prop_assert!(layout.offsets[a] + lives[a].bytes <= layout.bytes);
                for b in 0..a {
                    let apart = layout.offsets[a] + lives[a].bytes <= layout.offsets[b]
                        || layout.offsets[b] + lives[b].bytes <= layout.offsets[a];
                    prop_assert!(apart || !lives[a].meets(&lives[b]));
                }
            }
        }
    }
}
