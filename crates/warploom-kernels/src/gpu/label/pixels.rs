//! Sets of pixels, one item for each pixel: runs inside short segments of a row are joined when
//! the table is made, segments and rows by atomic steps after that.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Connectivity, Flow, ValueId};
use crate::kernel::{Access, Buf, Builder};

use super::super::launch::{Args, LaunchArg, Plan};
use super::super::line::{each, int, launch_each, word};
use super::super::tuning::Tuning;
use super::{Sort, sets, zero};

/// Pixels of a segment.
const SEGMENT: i32 = 32;

/// Writes a table of parents in which every pixel's parent is its set's first pixel; zero for the
/// background. Pixels of one set have one value.
pub(super) fn connect(
    plan: &mut Plan,
    flow: &Flow,
    image: ValueId,
    parents: LaunchArg,
    sort: Sort,
    tuning: &Tuning,
) {
    let kind = flow.kind(image);
    let count = kind.elements();
    let declare = |k: &Builder| {
        let from = k.buffer("in", kind.dtype(), Access::Read);
        let table = k.buffer("parents", DType::U32, Access::ReadWrite);
        (from, table)
    };
    let args = || Args::new().value(image).buffer(parents).count(count);

    let k = Builder::new();
    let (from, table) = declare(&k);
    let limit = k.scalar("count", Ty::I32);
    let nx = k.scalar("nx", Ty::I32);
    each(&k, tuning, limit, |i| {
        let mine = value(&k, sort, from, i);
        k.if_else(
            mine.is(0),
            || k.store(table, i, word(&k, 0)),
            || {
                let first = k.let_(i - (i % nx) % int(&k, SEGMENT));
                let start = k.var(i);
                k.while_(
                    || {
                        let before = k.get(start) - 1;
                        let other = value(&k, sort, from, before.max(0));
                        before.ge(first) & other.is(mine)
                    },
                    || k.set(start, k.get(start) - 1),
                );
                k.store(table, i, k.let_((k.get(start) + 1).cast(Ty::U32)));
            },
        );
    });
    let nx = kind.dims()[2];
    let def = k.finish("wl_segments", tuning.line());
    launch_each(plan, tuning, def, count, args().count(nx));

    let k = Builder::new();
    let (from, table) = declare(&k);
    let limit = k.scalar("count", Ty::I32);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    each(&k, tuning, limit, |i| {
        let mine = value(&k, sort, from, i);
        k.if_(mine.is_not(0), || {
            let near = Near::new(&k, sort, from, (i, mine), dims);
            near.join_all(table);
        });
    });
    let def = k.finish("wl_join", tuning.line());
    launch_each(plan, tuning, def, count, args().dims(kind));

    let k = Builder::new();
    let table = k.buffer("parents", DType::U32, Access::ReadWrite);
    let limit = k.scalar("count", Ty::I32);
    each(&k, tuning, limit, |i| {
        let found = k.load(table, i);
        k.if_(found.is_not(0), || {
            k.store(table, i, sets::root(&k, table, found));
        });
    });
    let args = Args::new().buffer(parents).count(count);
    let def = k.finish("wl_roots", tuning.line());
    launch_each(plan, tuning, def, count, args);
}

/// What must be equal in a set; zero for background.
fn value<'k>(k: &'k Builder, sort: Sort, from: Buf, at: Ex<'k>) -> Ex<'k> {
    let value = k.load(from, at);
    if sort == Sort::Labels {
        return value;
    }
    let set = value.is_not(k.graph().number(value.ty(), 0.0));
    k.let_(set.cast(Ty::U32))
}

/// A pixel and what is around it.
struct Near<'k> {
    k: &'k Builder,
    sort: Sort,
    from: Buf,
    at: Ex<'k>,
    mine: Ex<'k>,
    place: [Ex<'k>; 3],
    dims: [Ex<'k>; 3],
}

impl<'k> Near<'k> {
    fn new(
        k: &'k Builder,
        sort: Sort,
        from: Buf,
        (at, mine): (Ex<'k>, Ex<'k>),
        dims: [Ex<'k>; 3],
    ) -> Self {
        let row = k.let_(at / dims[2]);
        let z = k.let_(row / dims[1]);
        let place = [z, k.let_(row - z * dims[1]), k.let_(at - row * dims[2])];
        Self {
            k,
            sort,
            from,
            at,
            mine,
            place,
            dims,
        }
    }

    /// Is there a pixel of the same value `steps` away in z, y, x? One, or zero.
    fn same(&self, steps: [i32; 3]) -> (Ex<'k>, Ex<'k>) {
        let k = self.k;
        let mut inside = zero(k).is(0);
        let mut other = self.at;
        let strides = [self.dims[1] * self.dims[2], self.dims[2], int(k, 1)];
        for axis in 0..3 {
            if steps[axis] == 0 {
                continue;
            }
            let place = self.place[axis] + steps[axis];
            inside = inside & place.ge(0) & place.lt(self.dims[axis]);
            other = other + strides[axis] * steps[axis];
        }
        let inside = k.let_(inside);
        let other = k.let_(inside.select(other, self.at));
        let found = value(k, self.sort, self.from, other);
        (k.let_(inside & found.is(self.mine)), other)
    }

    fn join(&self, table: Buf, cond: Ex<'k>, other: Ex<'k>) {
        let k = self.k;
        k.if_(cond, || {
            let number = |at: Ex<'k>| k.let_((at + 1).cast(Ty::U32));
            sets::join(k, table, number(self.at), number(other));
        });
    }

    /// Joins the pixel with those before it that it touches, unless a neighbour in the same run
    /// does that.
    fn join_all(&self, table: Buf) {
        let (left, at_left) = self.same([0, 0, -1]);
        let first = (self.place[2] % int(self.k, SEGMENT)).is(0);
        self.join(table, left & first, at_left);
        let corners = self.sort != Sort::Mask(Connectivity::Diamond);
        let rows: &[[i32; 2]] = if corners {
            &[[0, -1], [-1, -1], [-1, 0], [-1, 1]]
        } else {
            &[[0, -1], [-1, 0]]
        };
        let (right, _) = if corners {
            self.same([0, 0, 1])
        } else {
            (left, at_left)
        };
        for &[dz, dy] in rows {
            let (above, at_above) = self.same([dz, dy, 0]);
            let (before, at_before) = self.same([dz, dy, -1]);
            self.join(table, above & !(left & before), at_above);
            if corners {
                let (behind, at_behind) = self.same([dz, dy, 1]);
                self.join(table, before & !above & !left, at_before);
                self.join(table, behind & !above & !right, at_behind);
            }
        }
    }
}
