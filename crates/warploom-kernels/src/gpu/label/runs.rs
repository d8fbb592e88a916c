//! Sets of runs, for processors: every item finds the runs of a band of rows and joins them by
//! itself; what touches across bands is joined after that. Pixels are read once and written once.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Connectivity, Flow, ValueId};
use crate::kernel::{Access, Buf, Builder, Var};

use super::super::launch::{Args, LaunchArg, Plan};
use super::super::line::{int, item, launch, word};
use super::super::tuning::Tuning;
use super::{Sort, sets};

/// Bands an image is cut into at most.
const BANDS: u64 = 32;
/// Rows one item writes or looks at for neighbours.
pub(super) const ROWS: u64 = 16;

/// The runs of an image on the device.
pub(super) struct Runs {
    pub(super) image: ValueId,
    pub(super) dtype: DType,
    pub(super) dims: [u64; 3],
    sort: Sort,
    /// Rows of a band.
    height: u64,
    /// Room for runs in a row.
    room: u64,
    /// Words for each run: where it starts, where it ends, its parent, what becomes of it.
    starts: LaunchArg,
    ends: LaunchArg,
    parents: LaunchArg,
    pub(super) fates: LaunchArg,
    /// How many runs each row has.
    counts: LaunchArg,
}

/// Runs as a kernel sees them.
#[derive(Clone, Copy)]
pub(super) struct Table<'k> {
    k: &'k Builder,
    starts: Buf,
    ends: Buf,
    pub(super) parents: Buf,
    counts: Buf,
    rows: Ex<'k>,
    ny: Ex<'k>,
    pub(super) nx: Ex<'k>,
    room: Ex<'k>,
    height: Ex<'k>,
}

impl Runs {
    /// Finds all runs and which belong together.
    pub(super) fn new(
        plan: &mut Plan,
        flow: &Flow,
        image: ValueId,
        sort: Sort,
        tuning: &Tuning,
    ) -> Self {
        let kind = flow.kind(image);
        let dims @ [nz, ny, nx] = kind.dims();
        let rows = nz * ny;
        // Two runs of one label have a pixel between them, those of two labels need not.
        let room = match sort {
            Sort::Mask(_) => nx.div_ceil(2),
            Sort::Labels => nx,
        };
        let mut words = || plan.scratch(rows * room * 4);
        let (starts, ends, parents, fates) = (words(), words(), words(), words());
        let runs = Self {
            image,
            dtype: kind.dtype(),
            dims,
            sort,
            height: rows.div_ceil(BANDS),
            room,
            starts,
            ends,
            parents,
            fates,
            counts: plan.scratch(rows * 4),
        };
        runs.find(plan, tuning);
        runs.join_bands(plan, tuning);
        runs
    }

    /// Bands.
    pub(super) fn bands(&self) -> u64 {
        (self.dims[0] * self.dims[1]).div_ceil(self.height)
    }

    /// Declares the table.
    pub(super) fn table<'k>(
        &self,
        k: &'k Builder,
        args: Args,
        access: Access,
    ) -> (Table<'k>, Args) {
        let [starts, ends, parents, counts] =
            ["starts", "ends", "parents", "counts"].map(|name| k.buffer(name, DType::U32, access));
        let [rows, ny, nx, room, height] =
            ["rows", "ny", "nx", "room", "height"].map(|name| k.scalar(name, Ty::I32));
        let table = Table {
            k,
            starts,
            ends,
            parents,
            counts,
            rows,
            ny,
            nx,
            room,
            height,
        };
        let args = args
            .buffer(self.starts)
            .buffer(self.ends)
            .buffer(self.parents)
            .buffer(self.counts)
            .count(self.dims[0] * self.dims[1])
            .count(self.dims[1])
            .count(self.dims[2])
            .count(self.room)
            .count(self.height);
        (table, args)
    }

    fn find(&self, plan: &mut Plan, tuning: &Tuning) {
        let k = Builder::new();
        let pixels = k.buffer("in", self.dtype, Access::Read);
        let fates = k.buffer("fates", DType::U32, Access::Write);
        let args = Args::new().value(self.image).buffer(self.fates);
        let (table, args) = self.table(&k, args, Access::ReadWrite);
        let [first, last] = table.band(item(&k, tuning));
        k.for_(first, last, |row| {
            table.find_row(self.sort, pixels, fates, row);
            table.neighbours(self.sort, row, |other| {
                k.if_(other.ge(first), || {
                    table.join_rows(self.sort, pixels, [other, row], |a, b| {
                        sets::join_alone(&k, table.parents, a, b);
                    });
                });
            });
        });
        launch(plan, k.finish("wl_runs", tuning.line()), self.bands(), args);
    }

    /// Joins rows of different bands.
    fn join_bands(&self, plan: &mut Plan, tuning: &Tuning) {
        let k = Builder::new();
        let pixels = k.buffer("in", self.dtype, Access::Read);
        let args = Args::new().value(self.image);
        let (table, args) = self.table(&k, args, Access::ReadWrite);
        let [first, last] = table.some_rows(item(&k, tuning));
        k.for_(first, last, |row| {
            table.neighbours(self.sort, row, |other| {
                let apart = (other / table.height).is_not(row / table.height);
                k.if_(apart, || {
                    table.join_rows(self.sort, pixels, [other, row], |a, b| {
                        sets::join(&k, table.parents, a, b);
                    });
                });
            });
        });
        let def = k.finish("wl_join_bands", tuning.line());
        launch(plan, def, self.shares(), args);
    }

    /// Items for work by rows.
    pub(super) fn shares(&self) -> u64 {
        (self.dims[0] * self.dims[1]).div_ceil(ROWS)
    }
}

impl<'k> Table<'k> {
    /// The rows of a band; none beyond the last.
    pub(super) fn band(&self, band: Ex<'k>) -> [Ex<'k>; 2] {
        let first = self.k.let_((band * self.height).min(self.rows));
        [first, self.k.let_((first + self.height).min(self.rows))]
    }

    /// Rows of one item of [`Runs::shares`].
    pub(super) fn some_rows(&self, item: Ex<'k>) -> [Ex<'k>; 2] {
        let rows = i32::try_from(ROWS).expect("few");
        let first = self.k.let_((item * rows).min(self.rows));
        [first, self.k.let_((first + rows).min(self.rows))]
    }

    /// The first run of a row in the table, and how many there are.
    pub(super) fn row(&self, row: Ex<'k>) -> [Ex<'k>; 2] {
        let k = self.k;
        let count = k.load(self.counts, row).cast(Ty::I32);
        [k.let_(row * self.room), k.let_(count)]
    }

    /// Where a run starts and ends.
    pub(super) fn ends(&self, run: Ex<'k>) -> [Ex<'k>; 2] {
        [self.starts, self.ends].map(|buf| self.k.let_(self.k.load(buf, run).cast(Ty::I32)))
    }

    /// The set of a run: its first run.
    pub(super) fn root(&self, run: Ex<'k>) -> Ex<'k> {
        let number = self.k.let_((run + 1).cast(Ty::U32));
        let root = sets::root(self.k, self.parents, number);
        self.k.let_(root.cast(Ty::I32) - 1)
    }

    /// Finds the runs of a row. Where pixels change is found for 32 at a time, in vector code.
    fn find_row(&self, sort: Sort, pixels: Buf, fates: Buf, row: Ex<'k>) {
        let k = self.k;
        let base = k.let_(row * self.nx);
        let place = k.let_(row * self.room);
        let set = |at: Ex<'k>| {
            let pixel = k.load(pixels, at);
            pixel.is_not(k.graph().number(pixel.ty(), 0.0))
        };
        let differs = |at: Ex<'k>| match sort {
            Sort::Mask(_) => set(at).cast(Ty::U32) ^ set(at - 1).cast(Ty::U32),
            Sort::Labels => k
                .load(pixels, at)
                .is_not(k.load(pixels, at - 1))
                .cast(Ty::U32),
        };
        let (count, open) = (k.var(int(k, 0)), k.var(int(k, 0)));
        let begin = |x: Ex<'k>| {
            let run = k.let_(place + k.get(count));
            k.store(self.starts, run, k.let_(x.cast(Ty::U32)));
            k.store(self.parents, run, k.let_((run + 1).cast(Ty::U32)));
            k.store(fates, run, word(k, 0));
            k.set(count, k.get(count) + 1);
            k.set(open, int(k, 1));
        };
        let end = |x: Ex<'k>| {
            k.if_(k.get(open).is_not(0), || {
                let run = place + (k.get(count) - 1);
                k.store(self.ends, run, k.let_(x.cast(Ty::U32)));
                k.set(open, int(k, 0));
            });
        };
        k.if_(set(base), || begin(int(k, 0)));
        let turn = |x: Ex<'k>| {
            let was_open = k.get(open);
            end(x);
            match sort {
                // A mask changes between two states only.
                Sort::Mask(_) => k.if_(was_open.is(0), || begin(x)),
                Sort::Labels => k.if_(set(k.let_(base + x)), || begin(x)),
            }
        };
        let full = k.let_((self.nx - 1).shifted_right(5));
        k.for_(int(k, 0), full, |block| {
            let first = k.let_(block * 32 + 1);
            let turns = k.var(word(k, 0));
            k.for_(int(k, 0), int(k, 32), |j| {
                let bit = differs(k.let_(base + first + j)).shifted_left(j.cast(Ty::U32));
                k.set(turns, k.get(turns) | bit);
            });
            k.while_(
                || k.get(turns).is_not(0),
                || {
                    let all = k.get(turns);
                    let lowest = k.let_(all & (word(k, 0) - all));
                    // The exponent of a power of two is its logarithm.
                    let bits = lowest.cast(Ty::F32).to_bits();
                    turn(k.let_(first + (bits.shifted_right(23) - 127)));
                    k.set(turns, all ^ lowest);
                },
            );
        });
        k.for_(full * 32 + 1, self.nx, |x| {
            k.if_(differs(k.let_(base + x)).is_not(0), || turn(x));
        });
        end(self.nx);
        k.store(self.counts, row, k.let_(k.get(count).cast(Ty::U32)));
    }

    /// Calls `body` with every row before this one that touches it.
    fn neighbours(&self, sort: Sort, row: Ex<'k>, body: impl Fn(Ex<'k>)) {
        let k = self.k;
        let z = k.let_(row / self.ny);
        let y = k.let_(row - z * self.ny);
        let up = y.gt(0);
        let back = z.gt(0);
        k.if_(up, || body(k.let_(row - 1)));
        k.if_(back, || body(k.let_(row - self.ny)));
        if sort != Sort::Mask(Connectivity::Diamond) {
            k.if_(back & up, || body(k.let_(row - self.ny - 1)));
            k.if_(back & (y + 1).lt(self.ny), || {
                body(k.let_(row - self.ny + 1));
            });
        }
    }

    /// Calls `join` with the runs of two rows that touch, one added to each.
    fn join_rows(&self, sort: Sort, pixels: Buf, rows: [Ex<'k>; 2], join: impl Fn(Ex<'k>, Ex<'k>)) {
        let k = self.k;
        let reach = i32::from(sort != Sort::Mask(Connectivity::Diamond));
        let [[a_first, a_count], [b_first, b_count]] = rows.map(|row| self.row(row));
        let (a_stop, b_stop) = (k.let_(a_first + a_count), k.let_(b_first + b_count));
        let (a, b) = (k.var(a_first), k.var(b_first));
        let load = |run: Ex<'k>| self.ends(run);
        let vars = |ends: [Ex<'k>; 2]| ends.map(|end| k.var(end));
        k.if_(a_count.gt(0) & b_count.gt(0), || {
            let (left, right) = (vars(load(a_first)), vars(load(b_first)));
            let get = |[start, end]: [Var; 2]| [k.get(start), k.get(end)];
            k.while_(
                || k.get(a).lt(a_stop) & k.get(b).lt(b_stop),
                || {
                    let ([a_start, a_end], [b_start, b_end]) = (get(left), get(right));
                    let mut touch = a_start.lt(b_end + reach) & b_start.lt(a_end + reach);
                    let label = |row: Ex<'k>, x: Ex<'k>| k.load(pixels, row * self.nx + x);
                    if sort == Sort::Labels {
                        touch = touch & label(rows[0], a_start).is(label(rows[1], b_start));
                    }
                    let number = |var| k.let_((k.get(var) + 1).cast(Ty::U32));
                    k.if_(touch, || join(number(a), number(b)));
                    // The one that ends first touches nothing further. Of two that end together,
                    // the one whose next starts first goes on.
                    let next = |var: Var, stop: Ex<'k>| {
                        let next = k.let_(k.get(var) + 1);
                        let start = k.load(self.starts, next.min(stop - 1)).cast(Ty::I32);
                        k.let_(next.lt(stop).select(start, i32::MAX))
                    };
                    let (a_next, b_next) = (next(a, a_stop), next(b, b_stop));
                    let equal = a_end.is(b_end) & a_next.lt(i32::MAX) & a_next.le(b_next);
                    if sort == Sort::Labels {
                        // Runs of labels follow each other without a gap: where both rows go on at
                        // once, this run is left behind before its other corner is looked at.
                        k.if_(equal & b_next.is(b_end), || {
                            let alike = label(rows[0], a_start).is(label(rows[1], b_next));
                            k.if_(alike, || {
                                join(number(a), k.let_((k.get(b) + 2).cast(Ty::U32)));
                            });
                        });
                    }
                    k.if_else(
                        a_end.lt(b_end) | equal,
                        || self.step(a, left, a_stop),
                        || self.step(b, right, b_stop),
                    );
                },
            );
        });
    }

    fn step(&self, at: Var, ends: [Var; 2], stop: Ex<'k>) {
        let k = self.k;
        let next = k.let_(k.get(at) + 1);
        k.set(at, next);
        let loaded = self.ends(k.let_(next.min(stop - 1)));
        for (var, value) in ends.into_iter().zip(loaded) {
            k.set(var, value);
        }
    }
}
