//! Bells: weights as scipy computes them, and blurs along every axis.

use crate::Boundary;
use crate::flow::{Flow, ValueId, Weights};

/// How many standard deviations a bell reaches, unless somebody says otherwise.
pub(super) const TRUNCATE: f64 = 4.0;

/// How far a bell reaches, as scipy rounds it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sigma and the number of them are limited"
)]
fn reach(sigma: f64, truncate: f64) -> usize {
    (truncate * sigma + 0.5) as usize
}

/// Half a bell, from the centre outwards: the whole sums to 1.
pub(super) fn bell(sigma: f64, truncate: f64) -> Vec<f64> {
    if sigma == 0.0 {
        return vec![1.0];
    }
    let factor = -0.5 / (sigma * sigma);
    let half: Vec<f64> = (0..=reach(sigma, truncate))
        .map(|k| (factor * (k * k) as f64).exp())
        .collect();
    let sum = half[0] + 2.0 * half[1..].iter().sum::<f64>();
    half.iter().map(|weight| weight / sum).collect()
}

/// Half the second derivative of a bell, from the centre outwards; as in scipy it is sampled, and
/// so does not sum to 0.
pub(super) fn bell_bend(sigma: f64) -> Vec<f64> {
    let square = sigma * sigma;
    let bent = |(k, weight): (usize, f64)| ((k * k) as f64 / square - 1.0) / square * weight;
    bell(sigma, TRUNCATE)
        .into_iter()
        .enumerate()
        .map(bent)
        .collect()
}

/// A bell along z, y, x in turn. Axes with one pixel, and those where the bell is a single pixel,
/// are left as they are: an image may come back as it was given.
pub fn gaussian(flow: &mut Flow, image: ValueId, sigma: [f64; 3], boundary: Boundary) -> ValueId {
    cut_gaussian(flow, image, sigma, TRUNCATE, boundary)
}

/// As [`gaussian`], with bells cut off at this many standard deviations.
pub fn cut_gaussian(
    flow: &mut Flow,
    image: ValueId,
    sigma: [f64; 3],
    truncate: f64,
    boundary: Boundary,
) -> ValueId {
    let mut blurred = image;
    for axis in flow.axes(image) {
        let weights = bell(sigma[usize::from(axis)], truncate);
        if weights.len() > 1 {
            blurred = flow.taps(blurred, axis, Weights::Even(weights), boundary);
        }
    }
    blurred
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_scipy() {
        // scipy.ndimage._filters._gaussian_kernel1d(1.0, 0, 4)[4:]
        let bell = bell(1.0, TRUNCATE);
        let scipy = [
            0.398_943_469_356_098_1,
            0.241_971_445_656_601,
            0.053_991_127_420_704_41,
            0.004_431_861_620_031_267,
            0.000_133_830_624_614_741_8,
        ];
        assert_eq!(bell.len(), scipy.len());
        for (ours, theirs) in bell.iter().zip(scipy) {
            assert!((ours - theirs).abs() < 1e-15, "{ours} {theirs}");
        }
        assert!((bell_bend(1.0)[2] - 3.0 * scipy[2]).abs() < 1e-15);
        assert_eq!(super::bell(0.12, TRUNCATE), [1.0]);
        assert_eq!(super::bell(2.0, 3.0).len(), 7);
    }
}
