//! Weighted sums along one axis.

use crate::Boundary;

/// Weights of a one-dimensional neighbourhood.
#[derive(Clone, PartialEq, Debug)]
pub enum Weights {
    /// `w[0]` at the centre, `w[k]` at distance k on both sides:
    /// `acc = w0*a0; acc = fma(w[k], a[-k] + a[k], acc)` for k = 1, 2, …
    Even(Vec<f64>),
    /// `w[k-1]` at distance k to the right, its negative to the left:
    /// `acc = w[0]*(a[1] - a[-1]); acc = fma(w[k-1], a[k] - a[-k], acc)` for k = 2, 3, …
    Odd(Vec<f64>),
    /// From the left to the right, an odd number of them:
    /// `acc = w[0]*a[-r]; acc = fma(w[k], a[k-r], acc)`.
    Any(Vec<f64>),
}

impl Weights {
    /// How far the neighbourhood reaches.
    pub fn radius(&self) -> usize {
        match self {
            Self::Even(w) => w.len() - 1,
            Self::Odd(w) => w.len(),
            Self::Any(w) => w.len() / 2,
        }
    }

    /// The numbers, as they are handed to a kernel.
    pub fn values(&self) -> &[f64] {
        match self {
            Self::Even(w) | Self::Odd(w) | Self::Any(w) => w,
        }
    }
}

/// A weighted sum along one axis, computed in `f32`, or in `f64` for an `f64` image.
#[derive(Clone, PartialEq, Debug)]
pub struct Taps {
    /// Along z, y or x (0, 1, 2).
    pub axis: u8,
    /// The weights; rounded once to the type of the computation.
    pub weights: Weights,
    /// What is seen outside.
    pub boundary: Boundary,
}
