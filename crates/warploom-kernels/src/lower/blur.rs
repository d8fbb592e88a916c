//! Bells: weights as scipy computes them, and blurs along every axis.

use crate::Boundary;
use crate::flow::{Flow, ValueId, Weights};

/// How far a bell reaches: four standard deviations, as scipy rounds them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sigma is limited to 10000"
)]
fn reach(sigma: f64) -> usize {
    (4.0 * sigma + 0.5) as usize
}

/// Half a bell, from the centre outwards: the whole sums to 1.
pub(super) fn bell(sigma: f64) -> Vec<f64> {
    if sigma == 0.0 {
        return vec![1.0];
    }
    let factor = -0.5 / (sigma * sigma);
    let half: Vec<f64> = (0..=reach(sigma))
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
    bell(sigma).into_iter().enumerate().map(bent).collect()
}

/// A bell along z, y, x in turn. Axes with one pixel, and those where the bell is a single pixel,
/// are left as they are: an image may come back as it was given.
pub fn gaussian(flow: &mut Flow, image: ValueId, sigma: [f64; 3], boundary: Boundary) -> ValueId {
    let mut blurred = image;
    for axis in flow.axes(image) {
        let weights = bell(sigma[usize::from(axis)]);
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
        let bell = bell(1.0);
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
        assert_eq!(super::bell(0.12), [1.0]);
    }
}
