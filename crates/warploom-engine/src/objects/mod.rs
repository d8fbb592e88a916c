//! Label images: counting, choosing and renumbering objects, and measuring them.

mod areas;
mod statistics;

use std::collections::HashMap;

use rayon::prelude::*;

use super::lanes::{Level, dispatch};
use super::share::{fit, for_rows, pieces, pixels, portions};
use super::{Pixel, View, ViewMut};

pub use statistics::{Statistics, label_statistics};

/// Labels up to this have a place in a table; images with greater ones use a map.
const TABLE: u64 = 1 << 26;

/// Something kept for every label of an image; what labels have in common is their key, which for
/// images of signed numbers is shifted so that it is never negative.
#[derive(Debug)]
enum ByLabel<V> {
    Table(Vec<V>),
    Map(HashMap<u64, V>, V),
}

impl<V: Copy> ByLabel<V> {
    fn new(most: u64, start: V) -> Self {
        if most < TABLE {
            Self::Table(vec![start; most as usize + 1])
        } else {
            Self::Map(HashMap::new(), start)
        }
    }

    #[inline(always)]
    fn entry(&mut self, label: u64) -> &mut V {
        match self {
            Self::Table(table) => &mut table[label as usize],
            Self::Map(map, start) => map.entry(label).or_insert(*start),
        }
    }

    #[inline(always)]
    fn value(&self, label: u64) -> V {
        match self {
            Self::Table(table) => table[label as usize],
            Self::Map(map, start) => map.get(&label).copied().unwrap_or(*start),
        }
    }

    /// All labels that were entered, ascending; those of a table may never have been.
    fn labels(&self) -> Vec<u64> {
        match self {
            Self::Table(table) => (0..table.len() as u64).collect(),
            Self::Map(map, _) => {
                let mut labels: Vec<u64> = map.keys().copied().collect();
                labels.sort_unstable();
                labels
            }
        }
    }
}

/// The label as a number; negative ones and fractions are no labels and count as 0.
#[inline(always)]
fn number<T: Pixel>(label: T) -> u64 {
    if T::IS_FLOAT {
        label.to_f64() as u64
    } else {
        // Keys of signed numbers are shifted; what stays below that of 0 is negative.
        label.key().into().saturating_sub(T::ZERO.key().into())
    }
}

/// Bytes allocated for an image whose greatest label is `most`, on `threads` threads.
pub fn scratch_bytes(most: u64, threads: usize) -> usize {
    let names = size_of::<u64>() + size_of::<u32>();
    most.min(TABLE) as usize * names + threads * areas::table_bytes(most)
}

fn greatest<T: Pixel>(labels: View<'_, T>) -> u64 {
    let level = Level::new();
    let parts = portions(pixels(labels), 1)
        .collect::<Vec<_>>()
        .into_par_iter();
    let most = parts.map(|range| {
        let mut most = T::ZERO;
        pieces(labels, range, |part| {
            most = dispatch!(level, _simd => part.iter().fold(most, |most, &label| most.greater(label)));
        });
        number(most)
    });
    most.max().unwrap_or(0)
}

/// Writes what becomes of every label.
fn rewrite<T: Pixel>(labels: View<'_, T>, out: ViewMut<'_, u32>, names: &ByLabel<u32>) {
    fit(labels.dims(), out.dims());
    for_rows(out, |z, y, row| {
        let pixels = row.iter_mut().zip(labels.row(z, y));
        match names {
            // A look at the table costs less than a guess where the next label begins.
            ByLabel::Table(table) => {
                for (to, &label) in pixels {
                    *to = table[number(label) as usize];
                }
            }
            ByLabel::Map(..) => {
                let (mut last, mut value) = (0, 0);
                for (to, &label) in pixels {
                    let label = number(label);
                    if label != last {
                        (last, value) = (label, names.value(label));
                    }
                    *to = value;
                }
            }
        }
    });
}

/// Keeps labels whose pixel count passes `keep`, or numbers those from 1 in ascending order.
fn choose<T: Pixel>(
    labels: View<'_, T>,
    relabel: bool,
    out: ViewMut<'_, u32>,
    keep: impl Fn(u64) -> bool,
) -> u32 {
    let most = greatest(labels);
    let areas = areas::areas(labels, most);
    let mut names = ByLabel::new(most, 0_u32);
    let mut count = 0;
    for label in areas.labels() {
        let area = areas.value(label);
        if label > 0 && area > 0 && keep(area) {
            count += 1;
            *names.entry(label) = if relabel { count } else { label as u32 };
        }
    }
    rewrite(labels, out, &names);
    count
}

/// Removes labels of fewer than `least` or more than `most` pixels; the rest keep their numbers.
pub fn keep_sizes<T: Pixel>(labels: View<'_, T>, least: u64, most: u64, out: ViewMut<'_, u32>) {
    choose(labels, false, out, |area| (least..=most).contains(&area));
}

/// Removes labels of fewer than `minimum` pixels; answers how many stay, which with `relabel` are
/// numbered from 1 in ascending order.
pub fn remove_small_labels<T: Pixel>(
    labels: View<'_, T>,
    minimum: u64,
    relabel: bool,
    out: ViewMut<'_, u32>,
) -> u32 {
    choose(labels, relabel, out, |area| area >= minimum)
}

/// Removes labels of more than `maximum` pixels; answers how many stay, which with `relabel` are
/// numbered from 1 in ascending order.
pub fn remove_large_labels<T: Pixel>(
    labels: View<'_, T>,
    maximum: u64,
    relabel: bool,
    out: ViewMut<'_, u32>,
) -> u32 {
    choose(labels, relabel, out, |area| area <= maximum)
}

/// Numbers the labels that occur from 1 in ascending order, as
/// `skimage.segmentation.relabel_sequential`; answers how many there are.
pub fn relabel_sequential<T: Pixel>(labels: View<'_, T>, out: ViewMut<'_, u32>) -> u32 {
    choose(labels, true, out, |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(7, 4)]
    #[case(u32::MAX - 1, 3_000_000_000)]
    fn labels_are_chosen_by_area(#[case] a: u32, #[case] b: u32) {
        let data = [a, a, 0, b, b, b, 0, 1];
        let view = View::packed(&data, [1, 2, 4]);
        let mut out = [9; 8];
        let count = remove_small_labels(view, 2, false, ViewMut::packed(&mut out, [1, 2, 4]));
        assert_eq!((count, out), (2, [a, a, 0, b, b, b, 0, 0]));
        let count = remove_large_labels(view, 2, true, ViewMut::packed(&mut out, [1, 2, 4]));
        assert_eq!((count, out), (2, [2, 2, 0, 0, 0, 0, 0, 1]));
        let count = relabel_sequential(view, ViewMut::packed(&mut out, [1, 2, 4]));
        assert_eq!((count, out), (3, [3, 3, 0, 2, 2, 2, 0, 1]));
    }

    #[test]
    fn what_is_negative_is_background() {
        let data = [-3_i32, 5, 5, 0];
        let mut out = [9; 4];
        let view = View::packed(&data, [1, 1, 4]);
        assert_eq!(
            relabel_sequential(view, ViewMut::packed(&mut out, [1, 1, 4])),
            1
        );
        assert_eq!(out, [0, 1, 1, 0]);
    }
}
