//! Pixels that are read along a slope, on a processor.
//!
//! Where a run of them lies between pixels of the image throughout, nothing has to be asked of each. Places,
//! pixels and mixtures are made in loops of their own, because vectors compute places and mixtures but do
//! not fetch pixels.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::kernel::{Builder, Img, Space};

use super::lanes::{Lanes, Run};

/// Where pixels lie along an axis of the image: that of a row's start, how far it is from one pixel of
/// the row to the next, and the last place that is inside.
pub(super) type Line<'k> = (Ex<'k>, Ex<'k>, Ex<'k>);

/// A run that is read along a slope.
pub(super) struct Slope<'k> {
    k: &'k Builder,
    run: Run<'k>,
    lines: Vec<Line<'k>>,
    single: [bool; 3],
}

impl<'k> Slope<'k> {
    pub(super) fn new(k: &'k Builder, run: Run<'k>, lines: &[Line<'k>], single: [bool; 3]) -> Self {
        Self {
            k,
            run,
            lines: lines.to_vec(),
            single,
        }
    }

    /// Is it a whole run, whose pixels all have one behind them along every axis? Places go one way along every
    /// axis, so that what holds at both ends holds between them.
    pub(super) fn applies(&self) -> Ex<'k> {
        let (k, run) = (self.k, self.run.lanes.run.cast_signed());
        let mut applies = (self.run.first + run).le(self.run.end);
        for (axis, (start, step, last)) in self.lines.iter().enumerate() {
            for lane in [0, run - 1] {
                let x = (self.run.first + lane).cast(Ty::F64);
                let place = k.let_(*start + *step * x);
                let before = if self.single[axis] {
                    place.le(*last)
                } else {
                    place.lt(*last)
                };
                applies = applies & place.ge(0.0) & before;
            }
        }
        k.let_(applies)
    }

    /// Axes that the image is longer than a pixel along.
    fn axes(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let single = self.single;
        (0..3).filter(move |axis| !single[*axis])
    }

    /// Hands out each pixel of a run to which this applies, mixed in the type `ty`.
    pub(super) fn read(
        &self,
        src: Img<'k>,
        (dtype, ty): (DType, Ty),
        put: impl FnOnce(Ex<'k>, Ex<'k>),
    ) {
        let k = self.k;
        let lanes = Lanes::whole(k, self.run.lanes.run);
        let pitches = [src.pitch[0], src.pitch[1], k.graph().int(1)];
        let firsts = k.array(Ty::I32, lanes.run, Space::Private);
        let parts: Vec<_> = self.axes().map(|_| lanes.values(ty)).collect();
        lanes.each(|lane| {
            let x = k.let_((self.run.first + lane).cast(Ty::F64));
            let mut first = src.offset;
            for (axis, parts) in self.axes().zip(&parts) {
                let (start, step, _) = self.lines[axis];
                let place = k.let_(start + step * x);
                let low = k.let_(place.cast(Ty::I32));
                first = first + low * pitches[axis];
                parts.set(lane, k.let_((place - low.cast(Ty::F64)).cast(ty)));
            }
            k.store(firsts, lane, k.let_(first));
        });
        // How far the pixels around a place are from the first: those of the fastest axis side by side.
        let corners = self.axes().fold(vec![k.graph().int(0)], |corners, axis| {
            let ends = |corner: Ex<'k>| [corner, corner + pitches[axis]];
            corners.into_iter().flat_map(ends).collect()
        });
        let corners: Vec<Ex<'k>> = corners.into_iter().map(|corner| k.let_(corner)).collect();
        let pixels: Vec<_> = corners.iter().map(|_| k.line(dtype, lanes.run)).collect();
        // Two at a time, so that nobody takes it for a loop that becomes vector code.
        let [from, to, step] = [0, lanes.run.cast_signed(), 2].map(|value| k.graph().int(value));
        k.for_by(from, to, step, |lane| {
            let two = [0, 1].map(|on| (k.let_(lane + on), k.load(firsts, lane + on)));
            // They never are; a loop that could be left is not made one that gathers, which takes longer.
            k.if_(two[0].1.lt(0), || k.break_());
            for (lane, first) in two {
                for (corner, pixels) in corners.iter().zip(&pixels) {
                    k.store(*pixels, lane, k.load(src.buf, first + *corner));
                }
            }
        });
        lanes.each(|lane| {
            let around = pixels.iter().map(|pixels| k.load(*pixels, lane).cast(ty));
            let mut values: Vec<Ex<'k>> = around.collect();
            for parts in parts.iter().rev() {
                let part = parts.get(lane);
                let pairs = values.as_chunks::<2>().0.iter();
                values = pairs
                    .map(|[low, high]| k.let_(part.fma(*high - *low, *low)))
                    .collect();
            }
            put(lane, values[0]);
        });
    }
}
