//! The value of a rank in a list of keys, by counting in narrower and narrower buckets.

use crate::expr::{Ex, Ty};
use crate::kernel::{Buf, Builder, Space};

use super::super::line::{int, word};

/// Buckets that keys are counted in at once: they stay in a processor's first cache.
const BUCKETS: u32 = 1 << 11;
/// Keys that are looked at together for any that is meant; lists have room for as many more, which are not looked at
/// closely.
pub(super) const FEW: u32 = 16;

/// What was found.
pub(super) struct Nth<'k> {
    pub(super) key: Ex<'k>,
    /// How many keys are equal to it, and how many of them come before the rank.
    pub(super) equal: Ex<'k>,
    pub(super) before: Ex<'k>,
}

/// A list: its first word in memory and how many there are.
pub(super) type List<'k> = (Buf, Ex<'k>, Ex<'k>);

/// Runs `body` for keys of a list, told how far above `least` they are, wherever there is one among its neighbours that is
/// no farther than `width`. Vectors tell whether there is any; to pick them out goes one by one.
pub(super) fn few_of<'k>(
    k: &'k Builder,
    (list, start, length): List<'k>,
    [least, width]: [Ex<'k>; 2],
    body: impl FnOnce(Ex<'k>),
) {
    let few = int(k, FEW.cast_signed());
    k.for_by(int(k, 0), length, few, |first| {
        let any = k.var(int(k, 0));
        k.for_(int(k, 0), few, |i| {
            let off = k.load(list, start + first + i) - least;
            k.set(any, k.get(any) | off.le(width).cast(Ty::I32));
        });
        k.if_(k.get(any).is_not(0), || {
            let stop = k.let_((first + few).min(length));
            k.for_(first, stop, |i| {
                body(k.let_(k.load(list, start + i) - least));
            });
        });
    });
}

/// Finds a rank among those keys of a list that are in a range, of which there are more.
pub(super) fn nth<'k>(
    k: &'k Builder,
    list: List<'k>,
    [low, high]: [Ex<'k>; 2],
    rank: Ex<'k>,
) -> Nth<'k> {
    let table = k.array(Ty::U32, BUCKETS, Space::Private);
    let buckets = int(k, BUCKETS.cast_signed());
    let [low, high, left] = [low, high, rank].map(|start| k.var(start));
    let (equal, open) = (k.var(word(k, 0)), k.var(int(k, 1)));
    k.while_(
        || k.get(open).is_not(0),
        || {
            let least = k.get(low);
            let width = k.let_(k.get(high) - least);
            let shift = k.var(word(k, 0));
            k.while_(
                || width.shifted_right(k.get(shift)).ge(word(k, BUCKETS)),
                || k.set(shift, k.get(shift) + word(k, 1)),
            );
            let shift = k.get(shift);
            k.for_(int(k, 0), buckets, |i| k.store(table, i, word(k, 0)));
            few_of(k, list, [least, width], |off| {
                k.if_(off.le(width), || {
                    let bucket = k.let_(off.shifted_right(shift).cast(Ty::I32));
                    k.store(table, bucket, k.load(table, bucket) + word(k, 1));
                });
            });
            let at = k.var(int(k, 0));
            k.while_(
                || {
                    let here = k.get(at);
                    here.lt(buckets - 1) & k.get(left).ge(k.load(table, here))
                },
                || {
                    let here = k.get(at);
                    k.set(left, k.get(left) - k.load(table, here));
                    k.set(at, here + 1);
                },
            );
            let at = k.get(at);
            k.set(equal, k.load(table, at));
            let start = k.let_(at.cast(Ty::U32).shifted_left(shift));
            let size = k.let_(word(k, 1).shifted_left(shift) - word(k, 1));
            k.set(low, least + start);
            k.set(high, least + start + size.min(width - start));
            k.set(open, shift.cast(Ty::I32));
        },
    );
    Nth {
        key: k.get(low),
        equal: k.get(equal),
        before: k.get(left),
    }
}
