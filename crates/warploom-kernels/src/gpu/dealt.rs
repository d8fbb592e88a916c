//! Every second or fourth pixel of rows, on a processor.
//!
//! Loops that read pixels at a distance become single loads. So what a run of results is made of is copied as it
//! lies, and then dealt out in vectors, until pixels of neighbouring results are neighbours.

use warploom_core::DType;

use crate::expr::Ex;
use crate::kernel::{Access, Buf, Builder, Img};

/// Results of a run.
const RUN: u32 = 64;

/// Can pixels at this distance be dealt out?
pub(super) fn is_possible(distance: u32) -> bool {
    matches!(distance, 2 | 4)
}

/// Pixels of some rows, those of each remainder by the distance together.
pub(super) struct Dealt<'k> {
    k: &'k Builder,
    pixels: Buf,
    rows: i32,
}

impl<'k> Dealt<'k> {
    /// Reads what a run of results has of each row from a place on.
    pub(super) fn read(
        k: &'k Builder,
        src: Img<'k>,
        (dtype, rows): (DType, &[Ex<'k>]),
        distance: u32,
    ) -> Self {
        let count = u32::try_from(rows.len()).expect("few rows");
        let width = RUN * distance;
        let [mut from, mut to] = [0, 1].map(|_| k.line(dtype, count * RUN * distance));
        // The rows of a result lie far apart; the run after the next one is asked for now.
        for start in rows {
            k.soon(src, *start + (2 * width).cast_signed(), width, Access::Read);
        }
        for (row, start) in (0..).zip(rows) {
            k.copy(src.buf, (*start, width), from, row * width);
        }
        for _ in 0..distance.ilog2() {
            k.deal(from, to);
            (from, to) = (to, from);
        }
        Self {
            k,
            pixels: from,
            rows: count.cast_signed(),
        }
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> i32 {
        self.rows
    }

    /// The pixel of a row that is so far from where a result's begin.
    pub(super) fn pixel(&self, row: i32, far: i32, result: Ex<'k>) -> Ex<'k> {
        let run = RUN.cast_signed();
        let start = (far * self.rows + row) * run;
        self.k.load(self.pixels, result + start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Target;

    #[test]
    fn tiles_are_dealt_out_by_vectors_or_by_a_plain_loop() {
        let k = Builder::new();
        let src = k.image("src", DType::U8, Access::Read);
        let dst = k.buffer("dst", DType::U8, Access::Write);
        let zero = k.graph().int(0);
        let pixels = Dealt::read(&k, src, (DType::U8, &[zero]), 2);
        k.store(dst, zero, pixels.pixel(0, 1, zero));
        let def = k.finish("dealt", [1, 1, 1]);
        let text = def.text(Target::OpenCl);
        assert!(text.contains("(uchar16)(low.odd, high.odd)"), "{text}");
        assert!(
            text.contains("unsigned char a0[128] __attribute__((aligned(128)));"),
            "{text}"
        );
        assert!(
            text.contains("const uchar16 next = *(__global const any*)(b0 + (0 + copy * 16));"),
            "{text}"
        );
        for target in [Target::Cuda, Target::Wgsl] {
            let text = def.text(target);
            assert!(text.contains("a0[0 + copy] = "), "{text}");
            assert!(text.contains("a0[deal * 2 + 1]"), "{text}");
            assert!(text.contains("a1[deal + 64] = "), "{text}");
        }
    }

    #[test]
    fn halves_are_put_together_by_vectors_or_by_a_plain_loop() {
        let k = Builder::new();
        let dst = k.buffer("dst", DType::F32, Access::Write);
        let zero = k.graph().int(0);
        let [halves, both] = [0, 1].map(|_| k.line(DType::F32, 128));
        k.store(halves, zero, k.graph().float(1.0));
        k.riffle(halves, both);
        k.store(dst, zero, k.load(both, zero));
        let def = k.finish("riffled", [1, 1, 1]);
        let text = def.text(Target::OpenCl);
        assert!(
            text.contains("both.even = low.hi; both.odd = high.hi;"),
            "{text}"
        );
        assert!(text.contains("((const float16*)a0)[deal + 4]"), "{text}");
        for target in [Target::Cuda, Target::Wgsl] {
            let text = def.text(target);
            assert!(text.contains("a0[deal + 64]"), "{text}");
            assert!(text.contains("a1[deal * 2 + 1] = "), "{text}");
        }
    }
}
