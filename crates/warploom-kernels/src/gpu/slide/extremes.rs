//! Extremes of windows.
//!
//! A piece of the axis, with what its windows reach on both sides, is folded onto itself, so that it
//! holds the extremes of 2, 4, 8, ... pixels, until two such runs cover a window. All of it is loops
//! over pixels side by side, which become vector code. Runs are compared in another order than
//! windows are defined by, which shows in one case only: equal zeros of different sign. Where there
//! is a negative zero, results of zero are found again in the order of the definition.

use warploom_core::DType;

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::flow::{Combine, Flow, Node};
use crate::kernel::{Access, Buf, Builder, Img, Var, Work};

use super::super::fold;
use super::super::launch::{Plan, along};
use super::super::tuning::Tuning;
use super::super::window::Window;
use super::Frame;

/// Results of a piece along x, and the largest radius that fits beside them.
const LINE: [u32; 2] = [1024, 512];
/// The same across, and how many columns a piece has.
const STRIP: [u32; 2] = [64, 32];
const COLUMNS: u32 = 64;

/// Extremes of windows.
struct Extremes<'k> {
    frame: Frame<'k>,
    combine: Combine,
    boundary: Boundary,
    dtype: DType,
    /// Not along x.
    across: bool,
    /// Where the piece starts along the axis, and beside it.
    first: Ex<'k>,
    column: Ex<'k>,
    /// Pixels beside each other in the piece.
    columns: Ex<'k>,
    /// How many of its results there are.
    count: Ex<'k>,
    plane: Ex<'k>,
}

impl<'k> Extremes<'k> {
    /// The element of an image at a place along the axis, of the piece's first column.
    fn at(&self, img: Img<'k>, place: Ex<'k>) -> Ex<'k> {
        let start = img.offset + self.plane * img.pitch[0];
        if self.across {
            start + place * img.pitch[1] + self.column
        } else {
            start + self.column * img.pitch[1] + place
        }
    }

    /// Elements of the piece at one place.
    fn stride(&self) -> i32 {
        if self.across {
            COLUMNS.cast_signed()
        } else {
            1
        }
    }

    /// A number as it counts: an extreme that is none does not.
    fn number(&self, value: Ex<'k>) -> Ex<'k> {
        fold::begin(self.combine, value)
    }

    /// Reads the piece; sets `negative` where it has a negative zero.
    fn read(&self, piece: Buf, negative: Option<Var>) {
        let (k, frame) = (self.frame.k, &self.frame);
        let zero = k.graph().number(piece.ty(), 0.0);
        let keep = |at: Ex<'k>, value: Ex<'k>| {
            if let Some(negative) = negative {
                let is = value.to_bits().is(i32::MIN).cast(Ty::I32);
                let any = k.get(negative) | is;
                k.set(negative, any);
            }
            k.store(piece, at, k.let_(self.number(value)));
        };
        let start = k.let_(self.first - frame.radius);
        let length = k.let_(self.count + frame.radius + frame.radius);
        // By the rule: a row of the piece, or a pixel of it.
        let outside = |place: Ex<'k>| {
            let (source, inside) = k.source(start + place, frame.length, self.boundary);
            let inside = inside.map(|inside| k.let_(inside));
            let row = k.let_(self.at(frame.src, source));
            let to = k.let_(place * self.stride());
            if self.across {
                k.soon(
                    frame.src,
                    row + COLUMNS.cast_signed(),
                    COLUMNS,
                    Access::Read,
                );
                let result = k.let_(self.at(frame.dst, self.first + place));
                k.soon(frame.dst, result, COLUMNS, Access::Write);
            }
            k.for_(k.graph().int(0), self.columns, |lane| {
                let value = k.load(frame.src.buf, row + lane);
                let value = inside.map_or(value, |inside| k.let_(inside.select(value, zero)));
                keep(to + lane, value);
            });
        };
        if self.across {
            k.for_(k.graph().int(0), length, outside);
            return;
        }
        let before = k.let_((-start).max(0));
        let behind = k.let_((frame.length - start).min(length));
        k.for_(k.graph().int(0), before, outside);
        let row = k.let_(self.at(frame.src, start));
        k.for_(before, behind, |at| {
            keep(at, k.load(frame.src.buf, row + at));
        });
        k.for_(behind, length, outside);
    }

    /// The extremes of two runs `apart` pixels long, one behind the other, as far as there are any.
    fn double(&self, from: Buf, to: Buf, apart: Ex<'k>) {
        let (k, frame) = (self.frame.k, &self.frame);
        let length = self.count + (frame.window - apart - apart);
        let end = k.let_(length * self.stride());
        let apart = k.let_(apart * self.stride());
        k.for_(k.graph().int(0), end, |at| {
            let best = fold::add(self.combine, k.load(from, at), k.load(from, at + apart));
            k.store(to, at, k.let_(best));
        });
    }

    /// Windows of two runs of `span` pixels.
    fn write(&self, from: Buf, span: Ex<'k>) {
        let (k, frame) = (self.frame.k, &self.frame);
        let apart = k.let_((frame.window - span) * self.stride());
        let row = |place: Ex<'k>, columns: Ex<'k>| {
            let start = k.let_(place * self.stride());
            let to = k.let_(self.at(frame.dst, self.first + place));
            k.for_(k.graph().int(0), columns, |lane| {
                let (a, b) = (
                    k.load(from, start + lane),
                    k.load(from, start + apart + lane),
                );
                k.store(
                    frame.dst.buf,
                    to + lane,
                    k.let_(fold::add(self.combine, a, b)),
                );
            });
        };
        if self.across {
            k.for_(k.graph().int(0), self.count, |place| {
                row(place, self.columns);
            });
        } else {
            row(k.graph().int(0), self.count);
        }
    }

    /// Gives results of zero the sign of the first zero in the order of the definition: the end of
    /// a block from its last pixel back, then the start of the next.
    fn settle(&self) {
        let (k, frame) = (self.frame.k, &self.frame);
        let (window, int) = (frame.window, |value: i32| k.graph().int(value));
        k.for_(int(0), self.count, |place| {
            let x = k.let_(self.first + place);
            let start = k.let_(((x + (window - 1)) / window - 1) * window);
            let begun = k.let_(x - start);
            let here = k.let_(start - frame.radius);
            k.for_(int(0), self.columns, |lane| {
                let result = k.let_(self.at(frame.dst, x) + lane);
                k.if_(k.load(frame.dst.buf, result).is(0.0), || {
                    k.for_(int(0), window, |step| {
                        let back = window - 1 - step;
                        let on = window + (step - (window - begun));
                        let at = k.let_(here + step.lt(window - begun).select(back, on));
                        let (source, inside) = k.source(at, frame.length, self.boundary);
                        let value = k.load(frame.src.buf, self.at(frame.src, source) + lane);
                        let value = inside.map_or(value, |inside| inside.select(value, 0.0));
                        let value = k.let_(value);
                        k.if_(value.is(0.0), || {
                            k.store(frame.dst.buf, result, value);
                            k.break_();
                        });
                    });
                });
            });
        });
    }

    fn all(&self) {
        let k = self.frame.k;
        let (size, columns) = if self.across {
            (STRIP, COLUMNS)
        } else {
            (LINE, 1)
        };
        let room = (size[0] + 2 * size[1]) * columns;
        let [a, b] = [0, 1].map(|_| k.line(self.dtype, room));
        let signed = a.ty() == Ty::F32;
        let negative = signed.then(|| k.var(k.graph().int(0)));
        self.read(a, negative);
        let window = self.frame.window;
        let span = k.var(k.graph().int(1));
        k.while_(
            || (k.get(span) * 4).le(window),
            || {
                let now = k.get(span);
                self.double(a, b, now);
                self.double(b, a, now + now);
                k.set(span, now * 4);
            },
        );
        let span = k.get(span);
        k.if_else(
            (span * 2).le(window),
            || {
                self.double(a, b, span);
                self.write(b, span * 2);
            },
            || self.write(a, span),
        );
        if let Some(negative) = negative {
            k.if_(k.get(negative).is_not(0), || self.settle());
        }
    }
}

/// How often each pixel is read, unless the window is too long or its pixels have no bits to look
/// at.
pub(super) fn reads(dtype: DType, window: Window) -> Option<f64> {
    let [results, reach] = if window.axis == 2 { LINE } else { STRIP };
    let able = dtype != DType::F64 && window.radius <= reach;
    able.then(|| 1.0 + 2.0 * f64::from(window.radius) / f64::from(results))
}

/// The launch, where each pixel can be read.
pub(super) fn plan(flow: &Flow, node: &Node, window: Window, tuning: &Tuning) -> Option<Plan> {
    let kind = flow.kind(node.outputs[0]);
    let across = window.axis != 2;
    reads(kind.dtype(), window)?;
    let k = Builder::new();
    let frame = Frame::new(&k, flow.kind(node.inputs[0]).dtype(), kind.dtype());
    let (results, columns) = if across {
        (STRIP[0], COLUMNS)
    } else {
        (LINE[0], 1)
    };
    let (along_axis, beside) = if across { (1, 0) } else { (0, 1) };
    let plane = k.work(Work::Global(2));
    let first = k.let_(k.work(Work::Global(along_axis)) * results.cast_signed());
    let column = k.let_(k.work(Work::Global(beside)) * columns.cast_signed());
    let inside = plane.lt(frame.planes) & first.lt(frame.length) & column.lt(frame.side);
    k.if_(inside, || {
        let count = k.let_((frame.length - first).min(results.cast_signed()));
        let some = k.let_((frame.side - column).min(columns.cast_signed()));
        let piece = Extremes {
            frame,
            combine: window.combine,
            boundary: window.boundary,
            dtype: kind.dtype(),
            across,
            first,
            column,
            columns: if across { some } else { k.graph().int(1) },
            count,
            plane,
        };
        piece.all();
    });
    let def = k.finish(
        if across {
            "wl_extreme_across"
        } else {
            "wl_extreme"
        },
        tuning.group,
    );
    let [planes, y, x] = along(kind.dims(), window.axis);
    let items = if across {
        [
            x.div_ceil(u64::from(columns)),
            y.div_ceil(u64::from(results)),
            planes,
        ]
    } else {
        [x.div_ceil(u64::from(results)), y, planes]
    };
    let mut plan = Plan::default();
    plan.launch(def, items, Frame::args(flow, node, window));
    Some(plan)
}
