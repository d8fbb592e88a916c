//! How many pixels each label has.

use rayon::prelude::*;

use super::{ByLabel, TABLE, number};
use crate::share::{pieces, pixels, portions};
use crate::{Pixel, View};

/// Counts of a label in a table, of which neighbouring pixels take turns: most of them have the same
/// label, and a count that was just written cannot be read again at once.
const TURNS: usize = 4;

/// Labels up to this are counted in turns; tables for more of them would not stay in a cache.
const FEW: u64 = 1 << 20;

/// Pixels that are counted in one table: fewer than its counts can hold.
const MOST: usize = 1 << 31;

/// Bytes of a thread's table where the greatest label is `most`.
pub(super) fn table_bytes(most: u64) -> usize {
    let turns = if most < FEW { TURNS } else { 1 };
    most.min(TABLE) as usize * turns * size_of::<u32>()
}

/// How many pixels each label has, the greatest of which is `most`.
pub(super) fn areas<T: Pixel>(labels: View<'_, T>, most: u64) -> ByLabel<u64> {
    if most < FEW {
        ByLabel::Table(in_tables::<T, TURNS>(labels, most))
    } else if most < TABLE {
        ByLabel::Table(in_tables::<T, 1>(labels, most))
    } else {
        in_maps(labels, most)
    }
}

/// A table for each thread, then their sum.
fn in_tables<T: Pixel, const TURNS: usize>(labels: View<'_, T>, most: u64) -> Vec<u64> {
    let count = pixels(labels);
    let ranges = portions(count, count.div_ceil(MOST).max(1));
    let parts: Vec<Vec<[u32; TURNS]>> = ranges
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|range| {
            let mut table = vec![[0; TURNS]; most as usize + 1];
            pieces(labels, range, |part| {
                for group in part.chunks(TURNS) {
                    for (turn, &label) in group.iter().enumerate() {
                        table[number(label) as usize][turn] += 1;
                    }
                }
            });
            table
        })
        .collect();
    let mut total = vec![0; most as usize + 1];
    for part in &parts {
        for (total, counts) in total.iter_mut().zip(part) {
            *total += counts.iter().map(|&count| u64::from(count)).sum::<u64>();
        }
    }
    total
}

/// A map for each thread, then their sum. Labels come in runs, so most pixels need no look at it.
fn in_maps<T: Pixel>(labels: View<'_, T>, most: u64) -> ByLabel<u64> {
    let parts: Vec<ByLabel<u64>> = portions(pixels(labels), 1)
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|range| {
            let mut areas = ByLabel::new(most, 0);
            pieces(labels, range, |part| {
                let (mut last, mut count) = (0, 0);
                for &label in part {
                    let label = number(label);
                    if label != last {
                        *areas.entry(last) += count;
                        (last, count) = (label, 0);
                    }
                    count += 1;
                }
                *areas.entry(last) += count;
            });
            areas
        })
        .collect();
    let mut total = ByLabel::new(most, 0);
    for part in &parts {
        for label in part.labels() {
            *total.entry(label) += part.value(label);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tables_and_maps_count_alike(
            data in proptest::collection::vec(0_u32..9, 0..200),
            width in 1_usize..12,
        ) {
            // Rows with a gap behind them, so that pieces begin and end anywhere.
            let rows = data.len() / (width + 1);
            let dims = [1, rows, width];
            let labels = View::pitched(&data, dims, [data.len(), width + 1]);
            let most = data.iter().copied().max().unwrap_or(0).into();
            let mut want = vec![0; most as usize + 1];
            for y in 0..rows {
                for &label in labels.row(0, y) {
                    want[label as usize] += 1;
                }
            }
            prop_assert_eq!(&in_tables::<_, TURNS>(labels, most), &want);
            prop_assert_eq!(&in_tables::<_, 1>(labels, most), &want);
            let maps = in_maps(labels, TABLE);
            for (label, &area) in want.iter().enumerate() {
                prop_assert_eq!(maps.value(label as u64), area);
            }
        }
    }
}
