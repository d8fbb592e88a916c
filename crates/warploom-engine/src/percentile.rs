//! Exact percentiles by counting the digits of keys: no sorted copy of the image.

mod bracket;

use super::histogram::count_by;
use super::lanes::{Level, dispatch};
use super::share::pixels;
use super::{Pixel, View};

/// Values whose digits are counted in one pass.
const SLOTS: usize = 8;
/// Bits of a digit.
const DIGIT: u32 = 16;

/// Bytes allocated on `threads` threads.
pub fn scratch_bytes<T: Pixel>(threads: usize) -> usize {
    let slots = if size_of::<T>() <= 2 { 1 } else { SLOTS };
    (threads * size_of::<u32>() + 2 * size_of::<u64>()) * (slots << DIGIT)
}

/// A value that is looked for: its leading digits, and how many smaller ones share them.
#[derive(Clone, Copy)]
struct Search {
    prefix: u64,
    rank: u64,
}

/// Percentiles with linear interpolation, as `numpy.nanpercentile`: `q` from 0 to 100, in any
/// order. Pixels that are NaN do not count; without any that does, all are NaN.
pub fn percentiles<T: Pixel>(image: View<'_, T>, q: &[f64]) -> Vec<f64> {
    let wanted = Wanted::new(q, pixels(image) as u64);
    if let Some(values) = bracket::select(image, &wanted.ranks) {
        return wanted.between(&values);
    }
    let first = First::new(image);
    if first.numbers == 0 {
        return vec![f64::NAN; q.len()];
    }
    let wanted = Wanted::new(q, first.numbers);
    let next = |shift: u32, prefixes: &[u64]| next_digits(image, shift, prefixes);
    wanted.between(&first.select::<T>(next, &wanted.ranks))
}

/// The same, given how often each value of a type of one or two bytes occurs.
pub(crate) fn percentiles_of_values<T: Pixel>(counts: Vec<u64>, q: &[f64]) -> Vec<f64> {
    let first = First {
        numbers: counts.iter().sum(),
        counts,
        below: 0,
    };
    let wanted = Wanted::new(q, first.numbers);
    let none = |_: u32, _: &[u64]| unreachable!("the first digit is all of a short key");
    wanted.between(&first.select::<T>(none, &wanted.ranks))
}

/// Which of all numbers in their order are asked for.
struct Wanted {
    /// Between the ranks, for each percentile.
    places: Vec<f64>,
    /// In their order, each once.
    ranks: Vec<u64>,
    last: u64,
}

impl Wanted {
    fn new(q: &[f64], count: u64) -> Self {
        let last = count.saturating_sub(1);
        let places: Vec<f64> = q.iter().map(|q| q / 100.0 * last as f64).collect();
        let mut ranks: Vec<u64> = places
            .iter()
            .flat_map(|place| [place.floor() as u64, place.floor() as u64 + 1])
            .map(|rank| rank.min(last))
            .collect();
        ranks.sort_unstable();
        ranks.dedup();
        Self {
            places,
            ranks,
            last,
        }
    }

    /// The percentiles, given the values of the ranks.
    fn between<T: Pixel>(&self, values: &[T]) -> Vec<f64> {
        let value = |rank: u64| {
            // Every rank that is asked for is in the list.
            let rank = rank.min(self.last);
            values[self.ranks.partition_point(|&other| other < rank)].to_f64()
        };
        let percentile = |place: &f64| {
            let (low, high) = (value(place.floor() as u64), value(place.floor() as u64 + 1));
            let part = place - place.floor();
            // From the nearer end, so that both ends come out exactly.
            if part >= 0.5 {
                high - (high - low) * (1.0 - part)
            } else {
                low + (high - low) * part
            }
        };
        self.places.iter().map(percentile).collect()
    }
}

/// The leading digits of all pixels that are numbers, counted.
struct First {
    counts: Vec<u64>,
    numbers: u64,
    /// Keys of NaN with their sign bit set are below all others; so many are to be passed over.
    below: u64,
}

impl First {
    fn new<T: Pixel>(image: View<'_, T>) -> Self {
        if size_of::<T>() <= 2 {
            let counts = super::histogram::count_values(image);
            let numbers = pixels(image) as u64;
            return Self {
                counts,
                numbers,
                below: 0,
            };
        }
        let (size, shift) = (1 << DIGIT, 8 * size_of::<T>() as u32 - DIGIT);
        let level = Level::new();
        // Two tables, since equal neighbours would wait for each other's count.
        let two = count_by(image, 2 * size, |table, part| {
            let mut digits = [0; BLOCK];
            for block in part.chunks(BLOCK) {
                dispatch!(level, _simd => leading(block, shift, &mut digits));
                let (even, odd) = table.split_at_mut(size);
                for pair in digits[..block.len()].chunks(2) {
                    even[usize::from(pair[0])] += 1;
                    if let Some(&digit) = pair.get(1) {
                        odd[usize::from(digit)] += 1;
                    }
                }
            }
        });
        let mut counts = two[..size].to_vec();
        for (sum, next) in counts.iter_mut().zip(&two[size..]) {
            *sum += next;
        }
        // NaN is at both ends. Only where something is there does it need a closer look.
        let doubtful = |digit: &usize| {
            let (first, last) = ((*digit as u64) << shift, (*digit as u64 + 1) << shift);
            let last = last.wrapping_sub(1);
            [first, last]
                .map(T::from_key)
                .iter()
                .any(|it| it.to_f64().is_nan())
        };
        let low = (0..size).take_while(doubtful);
        let high = (0..size).rev().take_while(doubtful);
        let found: u64 = low.chain(high).map(|digit| counts[digit]).sum();
        let nan = if found == 0 {
            vec![0, 0]
        } else {
            count_by(image, 2, |table, part| {
                for pixel in part.iter().filter(|pixel| pixel.to_f64().is_nan()) {
                    let key: u64 = pixel.key().into();
                    table[(key >> (shift + DIGIT - 1)) as usize & 1] += 1;
                }
            })
        };
        Self {
            counts,
            numbers: pixels(image) as u64 - nan[0] - nan[1],
            below: nan[0],
        }
    }

    /// The values of these ranks (0 is the least number), which ascend. `next` counts the digits
    /// behind leading ones.
    fn select<T: Pixel>(&self, next: impl Fn(u32, &[u64]) -> Vec<u64>, ranks: &[u64]) -> Vec<T> {
        let bits = 8 * size_of::<T>() as u32;
        let digit = DIGIT.min(bits);
        let mut searches: Vec<Search> = ranks
            .iter()
            .map(|&rank| Search {
                prefix: 0,
                rank: rank + self.below,
            })
            .collect();
        for search in &mut searches {
            descend(search, &self.counts, digit);
        }
        let mut shift = bits - digit;
        while shift > 0 {
            shift -= digit;
            let before = searches.clone();
            let mut prefixes: Vec<u64> = before.iter().map(|search| search.prefix).collect();
            prefixes.dedup();
            for some in prefixes.chunks(SLOTS) {
                let counts = next(shift, some);
                for (search, before) in searches.iter_mut().zip(&before) {
                    if let Ok(slot) = some.binary_search(&before.prefix) {
                        descend(search, &counts[slot << DIGIT..][..1 << DIGIT], digit);
                    }
                }
            }
        }
        searches
            .iter()
            .map(|search| T::from_key(search.prefix))
            .collect()
    }
}

/// Adds the next digit: that of the value whose rank is reached when the counts are added up.
fn descend(search: &mut Search, counts: &[u64], digit: u32) {
    let mut next = 0;
    while next + 1 < counts.len() && search.rank >= counts[next] {
        search.rank -= counts[next];
        next += 1;
    }
    search.prefix = (search.prefix << digit) | next as u64;
}

/// Pixels that are looked at together.
const BLOCK: usize = 64;

/// The leading digits of some pixels.
#[inline(always)]
fn leading<T: Pixel>(block: &[T], shift: u32, digits: &mut [u16; BLOCK]) {
    for (digit, pixel) in digits.iter_mut().zip(block) {
        let key: u64 = pixel.key().into();
        *digit = (key >> shift) as u16;
    }
}

/// Which digits are among those wanted: 1, or 0.
#[inline(always)]
fn among(digits: &[u16; BLOCK], wanted: &[u16]) -> [u8; BLOCK] {
    let mut found = [0; BLOCK];
    for &digit in wanted {
        for (found, &other) in found.iter_mut().zip(digits) {
            *found |= u8::from(digit == other);
        }
    }
    found
}

/// How often each next digit occurs behind each of these leading digits, which ascend.
fn next_digits<T: Pixel>(image: View<'_, T>, shift: u32, prefixes: &[u64]) -> Vec<u64> {
    let bits = 8 * size_of::<T>() as u32;
    let above = shift + DIGIT;
    // Most pixels are told apart by their first digit.
    let mut firsts: Vec<u16> = prefixes
        .iter()
        .map(|prefix| (prefix >> (bits - DIGIT - above)) as u16)
        .collect();
    firsts.dedup();
    let level = Level::new();
    count_by(image, prefixes.len() << DIGIT, |table, part| {
        let mut digits = [0; BLOCK];
        let mut kept = [0_u64; BLOCK];
        for block in part.chunks(BLOCK) {
            let found = dispatch!(level, _simd => {
                leading(block, bits - DIGIT, &mut digits);
                among(&digits, &firsts)
            });
            // What is wanted is put side by side without asking, which nobody could guess.
            let mut count = 0;
            for (pixel, found) in block.iter().zip(found) {
                kept[count] = pixel.key().into();
                count += usize::from(found);
            }
            for key in &kept[..count] {
                if let Some(slot) = prefixes.iter().position(|prefix| *prefix == key >> above) {
                    table[(slot << DIGIT) | (key >> shift & 0xffff) as usize] += 1;
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted<T: Pixel>(data: &[T], q: f64) -> f64 {
        let mut all: Vec<f64> = data.iter().map(|v| v.to_f64()).collect();
        all.sort_by(f64::total_cmp);
        let place = (all.len() - 1) as f64 * (q / 100.0);
        let (low, high) = (all[place.floor() as usize], all[place.ceil() as usize]);
        low + (high - low) * place.fract()
    }

    fn check<T: Pixel>(data: &[T], q: &[f64]) -> Result<(), TestCaseError> {
        let found = percentiles(View::packed(data, [1, 1, data.len()]), q);
        for (found, &q) in found.iter().zip(q) {
            let want = sorted(data, q);
            prop_assert!(
                (found - want).abs() <= want.abs() * 1e-12,
                "{q}: {found} {want}"
            );
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn as_from_a_sorted_copy(
            data in proptest::collection::vec(-40_000_i32..40_000, 1..300),
            q in proptest::collection::vec(0.0_f64..=100.0, 1..25),
        ) {
            check(&data, &q)?;
            check(&data.iter().map(|&v| v as f32 / 7.0).collect::<Vec<_>>(), &q)?;
            check(&data.iter().map(|&v| f64::from(v) / 7.0).collect::<Vec<_>>(), &q)?;
            check(&data.iter().map(|&v| v as i16).collect::<Vec<_>>(), &q)?;
            check(&data.iter().map(|&v| v as u8).collect::<Vec<_>>(), &q)?;
            check(&data.iter().map(|&v| v as u32).collect::<Vec<_>>(), &q)?;
        }
    }

    /// Images large enough for a sample, of several characters: what is found must be what counting
    /// digits finds, bit for bit.
    #[test]
    fn a_sample_finds_what_counting_finds() {
        let dims = [2, 330, 200];
        let count: u64 = 2 * 330 * 200;
        let random = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let sorts: [(&str, &dyn Fn(u64) -> f32); 7] = [
            ("noise", &|at| random(at) as f32 / 1e3 - 8e3),
            ("ramp", &|at| at as f32),
            ("bell", &|at| {
                (0..4).map(|k| random(4 * at + k) as f32).sum()
            }),
            ("mostly zero", &|at| {
                if random(at) % 10 == 0 {
                    random(at) as f32
                } else {
                    0.0
                }
            }),
            ("two values", &|at| (random(at) % 2) as f32),
            ("one value", &|_| -3.5),
            ("stripes", &|at| ((at % 256) * 7) as f32),
        ];
        let lists: [&[f64]; 3] = [
            &[1.0, 99.8],
            &[0.0, 50.0, 100.0],
            &[0.1, 25.0, 50.0, 75.0, 99.9],
        ];
        let mut used = 0;
        for (name, value) in sorts {
            let reals: Vec<f32> = (0..count).map(value).collect();
            let wide: Vec<f64> = reals.iter().map(|&v| f64::from(v) / 3.0).collect();
            let whole: Vec<i32> = reals.iter().map(|&v| v as i32 - 5).collect();
            for q in lists {
                used += usize::from(same(&reals, dims, q, name));
                used += usize::from(same(&wide, dims, q, name));
                used += usize::from(same(&whole, dims, q, name));
            }
        }
        // It is of no use for five ranks far apart, and that is about all.
        assert!(used >= 7 * 3 * 2 - 2, "{used}");
    }

    /// Both ways find the same; answers whether there was a sample's way.
    fn same<T: Pixel>(data: &[T], dims: [usize; 3], q: &[f64], name: &str) -> bool {
        let image = View::packed(data, dims);
        let wanted = Wanted::new(q, data.len() as u64);
        let next = |shift: u32, prefixes: &[u64]| next_digits(image, shift, prefixes);
        let counted = First::new(image).select::<T>(next, &wanted.ranks);
        let Some(found) = bracket::select(image, &wanted.ranks) else {
            return false;
        };
        let keys = |all: &[T]| all.iter().map(|v| v.key().into()).collect::<Vec<u64>>();
        assert_eq!(keys(&found), keys(&counted), "{name} {q:?}");
        true
    }

    #[test]
    fn a_sample_is_not_deceived_by_what_it_did_not_see() {
        let mut data: Vec<f32> = (0..1 << 18).map(|at| at as f32).collect();
        let image = |data: &[f32]| bracket::select(View::packed(data, [1, 512, 512]), &[1000]);
        assert!(image(&data).is_some());
        data[77] = f32::NAN;
        assert!(image(&data).is_none(), "one NaN makes another count");
        data[77] = -f32::NAN;
        assert!(image(&data).is_none());
    }

    #[test]
    fn nan_does_not_count() {
        let data = [1.0, f32::NAN, 3.0, -f32::NAN, -2.0];
        let found = percentiles(View::packed(&data, [1, 1, 5]), &[0.0, 50.0, 100.0]);
        assert_eq!(found, [-2.0, 1.0, 3.0]);
        assert!(percentiles(View::packed(&[f64::NAN], [1, 1, 1]), &[0.0])[0].is_nan());
        assert!(percentiles(View::packed(&[0_u8; 0], [1, 0, 0]), &[50.0])[0].is_nan());
    }
}
