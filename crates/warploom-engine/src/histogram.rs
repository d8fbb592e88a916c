//! Counting pixels by value.

use rayon::prelude::*;

use super::lanes::{Level, dispatch};
use super::share::{pieces, pixels, portions};
use super::{Pixel, Real, View};

/// Bytes allocated while counting into `bins` bins on `threads` threads.
pub fn scratch_bytes<T: Pixel>(bins: usize, threads: usize) -> usize {
    let table = if size_of::<T>() == 2 {
        1 << 16
    } else {
        4 * (bins + 1).max(1 << 8)
    };
    (tables_each(table) * threads + 2) * table * size_of::<u64>()
}

/// How many tables of so many bins a thread fills, one after the other. Small ones cost nothing to
/// have more of, and a thread that is held up then holds up less.
fn tables_each(bins: usize) -> usize {
    if bins <= 1 << 12 { 4 } else { 1 }
}

/// Counts made by every thread for itself and added up.
pub(crate) fn count_by<'a, T: Pixel>(
    image: View<'a, T>,
    bins: usize,
    count: impl Fn(&mut [u32], &'a [T]) + Sync,
) -> Vec<u64> {
    let tables: Vec<Vec<u32>> = portions(pixels(image), tables_each(bins))
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|range| {
            let mut table = vec![0_u32; bins];
            pieces(image, range, |part| count(&mut table, part));
            table
        })
        .collect();
    let mut total = vec![0; bins];
    for table in &tables {
        for (sum, &next) in total.iter_mut().zip(table) {
            *sum += u64::from(next);
        }
    }
    total
}

/// How often each value of a type of one or two bytes occurs, by its key.
pub(crate) fn count_values<T: Pixel>(image: View<'_, T>) -> Vec<u64> {
    let found = count_by(image, values_room::<T>(), |table, part| {
        add_values(table, part);
    });
    values_total::<T>(found)
}

/// Bins of a table that counts every value.
pub(crate) fn values_room<T>() -> usize {
    // Four tables of bytes, since equal neighbours would wait for each other's count.
    if size_of::<T>() == 1 { 4 << 8 } else { 1 << 16 }
}

/// Counts pixels of one or two bytes by their keys.
pub(crate) fn add_values<T: Pixel>(table: &mut [u32], part: &[T]) {
    if size_of::<T>() == 1 {
        let mut blocks = part.chunks_exact(4);
        for block in blocks.by_ref() {
            for (lane, pixel) in block.iter().enumerate() {
                let key: u64 = pixel.key().into();
                table[(lane << 8) | (key & 255) as usize] += 1;
            }
        }
        for pixel in blocks.remainder() {
            let key: u64 = pixel.key().into();
            table[(key & 255) as usize] += 1;
        }
        return;
    }
    for pixel in part {
        let key: u64 = pixel.key().into();
        table[(key & 0xffff) as usize] += 1;
    }
}

/// The counts of all values, given what was counted of them.
pub(crate) fn values_total<T>(found: Vec<u64>) -> Vec<u64> {
    if size_of::<T>() > 1 {
        return found;
    }
    (0..256)
        .map(|value| (0..4).map(|lane| found[(lane << 8) | value]).sum())
        .collect()
}

/// The `bins + 1` edges of equal bins from `low` to `high`, as `numpy.linspace` rounds them.
pub fn edges(low: f64, high: f64, bins: usize) -> Vec<f64> {
    let width = high - low;
    let step = width / bins as f64;
    let mut edges: Vec<f64> = (0..=bins)
        .map(|i| {
            if step == 0.0 {
                i as f64 / bins as f64 * width + low
            } else {
                i as f64 * step + low
            }
        })
        .collect();
    edges[bins] = high;
    edges
}

/// The bin of a value inside the edges: a guess by division, put right by the edges themselves.
#[inline(always)]
fn bin(value: f64, guess: usize, edges: &[f64]) -> usize {
    let last = edges.len() - 2;
    let guess = guess.min(last);
    let guess = guess - usize::from(value < edges[guess] && guess > 0);
    guess + usize::from(value >= edges[guess + 1] && guess < last)
}

/// Counts the pixels in equal bins from `low` to `high`, as `numpy.histogram` does on `f64` values.
///
/// Every bin has its lower edge, the last one also its upper. What lies outside is not counted, nor
/// is NaN. Equal bounds are moved apart by a half each.
pub fn histogram<T: Pixel>(image: View<'_, T>, low: f64, high: f64, counts: &mut [u64]) {
    let binning = Binning::new(low, high, counts.len());
    if size_of::<T>() == 1 || (size_of::<T>() == 2 && pixels(image) > 1 << 15) {
        binning.of_values::<T>(&count_values(image), counts);
        return;
    }
    let level = Level::new();
    let all = count_by(image, binning.room(), |table, part| {
        binning.add(level, table, part);
    });
    binning.total(&all, counts);
}

/// Equal bins into which pixels are counted.
#[derive(Debug)]
pub(crate) struct Binning {
    low: f64,
    high: f64,
    edges: Vec<f64>,
    single: Equal<f32>,
    double: Equal<f64>,
}

impl Binning {
    pub(crate) fn new(low: f64, high: f64, bins: usize) -> Self {
        let (low, high) = if low == high {
            (low - 0.5, high + 0.5)
        } else {
            (low, high)
        };
        Self {
            low,
            high,
            edges: edges(low, high, bins),
            single: Equal::new(low, high, bins),
            double: Equal::new(low, high, bins),
        }
    }

    fn bins(&self) -> usize {
        self.edges.len() - 1
    }

    /// The bin of a value, or their number where it is in none.
    fn exact(&self, value: f64) -> usize {
        let (low, high, bins) = (self.low, self.high, self.bins());
        if value >= low && value <= high {
            let guess = ((value - low) / (high - low) * bins as f64) as usize;
            bin(value, guess, &self.edges)
        } else {
            bins
        }
    }

    /// Counts of bins, given those of all values of a type of one or two bytes.
    pub(crate) fn of_values<T: Pixel>(&self, values: &[u64], counts: &mut [u64]) {
        counts.fill(0);
        for (key, &count) in values.iter().enumerate() {
            let bin = self.exact(T::from_key(key as u64).to_f64());
            if let Some(sum) = counts.get_mut(bin) {
                *sum += count;
            }
        }
    }

    /// Bins of the table that pixels are counted in.
    pub(crate) fn room(&self) -> usize {
        TABLES * (self.bins() + 1)
    }

    /// Counts pixels.
    pub(crate) fn add<T: Pixel>(&self, level: Level, table: &mut [u32], part: &[T]) {
        if size_of::<T>() == 4 && T::IS_FLOAT {
            self.add_by(level, self.single, table, part);
        } else {
            self.add_by(level, self.double, table, part);
        }
    }

    /// The counts, given all that was counted.
    pub(crate) fn total(&self, all: &[u64], counts: &mut [u64]) {
        let room = self.bins() + 1;
        for (bin, count) in counts.iter_mut().enumerate() {
            *count = (0..TABLES).map(|table| all[table * room + bin]).sum();
        }
    }

    fn add_by<T: Pixel, R: Real>(
        &self,
        level: Level,
        equal: Equal<R>,
        table: &mut [u32],
        part: &[T],
    ) {
        let room = self.bins() + 1;
        let unsure = room as u32;
        if !equal.is_of_use() {
            for pixel in part {
                table[self.exact(pixel.to_f64())] += 1;
            }
            return;
        }
        let (first, rest) = table.split_at_mut(room);
        let (second, rest) = rest.split_at_mut(room);
        let (third, fourth) = rest.split_at_mut(room);
        let mut places = [0_u32; 256];
        for block in part.chunks(256) {
            // Two loops, so that the first is vector code.
            dispatch!(level, _simd => for (place, pixel) in places.iter_mut().zip(block) {
                *place = equal.place(R::from_f64(pixel.to_f64()));
            });
            // What is not sure is rare: it is counted by itself.
            let places = &mut places[..block.len()];
            let doubtful = places.iter().map(|&place| u32::from(place == unsure));
            let doubtful = doubtful.sum::<u32>() > 0;
            if doubtful {
                for (place, pixel) in places.iter_mut().zip(block) {
                    if *place == unsure {
                        *place = self.exact(pixel.to_f64()) as u32;
                    }
                }
            }
            let mut fours = places.chunks_exact(TABLES);
            for four in fours.by_ref() {
                first[four[0] as usize] += 1;
                second[four[1] as usize] += 1;
                third[four[2] as usize] += 1;
                fourth[four[3] as usize] += 1;
            }
            for &place in fours.remainder() {
                first[place as usize] += 1;
            }
        }
    }
}

/// From here on `f32` has whole numbers only.
const WHOLE: f32 = 8_388_608.0;

/// Equal bins, told apart in `R`.
#[derive(Clone, Copy, Debug)]
struct Equal<R> {
    low: R,
    scale: R,
    /// How far a place may be off by rounding, of the value's and of the edge's; nearer to an edge,
    /// the edges themselves decide.
    doubt: R,
    bins: usize,
    /// Has `R` numbers for all that comes up inside the bounds?
    fits: bool,
}

impl<R: Real> Equal<R> {
    fn new(low: f64, high: f64, bins: usize) -> Self {
        let width = high - low;
        let scale = bins as f64 / width;
        let [epsilon, least, most] = if size_of::<R>() == 4 {
            [f32::EPSILON, f32::MIN_POSITIVE, f32::MAX].map(f64::from)
        } else {
            [f64::EPSILON, f64::MIN_POSITIVE, f64::MAX]
        };
        let doubt = 8.0 * epsilon * (bins as f64 + low.abs().max(high.abs()) * scale);
        Self {
            low: R::from_f64(low),
            scale: R::from_f64(scale),
            doubt: R::from_f64(doubt),
            bins,
            fits: low.abs() <= most && width <= most && (least..=most).contains(&scale),
        }
    }

    /// Could it ever be sure of a bin? Beyond this rounding leaves nothing to go by.
    fn is_of_use(self) -> bool {
        self.fits && self.doubt.to_f64() < 0.25 && self.bins < 1 << 20
    }

    /// The bin, or one of the two numbers behind the last: not in any, and not sure.
    #[inline(always)]
    fn place(self, value: R) -> u32 {
        let at = (value - self.low) * self.scale;
        // Casts that saturate are no vector code. Bounded first, a number is whole once it was added
        // to this one; it may then be the bin next to the right one, which is found out below, as are
        // those far outside and NaN.
        let most = self.bins as f32 + 1.0;
        let near = at.to_f32();
        let near = if near > 0.0 { near } else { 0.0 };
        let near = if near < most { near } else { most };
        let whole = (near - 0.5) + WHOLE;
        let bin = whole.to_bits() & 0x007f_ffff;
        let beyond = at - R::from_f32(whole - WHOLE);
        let one = R::from_f32(1.0);
        let sure = beyond > self.doubt
            && beyond < one - self.doubt
            && bin < self.bins as u32
            && at > R::ZERO;
        // The bounds may have been rounded, so what is near them is not sure either.
        let outside = at < -self.doubt || at > R::from_f32(self.bins as f32) + self.doubt;
        let found = if sure { bin } else { self.bins as u32 + 1 };
        if outside { self.bins as u32 } else { found }
    }
}

/// Several tables, since equal neighbours would wait for each other's count.
const TABLES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_their_lower_edge_and_the_last_its_upper() {
        let mut counts = [0; 4];
        let data = [-1.0, 0.0, 0.99, 1.0, 2.0, 3.0, 4.0, 4.01, f64::NAN];
        histogram(View::packed(&data, [1, 1, 9]), 0.0, 4.0, &mut counts);
        assert_eq!(counts, [2, 1, 1, 2]);
    }

    /// Where the bounds, their distance or a bin's share of it had no `f32`, pixels were lost.
    #[test]
    fn bounds_that_single_precision_has_no_numbers_for_lose_no_pixel() {
        let check = |data: &[f32], low: f64, high: f64, bins: usize| {
            let edges = edges(low, high, bins);
            let mut naive = vec![0; bins];
            for value in data.iter().map(|&v| f64::from(v)) {
                let at = edges.iter().rposition(|&edge| edge <= value).unwrap();
                naive[at.min(bins - 1)] += 1;
            }
            let mut counts = vec![0; bins];
            let view = View::packed(data, [1, 1, data.len()]);
            histogram(view, low, high, &mut counts);
            assert_eq!(counts, naive, "{low} to {high} in {bins}");
        };
        let plain: Vec<f32> = (0..12_u8).map(f32::from).collect();
        check(&plain, -1e39, 1e39, 4);
        check(&plain, -1e308, 7e307, 5);
        check(&plain, 0.0, 1e60, 3);
        for scale in [1e-45_f32, 1e-42, 1e-39, 1e-38, 1e-37, 1e-36] {
            let tiny: Vec<f32> = (-3_i8..3).map(|v| f32::from(v) * scale).collect();
            let [low, high] = [tiny[0], tiny[5]].map(f64::from);
            for bins in [2, 7, 256, 65_536] {
                check(&tiny, low, high, bins);
            }
        }
        let huge: Vec<f32> = (-3_i8..4).map(|v| f32::from(v) * 1e38).collect();
        for bins in [2, 7, 256] {
            check(&huge, f64::from(huge[0]), f64::from(huge[6]), bins);
        }
    }

    #[test]
    fn equal_bounds_are_moved_apart() {
        let mut counts = [0; 2];
        histogram(View::packed(&[7_u8; 5], [1, 1, 5]), 7.0, 7.0, &mut counts);
        assert_eq!(counts, [0, 5]);
    }

    proptest::proptest! {
        #[test]
        fn what_lies_on_an_edge_is_counted_above_it(
            bins in 1_usize..50, low in -1.0e9_f64..1.0e9, width in 1.0e-6_f64..1.0e4, seed: u32,
        ) {
            let high = low + width;
            let edges = edges(low, high, bins);
            // The edges and their neighbours among the numbers.
            let data: Vec<f64> = edges.iter().flat_map(|&e| [e.next_down(), e, e.next_up()]).collect();
            let mut naive = vec![0_u64; bins];
            for value in data.iter().copied().filter(|&v| v >= low && v <= high) {
                let at = edges.iter().rposition(|&edge| edge <= value).unwrap();
                naive[at.min(bins - 1)] += 1;
            }
            let mut counts = vec![u64::from(seed); bins];
            histogram(View::packed(&data, [1, 1, data.len()]), low, high, &mut counts);
            proptest::prop_assert_eq!(counts, naive);
        }

        #[test]
        fn single_precision_on_an_edge_is_counted_as_the_edges_say(
            bins in 1_usize..300, low in -1.0e4_f32..1.0e4, width in 1.0e-4_f32..1.0e5,
        ) {
            let (low, high) = (f64::from(low), f64::from(low) + f64::from(width));
            let edges = edges(low, high, bins);
            let near = |e: &f64| { let e = *e as f32; [e.next_down(), e, e.next_up(), e + width / 7.0] };
            let mut data: Vec<f32> = edges.iter().flat_map(near).collect();
            data.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0]);
            let mut naive = vec![0_u64; bins];
            for value in data.iter().map(|&v| f64::from(v)).filter(|&v| v >= low && v <= high) {
                let at = edges.iter().rposition(|&edge| edge <= value).unwrap();
                naive[at.min(bins - 1)] += 1;
            }
            let mut counts = vec![7; bins];
            histogram(View::packed(&data, [1, 1, data.len()]), low, high, &mut counts);
            proptest::prop_assert_eq!(counts, naive);
        }

        #[test]
        fn every_type_counts_as_the_edges_say(
            data in proptest::collection::vec(proptest::prelude::any::<i16>(), 1..400),
            bins in 1_usize..70, low in -100_i32..100, width in 1_i32..70_000,
        ) {
            let (low, high) = (f64::from(low) / 3.0, f64::from(low + width) / 3.0);
            let edges = edges(low, high, bins);
            let mut naive = vec![0_u64; bins];
            for value in data.iter().map(|&v| f64::from(v)).filter(|&v| v >= low && v <= high) {
                let at = edges.iter().rposition(|&edge| edge <= value).unwrap();
                naive[at.min(bins - 1)] += 1;
            }
            let mut counts = vec![0; bins];
            histogram(View::packed(&data, [1, 1, data.len()]), low, high, &mut counts);
            proptest::prop_assert_eq!(&counts, &naive);
            let wide: Vec<f32> = data.iter().map(|&v| f32::from(v)).collect();
            histogram(View::packed(&wide, [1, 1, data.len()]), low, high, &mut counts);
            proptest::prop_assert_eq!(&counts, &naive);
            let many: Vec<i16> = data.iter().copied().cycle().take(data.len() * 200).collect();
            histogram(View::packed(&many, [1, 200, data.len()]), low, high, &mut counts);
            proptest::prop_assert!(counts.iter().zip(&naive).all(|(a, b)| *a == 200 * b));
        }
    }
}
