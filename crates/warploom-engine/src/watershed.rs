//! Flooding from markers, in the order of `skimage.segmentation.watershed`.

mod heap;

use std::fmt::Debug;

use bytemuck::Pod;
use rayon::prelude::*;

use super::pages::Pages;
use super::share::{fit, for_rows};
use super::{Pixel, View, ViewMut};
use heap::Heap;

/// What a heap sorts by.
trait Order: Copy + Ord + Debug {
    /// No item has it.
    const GREATEST: Self;
}

impl Order for u64 {
    const GREATEST: Self = Self::MAX;
}

impl Order for u128 {
    const GREATEST: Self = Self::MAX;
}

/// Levels as unsigned numbers; with the time a pixel was found at they make one number to sort by.
trait Depth: Copy + Ord + Pod + Send + Sync {
    type Key: Order;

    fn new(key: u64) -> Self;

    fn label(label: u32) -> Self;

    fn as_label(self) -> u32;

    /// Markers were all found at 0.
    fn found(self, age: u32) -> Self::Key;

    fn of(key: Self::Key) -> Self;
}

macro_rules! depths {
    ($($level:ty as $key:ty;)*) => {$(
        impl Depth for $level {
            type Key = $key;

            #[inline(always)]
            fn new(key: u64) -> Self {
                key as Self
            }

            #[inline(always)]
            fn label(label: u32) -> Self {
                label as Self
            }

            #[inline(always)]
            fn as_label(self) -> u32 {
                self as u32
            }

            #[inline(always)]
            fn found(self, age: u32) -> $key {
                <$key>::from(self) << 32 | <$key>::from(age)
            }

            #[inline(always)]
            fn of(key: $key) -> Self {
                (key >> 32) as Self
            }
        }
    )*};
}
depths! {
    u32 as u64;
    u64 as u128;
}

/// Bytes allocated: a padded copy of labels and levels, and the heap at its largest.
pub fn scratch_bytes(dims: [usize; 3]) -> usize {
    let padded = Padded::new(dims);
    let heap = size_of::<u128>() + size_of::<u32>();
    padded.count() * (2 * size_of::<u64>() + 2 * heap)
}

/// What a pixel of the padded copy outside image and mask has for a label.
const CLOSED: u32 = u32::MAX;

/// An image with a pixel around it, so that each pixel has all its neighbours. A plane has none above
/// and below.
#[derive(Clone, Copy)]
struct Padded {
    dims: [usize; 3],
    /// Planes ahead of the first.
    ahead: usize,
}

impl Padded {
    fn new(dims: [usize; 3]) -> Self {
        let ahead = usize::from(dims[0] > 1);
        Self { dims, ahead }
    }

    fn row(self) -> usize {
        self.dims[2] + 2
    }

    fn plane(self) -> usize {
        self.row() * (self.dims[1] + 2)
    }

    fn count(self) -> usize {
        self.plane() * (self.dims[0] + 2 * self.ahead)
    }

    /// The place of a row's first pixel.
    fn start(self, z: usize, y: usize) -> usize {
        (z + self.ahead) * self.plane() + (y + 1) * self.row() + 1
    }

    /// The z and y of a row of the copy, unless it is all outside.
    fn row_of(self, row: usize) -> Option<[usize; 2]> {
        let [nz, ny, _] = self.dims;
        let z = (row / (ny + 2)).checked_sub(self.ahead)?;
        let y = (row % (ny + 2)).checked_sub(1)?;
        (z < nz && y < ny).then_some([z, y])
    }
}

/// Floods `image` from `markers` (not 0), from low to high, over pixels that share a side; each
/// pixel takes the label that reaches it first. Pixels outside the mask, and those never reached,
/// become 0. Of pixels at one level the one found earlier goes first.
///
/// A label of `u32::MAX` is not possible. NaN has no place in the order of levels.
pub fn watershed<T: Pixel>(
    image: View<'_, T>,
    markers: View<'_, u32>,
    mask: Option<View<'_, u8>>,
    out: ViewMut<'_, u32>,
) {
    if size_of::<T>() <= size_of::<u32>() {
        run::<T, u32>(image, markers, mask, out);
    } else {
        run::<T, u64>(image, markers, mask, out);
    }
}

/// A pixel of the copy: its level and its label, which are needed together.
type Cell<D> = [D; 2];

fn run<T: Pixel, D: Depth>(
    image: View<'_, T>,
    markers: View<'_, u32>,
    mask: Option<View<'_, u8>>,
    out: ViewMut<'_, u32>,
) {
    fit(image.dims(), out.dims());
    fit(markers.dims(), out.dims());
    let padded = Padded::new(image.dims());
    let [nz, ny, nx] = padded.dims;
    let mut pages: Pages<Cell<D>> = Pages::zeros(padded.count());
    let cells = pages.as_mut_slice();
    let rows = cells.par_chunks_exact_mut(padded.row()).enumerate();
    rows.for_each(|(row, cells)| {
        cells.fill([D::label(0), D::label(CLOSED)]);
        let Some([z, y]) = padded.row_of(row) else {
            return;
        };
        let (values, seeds) = (image.row(z, y), markers.row(z, y));
        let open = mask.map(|mask| mask.row(z, y));
        for (x, cell) in cells[1..=nx].iter_mut().enumerate() {
            // Adding zero makes one of both zeros, which are the same level.
            let level = T::from_f64(values[x].to_f64() + 0.0).key().into();
            let is_open = open.is_none_or(|open| open[x] != 0);
            let label = if is_open { seeds[x] } else { CLOSED };
            *cell = [D::new(level), D::label(label)];
        }
    });
    let mut heap = Heap::new();
    for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
        let first = padded.start(z, y);
        for (place, cell) in (first..).zip(&cells[first..first + nx]) {
            let label = cell[1].as_label();
            if label != 0 && label != CLOSED {
                heap.push(cell[0].found(0), place as u32);
            }
        }
    }
    let (row, plane) = (padded.row().cast_signed(), padded.plane().cast_signed());
    if padded.ahead > 0 {
        flood(&mut heap, cells, [-plane, -row, -1, 1, row, plane]);
    } else {
        flood(&mut heap, cells, [-row, -1, 1, row]);
    }
    let cells = pages.as_slice();
    for_rows(out, |z, y, line| {
        let first = padded.start(z, y);
        for (to, cell) in line.iter_mut().zip(&cells[first..first + nx]) {
            let label = cell[1].as_label();
            *to = if label == CLOSED { 0 } else { label };
        }
    });
}

/// Neighbours are looked at in the order of their offsets.
fn flood<D: Depth, const N: usize>(
    heap: &mut Heap<D::Key>,
    cells: &mut [Cell<D>],
    neighbours: [isize; N],
) {
    let unknown = D::label(0);
    let mut age = 1;
    while let Some((key, place)) = heap.pop() {
        let (level, place) = (D::of(key), place as usize);
        let label = cells[place][1];
        for offset in neighbours {
            let next = place.wrapping_add_signed(offset);
            let cell = &mut cells[next];
            if cell[1] != unknown {
                continue;
            }
            age += 1;
            cell[1] = label;
            heap.push(cell[0].max(level).found(age), next as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flooded<T: Pixel>(
        image: &[T],
        markers: &[u32],
        mask: Option<&[u8]>,
        dims: [usize; 3],
    ) -> Vec<u32> {
        let mut out = vec![9; image.len()];
        watershed(
            View::packed(image, dims),
            View::packed(markers, dims),
            mask.map(|mask| View::packed(mask, dims)),
            ViewMut::packed(&mut out, dims),
        );
        out
    }

    #[test]
    fn basins_meet_at_the_ridge() {
        let image = [3.0_f32, 1.0, 2.0, 9.0, 2.0, 0.0, 4.0];
        let markers = [0, 7, 0, 0, 0, 8, 0];
        let mask = [1_u8, 1, 0, 1, 1, 1, 1];
        // Along any axis, and at levels of either width.
        for dims in [[1, 1, 7], [1, 7, 1], [7, 1, 1]] {
            let found = flooded(&image, &markers, None, dims);
            assert_eq!(found, [7, 7, 7, 8, 8, 8, 8]);
            let found = flooded(&image, &markers, Some(&mask), dims);
            assert_eq!(found, [7, 7, 0, 8, 8, 8, 8]);
            let wide = image.map(f64::from);
            assert_eq!(
                flooded(&wide, &markers, Some(&mask), dims),
                [7, 7, 0, 8, 8, 8, 8]
            );
        }
    }

    #[test]
    fn both_zeros_are_one_level_and_negative_levels_are_below() {
        // The zero that was found first goes first, whichever sign it has.
        let markers = [1, 0, 0, 0, 2];
        let dims = [1, 1, 5];
        assert_eq!(
            flooded(&[0.0_f32, -0.0, 0.0, -0.0, -0.0], &markers, None, dims),
            [1, 1, 1, 2, 2]
        );
        assert_eq!(
            flooded(&[-1_i16, 3, 3, 3, -2], &markers, None, dims),
            [1, 1, 2, 2, 2]
        );
    }
}
