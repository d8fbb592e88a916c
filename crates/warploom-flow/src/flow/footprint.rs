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
        let mut offsets = Vec::new();
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
