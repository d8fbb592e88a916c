//! Thresholds found from an image's values, with the numbers of `skimage.filters`.

use super::histogram::{count_by, edges, histogram};
use super::totals::{extremes, mean_of_numbers};
use super::{Pixel, View};

mod classes;
mod entropy;

/// How a threshold is found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Method {
    /// Greatest variance between the classes.
    Otsu,
    /// Farthest from the line between the histogram's peak and its longer end.
    Triangle,
    /// Least cross entropy, iterated from the mean.
    Li,
    /// Greatest correlation.
    Yen,
    /// Half way between the means of the classes.
    Isodata,
    /// The mean.
    Mean,
}

/// Values of integers up to this far apart have a bin each; those farther apart are binned as
/// floats are.
const VALUES: u64 = 1 << 26;

/// Bytes allocated, given the least and greatest value of an integer image.
pub fn scratch_bytes<T: Pixel>(low: f64, high: f64, bins: usize, threads: usize) -> usize {
    let range = (high - low) as u64;
    let bins = if T::IS_FLOAT || range >= VALUES {
        bins
    } else {
        range as usize + 1
    };
    bins * (threads * size_of::<u32>() + 6 * size_of::<f64>())
}

/// Counts of equal bins and their middles; the first and the last bin are not empty.
struct Bins {
    counts: Vec<u64>,
    first: f64,
    /// Between the edges; `None` where every integer has its bin.
    edges: Option<Vec<f64>>,
}

impl Bins {
    fn new<T: Pixel>(image: View<'_, T>, low: T, high: T, bins: usize) -> Self {
        let (low, high) = (low.to_f64(), high.to_f64());
        if !T::IS_FLOAT && high - low < VALUES as f64 {
            let count = (high - low) as usize + 1;
            let counts = count_by(image, count, |table, part| {
                for pixel in part {
                    table[(pixel.to_f64() - low) as usize] += 1;
                }
            });
            return Self {
                counts,
                first: low,
                edges: None,
            };
        }
        let mut counts = vec![0; bins];
        histogram(image, low, high, &mut counts);
        Self::equal(counts, low, high)
    }

    /// Equal bins from `low` to `high`.
    fn equal(counts: Vec<u64>, low: f64, high: f64) -> Self {
        let bins = counts.len();
        let (low, high) = if low == high {
            (low - 0.5, high + 0.5)
        } else {
            (low, high)
        };
        let edges = edges(low, high, bins);
        Self {
            counts,
            first: low,
            edges: Some(edges),
        }
    }

    fn middle(&self, bin: usize) -> f64 {
        match &self.edges {
            Some(edges) => middle(edges[bin], edges[bin + 1]),
            None => self.first + bin as f64,
        }
    }

    /// The counts as the reference keeps them: in `f32`.
    fn weights(&self) -> impl DoubleEndedIterator<Item = f32> + ExactSizeIterator {
        self.counts.iter().map(|&count| count as f32)
    }

    /// `weights` times `middle`, added up from the first bin on.
    fn moments(&self) -> Vec<f64> {
        let products = self.weights().enumerate();
        running(products.map(|(bin, weight)| f64::from(weight) * self.middle(bin)))
    }
}

/// As scikit-image and the other devices have it: half of a sum, which may overflow. `f64::midpoint` does not, and
/// rounds the smallest numbers otherwise.
fn middle(low: f64, high: f64) -> f64 {
    (low + high) * 0.5
}

/// Sums from the first on.
fn running<S: Default + Copy + std::ops::Add<Output = S>>(all: impl Iterator<Item = S>) -> Vec<S> {
    all.scan(S::default(), |sum, next| {
        *sum = *sum + next;
        Some(*sum)
    })
    .collect()
}

/// Sums from the last on, in the order of the bins.
fn running_back<S: Default + Copy + std::ops::Add<Output = S>>(
    all: impl DoubleEndedIterator<Item = S>,
) -> Vec<S> {
    let mut sums = running(all.rev());
    sums.reverse();
    sums
}

/// The first of the greatest; a NaN counts as greater than all, as numpy has it.
fn first_greatest(values: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (at, value) in values.enumerate() {
        if value.is_nan() {
            return at;
        }
        if value > best.1 {
            best = (at, value);
        }
    }
    best.0
}

/// The value above which a pixel belongs to the foreground.
///
/// Integer images have one bin for each value; others `bins` equal ones from the least to the
/// greatest value. Li's and the mean need no bins. NaN and, in Li's, infinities are left out.
/// NaN comes out when there is no value to go by.
pub fn threshold<T: Pixel>(image: View<'_, T>, method: Method, bins: usize) -> f64 {
    if method == Method::Mean {
        return mean_of_numbers(image);
    }
    threshold_between(image, extremes(image), method, bins)
}

/// The same, where the least and the greatest value are known already. Not the mean.
pub(crate) fn threshold_between<T: Pixel>(
    image: View<'_, T>,
    (low, high): (T, T),
    method: Method,
    bins: usize,
) -> f64 {
    if low > high {
        return f64::NAN;
    }
    let constant = low == high;
    if method == Method::Li {
        return entropy::li(image, low, high);
    }
    if is_plain::<T>(method, constant) {
        return low.to_f64();
    }
    by_bins(&Bins::new(image, low, high, bins), method)
}

/// The same, given how often each value of a whole-numbered type of one or two bytes occurs. Neither
/// the mean nor Li's.
pub(crate) fn threshold_of_values<T: Pixel>(counts: &[u64], method: Method) -> f64 {
    let is_there = |count: &u64| *count > 0;
    let found = counts.iter().position(is_there);
    let Some((low, high)) = found.zip(counts.iter().rposition(is_there)) else {
        return f64::NAN;
    };
    let first = T::from_key(low as u64).to_f64();
    if is_plain::<T>(method, low == high) {
        return first;
    }
    let bins = Bins {
        counts: counts[low..=high].to_vec(),
        first,
        edges: None,
    };
    by_bins(&bins, method)
}

/// Is the one value that there is the threshold?
fn is_plain<T: Pixel>(method: Method, constant: bool) -> bool {
    // One value has one bin, where integers are counted by value. The reference has a rule for one
    // value in every method but Yen's, which counts floats in all bins.
    constant && (method != Method::Yen || !T::IS_FLOAT)
}

fn by_bins(bins: &Bins, method: Method) -> f64 {
    match method {
        Method::Otsu => otsu(bins),
        Method::Triangle => triangle(bins),
        Method::Yen => entropy::yen(bins),
        Method::Isodata | Method::Mean | Method::Li => isodata(bins),
    }
}

fn otsu(bins: &Bins) -> f64 {
    let below = running(bins.weights());
    let above = running_back(bins.weights());
    let below_moment = bins.moments();
    let products = bins.weights().enumerate();
    let above_moment =
        running_back(products.map(|(bin, weight)| f64::from(weight) * bins.middle(bin)));
    let variance = (0..below.len() - 1).map(|cut| {
        let apart = below_moment[cut] / f64::from(below[cut])
            - above_moment[cut + 1] / f64::from(above[cut + 1]);
        f64::from(below[cut] * above[cut + 1]) * (apart * apart)
    });
    bins.middle(first_greatest(variance))
}

fn triangle(bins: &Bins) -> f64 {
    let count = bins.counts.len();
    let peak = first_greatest(bins.counts.iter().map(|&count| count as f64));
    let occupied = |&bin: &usize| bins.counts[bin] > 0;
    // An image has a pixel, so a bin is occupied.
    let low = (0..count).find(occupied).unwrap_or(0);
    let high = (0..count).rfind(occupied).unwrap_or(0);
    let flip = peak - low < high - peak;
    let at = |bin: usize| if flip { count - 1 - bin } else { bin };
    let (low, peak) = if flip {
        (at(high), at(peak))
    } else {
        (low, peak)
    };
    let (width, height) = ((peak - low) as f64, bins.counts[at(peak)] as f64);
    let norm = (height * height + width * width).sqrt();
    let (width, height) = (width / norm, height / norm);
    let length =
        (low..peak).map(|bin| height * (bin - low) as f64 - width * bins.counts[at(bin)] as f64);
    bins.middle(at(first_greatest(length) + low))
}

fn isodata(bins: &Bins) -> f64 {
    let below = running(bins.weights());
    let moments = bins.moments();
    let last = below.len() - 1;
    let width = bins.middle(1) - bins.middle(0);
    let found = (0..last).find(|&cut| {
        let low = moments[cut] / f64::from(below[cut]);
        let high = (moments[last] - moments[cut]) / f64::from(below[last] - below[cut]);
        let off = middle(low, high) - bins.middle(cut);
        off >= 0.0 && off < width
    });
    // Where rounding hides every fixed point, and for one value, there is the mean.
    found.map_or(moments[last] / f64::from(below[last]), |cut| {
        bins.middle(cut)
    })
}
