//! The lower envelope of parabolas along every line of an axis.
//!
//! The parabola of pixel `i` is `(x - i)^2 + f(i)`. With `h(i) = f(i) + i^2` those on the envelope
//! are the lower hull of the points `(i, h(i))`, which needs products but no quotients. Products
//! are below 2^47, so double precision holds them exactly.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::kernel::{Access, Buf, Builder};

use super::super::launch::{Args, LaunchArg, Plan};
use super::super::line::{int, item, launch};
use super::super::tuning::Tuning;

/// Lines one item of a processor goes along, side by side: what a cache line holds.
const LINES: u64 = 16;

/// Lines of one axis.
pub(super) struct Along {
    /// Pixels of a line, and elements from one to the next.
    length: u64,
    stride: u64,
    /// Lines, and how many lie side by side before the next are a block away.
    lines: u64,
    /// Squared distances, -1 for none; replaced.
    squares: LaunchArg,
    /// Where the nearest is; replaced.
    places: Option<LaunchArg>,
}

impl Along {
    pub(super) fn new(
        dims: [u64; 3],
        axis: usize,
        squares: LaunchArg,
        places: Option<LaunchArg>,
    ) -> Self {
        let length = dims[axis];
        Self {
            length,
            stride: dims[axis + 1..].iter().product(),
            lines: dims.iter().product::<u64>() / length,
            squares,
            places,
        }
    }

    pub(super) fn plan(&self, plan: &mut Plan, tuning: &Tuning) {
        let share = if tuning.is_processor() {
            LINES.min(self.lines.div_ceil(16))
        } else {
            1
        };
        let items = self.lines.div_ceil(share);
        // An item's hull: positions, squares and, if wanted, places. Items of a GPU have theirs
        // side by side.
        let parts = if self.places.is_some() { 3 } else { 2_i32 };
        let hull = plan.scratch(items * self.length * 4 * u64::from(parts.unsigned_abs()));
        let k = Builder::new();
        let squares = k.buffer("squares", DType::I32, Access::ReadWrite);
        let stack = k.buffer("hull", DType::I32, Access::ReadWrite);
        let places = self
            .places
            .map(|_| k.buffer("places", DType::I32, Access::ReadWrite));
        let [length, stride, lines, each, all] =
            ["length", "stride", "lines", "each", "items"].map(|name| k.scalar(name, Ty::I32));
        let at = item(&k, tuning);
        let first = k.let_(at * each);
        k.if_(at.lt(all) & first.ge(0) & first.lt(lines), || {
            let hull = Hull {
                k: &k,
                stack,
                base: if tuning.is_processor() {
                    k.let_(at * length * parts)
                } else {
                    at
                },
                step: if tuning.is_processor() {
                    int(&k, 1)
                } else {
                    all
                },
                length,
            };
            let count = k.let_((lines - first).min(each));
            k.for_(int(&k, 0), count, |i| {
                let line = k.let_(first + i);
                let block = k.let_(line / stride);
                let start = k.let_(block * stride * length + (line - block * stride));
                hull.line(squares, places, start, stride);
            });
        });
        let mut args = Args::new().buffer(self.squares).buffer(hull);
        if let Some(places) = self.places {
            args = args.buffer(places);
        }
        let args = args
            .count(self.length)
            .count(self.stride)
            .count(self.lines)
            .count(share)
            .count(items);
        launch(plan, k.finish("wl_envelope", tuning.line()), items, args);
    }
}

/// The points of a hull, in memory.
struct Hull<'k> {
    k: &'k Builder,
    stack: Buf,
    base: Ex<'k>,
    step: Ex<'k>,
    length: Ex<'k>,
}

impl<'k> Hull<'k> {
    /// Where a number of a point is: its position (0), its square (1) or its place (2).
    fn at(&self, point: Ex<'k>, what: i32) -> Ex<'k> {
        let row = point + self.length * what;
        self.k.let_(self.base + row * self.step)
    }

    fn load(&self, point: Ex<'k>, what: i32) -> Ex<'k> {
        self.k.load(self.stack, self.at(point, what))
    }

    fn line(&self, squares: Buf, places: Option<Buf>, start: Ex<'k>, stride: Ex<'k>) {
        let k = self.k;
        let wide = |value: Ex<'k>| value.cast(Ty::F64);
        let count = k.var(int(k, 0));
        // The last two points, kept in variables: position and height.
        let zero = k.graph().number(Ty::F64, 0.0);
        let [ai, ah, bi, bh] = [(); 4].map(|()| k.var(zero));
        k.for_(int(k, 0), self.length, |i| {
            let pixel = k.let_(start + i * stride);
            let square = k.load(squares, pixel);
            k.if_(square.ge(0), || {
                let x = k.let_(wide(i));
                let height = k.let_(wide(square) + x * x);
                let open = k.var(int(k, 1));
                k.while_(
                    || k.get(open).is_not(0) & k.get(count).gt(1),
                    || {
                        let (ai_, ah_) = (k.get(ai), k.get(ah));
                        let (bi_, bh_) = (k.get(bi), k.get(bh));
                        // The middle one stays if it lies below the line between its neighbours.
                        let keeps = ((bh_ - ah_) * (x - bi_)).lt((height - bh_) * (bi_ - ai_));
                        k.if_else(
                            keeps,
                            || k.set(open, int(k, 0)),
                            || {
                                k.set(count, k.get(count) - 1);
                                k.set(bi, ai_);
                                k.set(bh, ah_);
                                k.if_(k.get(count).gt(1), || {
                                    let under = k.let_(k.get(count) - 2);
                                    let position = k.let_(wide(self.load(under, 0)));
                                    let square = wide(self.load(under, 1));
                                    k.set(ai, position);
                                    k.set(ah, square + position * position);
                                });
                            },
                        );
                    },
                );
                let top = k.get(count);
                k.store(self.stack, self.at(top, 0), i);
                k.store(self.stack, self.at(top, 1), square);
                if let Some(places) = places {
                    k.store(self.stack, self.at(top, 2), k.load(places, pixel));
                }
                k.set(count, top + 1);
                k.set(ai, k.get(bi));
                k.set(ah, k.get(bh));
                k.set(bi, x);
                k.set(bh, height);
            });
        });
        let count = k.get(count);
        k.if_(count.gt(0), || {
            self.values(squares, places, start, stride, count);
        });
    }

    /// The envelope's value at every pixel; of two equal parabolas the left one.
    fn values(
        &self,
        squares: Buf,
        places: Option<Buf>,
        start: Ex<'k>,
        stride: Ex<'k>,
        count: Ex<'k>,
    ) {
        let k = self.k;
        let at = k.var(int(k, 0));
        let point = |number: Ex<'k>| [self.load(number, 0), self.load(number, 1)];
        let [position, square] = point(int(k, 0));
        let (position, square) = (k.var(position), k.var(square));
        let value = |x: Ex<'k>, position: Ex<'k>, square: Ex<'k>| {
            let off = k.let_(x - position);
            k.let_(square + off * off)
        };
        // The next point, looked at again and again.
        let second = k.let_((count - 1).min(1));
        let [next_position, next_square] = point(second);
        let (next_position, next_square) = (k.var(next_position), k.var(next_square));
        k.for_(int(k, 0), self.length, |x| {
            let best = k.var(value(x, k.get(position), k.get(square)));
            k.while_(
                || {
                    let next = value(x, k.get(next_position), k.get(next_square));
                    (k.get(at) + 1).lt(count) & next.lt(k.get(best))
                },
                || {
                    k.set(position, k.get(next_position));
                    k.set(square, k.get(next_square));
                    k.set(best, value(x, k.get(position), k.get(square)));
                    k.set(at, k.get(at) + 1);
                    let after = k.let_((k.get(at) + 1).min(count - 1));
                    let [p, s] = point(after);
                    k.set(next_position, p);
                    k.set(next_square, s);
                },
            );
            let pixel = k.let_(start + x * stride);
            k.store(squares, pixel, k.get(best));
            if let Some(places) = places {
                k.store(places, pixel, self.load(k.get(at), 2));
            }
        });
    }
}
