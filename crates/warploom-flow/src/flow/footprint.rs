//! Neighbourhoods.

/// How far a neighbourhood reaches along z, y, x.
pub type Reach = [u32; 3];

/// A neighbourhood.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Footprint {
    /// Everything within the reach along each axis.
    Box(Reach),
    /// What satisfies `sum((d/r)^2) <= 1`; axes of reach 0 do not extend. Radii need not be whole.
    Ball([f64; 3]),
}

impl Footprint {
    /// How far it reaches.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "radii are checked to be small"
    )]
    pub fn reach(&self) -> Reach {
        match self {
            Self::Box(reach) => *reach,
            Self::Ball(radii) => radii.map(|r| r.floor() as u32),
        }
    }

    /// Every offset in z, y, x, in C order.
    pub fn offsets(&self) -> Vec<[i32; 3]> {
        let reach = self.reach().map(u32::cast_signed);
        let mut offsets = Vec::with_capacity(self.count());
        for z in -reach[0]..=reach[0] {
            for y in -reach[1]..=reach[1] {
                for x in -reach[2]..=reach[2] {
                    let offset = [z, y, x];
                    if self.contains(offset) {
                        offsets.push(offset);
                    }
                }
            }
        }
        offsets
    }

    /// How many offsets it has. A neighbourhood of a stack can have millions, which nobody should list to
    /// count them.
    #[expect(
        clippy::cast_sign_loss,
        reason = "a row has as many as it reaches, and is counted from the middle"
    )]
    pub fn count(&self) -> usize {
        let reach = self.reach();
        let [nz, ny, nx] = reach.map(|reach| 2 * reach as usize + 1);
        if matches!(self, Self::Box(_)) {
            return nz * ny * nx;
        }
        let [rz, ry, rx] = reach.map(u32::cast_signed);
        let row = |z: i32, y: i32| {
            // What a row has goes from its middle outwards.
            let (mut low, mut high) = (-1, rx);
            while low < high {
                let x = low + (high - low + 1) / 2;
                if self.contains([z, y, x]) {
                    low = x;
                } else {
                    high = x - 1;
                }
            }
            (2 * low + 1).max(0) as usize
        };
        let rows = (-rz..=rz).flat_map(|z| (-ry..=ry).map(move |y| (z, y)));
        rows.map(|(z, y)| row(z, y)).sum()
    }

    fn contains(&self, offset: [i32; 3]) -> bool {
        match self {
            Self::Box(_) => true,
            Self::Ball(radii) => {
                let terms = offset.iter().zip(radii);
                let sum: f64 = terms
                    .filter(|(_, r)| **r >= 1.0)
                    .map(|(d, r)| (f64::from(*d) / r).powi(2))
                    .sum();
                sum <= 1.0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn offsets_are_counted_as_they_are_listed(
            reach in [0_u32..5, 0_u32..8, 0_u32..20],
            radii in [0.0_f64..5.0, 0.0_f64..8.0, 0.0_f64..20.0],
        ) {
            for footprint in [Footprint::Box(reach), Footprint::Ball(radii), Footprint::Ball(reach.map(f64::from))] {
                prop_assert_eq!(footprint.count(), footprint.offsets().len(), "{:?}", footprint);
            }
        }
    }

    /// A list of them would take 128 MB.
    #[test]
    fn large_neighbourhoods_are_counted() {
        assert_eq!(Footprint::Box([87; 3]).count(), 175_usize.pow(3));
        let ball = Footprint::Ball([200.0; 3]).count() as f64;
        let volume = 4.0 / 3.0 * std::f64::consts::PI * 200.0_f64.powi(3);
        assert!((ball / volume - 1.0).abs() < 0.001, "{ball} of {volume}");
    }
}
