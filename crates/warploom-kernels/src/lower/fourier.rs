//! By Fourier transform.

use super::lowering::Lowering;
use crate::Boundary;
use crate::flow::{Prim, ValueId, ValueKind};

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    match at.name() {
        "fft_convolve" => convolve(at),
        "phase_shift" => {
            let count = at.call.image().rank.into();
            at.flow
                .add(Prim::PhaseShift, at.inputs, ValueKind::scalars(count))
        }
        _ => at.unknown(),
    }
}

/// The image in a frame that holds all the kernel sees outside, so that what goes round the circle
/// stays in the frame; then the frame cut off.
fn convolve(at: &mut Lowering<'_>) -> ValueId {
    let (image, kernel) = (at.inputs[0], at.as_real(at.inputs[1]));
    let reach = at.flow.image(kernel).dims;
    let before = reach.map(|n| n - 1 - n / 2);
    let mut padded = at.flow.image(image);
    for (extent, n) in padded.dims.iter_mut().zip(reach) {
        *extent = smooth(*extent + n - 1);
    }
    let frame = Prim::Crop {
        start: before.map(|pixels| -pixels.cast_signed()),
        boundary: at.boundary(),
        fill: 0.0,
    };
    let framed = at.flow.add_image(frame, &[image], padded);
    let gives = padded.with_dtype(at.real);
    let circular = at
        .flow
        .add_image(Prim::FftConvolve, &[framed, kernel], gives);
    let cut = Prim::Crop {
        start: before.map(u64::cast_signed),
        boundary: Boundary::Clamp,
        fill: 0.0,
    };
    at.give(cut, &[circular])
}

/// The next number whose only prime factors are 2, 3 and 5: what transforms quickly.
fn smooth(least: u64) -> u64 {
    let is_smooth = |number: &u64| {
        let mut rest = *number;
        for prime in [2, 3, 5] {
            while rest.is_multiple_of(prime) {
                rest /= prime;
            }
        }
        rest == 1
    };
    // There is a power of two before twice the number.
    (least..=2 * least).find(is_smooth).unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::smooth;

    #[test]
    fn extents_are_products_of_small_primes() {
        let found: Vec<u64> = [1, 7, 11, 2048, 2063, 4097].map(smooth).into();
        assert_eq!(found, [1, 8, 12, 2048, 2160, 4320]);
    }
}
