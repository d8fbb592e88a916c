//! Neighbourhoods gathered pixel by pixel: what the fast ways are held against, the way for very
//! large ones, and where NaN has to be sorted in among `f64`.

use std::cmp::Ordering;

use super::super::share::Band;
use super::super::{Pixel, View};
use super::Lined;
use warploom_flow::Boundary;

#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
pub(super) fn is_nan<T: Pixel>(value: T) -> bool {
    value != value
}

/// NaN counts as larger than every number.
fn order<T: Pixel>(a: &T, b: &T) -> Ordering {
    let numbers = a.partial_cmp(b);
    numbers.unwrap_or_else(|| is_nan(*a).cmp(&is_nan(*b)))
}

/// The element of a rank in the neighbourhood of every pixel of a band.
pub(super) fn ranks<T: Pixel>(
    image: View<'_, T>,
    lined: &Lined,
    rank: usize,
    boundary: Boundary,
    band: &mut Band<'_, T>,
) {
    each(image, lined, boundary, band, |window| {
        *window.select_nth_unstable_by(rank, order).1
    });
}

/// Gathers every neighbourhood of a band, in the order of the offsets, and stores what is made of
/// it.
pub(super) fn each<T: Pixel, U: Pixel>(
    image: View<'_, T>,
    lined: &Lined,
    boundary: Boundary,
    band: &mut Band<'_, U>,
    make: impl Fn(&mut [T]) -> U,
) {
    let dims = image.dims().map(|n| n as i64);
    let reach = lined.reach.map(|n| n as i64);
    let height = 2 * reach[1] + 1;
    let mut window = vec![T::ZERO; lined.places.len()];
    let mut lines: Vec<Option<&[T]>> = Vec::with_capacity(lined.places.len());
    for row in band.rows() {
        let (z, y) = (row as i64 / dims[1], row as i64 % dims[1]);
        lines.clear();
        lines.extend(lined.places.iter().map(|&(line, _)| {
            let z = boundary.source(z + line as i64 / height - reach[0], dims[0])?;
            let y = boundary.source(y + line as i64 % height - reach[1], dims[1])?;
            Some(image.row(z as usize, y as usize))
        }));
        for (x, to) in band.row(row).iter_mut().enumerate() {
            for ((element, line), &(_, dx)) in window.iter_mut().zip(&lines).zip(&lined.places) {
                let x = boundary.source(x as i64 + dx as i64 - reach[2], dims[2]);
                *element = match (line, x) {
                    (Some(line), Some(x)) => line[x as usize],
                    _ => T::ZERO,
                };
            }
            *to = make(&mut window);
        }
    }
}
