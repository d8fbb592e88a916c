//! Exact percentiles by counting the digits of keys: no sorted copy of the image.

use super::histogram::count_by;
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

/// Percentiles with linear interpolation, as `numpy.percentile`: `q` from 0 to 100, in any order.
///
/// All are NaN when a pixel is, and for an image without pixels.
pub fn percentiles<T: Pixel>(image: View<'_, T>, q: &[f64]) -> Vec<f64> {
    let count = pixels(image);
    if count == 0 {
        return vec![f64::NAN; q.len()];
    }
    let places: Vec<f64> = q.iter().map(|q| (count - 1) as f64 * (q / 100.0)).collect();
    let mut ranks: Vec<u64> = places
        .iter()
        .flat_map(|place| [place.floor() as u64, place.floor() as u64 + 1])
        .map(|rank| rank.min(count as u64 - 1))
        .collect();
    ranks.sort_unstable();
    ranks.dedup();
    let Some(values) = select(image, &ranks) else {
        return vec![f64::NAN; q.len()];
    };
    let value = |rank: u64| {
        let rank = rank.min(count as u64 - 1);
        // Every rank that is asked for was put into the list above.
        values[ranks.partition_point(|&other| other < rank)].to_f64()
    };
    places
        .iter()
        .map(|place| {
            let (low, high) = (value(place.floor() as u64), value(place.floor() as u64 + 1));
            let part = place - place.floor();
            // From the nearer end, so that both ends come out exactly; beside an infinity, too.
            if part == 0.0 {
                low
            } else if part >= 0.5 {
                high - (high - low) * (1.0 - part)
            } else {
                low + (high - low) * part
            }
        })
        .collect()
}

/// The values of these ranks (0 is the least), which ascend; `None` when a pixel is NaN.
pub fn select<T: Pixel>(image: View<'_, T>, ranks: &[u64]) -> Option<Vec<T>> {
    let bits = 8 * size_of::<T>() as u32;
    let digit = DIGIT.min(bits);
    let mut searches: Vec<Search> = ranks
        .iter()
        .map(|&rank| Search { prefix: 0, rank })
        .collect();
    let mut shift = bits - digit;
    let first = first_digits(image, shift, digit)?;
    for search in &mut searches {
        descend(search, &first, digit);
    }
    while shift > 0 {
        shift -= digit;
        let before = searches.clone();
        let mut prefixes: Vec<u64> = before.iter().map(|search| search.prefix).collect();
        prefixes.dedup();
        for some in prefixes.chunks(SLOTS) {
            let counts = next_digits(image, shift, some);
            for (search, before) in searches.iter_mut().zip(&before) {
                if let Ok(slot) = some.binary_search(&before.prefix) {
                    descend(search, &counts[slot << DIGIT..][..1 << DIGIT], digit);
                }
            }
        }
    }
    let values = searches.iter().map(|search| T::from_key(search.prefix));
    Some(values.collect())
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

/// How often each leading digit occurs; `None` when a pixel is NaN.
fn first_digits<T: Pixel>(image: View<'_, T>, shift: u32, digit: u32) -> Option<Vec<u64>> {
    if size_of::<T>() <= 2 {
        return Some(super::histogram::count_values(image));
    }
    // One more place in the table for NaN.
    let size = 1 << digit;
    let mut counts = count_by(image, size + 1, |table, part| {
        let mut nan = false;
        for pixel in part {
            let key: u64 = pixel.key().into();
            table[(key >> shift) as usize & (size - 1)] += 1;
            nan |= pixel.to_f64().is_nan();
        }
        table[size] |= u32::from(nan);
    });
    (counts.pop() == Some(0)).then_some(counts)
}

/// How often each next digit occurs behind each of these leading digits, which ascend.
fn next_digits<T: Pixel>(image: View<'_, T>, shift: u32, prefixes: &[u64]) -> Vec<u64> {
    let bits = 8 * size_of::<T>() as u32;
    let above = shift + DIGIT;
    // Most pixels are told apart by their first digit.
    let first = |prefix: u64| (prefix >> (bits - DIGIT - above)) as usize & 0xffff;
    let mut wanted = vec![false; 1 << DIGIT];
    for &prefix in prefixes {
        wanted[first(prefix)] = true;
    }
    count_by(image, prefixes.len() << DIGIT, |table, part| {
        for pixel in part {
            let key: u64 = pixel.key().into();
            if wanted[(key >> (bits - DIGIT)) as usize & 0xffff]
                && let Some(slot) = prefixes.iter().position(|&prefix| prefix == key >> above)
            {
                table[(slot << DIGIT) | (key >> shift & 0xffff) as usize] += 1;
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

    #[test]
    fn nan_and_nothing_have_no_percentiles() {
        assert!(percentiles(View::packed(&[1.0, f32::NAN], [1, 1, 2]), &[0.0])[0].is_nan());
        assert!(percentiles(View::packed(&[0_u8; 0], [1, 0, 0]), &[50.0])[0].is_nan());
        let ends = percentiles(
            View::packed(&[f64::INFINITY, -1.0], [1, 1, 2]),
            &[0.0, 100.0],
        );
        assert_eq!(ends[0], -1.0);
    }
}
