//! The rows around the one that is made, padded, in a ring.
//!
//! A thread makes a band of rows, one column tile after the other: the lines of a tile stay in the
//! cache however wide the image is. From one row to the next, all lines but the lowest of each
//! plane stay.

use std::cell::RefCell;
use std::ops::Range;

use bytemuck::Pod;

use super::super::block::{Block, stride};
use super::super::share::{Band, for_bands};
use super::super::{Pixel, View, ViewMut};
use warploom_flow::Boundary;

/// What a thread keeps between calls.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) block: Block,
    /// Where lines start in the block, from the line of the least z and y on; then whatever the
    /// work puts there.
    pub(super) starts: Vec<usize>,
    /// Rows between phases, those that are being written, and what machine code needs.
    pub(super) rows: Vec<Block>,
    pub(super) written: Vec<Block>,
    pub(super) native: Vec<f32>,
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::default();
}

/// How lines lie in memory.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) dims: [usize; 3],
    pub(super) reach: [usize; 3],
    pub(super) boundary: Boundary,
    /// Rows of memory that each line has: the padded pixels, and what is made of them.
    pub(super) copies: usize,
    /// Columns made at a time.
    pub(super) tile: usize,
    /// From row to row of memory.
    pub(super) stride: usize,
}

impl Layout {
    /// Lines for tiles such that lines and `more` rows of `K` fit `bytes`, where that leaves tiles
    /// of a reasonable width.
    pub(super) fn new<K>(
        dims: [usize; 3],
        reach: [usize; 3],
        boundary: Boundary,
        copies: usize,
        more: usize,
        bytes: usize,
    ) -> Self {
        let lines = (2 * reach[0] + 1) * (2 * reach[1] + 1);
        let halo = 2 * reach[2];
        let room = bytes / size_of::<K>() / (lines * copies + more);
        let least = (512 / size_of::<K>()).max(2 * halo);
        let tile = (room.saturating_sub(halo) / 64 * 64)
            .max(least)
            .min(dims[2]);
        Self {
            dims,
            reach,
            boundary,
            copies,
            tile,
            stride: stride::<K>(tile + halo),
        }
    }

    pub(super) fn lines(&self) -> usize {
        (2 * self.reach[0] + 1) * (2 * self.reach[1] + 1)
    }

    /// Calls `work` with bands of rows of `out`, on all threads, each with its thread's memory.
    pub(super) fn for_bands<U: Send>(
        &self,
        out: ViewMut<'_, U>,
        work: impl Fn(Band<'_, U>, &mut Memory) + Sync,
    ) {
        let [nz, ny, _] = self.dims;
        // Each band reads the rows around it again.
        let share = (ny * nz).div_ceil(4 * rayon::current_num_threads());
        let height = share.max(8 * self.reach[1]).min(ny).max(1);
        for_bands(out, height, &|band| {
            MEMORY.with_borrow_mut(|memory| work(band, memory));
        });
    }

    /// The column tiles.
    pub(super) fn tiles(self) -> impl Iterator<Item = Range<usize>> {
        let nx = self.dims[2];
        let tile = self.tile.max(1);
        (0..nx).step_by(tile).map(move |x| x..(x + tile).min(nx))
    }

    /// Makes the lines around row `y` of plane `z` for the columns `xs`; unless `all`, those around
    /// the row above are there. `read` makes an element of a pixel, or of the outside; `made` is
    /// given the memory of each new line.
    #[inline(always)]
    pub(super) fn advance<T: Pixel, K: Pod>(
        &self,
        image: View<'_, T>,
        [z, y]: [usize; 2],
        xs: &Range<usize>,
        all: bool,
        memory: &mut Memory,
        read: impl Fn(Option<T>) -> K + Copy,
        mut made: impl FnMut(&mut [K]),
    ) {
        let [rz, ry, rx] = self.reach;
        let dims = self.dims.map(|n| n as i64);
        let height = 2 * ry + 1;
        let room = self.copies * self.stride;
        let data = memory.block.as_mut_slice::<K>();
        for dz in 0..=2 * rz {
            for dy in 0..height {
                let start = (dz * height + (y + dy) % height) * room;
                memory.starts[dz * height + dy] = start;
                if !all && dy + 1 < height {
                    continue;
                }
                let from_z = (z + dz) as i64 - rz as i64;
                let from_y = (y + dy) as i64 - ry as i64;
                let row = self.boundary.source(from_z, dims[0]).and_then(|z| {
                    let y = self.boundary.source(from_y, dims[1])?;
                    Some(image.row(z as usize, y as usize))
                });
                let line = &mut data[start..start + room];
                let pixels = &mut line[..xs.len() + 2 * rx];
                match row {
                    None => pixels.fill(read(None)),
                    Some(row) => fill(
                        row,
                        xs.start as i64 - rx as i64,
                        self.boundary,
                        pixels,
                        read,
                    ),
                }
                made(line);
            }
        }
    }
}

/// The pixels of a row from `first` on, which may lie outside.
#[inline(always)]
pub(super) fn fill<T: Pixel, K: Pod>(
    row: &[T],
    first: i64,
    boundary: Boundary,
    line: &mut [K],
    read: impl Fn(Option<T>) -> K,
) {
    let nx = row.len() as i64;
    let end = first + line.len() as i64;
    let inside = first.max(0)..end.min(nx);
    for x in (first..inside.start).chain(inside.end..end) {
        let pixel = boundary.source(x, nx).map(|x| row[x as usize]);
        line[(x - first) as usize] = read(pixel);
    }
    let to = &mut line[(inside.start - first) as usize..];
    for (to, &pixel) in to
        .iter_mut()
        .zip(&row[inside.start as usize..inside.end as usize])
    {
        *to = read(Some(pixel));
    }
}
