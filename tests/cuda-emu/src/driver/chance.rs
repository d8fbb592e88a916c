//! Numbers that look like chance and follow from the seed.

/// A number that depends on all of `parts`.
pub(crate) fn number(parts: &[u64]) -> u64 {
    parts.iter().fold(0x6a09_e667_f3bc_c908, |state, part| {
        mix(state
            .wrapping_add(*part)
            .wrapping_add(0x9e37_79b9_7f4a_7c15))
    })
}

/// The finaliser of `SplitMix64`.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn every_part_matters_and_bits_are_even() {
        assert_ne!(number(&[1, 2]), number(&[2, 1]));
        assert_ne!(number(&[0]), number(&[0, 0]));
        let ones: u32 = (0..1000).map(|n| number(&[7, n]).count_ones()).sum();
        assert!((30_000..34_000).contains(&ones), "{ones}");
    }
}
