//! Thresholds by entropy and correlation.

use super::classes::Classes;
use super::{Bins, first_greatest, running, running_back};
use crate::share::{pieces, pixels};
use crate::totals::{sum_of, within};
use crate::{Pixel, View};

/// Steps after which an iteration goes round in circles.
const STEPS: usize = 1000;

pub(super) fn yen(bins: &Bins) -> f64 {
    let total = bins.counts.iter().sum::<u64>() as f32;
    let share: Vec<f32> = bins.weights().map(|weight| weight / total).collect();
    let below = running(share.iter().copied());
    let below_squares = running(share.iter().map(|&p| p * p));
    let above_squares = running_back(share.iter().map(|&p| p * p));
    let criterion = (0..share.len() - 1).map(|cut| {
        let inside = below[cut] * (1.0 - below[cut]);
        let value = 1.0 / (below_squares[cut] * above_squares[cut + 1]) * (inside * inside);
        // Rounded once, as a logarithm in f32 is: what it makes equal counts as equal.
        f64::from(f64::from(value).ln() as f32)
    });
    bins.middle(first_greatest(criterion))
}

/// Iterates `t = (back - fore) / (ln back - ln fore)`, with the means of both classes, from `start`
/// on until it moves by `tolerance` or less; `means` answers for a threshold. Answers with the last
/// one, and by how much each step moved it: none of them small when it would go on for ever.
fn iterate(
    start: f64,
    tolerance: f64,
    mut means: impl FnMut(f64) -> (f64, f64),
) -> (f64, Vec<f64>) {
    let (mut now, mut next) = (-2.0 * tolerance, start);
    let mut moves = Vec::new();
    while (next - now).abs() > tolerance && moves.len() < STEPS {
        now = next;
        let (back, fore) = means(now);
        if back == 0.0 {
            break;
        }
        next = (back - fore) / (back.ln() - fore.ln());
        moves.push((next - now).abs());
    }
    (next, moves)
}

pub(super) fn li<T: Pixel>(image: View<'_, T>, low: T, high: T) -> f64 {
    if low == high {
        return low.to_f64();
    }
    if T::IS_FLOAT {
        return li_of_floats(image, low.to_f64(), high.to_f64());
    }
    let least = low.to_f64();
    let bins = Bins::new(image, low, high, 1 << 16);
    let counts = running(bins.weights().map(f64::from));
    let middle = |bin: usize| bins.middle(bin) - least;
    let weighted = bins.weights().enumerate();
    let moments = running(weighted.map(|(bin, weight)| f64::from(weight) * middle(bin)));
    let last = counts.len() - 1;
    let mean = sum_of(image, |pixel| pixel.to_f64() - least) / pixels(image) as f64;
    let means = |t: f64| {
        // The last bin that is not above; the first one is at zero and never is.
        let mut cut = (t.max(0.0) as usize).min(last);
        if bins.edges.is_some() {
            cut = (0..=last).rfind(|&bin| middle(bin) <= t).unwrap_or(0);
        }
        let fore = (moments[last] - moments[cut]) / (counts[last] - counts[cut]);
        (moments[cut] / counts[cut], fore)
    };
    iterate(mean, 0.5, means).0 + least
}

/// Floats are not binned: steps look at the pixels again. `low` and `high` are the extremes,
/// which may be infinite.
fn li_of_floats<T: Pixel>(image: View<'_, T>, low: f64, high: f64) -> f64 {
    let (least, most) = if low.is_finite() && high.is_finite() {
        (low, high)
    } else {
        finite_extremes(image)
    };
    if least >= most {
        // Nothing finite beside both infinities has the threshold zero.
        return if least == most { least } else { 0.0 };
    }
    let (sum, count) = within(image, least, f64::NEG_INFINITY, f64::MAX);
    let mut classes = Classes::new(image, least);
    let count = count as f64;
    // The reference stops at moves of half the least gap between two values. A gap among some
    // values is an upper bound of that; if no move was as small, all values need not be sorted.
    let (found, moves) = iterate(sum / count, 0.0, |t| classes.means(t));
    let bound = least_gap(image, 1 << 14) / 2.0;
    let settled = moves.len() < STEPS;
    if settled && moves.iter().all(|&step| step == 0.0 || step > bound) {
        return found + least;
    }
    let tolerance = least_gap(image, usize::MAX) / 2.0;
    iterate(sum / count, tolerance, |t| classes.means(t)).0 + least
}

/// Least and greatest of what is finite.
fn finite_extremes<T: Pixel>(image: View<'_, T>) -> (f64, f64) {
    let mut found = (f64::INFINITY, f64::NEG_INFINITY);
    pieces(image, 0..pixels(image), |part| {
        let values = part.iter().map(|pixel| pixel.to_f64());
        for value in values.filter(|value| value.is_finite()) {
            found = (found.0.min(value), found.1.max(value));
        }
    });
    found
}

/// The least difference between two different values among the first `limit` pixels.
fn least_gap<T: Pixel>(image: View<'_, T>, limit: usize) -> f64 {
    use rayon::slice::ParallelSliceMut;

    let mut values = Vec::new();
    pieces(image, 0..pixels(image).min(limit), |part| {
        values.extend(part.iter().map(|p| p.to_f64()).filter(|v| v.is_finite()));
    });
    values.par_sort_unstable_by(f64::total_cmp);
    let gaps = values.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.filter(|&gap| gap > 0.0).fold(f64::INFINITY, f64::min)
}
