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

/// Places values so that no two that live at the same step share a byte: large ones first, each
/// as low as it fits.
pub fn lay_out(lives: &[Lifetime], align: u64) -> Layout {
    let mut order: Vec<usize> = (0..lives.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(lives[*at].bytes), *at));
    let mut layout = Layout {
        offsets: vec![0; lives.len()],
        bytes: 0,
    };
    let mut placed: Vec<usize> = Vec::new();
    for at in order {
        let life = &lives[at];
        let mut taken: Vec<(u64, u64)> = placed
            .iter()
            .filter(|other| lives[**other].meets(life))
            .map(|other| (layout.offsets[*other], lives[*other].bytes))
            .collect();
        taken.sort_unstable();
        let mut offset = 0;
        for (start, bytes) in taken {
            if offset + life.bytes <= start {
                break;
            }
            offset = offset.max((start + bytes).next_multiple_of(align));
        }
        layout.offsets[at] = offset;
        layout.bytes = layout.bytes.max(offset + life.bytes);
        placed.push(at);
    }
    layout
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
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
