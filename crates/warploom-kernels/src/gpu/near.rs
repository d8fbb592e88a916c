//! Neighbours of the pixels of a run.

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::kernel::{Builder, Img};

use super::lanes::{Lanes, Run};

/// An image seen from the pixels of a run.
#[derive(Clone, Copy)]
pub(super) struct Near<'k> {
    pub(super) k: &'k Builder,
    pub(super) src: Img<'k>,
    pub(super) dims: [Ex<'k>; 3],
    pub(super) boundary: Boundary,
    /// The type neighbours are wanted in.
    pub(super) ty: Ty,
    /// What is seen where [`Boundary::Zero`] sees nothing, in that type.
    pub(super) outside: Ex<'k>,
    pub(super) run: Run<'k>,
}

impl<'k> Near<'k> {
    /// The neighbours at an offset in z, y, x: found here for all pixels of the run, then taken
    /// for each. Clear runs do not leave the row at this offset.
    pub(super) fn at(self, offset: [Ex<'k>; 3], clear: bool) -> impl Fn(Ex<'k>) -> Ex<'k> + 'k {
        let [z, y, x] = offset;
        self.row(z, y).at(x, clear)
    }

    /// The neighbours' row at an offset in z and y.
    pub(super) fn row(&self, z: Ex<'k>, y: Ex<'k>) -> Row<'k> {
        let k = self.k;
        let (z, inside_z) = self.source(self.run.z + z, self.dims[0]);
        let (y, inside_y) = self.source(self.run.y + y, self.dims[1]);
        let start = k.let_(self.src.offset + z * self.src.pitch[0] + y * self.src.pitch[1]);
        let inside = match (inside_z, inside_y) {
            (Some(z), Some(y)) => Some(k.let_(z & y)),
            _ => None,
        };
        Row {
            near: *self,
            start,
            inside,
        }
    }

    /// Where a plane or a row is read, and whether it is there.
    fn source(&self, at: Ex<'k>, length: Ex<'k>) -> (Ex<'k>, Option<Ex<'k>>) {
        let (k, is_turned) = (
            self.k,
            matches!(self.boundary, Boundary::Wrap | Boundary::Reflect),
        );
        if !is_turned || self.run.lanes.run == 1 {
            return k.source(at, length, self.boundary);
        }
        // Almost all are inside, and to divide takes as long as a run of pixels.
        let place = k.var(at);
        k.if_(at.lt(0) | at.ge(length), || {
            let (source, _) = k.source(at, length, self.boundary);
            k.set(place, source);
        });
        (k.get(place), None)
    }

    /// Runs `body` for runs from which offsets of at least `-before` and at most `after` along x
    /// stay in the row, without conditions, and for all others.
    pub(super) fn both_ways(&self, before: Ex<'k>, after: Ex<'k>, body: impl Fn(Lanes<'k>, bool)) {
        let (k, run) = (self.k, self.run.lanes.run);
        if run == 1 {
            return body(self.run.lanes, false);
        }
        let end = self.run.first + after + run.cast_signed();
        let clear = self.run.first.ge(before) & end.le(self.dims[2]);
        k.if_else(
            clear,
            || body(Lanes::whole(k, run), true),
            || body(self.run.lanes, false),
        );
    }
}

/// A row of neighbours.
#[derive(Clone, Copy)]
pub(super) struct Row<'k> {
    near: Near<'k>,
    start: Ex<'k>,
    inside: Option<Ex<'k>>,
}

impl<'k> Row<'k> {
    /// The neighbours at an offset along x.
    pub(super) fn at(self, offset: Ex<'k>, clear: bool) -> impl Fn(Ex<'k>) -> Ex<'k> + 'k {
        let (row, near, k) = (self, self.near, self.near.k);
        let first = k.let_(near.run.first + offset);
        move |lane: Ex<'k>| {
            let (x, inside) = if clear {
                (first + lane, row.inside)
            } else {
                let (x, here) = k.source(first + lane, near.dims[2], near.boundary);
                let both = row.inside.and_then(|row| here.map(|here| row & here));
                (x, both)
            };
            let value = k.load(near.src.buf, row.start + x).cast(near.ty);
            inside.map_or(value, |inside| inside.select(value, near.outside))
        }
    }
}
