//! Disjoint sets in a table of parents: a word for each element, the number of its parent plus
//! one. The first element of a set is its root and its own parent.
//!
//! Items join sets at the same time. A parent is always before its child, and only an atomic
//! minimum ever changes a parent, so whoever looks at a stale one sees an older ancestor and goes
//! on from there.

use crate::expr::{Ex, Ty};
use crate::kernel::{Buf, Builder};

use super::super::line::int;

/// The root of a set; elements are given and found with one added.
pub(super) fn root<'k>(k: &'k Builder, parents: Buf, from: Ex<'k>) -> Ex<'k> {
    let at = k.var(from);
    let parent = k.var(k.load(parents, from.cast(Ty::I32) - 1));
    k.while_(
        || k.get(parent).is_not(k.get(at)),
        || {
            let next = k.get(parent);
            k.set(at, next);
            k.set(parent, k.load(parents, next.cast(Ty::I32) - 1));
        },
    );
    k.get(at)
}

/// Makes two sets one; elements are given with one added.
pub(super) fn join<'k>(k: &'k Builder, parents: Buf, a: Ex<'k>, b: Ex<'k>) {
    let (a, b) = (k.var(a), k.var(b));
    let open = k.var(int(k, 1));
    k.while_(
        || k.get(open).is_not(0),
        || {
            let (left, right) = (root(k, parents, k.get(a)), root(k, parents, k.get(b)));
            k.if_else(
                left.is(right),
                || k.set(open, int(k, 0)),
                || {
                    let (low, high) = (k.let_(left.min(right)), k.let_(left.max(right)));
                    let was = k.atomic_min(parents, high.cast(Ty::I32) - 1, low);
                    // If it was no root any more, what it belonged to is joined next.
                    k.if_else(
                        was.is(high),
                        || k.set(open, int(k, 0)),
                        || {
                            k.set(a, was);
                            k.set(b, low);
                        },
                    );
                },
            );
        },
    );
}

/// Makes two sets one where no other item is at work on them.
pub(super) fn join_alone<'k>(k: &'k Builder, parents: Buf, a: Ex<'k>, b: Ex<'k>) {
    let [a, b] = [a, b].map(|from| {
        let at = k.var(from);
        let parent = k.var(k.load(parents, from.cast(Ty::I32) - 1));
        k.while_(
            || k.get(parent).is_not(k.get(at)),
            || {
                // Paths are halved on the way.
                let above = k.load(parents, k.get(parent).cast(Ty::I32) - 1);
                k.store(parents, k.get(at).cast(Ty::I32) - 1, above);
                k.set(at, above);
                k.set(parent, k.load(parents, above.cast(Ty::I32) - 1));
            },
        );
        k.get(at)
    });
    k.if_(a.is_not(b), || {
        let (low, high) = (k.let_(a.min(b)), k.let_(a.max(b)));
        k.store(parents, high.cast(Ty::I32) - 1, low);
    });
}
