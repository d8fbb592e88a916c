//! Sums of objects, while a band of an image is gone over.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::kernel::{Access, Buf, Builder, Var};

use super::super::line::{int, lane, wide};
use super::super::tuning::Tuning;

/// Sums of an object: pixels, least, greatest, positions along z, y, x; in the totals also the
/// squared deviations, and the mean, which is divided once and not by everyone who needs it.
pub(super) const SUM: i32 = 0;
pub(super) const LEAST: i32 = 1;
pub(super) const MOST: i32 = 2;
pub(super) const PLACES: i32 = 3;
pub(super) const SQUARES: i32 = 6;
pub(super) const MEAN: i32 = 7;
pub(super) const SUMS: i32 = 8;
/// Whole numbers of an object: pixels, first and last position along z, y, x.
pub(super) const AREA: i32 = 0;
pub(super) const START: i32 = 1;
pub(super) const STOP: i32 = 4;
pub(super) const WHOLES: i32 = 7;

/// Tables of a kernel: number `what` of row `row` of band `band`.
#[derive(Clone, Copy)]
pub(super) struct Tables<'k> {
    pub(super) k: &'k Builder,
    pub(super) sums: Buf,
    pub(super) wholes: Buf,
    pub(super) rows: Ex<'k>,
}

impl<'k> Tables<'k> {
    pub(super) fn new(k: &'k Builder, access: Access, rows: Ex<'k>) -> Self {
        Self {
            k,
            sums: k.buffer("sums", DType::F64, access),
            wholes: k.buffer("wholes", DType::U32, access),
            rows,
        }
    }

    /// All numbers of an object lie together: one address and small offsets, where a table for
    /// each number would need as many addresses, more than a warp has registers for.
    pub(super) fn sum_at(&self, band: Ex<'k>, what: i32, row: Ex<'k>) -> Ex<'k> {
        self.k.let_((band * self.rows + row) * SUMS + what)
    }

    pub(super) fn whole_at(&self, band: Ex<'k>, what: i32, row: Ex<'k>) -> Ex<'k> {
        self.k.let_((band * self.rows + row) * WHOLES + what)
    }
}

/// An item's way over a band: the object whose run it is in, and that object's sums.
pub(super) struct Walk<'k> {
    k: &'k Builder,
    own: Tables<'k>,
    total: Option<Tables<'k>>,
    band: Ex<'k>,
    mine: Ex<'k>,
    lanes: i32,
    /// Its row; -1 for none, or one that another item looks after.
    pub(super) row: Var,
    begin: Var,
    sum: Var,
    least: Var,
    most: Var,
    mean: Var,
}

impl<'k> Walk<'k> {
    pub(super) fn new(
        k: &'k Builder,
        tuning: &Tuning,
        own: Tables<'k>,
        total: Option<Tables<'k>>,
        band: Ex<'k>,
    ) -> Self {
        let number = || k.var(wide(k, 0.0));
        Self {
            k,
            own,
            total,
            band,
            mine: lane(k, tuning),
            lanes: tuning.lanes.cast_signed(),
            row: k.var(int(k, -1)),
            begin: k.var(int(k, 0)),
            sum: number(),
            least: number(),
            most: number(),
            mean: number(),
        }
    }

    fn load(&self, what: i32, row: Ex<'k>) -> Ex<'k> {
        self.k
            .load(self.own.sums, self.own.sum_at(self.band, what, row))
    }

    fn store(&self, what: i32, row: Ex<'k>, value: Ex<'k>) {
        let at = self.own.sum_at(self.band, what, row);
        self.k.store(self.own.sums, at, value);
    }

    /// A run of pixels of one object begins: its row, from 1, or 0 for none.
    pub(super) fn open(&self, rank: Ex<'k>, x: Ex<'k>) {
        let k = self.k;
        k.if_(rank.is_not(0), || {
            let row = k.let_(rank.cast(Ty::I32) - 1);
            let my = (row % int(k, self.lanes)).is(self.mine);
            k.if_(row.lt(self.own.rows) & my, || {
                k.set(self.row, row);
                k.set(self.begin, x);
                k.set(self.sum, self.load(SUM, row));
                if let Some(total) = &self.total {
                    let zero = int(k, 0);
                    let mean = k.load(total.sums, total.sum_at(zero, MEAN, row));
                    k.set(self.mean, mean);
                } else {
                    k.set(self.least, self.load(LEAST, row));
                    k.set(self.most, self.load(MOST, row));
                }
            });
        });
    }

    pub(super) fn add(&self, value: Ex<'k>) {
        let k = self.k;
        let value = k.let_(value);
        if self.total.is_some() {
            let off = k.let_(value - k.get(self.mean));
            k.set(self.sum, k.get(self.sum) + off * off);
            return;
        }
        k.set(self.sum, k.get(self.sum) + value);
        k.set(self.least, k.get(self.least).min(value));
        k.set(self.most, k.get(self.most).max(value));
    }

    /// The run ends before `x`.
    pub(super) fn close(&self, [z, y]: [Ex<'k>; 2], x: Ex<'k>) {
        let k = self.k;
        let row = k.get(self.row);
        k.if_(row.ge(0), || {
            k.set(self.row, int(k, -1));
            self.store(SUM, row, k.get(self.sum));
            if self.total.is_some() {
                return;
            }
            self.store(LEAST, row, k.get(self.least));
            self.store(MOST, row, k.get(self.most));
            let begin = k.get(self.begin);
            let length = k.let_(x - begin);
            let count = k.let_(length.cast(Ty::F64));
            // Positions of the run's pixels along x: their number times the middle of the ends.
            let ends = (begin + (x - 1)).cast(Ty::F64);
            for (axis, places) in [z.cast(Ty::F64), y.cast(Ty::F64), ends * 0.5]
                .into_iter()
                .enumerate()
            {
                let what = PLACES + i32::try_from(axis).expect("three axes");
                let now = self.load(what, row);
                self.store(what, row, k.let_(now + count * places));
            }
            let whole = |what: i32, step: &dyn Fn(Ex<'k>) -> Ex<'k>| {
                let at = self.own.whole_at(self.band, what, row);
                k.store(
                    self.own.wholes,
                    at,
                    k.let_(step(k.load(self.own.wholes, at))),
                );
            };
            whole(AREA, &|now| now + length.cast(Ty::U32));
            for (axis, (first, last)) in (0..).zip([(z, z), (y, y), (begin, k.let_(x - 1))]) {
                whole(START + axis, &|now| now.min(first.cast(Ty::U32)));
                whole(STOP + axis, &|now| now.max((last + 1).cast(Ty::U32)));
            }
        });
    }
}
