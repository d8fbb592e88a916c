//! A piece of an image with what lies around it, in memory of an item's own, and sums of it: for
//! neighbourhoods on a processor.
//!
//! The boundary rule is asked once for each pixel beside the image, not for each term of each sum, and all
//! loops go over pixels side by side that are there. Straight from the image, what compilers make of pixels near the
//! ends of rows fetches them one by one: of 2048 pixels 128 took a third of the time.

use warploom_core::DType;

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::flow::real;
use crate::kernel::{Access, Buf, Builder, Img, Space, Work};

/// Columns of a piece, and its rows.
const COLUMNS: i32 = 64;
pub(super) const ROWS: i32 = 32;
/// How far a neighbourhood reaches at most along y and x.
const REACH: u32 = 16;
/// Pixels that are kept of each row.
pub(super) const PITCH: i32 = COLUMNS + 2 * REACH.cast_signed();

/// Is there room for what so large a neighbourhood reaches?
pub(super) fn has_room([_, y, x]: [u64; 3]) -> bool {
    y.max(x) <= u64::from(REACH)
}

/// The pieces that cover an image.
pub(super) fn items([nz, ny, nx]: [u64; 3]) -> [u64; 3] {
    let many = |extent: u64, size: i32| extent.div_ceil(u64::from(size.unsigned_abs()));
    [many(nx, COLUMNS), many(ny, ROWS), nz]
}

/// A piece of an image.
#[derive(Clone, Copy)]
pub(super) struct Patch<'k> {
    pub(super) k: &'k Builder,
    src: Img<'k>,
    dst: Img<'k>,
    to: DType,
    boundary: Boundary,
    dims: [Ex<'k>; 3],
    reach: [Ex<'k>; 2],
    /// Where it is.
    pub(super) plane: Ex<'k>,
    top: Ex<'k>,
    left: Ex<'k>,
    /// How many of its rows are in the image.
    pub(super) height: Ex<'k>,
    /// Pixels of one plane.
    pub(super) pixels: Buf,
    sums: Buf,
}

impl<'k> Patch<'k> {
    /// Runs `body` with each piece of an image of such extents, of neighbourhoods that reach so far along y and x.
    pub(super) fn each(
        k: &'k Builder,
        (src, dst): (Img<'k>, Img<'k>),
        (from, to, boundary): (DType, DType, Boundary),
        dims: [Ex<'k>; 3],
        reach: [Ex<'k>; 2],
        body: impl FnOnce(Self),
    ) {
        let plane = k.work(Work::Global(2));
        let top = k.let_(k.work(Work::Global(1)) * ROWS);
        let left = k.let_(k.work(Work::Global(0)) * COLUMNS);
        let inside = plane.lt(dims[0]) & top.lt(dims[1]) & left.lt(dims[2]);
        k.if_(inside, || {
            let real = real(from);
            let rows = ROWS.unsigned_abs() + 2 * REACH;
            let ty = Ty::of(real).expect("a real type");
            let sums = (ROWS * COLUMNS).unsigned_abs();
            body(Self {
                k,
                src,
                dst,
                to,
                boundary,
                dims,
                reach,
                plane,
                top,
                left,
                height: k.let_((dims[1] - top).min(ROWS)),
                pixels: k.line(real, rows * PITCH.unsigned_abs()),
                sums: k.array(ty, sums, Space::Private),
            });
        });
    }

    fn int(&self, value: i32) -> Ex<'k> {
        self.k.graph().int(value)
    }

    fn columns(&self, body: impl FnOnce(Ex<'k>)) {
        self.k.for_(self.int(0), self.int(COLUMNS), body);
    }

    /// Begins all sums with a number.
    pub(super) fn begin(&self, start: f64) {
        let k = self.k;
        let start = k.graph().number(self.sums.ty(), start);
        k.for_(self.int(0), self.int(ROWS), |row| {
            let to = k.index(self.dst, [self.plane, self.top + row, self.left]);
            let count = COLUMNS.unsigned_abs();
            k.soon(self.dst, k.let_(to), count, Access::Write);
            let place = k.let_(row * COLUMNS);
            self.columns(|column| k.store(self.sums, place + column, start));
        });
    }

    /// Reads so many rows of a plane, and those that are reached above and below.
    pub(super) fn read(&self, plane: Ex<'k>, rows: Ex<'k>) {
        let (k, [reach_y, reach_x]) = (self.k, self.reach);
        let zero = k.graph().number(self.sums.ty(), 0.0);
        let (z, is_plane) = k.source(plane, self.dims[0], self.boundary);
        let z = k.let_(z);
        let first = k.let_(self.left - reach_x);
        let length = k.let_(reach_x + reach_x + COLUMNS);
        let before = k.let_((-first).max(0));
        let behind = k.let_((self.dims[2] - first).min(length));
        k.for_(self.int(0), rows + reach_y + reach_y, |row| {
            let (y, is_row) = k.source(self.top + row - reach_y, self.dims[1], self.boundary);
            let is_there = match (is_plane, is_row) {
                (Some(plane), Some(row)) => Some(k.let_(plane & row)),
                _ => None,
            };
            let from = k.let_(k.index(self.src, [z, y, first]));
            let to = k.let_(row * PITCH);
            let count = COLUMNS.unsigned_abs();
            k.soon(self.src, from + reach_x + COLUMNS, count, Access::Read);
            let keep = |at: Ex<'k>, place: Ex<'k>, is_there: Option<Ex<'k>>| {
                let value = k.load(self.src.buf, place).cast(self.sums.ty());
                let value = is_there.map_or(value, |is_there| is_there.select(value, zero));
                k.store(self.pixels, to + at, k.let_(value));
            };
            k.for_(before, behind, |at| keep(at, from + at, is_there));
            k.for_(self.int(0), length - behind + before, |beside| {
                let at = k.let_(beside.lt(before).select(beside, beside + behind - before));
                let (x, is_column) = k.source(first + at, self.dims[2], self.boundary);
                let both = is_there.and_then(|row| is_column.map(|column| row & column));
                keep(at, from - first + x, both);
            });
        });
    }

    /// The first pixel that one of the piece's rows reaches at an offset.
    pub(super) fn place(&self, row: Ex<'k>, [y, x]: [Ex<'k>; 2]) -> Ex<'k> {
        (row + y + self.reach[0]) * PITCH + x + self.reach[1]
    }

    /// Changes the sums of some rows, column by column: `change` gets the column and what they are.
    pub(super) fn change(
        &self,
        rows: &[Ex<'k>],
        change: impl FnOnce(Ex<'k>, &[Ex<'k>]) -> Vec<Ex<'k>>,
    ) {
        let k = self.k;
        let places: Vec<_> = rows.iter().map(|row| k.let_(*row * COLUMNS)).collect();
        self.columns(|column| {
            let sums = places.iter().map(|at| k.load(self.sums, *at + column));
            let sums: Vec<_> = sums.map(|sum| k.let_(sum)).collect();
            for (at, sum) in places.iter().zip(change(column, &sums)) {
                k.store(self.sums, *at + column, k.let_(sum));
            }
        });
    }

    /// Writes all sums.
    pub(super) fn write(&self) {
        let k = self.k;
        let columns = k.let_((self.dims[2] - self.left).min(COLUMNS));
        k.for_(self.int(0), self.height, |row| {
            let to = k.let_(k.index(self.dst, [self.plane, self.top + row, self.left]));
            let from = k.let_(row * COLUMNS);
            let put = |column: Ex<'k>| {
                let sum = k.load(self.sums, from + column);
                k.store(self.dst.buf, to + column, k.let_(sum.saturate(self.to)));
            };
            k.if_else(
                columns.is(COLUMNS),
                || self.columns(put),
                || k.for_(self.int(0), columns, put),
            );
        });
    }
}
