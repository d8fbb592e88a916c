//! Sums over whole images, the same on every backend, and what follows from them.

use rayon::prelude::*;

use super::lanes::{Level, dispatch};
use super::share::{pieces, pixels};
use super::{Pixel, View};

/// Pixels, in C order, that are summed by themselves.
pub(crate) const CHUNK: usize = 4096;
/// Running sums inside a chunk: lane `l` has pixels `l`, `l + 16`, ...
pub(crate) const LANES: usize = 16;
/// Chunks whose sums are summed by themselves.
const GROUP: usize = 256;

/// What [`totals`] finds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Totals {
    /// The least value that is not NaN; the type's greatest (infinity) when there is none.
    pub min: f64,
    /// The greatest value that is not NaN; the type's least (minus infinity) when there is none.
    pub max: f64,
    /// The sum.
    pub sum: f64,
    /// The sum by the number of pixels.
    pub mean: f64,
    /// The root of the mean square deviation from the mean.
    pub std: f64,
}

/// Bytes allocated while summing.
pub fn scratch_bytes(dims: [usize; 3]) -> usize {
    dims.iter().product::<usize>().div_ceil(CHUNK) * 5 * size_of::<f64>()
}

/// Gives `work` the pixels of chunk `index` without gaps.
#[inline(always)]
fn chunk<T: Pixel, R>(image: View<'_, T>, index: usize, work: impl FnOnce(&[T]) -> R) -> R {
    let start = index * CHUNK;
    let end = (start + CHUNK).min(pixels(image));
    if let Some(all) = image.as_packed() {
        return work(&all[start..end]);
    }
    let mut copy = [T::ZERO; CHUNK];
    let mut filled = 0;
    pieces(image, start..end, |part| {
        copy[filled..filled + part.len()].copy_from_slice(part);
        filled += part.len();
    });
    work(&copy[..filled])
}

/// What `make` makes of each chunk, on all threads.
pub(crate) fn by_chunks<T: Pixel, R: Send>(
    image: View<'_, T>,
    make: impl Fn(&[T]) -> R + Sync + Send,
) -> Vec<R> {
    (0..pixels(image).div_ceil(CHUNK))
        .into_par_iter()
        .with_min_len(8)
        .map(|index| chunk(image, index, &make))
        .collect()
}

/// Calls `step` with a lane and a pixel, for all pixels of a chunk in order.
#[inline(always)]
pub(crate) fn by_lanes<T: Pixel>(part: &[T], mut step: impl FnMut(usize, T)) {
    let (blocks, rest) = part.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &pixel) in block.iter().enumerate() {
            step(lane, pixel);
        }
    }
    for (lane, &pixel) in rest.iter().enumerate() {
        step(lane, pixel);
    }
}

pub(crate) fn in_groups(sums: impl ExactSizeIterator<Item = f64>) -> f64 {
    let mut sums = sums.peekable();
    let mut total = 0.0;
    while sums.peek().is_some() {
        total += sums.by_ref().take(GROUP).fold(0.0, |sum, next| sum + next);
    }
    total
}

#[inline(always)]
pub(crate) fn chunk_sum<T: Pixel>(part: &[T], number: &impl Fn(T) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    by_lanes(part, |lane, pixel| lanes[lane] += number(pixel));
    lanes.iter().fold(0.0, |sum, next| sum + next)
}

/// The sum of one number made of each pixel, in the fixed order that all backends keep.
pub fn sum_of<T: Pixel>(image: View<'_, T>, number: impl Fn(T) -> f64 + Sync) -> f64 {
    let level = Level::new();
    let sums = by_chunks(
        image,
        |part| dispatch!(level, _simd => chunk_sum(part, &number)),
    );
    in_groups(sums.into_iter())
}

/// Least and greatest value, NaN ignored. In the order of chunks, since that decides between zeros of
/// two signs.
pub fn extremes<T: Pixel>(image: View<'_, T>) -> (T, T) {
    let level = Level::new();
    let found = by_chunks(image, |part| dispatch!(level, _simd => run_extremes(part)));
    (
        found.iter().fold(T::GREATEST, |a, b| a.lesser(b.0)),
        found.iter().fold(T::LEAST, |a, b| a.greater(b.1)),
    )
}

/// Running extremes: vectors enough that none waits for another.
const RUNNING: usize = 64;

/// Least and greatest of a run of pixels. Each has a loop of its own, because compilers make vectors
/// of one and not of both together.
#[inline(always)]
pub(crate) fn run_extremes<T: Pixel>(part: &[T]) -> (T, T) {
    let mut least = [T::GREATEST; RUNNING];
    let mut most = [T::LEAST; RUNNING];
    let (blocks, rest) = part.as_chunks::<RUNNING>();
    for block in blocks {
        for (least, &pixel) in least.iter_mut().zip(block) {
            *least = least.lesser(pixel);
        }
        for (most, &pixel) in most.iter_mut().zip(block) {
            *most = most.greater(pixel);
        }
    }
    let least = least.iter().chain(rest);
    let most = most.iter().chain(rest);
    (
        least.fold(T::GREATEST, |a, &b| a.lesser(b)),
        most.fold(T::LEAST, |a, &b| a.greater(b)),
    )
}

#[inline(always)]
pub(crate) fn chunk_totals<T: Pixel>(part: &[T]) -> (T, T, f64) {
    let (least, most) = run_extremes(part);
    let mut sums = [0.0; LANES];
    by_lanes(part, |lane, pixel| sums[lane] += pixel.to_f64());
    (least, most, sums.iter().fold(0.0, |sum, next| sum + next))
}

/// The sum of the pixels, less `least`, that are then above `low` and not above `high`, and how many
/// they are; NaN is never among them.
pub(crate) fn within<T: Pixel>(image: View<'_, T>, least: f64, low: f64, high: f64) -> (f64, u64) {
    let level = Level::new();
    let found = by_chunks(
        image,
        |part| dispatch!(level, _simd => chunk_within(part, least, low, high)),
    );
    let count = found.iter().map(|&(_, count)| u64::from(count)).sum();
    (in_groups(found.iter().map(|found| found.0)), count)
}

#[inline(always)]
#[expect(
    clippy::needless_bitwise_bool,
    reason = "a second condition that waits for the first is a branch, and no vector code"
)]
fn chunk_within<T: Pixel>(part: &[T], least: f64, low: f64, high: f64) -> (f64, u32) {
    let mut sums = [0.0; LANES];
    let mut counts = [0; LANES];
    by_lanes(part, |lane, pixel| {
        let value = pixel.to_f64() - least;
        // Chosen and not branched to, so that pixels are summed side by side.
        let is_in = (value > low) & (value <= high);
        sums[lane] += if is_in { value } else { 0.0 };
        counts[lane] += u32::from(is_in);
    });
    (
        sums.iter().fold(0.0, |sum, next| sum + next),
        counts.iter().sum(),
    )
}

/// The mean of what is not NaN; NaN when there is nothing else.
pub fn mean_of_numbers<T: Pixel>(image: View<'_, T>) -> f64 {
    let level = Level::new();
    let found = by_chunks(image, |part| dispatch!(level, _simd => chunk_numbers(part)));
    let count: u64 = found.iter().map(|&(_, count)| u64::from(count)).sum();
    in_groups(found.iter().map(|found| found.0)) / count as f64
}

/// The sum of what is not NaN, and how many that is.
#[inline(always)]
pub(crate) fn chunk_numbers<T: Pixel>(part: &[T]) -> (f64, u32) {
    let mut sums = [0.0; LANES];
    let mut counts = [0; LANES];
    by_lanes(part, |lane, pixel| {
        let value = pixel.to_f64();
        let is_number = !value.is_nan();
        sums[lane] += if is_number { value } else { 0.0 };
        counts[lane] += u32::from(is_number);
    });
    (
        sums.iter().fold(0.0, |sum, next| sum + next),
        counts.iter().sum(),
    )
}

/// Which of the numbers are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// `min` and `max`.
    pub extremes: bool,
    /// `sum` and `mean`.
    pub sum: bool,
    /// `std`, which takes a second look at all pixels.
    pub std: bool,
}

impl Wanted {
    /// All of them.
    pub const ALL: Self = Self {
        extremes: true,
        sum: true,
        std: true,
    };

    /// What numbers of the list, by their places, ask for.
    pub fn of(places: impl Iterator<Item = usize>) -> Self {
        let mut wanted = Self {
            extremes: false,
            sum: false,
            std: false,
        };
        for place in places {
            match place {
                0 | 1 => wanted.extremes = true,
                2 | 3 => wanted.sum = true,
                _ => wanted.std = true,
            }
        }
        wanted
    }
}

/// Least, greatest, sum, mean and standard deviation of all pixels.
pub fn totals<T: Pixel>(image: View<'_, T>) -> Totals {
    some_totals(image, Wanted::ALL)
}

/// Those of them that are wanted; the others are 0.
pub fn some_totals<T: Pixel>(image: View<'_, T>, wanted: Wanted) -> Totals {
    let level = Level::new();
    let count = pixels(image) as f64;
    let is_summed = wanted.sum || wanted.std;
    let mut found = Totals {
        min: 0.0,
        max: 0.0,
        sum: 0.0,
        mean: 0.0,
        std: 0.0,
    };
    let mut keep = |least: T, most: T| {
        (found.min, found.max) = (least.to_f64(), most.to_f64());
    };
    // The order of chunks decides which of two zeros is the lesser, so it is always the same.
    let sum = match (wanted.extremes, is_summed) {
        (true, true) => {
            let chunks = by_chunks(image, |part| dispatch!(level, _simd => chunk_totals(part)));
            let least = chunks.iter().fold(T::GREATEST, |a, b| a.lesser(b.0));
            keep(least, chunks.iter().fold(T::LEAST, |a, b| a.greater(b.1)));
            in_groups(chunks.iter().map(|chunk| chunk.2))
        }
        (true, false) => {
            let (least, most) = extremes(image);
            keep(least, most);
            0.0
        }
        (false, true) => sum_of(image, Pixel::to_f64),
        (false, false) => 0.0,
    };
    if is_summed {
        (found.sum, found.mean) = (sum, sum / count);
    }
    if wanted.std {
        found.std = deviation(image, found.mean);
    }
    found
}

/// The root of the mean square deviation from a mean.
pub(crate) fn deviation<T: Pixel>(image: View<'_, T>, mean: f64) -> f64 {
    let squares = sum_of(image, |pixel| {
        let off = pixel.to_f64() - mean;
        off * off
    });
    (squares / pixels(image) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pitched_image_has_the_sums_of_its_packed_copy() {
        let data: Vec<f32> = (0..3 * 60 * 80).map(|i| (i as f32).sin() * 1e3).collect();
        let view = View::pitched(&data, [3, 50, 77], [4800, 80]);
        let mut copy = Vec::new();
        pieces(view, 0..3 * 50 * 77, |part| copy.extend_from_slice(part));
        let packed = totals(View::packed(&copy, [3, 50, 77]));
        assert_eq!(totals(view), packed);
        let exact: f64 = copy.iter().map(|&value| f64::from(value)).sum();
        assert!((packed.sum - exact).abs() < 1e-6);
        assert_eq!(extremes(view).0.to_f64(), packed.min);
    }

    #[test]
    fn nan_is_no_extreme_but_spoils_sums() {
        let found = totals(View::packed(&[1.0, f32::NAN, -2.0], [1, 1, 3]));
        assert_eq!((found.min, found.max), (-2.0, 1.0));
        assert!(found.sum.is_nan() && found.std.is_nan());
        let none = totals(View::packed(&[f64::NAN], [1, 1, 1]));
        assert_eq!((none.min, none.max), (f64::INFINITY, f64::NEG_INFINITY));
    }

    #[test]
    fn whole_numbers_are_summed_exactly() {
        let data: Vec<u16> = (0..100_003_u32).map(|i| (i * 7 % 65_536) as u16).collect();
        let found = totals(View::packed(&data, [1, 1, data.len()]));
        assert_eq!(
            found.sum,
            data.iter().map(|&v| u64::from(v)).sum::<u64>() as f64
        );
        assert_eq!((found.min, found.max), (0.0, 65535.0));
    }
}
