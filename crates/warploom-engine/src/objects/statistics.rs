//! A row of numbers for every label.

use rayon::prelude::*;

use super::{ByLabel, greatest, number};
use crate::share::fit;
use crate::{Pixel, View};

/// What is known of one label.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Statistics {
    /// Its number.
    pub label: u64,
    /// Its pixels.
    pub area: u64,
    /// The sum of the image's values over them.
    pub sum: f64,
    /// The sum by the area.
    pub mean: f64,
    /// The least value; NaN is ignored.
    pub minimum: f64,
    /// The greatest value; NaN is ignored.
    pub maximum: f64,
    /// The root of the mean square deviation from the mean.
    pub std: f64,
    /// The mean position in z, y, x.
    pub centroid: [f64; 3],
    /// The first position it has in each of z, y, x.
    pub start: [u64; 3],
    /// The position behind its last in each of z, y, x.
    pub stop: [u64; 3],
}

/// Sums that are collected while the image is read.
#[derive(Clone, Copy, Debug)]
struct Sums {
    area: u64,
    sum: f64,
    minimum: f64,
    maximum: f64,
    places: [u64; 3],
    start: [u32; 3],
    stop: [u32; 3],
}

const NOTHING: Sums = Sums {
    area: 0,
    sum: 0.0,
    minimum: f64::INFINITY,
    maximum: f64::NEG_INFINITY,
    places: [0; 3],
    start: [u32::MAX; 3],
    stop: [0; 3],
};

impl Sums {
    /// Adds pixels `x..x + values.len()` of a row.
    #[inline(always)]
    fn add<T: Pixel>(&mut self, [z, y, x]: [usize; 3], values: &[T]) {
        let (mut least, mut most) = (T::GREATEST, T::LEAST);
        for &value in values {
            self.sum += value.to_f64();
            least = least.lesser(value);
            most = most.greater(value);
        }
        self.minimum = self.minimum.lesser(least.to_f64());
        self.maximum = self.maximum.greater(most.to_f64());
        let count = values.len() as u64;
        self.area += count;
        let between = count * x as u64 + count * (count - 1) / 2;
        let ends = [z, y, x + values.len() - 1].map(|end| end as u32);
        for (axis, (first, last)) in [z, y, x].into_iter().zip(ends).enumerate() {
            self.places[axis] += [count * z as u64, count * y as u64, between][axis];
            self.start[axis] = self.start[axis].min(first as u32);
            self.stop[axis] = self.stop[axis].max(last + 1);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.area += other.area;
        self.sum += other.sum;
        self.minimum = self.minimum.lesser(other.minimum);
        self.maximum = self.maximum.greater(other.maximum);
        for axis in 0..3 {
            self.places[axis] += other.places[axis];
            self.start[axis] = self.start[axis].min(other.start[axis]);
            self.stop[axis] = self.stop[axis].max(other.stop[axis]);
        }
    }
}

/// Rows that are summed by themselves: the same for any number of threads, so that sums are too.
const ROWS: usize = 256;

/// Calls `each` with every run of one label: its number, position and values.
fn for_runs<T: Pixel>(
    labels: View<'_, u32>,
    image: View<'_, T>,
    row: usize,
    mut each: impl FnMut(u64, [usize; 3], &[T]),
) {
    let [_, ny, nx] = labels.dims();
    let (z, y) = (row / ny, row % ny);
    let (line, values) = (labels.row(z, y), image.row(z, y));
    let mut x = 0;
    while x < nx {
        let (start, label) = (x, line[x]);
        x += 1;
        while x < nx && line[x] == label {
            x += 1;
        }
        let label = number(label);
        if label > 0 {
            each(label, [z, y, start], &values[start..x]);
        }
    }
}

/// Measures every label (not 0) on an image, in ascending order of labels.
///
/// Sums are taken in `f64` in scan order over bands of 256 rows, which are then added in order.
pub fn label_statistics<T: Pixel>(labels: View<'_, u32>, image: View<'_, T>) -> Vec<Statistics> {
    fit(labels.dims(), image.dims());
    let [nz, ny, _] = labels.dims();
    let (rows, most) = (nz * ny, greatest(labels));
    let band = |band: usize| band * ROWS..((band + 1) * ROWS).min(rows);
    let mut total = in_bands(
        rows.div_ceil(ROWS),
        most,
        NOTHING,
        Sums::merge,
        |at, sums| {
            for row in band(at) {
                for_runs(labels, image, row, |label, place, values| {
                    sums.entry(label).add(place, values);
                });
            }
        },
    );
    let means = |label: u64, total: &ByLabel<Sums>| {
        let sums = total.value(label);
        sums.sum / sums.area as f64
    };
    let squares = in_bands(
        rows.div_ceil(ROWS),
        most,
        0.0,
        |a, b| *a += b,
        |at, sums| {
            for row in band(at) {
                for_runs(labels, image, row, |label, _, values| {
                    let mean = means(label, &total);
                    let sum = sums.entry(label);
                    for value in values {
                        let off = value.to_f64() - mean;
                        *sum += off * off;
                    }
                });
            }
        },
    );
    let found = total.labels().into_iter().filter_map(|label| {
        let sums = *total.entry(label);
        (sums.area > 0).then(|| Statistics {
            label,
            area: sums.area,
            sum: sums.sum,
            mean: sums.sum / sums.area as f64,
            minimum: sums.minimum,
            maximum: sums.maximum,
            std: (squares.value(label) / sums.area as f64).sqrt(),
            centroid: sums.places.map(|sum| sum as f64 / sums.area as f64),
            start: sums.start.map(u64::from),
            stop: sums.stop.map(u64::from),
        })
    });
    found.collect()
}

/// Collects something for every label, band by band, and merges bands in order.
///
/// A table is as long as the greatest label, so only a few bands are held at a time.
fn in_bands<V: Copy + Send + Sync>(
    bands: usize,
    most: u64,
    start: V,
    merge: impl Fn(&mut V, &V),
    collect: impl Fn(usize, &mut ByLabel<V>) + Sync,
) -> ByLabel<V> {
    let mut total = ByLabel::new(most, start);
    let together = rayon::current_num_threads();
    for first in (0..bands).step_by(together) {
        let found: Vec<ByLabel<V>> = (first..bands.min(first + together))
            .into_par_iter()
            .map(|band| {
                let mut found = ByLabel::new(most, start);
                collect(band, &mut found);
                found
            })
            .collect();
        for found in &found {
            match found {
                ByLabel::Table(table) => {
                    for (label, value) in table.iter().enumerate() {
                        merge(total.entry(label as u64), value);
                    }
                }
                ByLabel::Map(map, _) => {
                    for (&label, value) in map {
                        merge(total.entry(label), value);
                    }
                }
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(9)]
    #[case(u32::MAX)]
    fn every_label_is_measured(#[case] other: u32) {
        let (nz, ny, nx) = (3, 200, 7);
        let labels: Vec<u32> = (0..nz * ny * nx)
            .map(|at| match at * 31 % 17 {
                0..5 => 2,
                5..9 => other,
                _ => 0,
            })
            .collect();
        let image: Vec<f32> = (0..labels.len())
            .map(|at| (at as f32).sin() * 100.0)
            .collect();
        let dims = [nz, ny, nx];
        let found = label_statistics(View::packed(&labels, dims), View::packed(&image, dims));
        assert_eq!(found.len(), 2);
        for row in &found {
            let mine: Vec<usize> = (0..labels.len())
                .filter(|&at| u64::from(labels[at]) == row.label)
                .collect();
            let values: Vec<f64> = mine.iter().map(|&at| f64::from(image[at])).collect();
            let count = mine.len() as f64;
            let sum: f64 = values.iter().sum();
            let spread = values
                .iter()
                .map(|v| (v - sum / count).powi(2))
                .sum::<f64>()
                / count;
            assert_eq!(row.area, mine.len() as u64);
            assert!((row.sum - sum).abs() < 1e-7 && (row.mean - sum / count).abs() < 1e-9);
            assert!((row.std - spread.sqrt()).abs() < 1e-9);
            assert_eq!(
                row.minimum,
                values.iter().copied().fold(f64::INFINITY, f64::min)
            );
            assert_eq!(
                row.maximum,
                values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
            );
            for (axis, stride) in [(0, ny * nx), (1, nx), (2, 1)] {
                let at = |at: &usize| (at / stride % dims[axis]) as u64;
                let places: Vec<u64> = mine.iter().map(at).collect();
                assert_eq!(
                    row.centroid[axis],
                    places.iter().sum::<u64>() as f64 / count
                );
                assert_eq!(Some(row.start[axis]), places.iter().copied().min());
                assert_eq!(Some(row.stop[axis] - 1), places.iter().copied().max());
            }
        }
    }

    #[test]
    fn no_labels_no_rows() {
        let found = label_statistics(
            View::packed(&[0_u32; 4], [1, 2, 2]),
            View::packed(&[1.0_f32; 4], [1, 2, 2]),
        );
        assert_eq!(found, []);
    }
}
