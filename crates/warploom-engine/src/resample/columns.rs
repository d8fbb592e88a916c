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
        let (low, count) = (self.inside[0].low, row.len());
        let all = lines
            .rows
            .map(|rows| rows.map(|line| Beside::new(line, low, count)));
        lines.down(row, &self.parts[..count], all);
    }

    /// `N` pixels from place to place, two or more.
    #[inline(always)]
    fn apart<T: Pixel<Real = R>, const N: usize>(&self, lines: &Lines<'_, T>, row: &mut [R]) {
        let low = self.inside[0].low;
        // Of the last place two pixels are there, perhaps not all N; so it is made by itself.
        let Some((last, most)) = row.split_last_mut() else {
            return;
        };
        let count = most.len();
        let all = lines.rows.map(|rows| {
            rows.map(|line| Apart::<T, N>(&line[low..low + N * count].as_chunks::<N>().0[..count]))
        });
        lines.down(most, &self.parts[..count], all);
        *last = lines.value(self.inside[count]);
    }
}

/// A line of an image, mixed along x. Methods and not closures: what is not compiled into the loop it is
/// called in is compiled without vectors, and without the instruction that multiplies and adds.
trait Line<R>: Copy {
    /// Place number `x`, which is so far along.
    fn at(self, x: usize, part: R) -> R;
}

/// Places that follow each other: their pixels, and those to the right of them.
struct Beside<'a, T> {
    left: &'a [T],
    right: &'a [T],
}

impl<'a, T> Beside<'a, T> {
    /// `count` places from `low` on.
    #[inline(always)]
    fn new(line: &'a [T], low: usize, count: usize) -> Self {
        Self {
            left: &line[low..low + count],
            right: &line[low + 1..=low + count],
        }
    }
}

impl<T> Clone for Beside<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Beside<'_, T> {}

impl<T: Pixel> Line<T::Real> for Beside<'_, T> {
    #[inline(always)]
    fn at(self, x: usize, part: T::Real) -> T::Real {
        mix(self.left[x].to_real(), self.right[x].to_real(), part)
    }
}

/// Places that are `N` pixels apart.
struct Apart<'a, T, const N: usize>(&'a [[T; N]]);

impl<T, const N: usize> Clone for Apart<'_, T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize> Copy for Apart<'_, T, N> {}

impl<T: Pixel, const N: usize> Line<T::Real> for Apart<'_, T, N> {
    #[inline(always)]
    fn at(self, x: usize, part: T::Real) -> T::Real {
        let pixels = &self.0[x];
        mix(pixels[0].to_real(), pixels[1].to_real(), part)
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

    /// A row, given its lines: of both planes both, as far as they are different ones.
    #[inline(always)]
    fn down<L: Line<T::Real>>(&self, row: &mut [T::Real], parts: &[T::Real], lines: [[L; 2]; 2]) {
        let (y, z) = (self.y.part, self.z.part);
        let [[a, b], [c, d]] = lines;
        let pixels = row.iter_mut().zip(parts).enumerate();
        match self.flat {
            [true, true] => {
                for (x, (to, &part)) in pixels {
                    *to = a.at(x, part);
                }
            }
            [true, false] => {
                for (x, (to, &part)) in pixels {
                    *to = mix(a.at(x, part), b.at(x, part), y);
                }
            }
            [false, true] => {
                for (x, (to, &part)) in pixels {
                    *to = mix(a.at(x, part), c.at(x, part), z);
                }
            }
            [false, false] => {
                for (x, (to, &part)) in pixels {
                    let near = mix(a.at(x, part), b.at(x, part), y);
                    *to = mix(near, mix(c.at(x, part), d.at(x, part), y), z);
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
