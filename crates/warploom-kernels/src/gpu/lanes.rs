//! Several results side by side in one work item.
//!
//! On a processor a work item computes a run of pixels with plain inner loops over them, which its
//! compiler turns into vector code; loops over neighbours go around these, never inside. On a GPU
//! a run is one pixel and the loops vanish.

use crate::expr::{Ex, Ty};
use crate::kernel::{Buf, Builder, Space, Work};

/// The pixels of a run.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'k> {
    k: &'k Builder,
    /// How many at most.
    pub(super) run: u32,
    /// How many there are.
    count: Ex<'k>,
    /// Is it known that there are as many?
    pub(super) whole: bool,
}

impl<'k> Lanes<'k> {
    /// A whole run.
    pub(super) fn whole(k: &'k Builder, run: u32) -> Self {
        Self {
            k,
            run,
            count: k.graph().int(run.cast_signed()),
            whole: true,
        }
    }

    /// What is left of a row from `first` on.
    pub(super) fn rest(k: &'k Builder, run: u32, first: Ex<'k>, length: Ex<'k>) -> Self {
        Self {
            k,
            run,
            count: k.let_((length - first).min(run.cast_signed())),
            whole: false,
        }
    }

    /// Runs `body` for each, with its number in the run.
    pub(super) fn each(&self, body: impl FnOnce(Ex<'k>)) {
        if self.run == 1 {
            body(self.k.graph().int(0));
        } else {
            self.k.for_(self.k.graph().int(0), self.count, body);
        }
    }

    /// A number for each.
    pub(super) fn values(&self, ty: Ty) -> Values<'k> {
        Values {
            k: self.k,
            buf: self.k.array(ty, self.run, Space::Private),
        }
    }
}

/// A number for each pixel of a run.
#[derive(Clone, Copy)]
pub(super) struct Values<'k> {
    k: &'k Builder,
    buf: Buf,
}

impl<'k> Values<'k> {
    /// That of one pixel, now.
    pub(super) fn get(&self, lane: Ex<'k>) -> Ex<'k> {
        self.k.load(self.buf, lane)
    }

    /// Changes that of one pixel.
    pub(super) fn set(&self, lane: Ex<'k>, value: Ex<'k>) {
        self.k.store(self.buf, lane, value);
    }
}

/// Neighbours that are looked at for each time that what is made of them comes from memory and goes back.
const AT_ONCE: i32 = 8;

/// Runs `body` for the numbers below `count`, in order: several at once where whole runs are made, else
/// one by one. It gets the first of them, and how many there are.
pub(super) fn at_once<'k>(
    k: &'k Builder,
    several: bool,
    count: Ex<'k>,
    body: impl Fn(Ex<'k>, i32),
) {
    let int = |value: i32| k.graph().int(value);
    if !several {
        return k.for_(int(0), count, |at| body(at, 1));
    }
    let mut next = k.let_(count / int(AT_ONCE) * AT_ONCE);
    k.for_by(int(0), next, int(AT_ONCE), |first| body(first, AT_ONCE));
    // Of the rest as many at once as can be: small neighbourhoods have nothing else.
    let mut many = AT_ONCE / 2;
    while many > 0 {
        let first = next;
        next = k.let_(count / int(many) * many);
        k.if_(first.lt(next), || body(first, many));
        many /= 2;
    }
}

/// Where an item's run is.
#[derive(Clone, Copy)]
pub(super) struct Run<'k> {
    /// Its plane and its row.
    pub(super) z: Ex<'k>,
    /// Its row.
    pub(super) y: Ex<'k>,
    /// Its first pixel.
    pub(super) first: Ex<'k>,
    /// One past the last pixel of the row.
    pub(super) end: Ex<'k>,
    /// Its pixels.
    pub(super) lanes: Lanes<'k>,
}

impl<'k> Run<'k> {
    /// Runs `body` for whole runs, whose number of pixels a compiler knows, and for the others.
    pub(super) fn both_ways(&self, k: &'k Builder, body: impl Fn(Lanes<'k>)) {
        let run = self.lanes.run;
        if run == 1 {
            return body(self.lanes);
        }
        let whole = (self.first + run.cast_signed()).le(self.end);
        k.if_else(whole, || body(Lanes::whole(k, run)), || body(self.lanes));
    }
}

/// Runs `body` for every run of every row of an image.
pub(super) fn runs<'k>(k: &'k Builder, run: u32, dims: [Ex<'k>; 3], body: impl FnOnce(Run<'k>)) {
    let (z, y) = (k.work(Work::Global(2)), k.work(Work::Global(1)));
    let start = k.let_(k.work(Work::Global(0)) * share(run).cast_signed());
    let inside = z.lt(dims[0]) & y.lt(dims[1]) & start.lt(dims[2]);
    k.if_(inside, || {
        each_run(k, run, (start, dims[2]), |first| {
            let lanes = Lanes::rest(k, run, first, dims[2]);
            body(Run {
                z,
                y,
                first,
                end: dims[2],
                lanes,
            });
        });
    });
}

/// Pixels of a row that one item of a processor makes, run by run. It takes 11 ns to begin an item of
/// PoCL's, and less to make 64 pixels of most images.
const SHARE: u32 = 512;

/// Pixels of a row that one item makes in runs of so many.
pub(super) fn share(run: u32) -> u32 {
    if run == 1 {
        1
    } else {
        SHARE.div_ceil(run) * run
    }
}

/// Pixels of a row that one item makes of an expression, which may be of bytes and hardly any work: of the time that PoCL
/// took for masks of 2048 by 2048 almost half went into beginning items of 512 pixels. With a loop over rows below each
/// other, which saves a little more, expressions written over their input took twice as long.
const LONG: u32 = 4096;

/// The same for an expression.
pub(super) fn long_share(run: u32) -> u32 {
    if run == 1 {
        1
    } else {
        LONG.div_ceil(run) * run
    }
}

/// Runs `body` with the first pixel of each run of an item whose share starts at the first number given, in a
/// row that ends at the second.
pub(super) fn each_run<'k>(
    k: &'k Builder,
    run: u32,
    ends: (Ex<'k>, Ex<'k>),
    body: impl FnOnce(Ex<'k>),
) {
    each_of_share(k, (run, share(run)), ends, body);
}

/// The same with an expression's share.
pub(super) fn each_long<'k>(
    k: &'k Builder,
    run: u32,
    ends: (Ex<'k>, Ex<'k>),
    body: impl FnOnce(Ex<'k>),
) {
    each_of_share(k, (run, long_share(run)), ends, body);
}

fn each_of_share<'k>(
    k: &'k Builder,
    (run, share): (u32, u32),
    (start, end): (Ex<'k>, Ex<'k>),
    body: impl FnOnce(Ex<'k>),
) {
    if run == 1 {
        return body(start);
    }
    let step = k.graph().int(run.cast_signed());
    let end = k.let_((start + share.cast_signed()).min(end));
    k.for_by(start, end, step, body);
}

/// Work items that cover an image in shares of an expression.
pub(super) fn long_items([nz, ny, nx]: [u64; 3], run: u32) -> [u64; 3] {
    [nx.div_ceil(u64::from(long_share(run))), ny, nz]
}

/// Work items that cover an image in runs.
pub(super) fn items([nz, ny, nx]: [u64; 3], run: u32) -> [u64; 3] {
    [nx.div_ceil(u64::from(share(run))), ny, nz]
}

/// Rows of a tile.
const ROWS: u32 = 16;

/// Rows that one item makes in [`tiles`] with runs of so many pixels.
fn rows(run: u32) -> u32 {
    if run == 1 { 1 } else { ROWS }
}

/// Runs `body` for every run of every row of an image, where an item of a processor makes runs below each other
/// instead of side by side.
pub(super) fn tiles<'k>(k: &'k Builder, run: u32, dims: [Ex<'k>; 3], body: impl FnOnce(Run<'k>)) {
    if run == 1 {
        return runs(k, run, dims, body);
    }
    let height = rows(run).cast_signed();
    let (z, top) = (
        k.work(Work::Global(2)),
        k.let_(k.work(Work::Global(1)) * height),
    );
    let first = k.let_(k.work(Work::Global(0)) * run.cast_signed());
    let inside = z.lt(dims[0]) & top.lt(dims[1]) & first.lt(dims[2]);
    k.if_(inside, || {
        let lanes = Lanes::rest(k, run, first, dims[2]);
        k.for_(top, k.let_((top + height).min(dims[1])), |y| {
            body(Run {
                z,
                y,
                first,
                end: dims[2],
                lanes,
            });
        });
    });
}

/// Work items that cover an image in such tiles.
pub(super) fn tile_items([nz, ny, nx]: [u64; 3], run: u32) -> [u64; 3] {
    [
        nx.div_ceil(u64::from(run)),
        ny.div_ceil(u64::from(rows(run))),
        nz,
    ]
}
