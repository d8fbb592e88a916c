//! Orders that depend on a seed, so that nothing can rely on any one of them.

/// A small generator of numbers, known as `SplitMix64`.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

fn mix(mut value: u64) -> u64 {
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

impl Random {
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        Self(mix(seed) ^ mix(stream ^ 0x5851_f42d_4c95_7f2d))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`, which is not zero.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        let wide = u128::from(self.next()) * limit as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// All numbers below `count`, each once, in an order that the seed decides, without a list of them:
/// a grid may have more blocks than there is room for.
#[derive(Debug, Clone)]
pub(super) struct Permutation {
    count: u64,
    /// Half of the bits that numbers below `count` have.
    half: u32,
    keys: [u64; 4],
}

impl Permutation {
    pub(super) fn new(seed: u64, count: u64) -> Self {
        let bits = 64 - count.saturating_sub(1).leading_zeros();
        let mut random = Random::new(seed, count);
        Self {
            count,
            half: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| random.next()),
        }
    }

    /// The number at place `index`.
    pub(super) fn at(&self, index: u64) -> u64 {
        // A Feistel network permutes the numbers of an even number of bits; those that are too large
        // are sent through again until they fit, which keeps it a permutation.
        let mask = (1 << self.half) - 1;
        let mut value = index;
        loop {
            let (mut left, mut right) = (value >> self.half, value & mask);
            for key in self.keys {
                (left, right) = (right, left ^ mix(right ^ key) & mask);
            }
            value = left << self.half | right;
            if value < self.count {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_contain_each_number_once() {
        for count in [1, 2, 3, 17, 64, 1000] {
            let order = Permutation::new(7, count);
            let mut seen: Vec<u64> = (0..count).map(|index| order.at(index)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..count), "{count}");
        }
    }

    #[test]
    fn seeds_differ() {
        let order = |seed| (0..100).map(move |i| Permutation::new(seed, 100).at(i));
        assert!(order(1).ne(order(2)));
        assert!(order(1).ne(0..100));
        assert!(order(1).eq(order(1)));
    }
}
