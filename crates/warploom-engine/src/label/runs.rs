//! Runs: the stretches of rows that belong to something.

use std::ops::Range;

use rayon::prelude::*;

use crate::share::{band_height, for_bands};
use crate::{Pixel, View, ViewMut};

/// Pixels `start..end` of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The runs of some consecutive rows.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) rows: Range<usize>,
    pub(crate) runs: Vec<Run>,
    /// For every row the first of its runs; one entry more than rows.
    pub(crate) starts: Vec<u32>,
    /// Runs in the parts before.
    pub(crate) before: usize,
}

impl Part {
    pub(crate) fn row(&self, row: usize) -> Range<usize> {
        let at = row - self.rows.start;
        self.starts[at] as usize..self.starts[at + 1] as usize
    }
}

/// All runs of an image, in scan order.
#[derive(Debug)]
pub(crate) struct Runs {
    pub(crate) dims: [usize; 3],
    pub(crate) parts: Vec<Part>,
    /// Rows of every part but the last.
    height: usize,
}

impl Runs {
    /// Runs of what is set in a mask, or of what is not.
    pub(crate) fn of_mask<T: Pixel>(mask: View<'_, T>, of_zeros: bool) -> Self {
        let flip = if of_zeros { u64::MAX } else { 0 };
        Self::find(mask, |row, runs| {
            let mut inside = false;
            for (at, block) in row.chunks(64).enumerate() {
                let mut word = pack_bits(block) ^ flip;
                if block.len() < 64 {
                    word &= (1 << block.len()) - 1;
                }
                // A bit is set wherever the mask changes.
                let mut turns = word ^ (word << 1 | u64::from(inside));
                inside = word >> 63 != 0;
                while turns != 0 {
                    let x = (64 * at) as u32 + turns.trailing_zeros();
                    turns &= turns - 1;
                    match runs.last_mut() {
                        Some(Run { end, .. }) if *end == u32::MAX => *end = x,
                        _ => runs.push(Run {
                            start: x,
                            end: u32::MAX,
                        }),
                    }
                }
            }
            if let Some(Run { end, .. }) = runs.last_mut()
                && *end == u32::MAX
            {
                *end = row.len() as u32;
            }
        })
    }

    /// Runs of equal labels; zero belongs to none.
    pub(crate) fn of_labels<T: Pixel>(labels: View<'_, T>) -> Self {
        Self::find(labels, |row, runs| {
            let mut x = 0;
            while x < row.len() {
                let start = x;
                let value = row[x];
                while x < row.len() && row[x] == value {
                    x += 1;
                }
                // A NaN equals nothing, itself included.
                x = x.max(start + 1);
                if value != T::ZERO {
                    runs.push(Run {
                        start: start as u32,
                        end: x as u32,
                    });
                }
            }
        })
    }

    fn find<T: Pixel>(image: View<'_, T>, scan: impl Fn(&[T], &mut Vec<Run>) + Sync) -> Self {
        let dims @ [nz, ny, nx] = image.dims();
        let rows = nz * ny;
        let parts = rows
            .div_ceil(band_height(nx))
            .clamp(1, 4 * rayon::current_num_threads());
        let height = rows.div_ceil(parts).max(1);
        let mut parts: Vec<Part> = (0..rows.div_ceil(height))
            .into_par_iter()
            .map(|part| {
                let rows = part * height..((part + 1) * height).min(rows);
                let mut runs = Vec::with_capacity(rows.len() * nx.div_ceil(32));
                let mut starts = Vec::with_capacity(rows.len() + 1);
                starts.push(0);
                for row in rows.clone() {
                    scan(image.row(row / ny, row % ny), &mut runs);
                    starts.push(runs.len() as u32);
                }
                Part {
                    rows,
                    runs,
                    starts,
                    before: 0,
                }
            })
            .collect();
        let mut before = 0;
        for part in &mut parts {
            part.before = before;
            before += part.runs.len();
        }
        Self {
            dims,
            parts,
            height,
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.parts
            .last()
            .map_or(0, |part| part.before + part.runs.len())
    }

    /// The part that has a row.
    pub(crate) fn part(&self, row: usize) -> &Part {
        &self.parts[row / self.height]
    }

    /// The runs of a row, and their numbers among all.
    pub(crate) fn row(&self, row: usize) -> (Range<usize>, &[Run]) {
        let part = self.part(row);
        let runs = part.row(row);
        (
            runs.start + part.before..runs.end + part.before,
            &part.runs[runs],
        )
    }

    /// Writes an image row by row from the runs and their numbers.
    pub(crate) fn for_each_row<T: Send>(
        &self,
        out: ViewMut<'_, T>,
        write: impl Fn(Range<usize>, &[Run], &mut [T]) + Sync,
    ) {
        for_bands(out, band_height(self.dims[2]), &|mut band| {
            for row in band.rows() {
                let (numbers, runs) = self.row(row);
                write(numbers, runs, band.row(row));
            }
        });
    }
}

/// One bit for each of at most 64 pixels: whether it is not zero.
#[inline(always)]
pub(crate) fn pack_bits<T: Pixel>(block: &[T]) -> u64 {
    let mut bytes = [0_u8; 64];
    for (byte, &pixel) in bytes.iter_mut().zip(block) {
        *byte = u8::from(pixel != T::ZERO);
    }
    let mut word = 0;
    for (at, eight) in bytes.as_chunks().0.iter().enumerate() {
        // Eight bytes of 0 or 1, gathered into one by a multiplication that lines them up.
        let lanes = u64::from_le_bytes(*eight);
        word |= (lanes.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn runs_are_what_is_set(data in proptest::collection::vec(0_u8..3, 1..300)) {
            let view = View::packed(&data, [1, 1, data.len()]);
            for zeros in [false, true] {
                let runs = Runs::of_mask(view, zeros);
                let mut set = vec![zeros; data.len()];
                for run in runs.row(0).1 {
                    set[run.start as usize..run.end as usize].fill(!zeros);
                }
                let same = set.iter().zip(&data).all(|(&set, &value)| set == (value != 0));
                proptest::prop_assert!(same);
                let apart = runs.row(0).1.windows(2).all(|pair| pair[0].end < pair[1].start);
                proptest::prop_assert!(apart);
            }
            let runs = Runs::of_labels(view);
            let mut values = vec![0; data.len()];
            for run in runs.row(0).1 {
                values[run.start as usize..run.end as usize].fill(data[run.start as usize]);
            }
            proptest::prop_assert_eq!(values, data);
        }
    }
}
