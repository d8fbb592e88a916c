//! The means on both sides of a threshold that moves.
//!
//! Who looks for a threshold asks for them again and again, and soon moves by little. What lies far from where he
//! has arrived is then summed once, and every step looks only at the pixels near it.

use crate::lanes::{Level, dispatch};
use crate::share::pixels;
use crate::totals::{CHUNK, LANES, by_chunks, by_lanes, in_groups};
use crate::{Pixel, View};

/// Pixels are near up to so many times the last step away: steps become shorter, each by about the same factor.
const REACH: f64 = 4.0;
/// A step is short when it takes at most this part of all pixels to the other side: few are near then.
const SHORT: u64 = 64;
/// Of each chunk at most this part is kept; more is not few.
const KEPT: usize = CHUNK / 2;

/// Pixels, less the least of all: their sum, and how many they are.
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    count: u64,
}

impl Sum {
    fn and(self, other: Self) -> Self {
        Self {
            sum: self.sum + other.sum,
            count: self.count + other.count,
        }
    }

    fn mean(self) -> f64 {
        self.sum / self.count as f64
    }
}

/// What is near a threshold: the limits, what lies beyond them, and the pixels between.
struct Near<T> {
    limits: [f64; 2],
    beyond: [Sum; 2],
    pixels: Vec<T>,
}

/// The pixels of an image that are finite, and a threshold that moves among them.
pub(super) struct Classes<'a, T> {
    image: View<'a, T>,
    /// Thresholds and sums count from here.
    least: f64,
    /// The threshold before this one, and what was below.
    last: Option<(f64, u64)>,
    /// Is it moving by little?
    settling: bool,
    near: Option<Near<T>>,
}

impl<'a, T: Pixel> Classes<'a, T> {
    pub(super) fn new(image: View<'a, T>, least: f64) -> Self {
        Self {
            image,
            least,
            last: None,
            settling: false,
            near: None,
        }
    }

    /// The means of what is not above a threshold, and of what is.
    pub(super) fn means(&mut self, threshold: f64) -> (f64, f64) {
        let [back, fore] = self.sums(threshold);
        (back.mean(), fore.mean())
    }

    fn sums(&mut self, threshold: f64) -> [Sum; 2] {
        if let Some((last, _)) = self.last
            && self.settling
            && !self.near.as_ref().is_some_and(|near| near.has(threshold))
        {
            let reach = REACH * (threshold - last).abs();
            let limits = [threshold - reach, threshold + reach];
            self.near = Near::new(self.image, self.least, limits);
        }
        let known = self.near.as_ref().filter(|near| near.has(threshold));
        let sums = match known {
            Some(near) => near.sums(self.least, threshold),
            None => classes(self.image, self.least, [threshold; 2]),
        };
        let below = sums[0].count;
        if let Some((_, before)) = self.last {
            let crossed = below.abs_diff(before);
            self.settling = crossed <= pixels(self.image) as u64 / SHORT;
        }
        self.last = Some((threshold, below));
        sums
    }
}

impl<T: Pixel> Near<T> {
    /// `None` where too many are.
    fn new(image: View<'_, T>, least: f64, limits: [f64; 2]) -> Option<Self> {
        let level = Level::new();
        let parts = by_chunks(image, |part| {
            let sums = dispatch!(level, _simd => chunk_classes(part, least, limits));
            (
                sums,
                dispatch!(level, _simd => between(part, least, limits)),
            )
        });
        let beyond = of_chunks(&parts.iter().map(|part| part.0));
        let pixels: Option<Vec<Vec<T>>> = parts.into_iter().map(|part| part.1).collect();
        Some(Self {
            limits,
            beyond,
            pixels: pixels?.concat(),
        })
    }

    fn has(&self, threshold: f64) -> bool {
        let [low, high] = self.limits;
        (low..=high).contains(&threshold)
    }

    /// The sums of both classes of the whole image.
    fn sums(&self, least: f64, threshold: f64) -> [Sum; 2] {
        let [below, above] = self.beyond;
        if self.pixels.is_empty() {
            return self.beyond;
        }
        let view = View::packed(&self.pixels, [1, 1, self.pixels.len()]);
        let [back, fore] = classes(view, least, [threshold; 2]);
        [below.and(back), above.and(fore)]
    }
}

/// The sums of what is finite and not above the first limit, and of what is above the second.
fn classes<T: Pixel>(image: View<'_, T>, least: f64, limits: [f64; 2]) -> [Sum; 2] {
    let level = Level::new();
    let parts = by_chunks(
        image,
        |part| dispatch!(level, _simd => chunk_classes(part, least, limits)),
    );
    of_chunks(&parts.into_iter())
}

fn of_chunks(parts: &(impl ExactSizeIterator<Item = [(f64, u32); 2]> + Clone)) -> [Sum; 2] {
    [0, 1].map(|side| Sum {
        sum: in_groups(parts.clone().map(|part| part[side].0)),
        count: parts.clone().map(|part| u64::from(part[side].1)).sum(),
    })
}

#[inline(always)]
#[expect(
    clippy::needless_bitwise_bool,
    reason = "a second condition that waits for the first is a branch, and no vector code"
)]
fn chunk_classes<T: Pixel>(part: &[T], least: f64, [low, high]: [f64; 2]) -> [(f64, u32); 2] {
    let (mut back, mut fore) = ([0.0; LANES], [0.0; LANES]);
    let (mut below, mut above) = ([0; LANES], [0; LANES]);
    by_lanes(part, |lane, pixel| {
        let value = pixel.to_f64() - least;
        // Chosen and not branched to, so that pixels are summed side by side.
        let is_back = (value > f64::NEG_INFINITY) & (value <= low);
        let is_fore = (value > high) & (value <= f64::MAX);
        back[lane] += if is_back { value } else { 0.0 };
        fore[lane] += if is_fore { value } else { 0.0 };
        below[lane] += u32::from(is_back);
        above[lane] += u32::from(is_fore);
    });
    let sum = |lanes: [f64; LANES]| lanes.iter().fold(0.0, |sum, next| sum + next);
    [
        (sum(back), below.iter().sum()),
        (sum(fore), above.iter().sum()),
    ]
}

/// The pixels between two limits, in their order; `None` where they are too many.
#[inline(always)]
#[expect(
    clippy::needless_bitwise_bool,
    reason = "what is random is no branch that a processor can guess"
)]
fn between<T: Pixel>(part: &[T], least: f64, [low, high]: [f64; 2]) -> Option<Vec<T>> {
    let (mut kept, mut count) = ([T::ZERO; CHUNK], 0);
    for &pixel in part {
        let value = pixel.to_f64() - least;
        kept[count % CHUNK] = pixel;
        count += usize::from((value > low) & (value <= high));
    }
    (count <= KEPT).then(|| kept[..count].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that follow each other without order, some of them no finite numbers.
    fn image(count: usize) -> Vec<f32> {
        let value = |at: usize| match at % 97 {
            5 => f32::NAN,
            17 => f32::INFINITY,
            31 => f32::NEG_INFINITY,
            _ => (at.wrapping_mul(7919) % 65_536) as f32 / 16.0 - 100.0,
        };
        (0..count).map(value).collect()
    }

    /// What a threshold has on both sides, counted pixel by pixel. The sums are exact: sixteenths, and not many.
    fn plain(pixels: &[f32], least: f64, threshold: f64) -> [(f64, u64); 2] {
        let mut sums = [(0.0, 0); 2];
        let finite = pixels.iter().filter(|pixel| pixel.is_finite());
        for value in finite.map(|pixel| f64::from(*pixel) - least) {
            let side = &mut sums[usize::from(value > threshold)];
            *side = (side.0 + value, side.1 + 1);
        }
        sums
    }

    /// Asks for thresholds one after the other; answers with how often few pixels were looked at.
    fn walk(pixels: &[f32], thresholds: &[f64]) -> usize {
        let view = View::packed(pixels, [1, 1, pixels.len()]);
        let mut classes = Classes::new(view, -100.0);
        let mut few = 0;
        for threshold in thresholds {
            let sums = classes.sums(*threshold).map(|side| (side.sum, side.count));
            assert_eq!(sums, plain(pixels, -100.0, *threshold), "{threshold}");
            few += usize::from(
                classes
                    .near
                    .as_ref()
                    .is_some_and(|near| near.has(*threshold)),
            );
        }
        few
    }

    #[test]
    fn steps_that_become_shorter_look_at_few_pixels() {
        let pixels = image(100_000);
        let steps = |at: i32| 2000.0 + 1000.0 * 0.4_f64.powi(at);
        let thresholds: Vec<f64> = (0..30).map(steps).collect();
        assert!(walk(&pixels, &thresholds) >= 24);
    }

    #[test]
    fn thresholds_that_jump_leave_what_was_near() {
        let pixels = image(50_000);
        let jumps = [2000.0, 2010.0, 2012.0, 100.0, 101.0, 101.5, 4000.0, 2012.0];
        assert!(walk(&pixels, &jumps) >= 2);
    }

    #[test]
    fn limits_belong_to_the_side_that_thresholds_say() {
        let pixels: Vec<f32> = (0..20_000).map(|at| (at % 8) as f32 - 100.0).collect();
        // All pixels are of a few values, and thresholds are just these.
        walk(
            &pixels,
            &[3.0, 3.0, 3.0, 4.0, 3.0, 2.0, 2.0, 7.0, 0.0, -1.0, 9.0],
        );
    }

    #[test]
    fn many_equal_pixels_are_not_kept() {
        let mut pixels = vec![-50.0_f32; 40_000];
        pixels.extend(image(10_000));
        walk(&pixels, &[49.0, 49.5, 49.75, 50.0, 50.25, 50.0, 50.0]);
    }
}
