//! Correlation along one axis.

pub(crate) mod across;
pub(crate) mod column;
pub(crate) mod sums;

use super::depth::DepthEngine;
use super::image::{Image, ImageMut};
use super::lanes::Float;
use super::rows::{Axis, RowGraph};
use warploom_flow::Boundary;

/// Weights of a correlation along one axis, and the order in which they are summed.
///
/// The order is part of the definition: every backend keeps it, so all give the same bits.
#[derive(Clone, PartialEq, Debug)]
pub enum Taps<T> {
    /// `w[0]*a[0]`, then `fma(w[k], a[-k] + a[+k], sum)` for k = 1, 2, ... Never empty.
    Symmetric(Vec<T>),
    /// `w[0]*(a[+1] - a[-1])`, then `fma(w[k-1], a[+k] - a[-k], sum)` for k = 2, 3, ... Never empty.
    Antisymmetric(Vec<T>),
    /// `w[0]*a[-before]`, then `fma(w[k], a[k - before], sum)` for k = 1, 2, ... Never empty.
    General {
        /// The weights, that of the leftmost neighbour first.
        weights: Vec<T>,
        /// Neighbours to the left.
        before: usize,
    },
}

impl<T: Float> Taps<T> {
    /// Weights of the neighbours `-radius ..= radius`, symmetric or antisymmetric where they are.
    ///
    /// # Panics
    /// When their number is even.
    #[expect(
        clippy::float_cmp,
        reason = "weights are symmetric when they are equal, not nearly so"
    )]
    pub fn centred(weights: &[f64]) -> Self {
        assert!(
            weights.len() % 2 == 1,
            "{} weights have no centre",
            weights.len()
        );
        let radius = weights.len() / 2;
        let right = &weights[radius..];
        let left = weights[..=radius].iter().rev();
        let round = |weights: &[f64]| weights.iter().map(|&w| T::from_f64(w)).collect();
        if right.iter().zip(left.clone()).all(|(r, l)| r == l) {
            Self::Symmetric(round(right))
        } else if right.iter().zip(left).all(|(&r, &l)| r == -l) {
            Self::Antisymmetric(round(&right[1..]))
        } else {
            Self::General {
                weights: round(weights),
                before: radius,
            }
        }
    }

    /// Neighbours that come before the pixel.
    pub fn before(&self) -> usize {
        match self {
            Self::Symmetric(weights) => weights.len() - 1,
            Self::Antisymmetric(weights) => weights.len(),
            Self::General { before, .. } => *before,
        }
    }

    /// Neighbours that come after it.
    pub fn after(&self) -> usize {
        match self {
            Self::General { weights, before } => weights.len() - 1 - before,
            _ => self.before(),
        }
    }
}

impl Taps<f64> {
    /// The same weights, each rounded once.
    pub fn rounded(&self) -> Taps<f32> {
        let round = |weights: &[f64]| weights.iter().map(|&w| w as f32).collect();
        match self {
            Self::Symmetric(weights) => Taps::Symmetric(round(weights)),
            Self::Antisymmetric(weights) => Taps::Antisymmetric(round(weights)),
            Self::General { weights, before } => Taps::General {
                weights: round(weights),
                before: *before,
            },
        }
    }
}

/// A correlation of a whole image along `axis` (0, 1, 2 for z, y, x): computed in `f64` when `src`
/// is, in `f32` otherwise, then cast to what `dst` holds.
///
/// For one pass alone; chains are better described by a [`RowGraph`].
///
/// # Panics
/// When the extents differ or the axis is none.
pub fn correlate(
    src: Image<'_>,
    dst: ImageMut<'_>,
    axis: usize,
    taps: &Taps<f64>,
    boundary: Boundary,
) {
    let axis = match axis {
        0 => return DepthEngine::taps(src.dtype(), taps, boundary).run(&src, dst),
        1 => Axis::Y,
        2 => Axis::X,
        other => panic!("an image has no axis {other}"),
    };
    let mut graph = RowGraph::new();
    let value = graph.input(src.dtype());
    let value = graph.taps(value, axis, taps, boundary);
    graph.output(value, dst.dtype());
    graph.finish().run(&[src], vec![dst]);
}
