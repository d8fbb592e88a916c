//! Weighted sums along y or z on a processor.
//!
//! An item has a strip of columns some rows high. It copies the strip, and what the sums reach above
//! and below, into memory of its own: rows of an image are often a power of two apart, and then
//! push each other out of the nearest cache. It then sums several rows at once, since each pixel is
//! a term of the sums of many.

use std::collections::BTreeMap;

use crate::expr::{Ex, Ty};
use crate::flow::real;
use crate::kernel::{Access, Buf, Builder, Space, Work};

use super::taps::{DISTANCES, Form, Sort};

/// Columns of a strip.
const COLUMNS: i32 = 64;
/// Rows of a strip, a multiple of [`AT_ONCE`].
pub(super) const ROWS: i32 = 64;
/// Rows summed at once.
const AT_ONCE: i32 = 8;
/// The largest radius for which a strip has room.
pub(super) const REACH: usize = 64;

/// The strips that cover an image.
pub(super) fn items([nz, ny, nx]: [u64; 3]) -> [u64; 3] {
    let many = |extent: u64, size: i32| extent.div_ceil(u64::from(size.unsigned_abs()));
    [many(nx, COLUMNS), many(ny, ROWS), nz]
}

/// The copy of a strip.
#[derive(Clone, Copy)]
struct Strip<'k> {
    k: &'k Builder,
    form: Form,
    pixels: Buf,
    radius: Ex<'k>,
    /// The place of the first of the rows being summed.
    row: Ex<'k>,
}

impl<'k> Strip<'k> {
    /// Runs `body` for every column.
    fn each(self, body: impl FnOnce(Ex<'k>)) {
        let k = self.k;
        k.for_(k.graph().int(0), k.graph().int(COLUMNS), body);
    }

    /// The terms of all rows being summed at distances from `distance` on, `many` of them: for each
    /// row its terms in order. Each pixel is loaded once.
    fn terms(self, distance: Ex<'k>, many: i32, column: Ex<'k>) -> Vec<Vec<Ex<'k>>> {
        let k = self.k;
        let mut known: BTreeMap<(bool, i32), Ex<'k>> = BTreeMap::new();
        // The pixel so many rows behind the distance, before or after the row.
        let mut pixel = |after: bool, rows: i32| {
            *known.entry((after, rows)).or_insert_with(|| {
                let place = if after {
                    self.row + distance + rows
                } else {
                    self.row - distance + rows
                };
                k.load(self.pixels, place * COLUMNS + column)
            })
        };
        let terms = |row: i32| {
            let term = |on: i32| match self.form {
                Form::Any => pixel(true, row + on),
                Form::Even => pixel(false, row - on) + pixel(true, row + on),
                Form::Odd => pixel(true, row + on) - pixel(false, row - on),
            };
            (0..many).map(term).collect()
        };
        (0..AT_ONCE).map(terms).collect()
    }

    /// The sums of the rows, column by column.
    fn sums(self, weights: Buf, end: Ex<'k>, sums: Buf) {
        let (k, start) = (self.k, self.form.start());
        let int = |value: i32| k.graph().int(value);
        let place = |row: usize, column: Ex<'k>| {
            int(i32::try_from(row).expect("few rows") * COLUMNS) + column
        };
        let first = k.load(weights, int(0));
        self.each(|column| {
            let terms = match self.form {
                // Without a distance there is one pixel.
                Form::Even => {
                    let centre = Self {
                        form: Form::Any,
                        ..self
                    };
                    centre.terms(int(0), 1, column)
                }
                Form::Odd => self.terms(int(1), 1, column),
                Form::Any => self.terms(-self.radius, 1, column),
            };
            for (row, term) in terms.iter().enumerate() {
                k.store(sums, place(row, column), k.let_(first * term[0]));
            }
        });
        let add = |distance: Ex<'k>, many: i32| {
            let weights: Vec<Ex<'k>> = (0..many)
                .map(|on| k.load(weights, distance + (on - start)))
                .collect();
            let from = match self.form {
                Form::Any => k.let_(distance - self.radius),
                Form::Even | Form::Odd => distance,
            };
            self.each(|column| {
                for (row, terms) in self.terms(from, many, column).iter().enumerate() {
                    let at = place(row, column);
                    let before = k.load(sums, at);
                    let sum = terms
                        .iter()
                        .zip(&weights)
                        .fold(before, |sum, (term, weight)| k.let_(weight.fma(*term, sum)));
                    k.store(sums, at, sum);
                }
            });
        };
        let first = int(start + 1);
        let rounds = (end - first).max(0) / int(DISTANCES);
        let next = k.let_(first + rounds * DISTANCES);
        k.for_by(first, next, int(DISTANCES), |distance| {
            add(distance, DISTANCES);
        });
        k.for_(next, end, |distance| add(distance, 1));
    }
}

/// Writes the kernel; its arguments are those of the sums along x.
pub(super) fn write(k: &Builder, sort: Sort) {
    let real = real(sort.from);
    let ty = Ty::of(real).expect("a real type");
    let src = k.image("src", sort.from, Access::Read);
    let weights = k.buffer("weights", real, Access::Read);
    let dst = k.image("dst", sort.to, Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let [end, radius] = ["end", "radius"].map(|name| k.scalar(name, Ty::I32));
    let int = |value: i32| k.graph().int(value);
    let plane = k.work(Work::Global(2));
    let top = k.let_(k.work(Work::Global(1)) * ROWS);
    let left = k.let_(k.work(Work::Global(0)) * COLUMNS);
    let inside = plane.lt(dims[0]) & top.lt(dims[1]) & left.lt(dims[2]);
    k.if_(inside, || {
        let reach = u32::try_from(REACH).expect("short");
        let rows = ROWS.unsigned_abs() + 2 * reach;
        let pixels = k.line(real, rows * COLUMNS.unsigned_abs());
        let sums = k.array(ty, (AT_ONCE * COLUMNS).unsigned_abs(), Space::Private);
        let strip = Strip {
            k,
            form: sort.form,
            pixels,
            radius,
            row: int(0),
        };
        let height = k.let_((dims[1] - top).min(ROWS));
        let groups = k.let_((height + (AT_ONCE - 1)) / int(AT_ONCE));
        let zero = k.graph().number(ty, 0.0);
        let whole = k.let_((left + COLUMNS).le(dims[2]));
        k.for_(int(0), groups * AT_ONCE + radius + radius, |row| {
            let (source, there) = k.source(top + row - radius, dims[1], sort.boundary);
            let there = there.map(|there| k.let_(there));
            let from = k.let_(k.index(src, [plane, source, int(0)]));
            let to = k.let_(row * COLUMNS);
            k.soon(
                src,
                from + left + COLUMNS,
                COLUMNS.unsigned_abs(),
                Access::Read,
            );
            let copy = |column: Ex<'_>, x: Ex<'_>| {
                let value = k.load(src.buf, from + x).cast(ty);
                let value = there.map_or(value, |there| there.select(value, zero));
                k.store(pixels, to + column, k.let_(value));
            };
            // Columns beside the image are summed too, and written nowhere.
            let last = dims[2] - 1;
            k.if_else(
                whole,
                || strip.each(|column| copy(column, left + column)),
                || strip.each(|column| copy(column, (left + column).min(last))),
            );
        });
        let columns = k.let_((dims[2] - left).min(COLUMNS));
        k.for_by(int(0), height, int(AT_ONCE), |row| {
            let strip = Strip {
                row: k.let_(row + radius),
                ..strip
            };
            for on in 0..AT_ONCE {
                let to = k.let_(k.index(dst, [plane, top + row + on, left]));
                k.soon(dst, to, COLUMNS.unsigned_abs(), Access::Write);
            }
            strip.sums(weights, end, sums);
            k.for_(int(0), (height - row).min(AT_ONCE), |on| {
                let to = k.let_(k.index(dst, [plane, top + row + on, left]));
                let put = |column: Ex<'_>| {
                    let sum = k.load(sums, on * COLUMNS + column);
                    k.store(dst.buf, to + column, k.let_(sum.saturate(sort.to)));
                };
                k.if_else(whole, || strip.each(put), || k.for_(int(0), columns, put));
            });
        });
    });
}
