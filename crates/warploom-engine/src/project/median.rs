//! Medians along z: columns side by side in vectors, sorted by a fixed list of exchanges.

use crate::lanes::{Level, dispatch};
use crate::share::for_rows;
use crate::{Pixel, Real, View, ViewMut};

/// Columns sorted together.
const LANES: usize = 32;
/// Planes beyond which a selection of each column takes fewer steps than sorting all at once.
const PLANES: usize = 300;

pub(super) fn scratch_bytes<T: Pixel>(nz: usize) -> usize {
    nz * LANES * size_of::<T>() + 20 * nz * size_of::<(u32, u32)>()
}

/// Pairs to put in order, one after the other, so that `count` values are sorted (merge exchange).
fn exchanges(count: usize) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    let top = count.next_power_of_two() / 2;
    let mut p = top;
    while p > 0 {
        let (mut q, mut r, mut d) = (top, 0, p);
        loop {
            for i in (0..count.saturating_sub(d)).filter(|i| i & p == r) {
                pairs.push((i as u32, (i + d) as u32));
            }
            if q == p {
                break;
            }
            d = q - p;
            q /= 2;
            r = p;
        }
        p /= 2;
    }
    pairs
}

/// The middle value of every column, or `(a + b) * 0.5` of the two middle ones; NaN where a value is
/// NaN.
pub fn median_z<T: Pixel<Real = R>, R: Real>(image: View<'_, T>, out: ViewMut<'_, R>) {
    let [nz, _, _] = image.dims();
    let pairs = if nz <= PLANES {
        exchanges(nz)
    } else {
        Vec::new()
    };
    let (low, high) = ((nz - 1) / 2, nz / 2);
    let level = Level::new();
    for_rows(out, |_, y, row| {
        let mut columns = vec![[T::ZERO; LANES]; nz];
        for (at, piece) in row.chunks_mut(LANES).enumerate() {
            let x = at * LANES;
            let mut nan = [false; LANES];
            for (z, lanes) in columns.iter_mut().enumerate() {
                let line = &image.row(z, y)[x..x + piece.len()];
                lanes[..line.len()].copy_from_slice(line);
                for (nan, pixel) in nan.iter_mut().zip(line) {
                    *nan |= pixel.partial_cmp(pixel).is_none();
                }
            }
            if nz <= PLANES {
                dispatch!(level, _simd => sort(&mut columns, &pairs));
            } else {
                select(&mut columns, high);
            }
            let half = R::from_f64(0.5);
            for (lane, to) in piece.iter_mut().enumerate() {
                let (low, high) = (columns[low][lane].to_real(), columns[high][lane].to_real());
                *to = match (nan[lane], nz % 2) {
                    (true, _) => R::from_f64(f64::NAN),
                    (false, 1) => high,
                    (false, _) => (low + high) * half,
                };
            }
        }
    });
}

#[inline(always)]
fn sort<T: Pixel>(columns: &mut [[T; LANES]], pairs: &[(u32, u32)]) {
    for &(a, b) in pairs {
        let (mut low, mut high) = (columns[a as usize], columns[b as usize]);
        for lane in 0..LANES {
            let (x, y) = (low[lane], high[lane]);
            let swap = y < x;
            low[lane] = if swap { y } else { x };
            high[lane] = if swap { x } else { y };
        }
        columns[a as usize] = low;
        columns[b as usize] = high;
    }
}

/// Puts the values of ranks `high - 1` and `high` of every column into those places.
fn select<T: Pixel>(columns: &mut [[T; LANES]], high: usize) {
    let mut column = Vec::with_capacity(columns.len());
    for lane in 0..LANES {
        column.clear();
        column.extend(columns.iter().map(|lanes| lanes[lane]));
        let (below, &mut middle, _) =
            column.select_nth_unstable_by(high, |a, b| a.key().cmp(&b.key()));
        let most = below
            .iter()
            .fold(T::LEAST, |most, &value| most.greater(value));
        if high > 0 {
            columns[high - 1][lane] = most;
        }
        columns[high][lane] = middle;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_sort_anything() {
        // A network sorts everything when it sorts every sequence of zeros and ones.
        for count in 1..=12 {
            let pairs = exchanges(count);
            for bits in 0_u32..1 << count {
                let mut values: Vec<u32> = (0..count).map(|i| bits >> i & 1).collect();
                for &(a, b) in &pairs {
                    if values[b as usize] < values[a as usize] {
                        values.swap(a as usize, b as usize);
                    }
                }
                assert!(values.is_sorted(), "{count} {bits:b}");
            }
        }
    }

    #[rstest::rstest]
    fn of_few_and_of_many_planes(#[values(1, 2, 7, 64, 301, 302)] nz: usize) {
        let data: Vec<i16> = (0..nz * 45)
            .map(|i| (i * 7919 % 997) as i16 - 500)
            .collect();
        let mut out = vec![0.0_f32; 45];
        let image = View::packed(&data, [nz, 1, 45]);
        median_z(image, ViewMut::packed(&mut out, [1, 1, 45]));
        for (x, &found) in out.iter().enumerate() {
            let mut column: Vec<i16> = (0..nz).map(|z| data[z * 45 + x]).collect();
            column.sort_unstable();
            let want = f32::from(column[(nz - 1) / 2]) + f32::from(column[nz / 2]);
            assert_eq!(found, want / 2.0);
        }
    }

    #[test]
    fn nan_spoils_its_column_only() {
        let data = [1.0, f32::NAN, 3.0, 5.0, 2.0, f32::NAN];
        let mut out = [0.0_f32; 2];
        median_z(
            View::packed(&data, [3, 1, 2]),
            ViewMut::packed(&mut out, [1, 1, 2]),
        );
        assert_eq!(out[0], 2.0);
        assert!(out[1].is_nan());
    }
}
