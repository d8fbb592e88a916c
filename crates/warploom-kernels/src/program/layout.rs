//! Where in one piece of memory each temporary value lies.

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

/// Values that are placed, by the blocks of steps in which they live: most live shortly, so a value
/// need not be compared with all.
struct Placed {
    blocks: Vec<Vec<usize>>,
}

impl Placed {
    /// Steps in a block.
    const BLOCK: usize = 32;

    fn none(lives: &[Lifetime]) -> Self {
        let end = lives.iter().map(|life| life.last).max().unwrap_or(0);
        Self {
            blocks: vec![Vec::new(); end / Self::BLOCK + 1],
        }
    }

    fn blocks(life: &Lifetime) -> std::ops::RangeInclusive<usize> {
        life.first / Self::BLOCK..=life.last / Self::BLOCK
    }

    fn add(&mut self, at: usize, life: &Lifetime) {
        for list in &mut self.blocks[Self::blocks(life)] {
            list.push(at);
        }
    }

    /// Those that live when `life` does, each once.
    fn meeting(&self, lives: &[Lifetime], life: &Lifetime) -> impl Iterator<Item = usize> {
        Self::blocks(life).flat_map(move |block| {
            let first = move |other: &Lifetime| {
                block == (other.first / Self::BLOCK).max(life.first / Self::BLOCK)
            };
            let list = self.blocks[block].iter().copied();
            list.filter(move |at| lives[*at].meets(life) && first(&lives[*at]))
        })
    }
}

/// Places values in this order, each as low as it fits.
fn place(lives: &[Lifetime], order: &[usize], align: u64) -> Layout {
    let mut layout = Layout {
        offsets: vec![0; lives.len()],
        bytes: 0,
    };
    let mut placed = Placed::none(lives);
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for at in order {
        let life = &lives[*at];
        taken.clear();
        let meeting = placed.meeting(lives, life);
        taken.extend(meeting.map(|other| (layout.offsets[other], lives[other].bytes)));
        taken.sort_unstable();
        let mut offset = 0;
        for (start, bytes) in &taken {
            if offset + life.bytes <= *start {
                break;
            }
            offset = offset.max((start + bytes).next_multiple_of(align));
        }
        layout.offsets[*at] = offset;
        layout.bytes = layout.bytes.max(offset + life.bytes);
        placed.add(*at, life);
    }
    layout
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            let mut placed = Placed::none(&lives);
            for (at, life) in lives.iter().enumerate() {
                let mut met: Vec<usize> = placed.meeting(&lives, life).collect();
                met.sort_unstable();
                let meets = |other: &usize| lives[*other].meets(life);
                prop_assert_eq!(met, (0..at).filter(meets).collect::<Vec<_>>());
                placed.add(at, life);
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
