//! Morphology of masks, 64 pixels at a time.

mod bits;

use super::label::Connectivity;
use super::share::fit;
use super::{Pixel, View, ViewMut};
use bits::Bits;

/// What is done to a mask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Only what has all its neighbours stays; outside counts as set.
    Erode,
    /// Neighbours are added; outside counts as not set.
    Dilate,
    /// Eroded, then dilated.
    Open,
    /// Dilated, then eroded.
    Close,
}

/// Bytes allocated: two masks of one bit a pixel.
pub fn scratch_bytes(dims: [usize; 3]) -> usize {
    3 * dims[0] * dims[1] * dims[2].div_ceil(64) * size_of::<u64>()
}

/// Erodes or dilates a mask (what is not 0 is set) `iterations` times with the 3^d neighbourhood,
/// as `scipy.ndimage.binary_erosion` with `border_value=1` and `binary_dilation`. Zeros and ones
/// come out. Axes of one pixel have no neighbours.
pub fn morphology<T: Pixel>(
    mask: View<'_, T>,
    step: Step,
    shape: Connectivity,
    iterations: usize,
    out: ViewMut<'_, u8>,
) {
    fit(mask.dims(), out.dims());
    // Eroding what is set is dilating what is not.
    let eroding = matches!(step, Step::Erode | Step::Open);
    let mut bits = Bits::pack(mask, eroding);
    bits.dilate(shape, iterations);
    if matches!(step, Step::Erode | Step::Dilate) {
        bits.unpack(eroding, out);
        return;
    }
    bits.invert();
    bits.dilate(shape, iterations);
    bits.unpack(!eroding, out);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive(data: &[u8], dims: [usize; 3], dilate: bool, shape: Connectivity) -> Vec<u8> {
        let [nz, ny, nx] = dims.map(|n| n as i64);
        (0..data.len() as i64)
            .map(|at| {
                let (z, y, x) = (at / (ny * nx), at / nx % ny, at % nx);
                let near = (0..27).filter_map(|step| {
                    let (dz, dy, dx) = (step / 9 - 1, step / 3 % 3 - 1, step % 3 - 1_i64);
                    let far = dz.abs() + dy.abs() + dx.abs();
                    let (z, y, x) = (z + dz, y + dy, x + dx);
                    let inside =
                        (0..nz).contains(&z) && (0..ny).contains(&y) && (0..nx).contains(&x);
                    let used = shape == Connectivity::Box || far <= 1;
                    (inside && used).then(|| data[((z * ny + y) * nx + x) as usize] != 0)
                });
                let near: Vec<bool> = near.collect();
                u8::from(if dilate {
                    near.contains(&true)
                } else {
                    !near.contains(&false)
                })
            })
            .collect()
    }

    proptest! {
        #[test]
        fn steps_are_those_of_single_neighbourhoods(
            (dims, data) in (1_usize..5, 1_usize..14, 1_usize..150).prop_flat_map(|(z, y, x)| {
                let pixel = (0_u8..9).prop_map(|v| v / 8 * 7);
                (Just([z, y, x]), proptest::collection::vec(pixel, z * y * x))
            }),
            invert: bool,
            iterations in 1_usize..6,
        ) {
            let data: Vec<u8> = data.iter().map(|&v| if invert { u8::from(v == 0) } else { v }).collect();
            for shape in [Connectivity::Box, Connectivity::Diamond] {
                let mut grown: Vec<u8> = data.clone();
                let mut eaten: Vec<u8> = data.iter().map(|&v| u8::from(v != 0)).collect();
                for _ in 0..iterations {
                    grown = naive(&grown, dims, true, shape);
                    eaten = naive(&eaten, dims, false, shape);
                }
                let run = |step| {
                    let mut out = vec![9; data.len()];
                    morphology(View::packed(&data, dims), step, shape, iterations, ViewMut::packed(&mut out, dims));
                    out
                };
                prop_assert_eq!(&run(Step::Dilate), &grown);
                prop_assert_eq!(&run(Step::Erode), &eaten);
                for _ in 0..iterations {
                    grown = naive(&grown, dims, false, shape);
                    eaten = naive(&eaten, dims, true, shape);
                }
                prop_assert_eq!(&run(Step::Close), &grown);
                prop_assert_eq!(&run(Step::Open), &eaten);
            }
        }
    }

    #[test]
    fn more_iterations_than_pixels_reach_everything() {
        let mut data = [0_u16; 70];
        data[3] = 5;
        let mut out = [9; 70];
        let view = View::packed(&data, [1, 7, 10]);
        for shape in [Connectivity::Box, Connectivity::Diamond] {
            morphology(
                view,
                Step::Dilate,
                shape,
                1000,
                ViewMut::packed(&mut out, [1, 7, 10]),
            );
            assert_eq!(out, [1; 70]);
            morphology(
                view,
                Step::Erode,
                shape,
                1000,
                ViewMut::packed(&mut out, [1, 7, 10]),
            );
            assert_eq!(out, [0; 70]);
        }
    }
}
