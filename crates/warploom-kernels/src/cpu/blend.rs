//! Two images side by side, mixed where they overlap.

use super::lanes::{Level, dispatch};
use super::share::for_rows;
use super::{Pixel, Real, View, ViewMut};

/// `b` to the right of `a`, sharing `overlap` columns. There, column `i` of the overlap is
/// `fma(w, b - a, a)` with `w = (i + 0.5) / overlap`, computed in `f64` and rounded once.
pub fn blend_two<A: Pixel, B: Pixel>(
    a: View<'_, A>,
    b: View<'_, B>,
    overlap: usize,
    out: ViewMut<'_, A::Real>,
) {
    let weights: Vec<A::Real> = (0..overlap)
        .map(|i| A::Real::from_f64((i as f64 + 0.5) / overlap as f64))
        .collect();
    let level = Level::new();
    for_rows(out, |z, y, row| {
        let (a, b) = (a.row(z, y), b.row(z, y));
        let alone = a.len() - overlap;
        for (to, from) in row.iter_mut().zip(a) {
            *to = from.to_real();
        }
        for (to, from) in row[a.len()..].iter_mut().zip(&b[overlap..]) {
            *to = A::Real::from_f64(from.to_f64());
        }
        dispatch!(level, _simd => {
            for ((to, from), &weight) in row[alone..].iter_mut().zip(b).zip(&weights) {
                let from = A::Real::from_f64(from.to_f64());
                *to = weight.fused(from - *to, *to);
            }
        });
    });
}

/// Bytes allocated: the weights.
pub fn scratch_bytes(overlap: usize) -> usize {
    overlap * size_of::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramp_lies_between() {
        let (a, b) = ([4_u8; 3], [8.0_f32; 4]);
        let mut out = [0.0_f32; 5];
        blend_two(
            View::packed(&a, [1, 1, 3]),
            View::packed(&b, [1, 1, 4]),
            2,
            ViewMut::packed(&mut out, [1, 1, 5]),
        );
        assert_eq!(out, [4.0, 5.0, 7.0, 8.0, 8.0]);
        let mut out = [0.0_f32; 7];
        let out_view = ViewMut::packed(&mut out, [1, 1, 7]);
        blend_two(
            View::packed(&a, [1, 1, 3]),
            View::packed(&b, [1, 1, 4]),
            0,
            out_view,
        );
        assert_eq!(out, [4.0, 4.0, 4.0, 8.0, 8.0, 8.0, 8.0]);
    }
}
