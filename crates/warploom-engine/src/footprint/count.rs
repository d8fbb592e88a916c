//! Ranks of large neighbourhoods by counting.
//!
//! For elements of two bytes, and for neighbourhoods that are no boxes, the counts of one
//! neighbourhood become those of the next by what each of its lines gains and loses. For boxes of
//! bytes every column has counts of its own: a box gains one column and loses one, however high it
//! is, and a column gains and loses one pixel from row to row. So the radius hardly matters.

use super::super::lanes::{Level, dispatch};
use super::super::share::Band;
use super::super::{Pixel, View, ViewMut};
use super::Lined;
use super::lines::{Layout, Memory, fill};
use warploom_core::DType;
use warploom_flow::Boundary;

/// Bytes of lines, and of columns' counts, that stay in the second cache with room to spare.
const CACHE: usize = 512 << 10;

/// Elements from which on counting is faster than a network, by the bytes of an element: measured on
/// noise, where networks are as fast as elsewhere and counts are slowest.
const MANY: [usize; 2] = [225, 361];

/// Is a rank of so many elements found by counting?
pub(super) fn pays(dtype: DType, elements: usize) -> bool {
    let most = usize::from(u16::MAX);
    match dtype {
        DType::U8 => (MANY[0]..=most).contains(&elements),
        DType::U16 | DType::I16 => (MANY[1]..=most).contains(&elements),
        _ => false,
    }
}

/// An element type with few enough values to count each of them.
pub(super) trait Counted: Pixel {
    /// Its place among all values, in order.
    fn bin(self) -> u16;
    /// The value at a place.
    fn of_bin(bin: u16) -> Self;
}

impl Counted for u8 {
    #[inline(always)]
    fn bin(self) -> u16 {
        u16::from(self)
    }

    #[inline(always)]
    fn of_bin(bin: u16) -> Self {
        bin as Self
    }
}

impl Counted for u16 {
    #[inline(always)]
    fn bin(self) -> u16 {
        self
    }

    #[inline(always)]
    fn of_bin(bin: u16) -> Self {
        bin
    }
}

impl Counted for i16 {
    #[inline(always)]
    fn bin(self) -> u16 {
        self.cast_unsigned() ^ (1 << 15)
    }

    #[inline(always)]
    fn of_bin(bin: u16) -> Self {
        (bin ^ (1 << 15)).cast_signed()
    }
}

/// A neighbourhood whose ranks are counted.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// Each line, and its first and last column: a neighbourhood has no gaps along x.
    runs: Vec<(usize, [usize; 2])>,
    /// Do all lines have all columns?
    is_box: bool,
}

impl Counts {
    pub(super) fn new(lined: &Lined) -> Self {
        let mut runs: Vec<(usize, [usize; 2])> = Vec::new();
        for &(line, column) in &lined.places {
            match runs.last_mut() {
                Some((last, [_, end])) if *last == line => *end = column,
                _ => runs.push((line, [column; 2])),
            }
        }
        let [rz, ry, rx] = lined.reach.map(|n| 2 * n + 1);
        Self {
            runs,
            is_box: lined.places.len() == rz * ry * rx,
        }
    }

    /// The element of a rank in each neighbourhood, by what lines gain and lose.
    pub(super) fn run<T: Counted>(
        &self,
        image: View<'_, T>,
        lined: &Lined,
        rank: usize,
        boundary: Boundary,
        out: ViewMut<'_, T>,
    ) {
        let layout = Layout::new::<u16>(image.dims(), lined.reach, boundary, 1, 0, CACHE);
        layout.for_bands(out, |band, memory| {
            self.rows(&layout, image, rank, band, memory);
        });
    }

    fn rows<T: Counted>(
        &self,
        layout: &Layout,
        image: View<'_, T>,
        rank: usize,
        mut band: Band<'_, T>,
        memory: &mut Memory,
    ) {
        let (ny, lines) = (layout.dims[1], layout.lines());
        memory.block.reserve::<u16>(lines * layout.stride);
        memory.starts.clear();
        memory.starts.resize(lines, 0);
        let read = |pixel: Option<T>| pixel.unwrap_or(T::ZERO).bin();
        let mut table = Table::new();
        for xs in layout.tiles() {
            for row in band.rows() {
                let (z, y) = (row / ny, row % ny);
                let all = row == band.rows().start || y == 0;
                layout.advance(image, [z, y], &xs, all, memory, read, |_: &mut [u16]| {});
                let data = memory.block.as_mut_slice::<u16>();
                let starts = &memory.starts;
                let width = xs.len() + 2 * layout.reach[2];
                let line = |line: usize| &data[starts[line]..][..width];
                let count = |table: &mut Table, x: usize, more: bool| {
                    for &(at, [first, last]) in &self.runs {
                        for bin in &line(at)[x + first..=x + last] {
                            table.change(*bin, more);
                        }
                    }
                };
                count(&mut table, 0, true);
                let to = &mut band.row(row)[xs.clone()];
                to[0] = T::of_bin(table.ranked(rank));
                for (x, to) in to.iter_mut().enumerate().skip(1) {
                    for &(at, [first, last]) in &self.runs {
                        let line = line(at);
                        table.change(line[x - 1 + first], false);
                        table.change(line[x + last], true);
                    }
                    *to = T::of_bin(table.ranked(rank));
                }
                // What is left is taken out again: less work than making all counts zero.
                count(&mut table, xs.len() - 1, false);
            }
        }
    }

    /// The same for bytes; boxes by the counts of columns.
    pub(super) fn run_bytes(
        &self,
        level: Level,
        image: View<'_, u8>,
        lined: &Lined,
        rank: usize,
        boundary: Boundary,
        out: ViewMut<'_, u8>,
    ) {
        if !self.is_box {
            return self.run(image, lined, rank, boundary, out);
        }
        let halo = 2 * lined.reach[2];
        let room = CACHE / size_of::<Column>();
        let layout = Layout {
            dims: image.dims(),
            reach: lined.reach,
            boundary,
            copies: 0,
            tile: room.saturating_sub(halo).max(2 * halo).min(image.dims()[2]),
            stride: 0,
        };
        layout.for_bands(out, |band, memory| {
            dispatch!(level, _simd => boxes(&layout, image, rank, band, memory));
        });
    }
}

/// How many elements have each value, and how many are in each group of values.
struct Table {
    values: Vec<u16>,
    groups: Vec<u16>,
    heads: [u16; 64],
}

impl Table {
    fn new() -> Self {
        Self {
            values: vec![0; 1 << 16],
            groups: vec![0; 1 << 11],
            heads: [0; 64],
        }
    }

    #[inline(always)]
    fn change(&mut self, bin: u16, more: bool) {
        let by = if more { 1 } else { u16::MAX };
        let bin = usize::from(bin);
        for count in [
            &mut self.values[bin],
            &mut self.groups[bin >> 5],
            &mut self.heads[bin >> 10],
        ] {
            *count = count.wrapping_add(by);
        }
    }

    /// The value of a rank.
    #[inline(always)]
    fn ranked(&self, rank: usize) -> u16 {
        let mut left = rank as u16;
        let mut find = |counts: &[u16], first: usize| {
            let mut at = first;
            while left >= counts[at] {
                left -= counts[at];
                at += 1;
            }
            at
        };
        let head = find(&self.heads, 0);
        let group = find(&self.groups, head << 5);
        find(&self.values, group << 5) as u16
    }
}

/// Values of a byte in a group.
const GROUP: usize = 16;

/// How many bytes of a column have each value: by groups, and in each group.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Column {
    groups: [u16; GROUP],
    values: [[u16; GROUP]; GROUP],
}

impl Column {
    const NONE: Self = Self {
        groups: [0; GROUP],
        values: [[0; GROUP]; GROUP],
    };

    #[inline(always)]
    fn change(&mut self, value: u8, by: u16) {
        let (group, at) = (usize::from(value >> 4), usize::from(value & 15));
        self.groups[group] = self.groups[group].wrapping_add(by);
        self.values[group][at] = self.values[group][at].wrapping_add(by);
    }
}

#[inline(always)]
fn gain(to: &mut [u16; GROUP], from: &[u16; GROUP]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.wrapping_add(*from);
    }
}

#[inline(always)]
fn lose(to: &mut [u16; GROUP], from: &[u16; GROUP]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.wrapping_sub(*from);
    }
}

/// The place of a rank among counts, and the rank among what is there.
#[inline(always)]
fn place(counts: &[u16; GROUP], mut left: u16) -> (usize, u16) {
    let mut at = 0;
    while left >= counts[at] && at < GROUP - 1 {
        left -= counts[at];
        at += 1;
    }
    (at, left)
}

#[inline(always)]
fn boxes(
    layout: &Layout,
    image: View<'_, u8>,
    rank: usize,
    mut band: Band<'_, u8>,
    memory: &mut Memory,
) {
    let [_, ny, _] = layout.dims;
    let [rz, ry, rx] = layout.reach.map(|n| n as i64);
    let dims = layout.dims.map(|n| n as i64);
    let boundary = layout.boundary;
    let room = layout.tile + 2 * layout.reach[2];
    // Counts and, behind them, a line of pixels.
    let bytes = room * size_of::<Column>();
    let all = memory.block.reserve::<u8>(bytes + room);
    let (columns, line) = all.split_at_mut(bytes);
    let columns: &mut [Column] = bytemuck::cast_slice_mut(columns);
    for xs in layout.tiles() {
        let width = xs.len() + 2 * layout.reach[2];
        let (columns, line) = (&mut columns[..width], &mut line[..width]);
        let mut count = |columns: &mut [Column], z: i64, y: i64, by: u16| {
            for z in z - rz..=z + rz {
                let row = boundary.source(z, dims[0]).and_then(|z| {
                    let y = boundary.source(y, dims[1])?;
                    Some(image.row(z as usize, y as usize))
                });
                match row {
                    Some(row) => {
                        let first = xs.start as i64 - rx;
                        fill(row, first, boundary, line, |pixel| pixel.unwrap_or(0));
                    }
                    None => line.fill(0),
                }
                for (column, pixel) in columns.iter_mut().zip(&*line) {
                    column.change(*pixel, by);
                }
            }
        };
        for row in band.rows() {
            let (z, y) = ((row / ny) as i64, (row % ny) as i64);
            if row == band.rows().start || y == 0 {
                columns.fill(Column::NONE);
                for y in y - ry..=y + ry {
                    count(columns, z, y, 1);
                }
            } else {
                count(columns, z, y - ry - 1, u16::MAX);
                count(columns, z, y + ry, 1);
            }
            along(
                columns,
                layout.reach[2],
                rank as u16,
                &mut band.row(row)[xs.clone()],
            );
        }
    }
}

/// One row of boxes, from the counts of its columns. The values of a group are brought up to date
/// when the rank is in it.
#[inline(always)]
fn along(columns: &[Column], radius: usize, rank: u16, to: &mut [u8]) {
    let window = 2 * radius + 1;
    let mut whole = Column::NONE;
    for column in &columns[..window] {
        gain(&mut whole.groups, &column.groups);
    }
    // Up to which column the values of a group have been counted.
    let mut ends = [0; GROUP];
    for (x, to) in to.iter_mut().enumerate() {
        let end = x + window;
        if x > 0 {
            gain(&mut whole.groups, &columns[end - 1].groups);
            lose(&mut whole.groups, &columns[x - 1].groups);
        }
        let (group, left) = place(&whole.groups, rank);
        let values = &mut whole.values[group];
        let known = std::mem::replace(&mut ends[group], end);
        if known <= x {
            *values = [0; GROUP];
            for column in &columns[x..end] {
                gain(values, &column.values[group]);
            }
        } else {
            for column in &columns[known..end] {
                gain(values, &column.values[group]);
            }
            for column in &columns[known - window..x] {
                lose(values, &column.values[group]);
            }
        }
        let (at, _) = place(values, left);
        *to = (group * GROUP + at) as u8;
    }
}
