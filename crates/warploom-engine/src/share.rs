//! How the work on an image is shared out among threads.

use std::ops::Range;

use super::way::Way;
use super::{View, ViewMut};

/// Elements that are worth a task of their own.
const TASK: usize = 1 << 15;

/// Some consecutive rows of an image to write, counted over all planes.
pub(crate) struct Band<'a, T> {
    data: &'a mut [T],
    /// Where `data` starts in the image.
    origin: usize,
    rows: Range<usize>,
    dims: [usize; 3],
    pitch: [usize; 2],
}

impl<'a, T> Band<'a, T> {
    fn whole(image: ViewMut<'a, T>) -> Self {
        let (data, dims, pitch) = image.into_parts();
        Self {
            data,
            origin: 0,
            rows: 0..if dims[2] == 0 { 0 } else { dims[0] * dims[1] },
            dims,
            pitch,
        }
    }

    fn start(&self, row: usize) -> usize {
        row / self.dims[1] * self.pitch[0] + row % self.dims[1] * self.pitch[1]
    }

    fn split(self, at: usize) -> (Self, Self) {
        let cut = self.start(at);
        let (low, high) = self.data.split_at_mut(cut - self.origin);
        let low = Self {
            data: low,
            rows: self.rows.start..at,
            ..self
        };
        let high = Self {
            data: high,
            origin: cut,
            rows: at..self.rows.end,
            ..low
        };
        (low, high)
    }

    /// Which rows.
    pub(crate) fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// One of them, by its number in the image.
    pub(crate) fn row(&mut self, row: usize) -> &mut [T] {
        let start = self.start(row) - self.origin;
        &mut self.data[start..start + self.dims[2]]
    }
}

/// Runs `work` on bands of about `height` rows, in any order, on all threads.
pub(crate) fn for_bands<T: Send>(
    image: ViewMut<'_, T>,
    height: usize,
    work: &(impl Fn(Band<'_, T>) + Sync),
) {
    fn halve<T: Send>(
        band: Band<'_, T>,
        height: usize,
        way: Way,
        work: &(impl Fn(Band<'_, T>) + Sync),
    ) {
        let count = band.rows.len();
        if count <= height {
            if count > 0 {
                work(band);
            }
            return;
        }
        let middle = band.rows.start + (count / 2).div_ceil(height) * height;
        let (low, high) = band.split(middle);
        way.join(
            || halve(low, height, way, work),
            || halve(high, height, way, work),
        );
    }
    halve(Band::whole(image), height.max(1), Way::next(), work);
}

/// Runs `work` on every row with its z and y, in any order, on all threads.
pub(crate) fn for_rows<T: Send>(
    image: ViewMut<'_, T>,
    work: impl Fn(usize, usize, &mut [T]) + Sync,
) {
    let [_, ny, nx] = image.dims();
    for_bands(image, TASK.div_ceil(nx.max(1)), &|mut band: Band<'_, T>| {
        for row in band.rows() {
            work(row / ny, row % ny, band.row(row));
        }
    });
}

/// Rows of `nx` pixels that make a task.
pub(crate) fn band_height(nx: usize) -> usize {
    TASK.div_ceil(nx.max(1))
}

/// Calls `work` with the pixels of `range`, counted in C order, in pieces that have no gaps.
#[inline(always)]
pub(crate) fn pieces<'a, T: Copy>(
    image: View<'a, T>,
    range: Range<usize>,
    mut work: impl FnMut(&'a [T]),
) {
    if let Some(all) = image.as_packed() {
        work(&all[range]);
        return;
    }
    let [_, ny, nx] = image.dims();
    let mut at = range.start;
    while at < range.end {
        let (row, x) = (at / nx, at % nx);
        let end = nx.min(x + range.end - at);
        work(&image.row(row / ny, row % ny)[x..end]);
        at += end - x;
    }
}

/// Refuses images of different extents: whoever calls a kernel has made its images fit.
#[track_caller]
pub(crate) fn fit(input: [usize; 3], output: [usize; 3]) {
    assert_eq!(input, output, "the extents of input and output differ");
}

/// Pixels of an image.
pub(crate) fn pixels<T: Copy>(image: View<'_, T>) -> usize {
    image.dims().iter().product()
}

/// Cuts `count` pixels into at most `each` ranges for each thread, none of them small.
pub(crate) fn portions(
    count: usize,
    each: usize,
) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
    let most = each * rayon::current_num_threads();
    let parts = count.div_ceil(TASK).clamp(1, most);
    (0..parts).map(move |part| count * part / parts..count * (part + 1) / parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_a_pitched_image_is_visited_once() {
        let mut data = vec![0_u32; 5 * 700];
        for_rows(
            ViewMut::pitched(&mut data, [5, 13, 40], [700, 50]),
            |z, y, row| {
                for pixel in row {
                    *pixel += (100 * z + y + 1) as u32;
                }
            },
        );
        let view = View::pitched(&data, [5, 13, 40], [700, 50]);
        for (z, y) in (0..5).flat_map(|z| (0..13).map(move |y| (z, y))) {
            assert_eq!(view.row(z, y), [(100 * z + y + 1) as u32; 40]);
        }
        assert_eq!(
            data.iter().filter(|&&pixel| pixel == 0).count(),
            3500 - 5 * 13 * 40
        );
        let mut seen = Vec::new();
        pieces(view, 35..85, |part| seen.extend_from_slice(part));
        assert_eq!(seen, [vec![1; 5], vec![2; 40], vec![3; 5]].concat());
    }

    #[test]
    fn portions_cover_everything() {
        for count in [0, 1, TASK, 10 * TASK + 7] {
            for each in [1, 4] {
                let ranges: Vec<_> = portions(count, each).collect();
                assert!(ranges.len() <= each * rayon::current_num_threads());
                assert_eq!(ranges[0].start, 0);
                assert_eq!(ranges[ranges.len() - 1].end, count);
                assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            }
        }
    }
}
