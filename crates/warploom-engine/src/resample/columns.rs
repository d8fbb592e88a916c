//! Rows that are read at the same columns, from the same few rows of an image.

use super::{Between, mix};
use crate::{Pixel, Real, View};

/// Where the pixels of a row are read.
pub(super) struct Columns<R> {
    /// The first that is read inside of the image; those before are 0.
    start: usize,
    /// All that are, in order; those behind are 0.
    inside: Vec<Between<R>>,
    /// How far along they are.
    parts: Vec<R>,
    /// How many pixels each place but the last is from the one before, where that is the same for
    /// all, and the pixel to its right is another.
    stride: Option<usize>,
}

impl<R: Real> Columns<R> {
    /// Positions go one way, so those inside are neighbours.
    pub(super) fn new(places: impl Iterator<Item = Option<Between<R>>>) -> Self {
        let mut start = 0;
        let mut inside = Vec::new();
        for (x, place) in places.enumerate() {
            if let Some(place) = place {
                if inside.is_empty() {
                    start = x;
                }
                inside.push(place);
            }
        }
        let most = &inside[..inside.len().saturating_sub(1)];
        let stride = match most {
            [first, second, ..] => second.low.checked_sub(first.low),
            _ => None,
        };
        let stride = stride.filter(|stride| {
            most.windows(2)
                .all(|pair| pair[1].low == pair[0].low + stride)
                && most.iter().all(|place| place.high == place.low + 1)
        });
        Self {
            start,
            parts: inside.iter().map(|place| place.part).collect(),
            inside,
            stride,
        }
    }

    #[inline(always)]
    pub(super) fn read<T: Pixel<Real = R>>(&self, lines: &Lines<'_, T>, row: &mut [R]) {
        let end = self.start + self.inside.len();
        row[..self.start].fill(R::ZERO);
        row[end..].fill(R::ZERO);
        let row = &mut row[self.start..end];
        let Some((last, most)) = self.inside.split_last() else {
            return;
        };
        // Slices instead of places, for vector code; the last one may have no pixel to its right.
        let count = most.len();
        match self.stride {
            Some(1) => self.side_by_side(lines, &mut row[..count]),
            Some(2) => self.apart::<T, 2>(lines, &mut row[..count]),
            Some(3) => self.apart::<T, 3>(lines, &mut row[..count]),
            Some(4) => self.apart::<T, 4>(lines, &mut row[..count]),
            _ => {
                for (to, &place) in row.iter_mut().zip(&self.inside) {
                    *to = lines.value(place);
                }
            }
        }
        row[count] = lines.value(*last);
    }

    /// One place after the other.
    #[inline(always)]
    fn side_by_side<T: Pixel<Real = R>>(&self, lines: &Lines<'_, T>, row: &mut [R]) {
        let low = self.inside[0].low;
        let parts = &self.parts[..row.len()];
        let lines_of = lines
            .rows
            .map(|rows| rows.map(|line| &line[low..=low + row.len()]));
        let mixed = |line: &[T], x: usize| mix(line[x].to_real(), line[x + 1].to_real(), parts[x]);
        lines.down(row, |z, y, x| mixed(lines_of[z][y], x));
    }

    /// `N` pixels from place to place, two or more.
    #[inline(always)]
    fn apart<T: Pixel<Real = R>, const N: usize>(&self, lines: &Lines<'_, T>, row: &mut [R]) {
        let low = self.inside[0].low;
        let parts = &self.parts[..row.len()];
        // Of the last place two pixels are there, perhaps not all N; so it is made by itself.
        let Some((last, most)) = row.split_last_mut() else {
            return;
        };
        let lines_of = lines.rows.map(|rows| {
            rows.map(|line| &line[low..low + N * most.len()].as_chunks::<N>().0[..most.len()])
        });
        let mixed =
            |line: &[[T; N]], x: usize| mix(line[x][0].to_real(), line[x][1].to_real(), parts[x]);
        lines.down(most, |z, y, x| mixed(lines_of[z][y], x));
        *last = lines.value(self.inside[most.len()]);
    }
}

/// The rows around a position in z and y.
pub(super) struct Lines<'a, T: Pixel> {
    rows: [[&'a [T]; 2]; 2],
    z: Between<T::Real>,
    y: Between<T::Real>,
    /// The image has one pixel along z, along y.
    flat: [bool; 2],
}

impl<'a, T: Pixel> Lines<'a, T> {
    #[inline(always)]
    pub(super) fn new(image: View<'a, T>, z: Between<T::Real>, y: Between<T::Real>) -> Self {
        let rows = [z.low, z.high].map(|z| [y.low, y.high].map(|y| image.row(z, y)));
        let [nz, ny, _] = image.dims();
        Self {
            rows,
            z,
            y,
            flat: [nz == 1, ny == 1],
        }
    }

    /// A row, given what is mixed along x: plane, line and place.
    #[inline(always)]
    fn down(&self, row: &mut [T::Real], mixed: impl Fn(usize, usize, usize) -> T::Real) {
        let (y, z) = (self.y.part, self.z.part);
        let plane = |z: usize, x: usize| mix(mixed(z, 0, x), mixed(z, 1, x), y);
        match self.flat {
            [true, true] => {
                for (x, to) in row.iter_mut().enumerate() {
                    *to = mixed(0, 0, x);
                }
            }
            [true, false] => {
                for (x, to) in row.iter_mut().enumerate() {
                    *to = plane(0, x);
                }
            }
            [false, true] => {
                for (x, to) in row.iter_mut().enumerate() {
                    *to = mix(mixed(0, 0, x), mixed(1, 0, x), z);
                }
            }
            [false, false] => {
                for (x, to) in row.iter_mut().enumerate() {
                    *to = mix(plane(0, x), plane(1, x), z);
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn value(&self, x: Between<T::Real>) -> T::Real {
        let line = |row: &[T]| x.mix(row[x.low].to_real(), row[x.high].to_real());
        let plane = |rows: &[&[T]; 2]| {
            let low = line(rows[0]);
            if self.flat[1] {
                low
            } else {
                self.y.mix(low, line(rows[1]))
            }
        };
        let low = plane(&self.rows[0]);
        if self.flat[0] {
            low
        } else {
            self.z.mix(low, plane(&self.rows[1]))
        }
    }
}
