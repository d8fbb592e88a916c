//! What lies outside an image.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a neighbourhood sees beyond the edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The edge pixel, repeated (`a a a | a b c d | d d d`).
    #[default]
    Clamp,
    /// Zeros.
    Zero,
    /// The image mirrored at the edge, edge pixels included (`c b a | a b c d | d c b`).
    Reflect,
    /// The image repeated (`b c d | a b c d | a b c`).
    Wrap,
}

impl Boundary {
    /// Every rule.
    pub const ALL: [Self; 4] = [Self::Clamp, Self::Zero, Self::Reflect, Self::Wrap];

    /// Its name in pipelines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clamp => "clamp",
            Self::Zero => "zero",
            Self::Reflect => "reflect",
            Self::Wrap => "wrap",
        }
    }

    /// Where position `at` of an axis of `length` pixels is read; `None` where a zero is.
    ///
    /// Total for every position, however far outside, as long as the axis has a pixel.
    pub fn source(self, at: i64, length: i64) -> Option<i64> {
        if (0..length).contains(&at) {
            return Some(at);
        }
        match self {
            Self::Clamp => Some(at.clamp(0, length - 1)),
            Self::Zero => None,
            Self::Wrap => Some(at.rem_euclid(length)),
            Self::Reflect => {
                let turn = at.rem_euclid(2 * length);
                Some(turn.min(2 * length - 1 - turn))
            }
        }
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a text is not a [`Boundary`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a boundary rule; known are clamp, zero, reflect, wrap")]
pub struct BoundaryError(String);

impl FromStr for Boundary {
    type Err = BoundaryError;
    fn from_str(text: &str) -> Result<Self, BoundaryError> {
        let found = Self::ALL.into_iter().find(|rule| rule.name() == text);
        found.ok_or_else(|| BoundaryError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(Boundary::Clamp, [0, 0, 0, 0, 1, 2, 2, 2, 2])]
    #[case(Boundary::Reflect, [2, 1, 0, 0, 1, 2, 2, 1, 0])]
    #[case(Boundary::Wrap, [0, 1, 2, 0, 1, 2, 0, 1, 2])]
    fn positions_outside(#[case] rule: Boundary, #[case] sources: [i64; 9]) {
        for (at, source) in (-3..6).zip(sources) {
            assert_eq!(rule.source(at, 3), Some(source), "{rule} at {at}");
        }
        assert_eq!(rule.name().parse(), Ok(rule));
    }

    #[test]
    fn zero_has_nothing_outside() {
        assert_eq!(Boundary::Zero.source(-1, 3), None);
        assert_eq!(Boundary::Zero.source(2, 3), Some(2));
    }
}
