//! Rows that are read along a slope.

use super::mix;
use crate::{Pixel, View};

/// Pixels whose places are computed together.
pub(super) const CHUNK: usize = 64;

/// Pixels of a row that is read along a slope, and where they come from.
pub(super) struct Around<T: Pixel> {
    lows: [[i32; CHUNK]; 3],
    parts: [[T::Real; CHUNK]; 3],
    /// Of z and y low and high, and of x: eight pixels around a place.
    pixels: [[T::Real; CHUNK]; 8],
    /// Four pixels around a place: two side by side, of the upper and of the lower row.
    quads: [[T; 4]; CHUNK],
}

impl<T: Pixel> Around<T> {
    pub(super) fn new() -> Self {
        Self {
            lows: [[0; CHUNK]; 3],
            parts: [[T::Real::ZERO; CHUNK]; 3],
            pixels: [[T::Real::ZERO; CHUNK]; 8],
            quads: [[T::ZERO; 4]; CHUNK],
        }
    }

    /// Pixels `first` and on of a row that is read at `start + step*x` of each axis.
    ///
    /// Places, pixels and mixtures in loops of their own, because vectors compute places and mixtures
    /// but do not fetch pixels.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        image: View<'_, T>,
        starts: [f64; 3],
        steps: [f64; 3],
        first: i32,
        to: &mut [T::Real],
    ) {
        let dims = image.dims();
        match image.as_packed() {
            Some(data) if dims[0] == 1 && data.len() < i32::MAX as usize => {
                match within(dims, starts, steps, first, to.len()) {
                    Within::All => self.in_plane(data, dims[2], starts, steps, first, to),
                    Within::Some => self.anywhere(image, starts, steps, first, to),
                    Within::None => to.fill(T::Real::ZERO),
                }
            }
            _ => self.anywhere(image, starts, steps, first, to),
        }
    }

    /// The same where all places lie between four pixels of one plane.
    #[inline(always)]
    fn in_plane(
        &mut self,
        data: &[T],
        width: usize,
        starts: [f64; 3],
        steps: [f64; 3],
        first: i32,
        to: &mut [T::Real],
    ) {
        let [above, part_y, part_x] = [0, 1, 2];
        for i in 0..CHUNK {
            let x = f64::from(first + i as i32);
            let (low_y, far_y) = parted(starts[1] + steps[1] * x);
            let (low_x, far_x) = parted(starts[2] + steps[2] * x);
            // Those behind the last pixel may be anywhere; nobody fetches them.
            self.lows[above][i] = low_y.wrapping_mul(width as i32).wrapping_add(low_x);
            self.parts[part_y][i] = T::Real::from_f64(far_y);
            self.parts[part_x][i] = T::Real::from_f64(far_x);
        }
        // Two pixels side by side are fetched as one, and four are put down as one.
        let below = &data[width..];
        let data = &data[..below.len()];
        let places = self.lows[above][..to.len()].iter();
        for (at, quad) in places.zip(&mut self.quads) {
            let at = *at as u32 as usize;
            // The last row but one has its last place before its last pixel: two are always there.
            if let (Some(&[a, b]), Some(&[c, d])) = (data.get(at..at + 2), below.get(at..at + 2)) {
                *quad = [a, b, c, d];
            }
        }
        // Whole chunks have a loop of known length, which leaves nothing to single steps.
        if let Ok(to) = <&mut [T::Real; CHUNK]>::try_from(&mut *to) {
            for (i, to) in to.iter_mut().enumerate() {
                *to = self.mixed(i);
            }
        } else {
            for (i, to) in to.iter_mut().enumerate() {
                *to = self.mixed(i);
            }
        }
    }

    /// What the four pixels around place number `i` make.
    #[inline(always)]
    fn mixed(&self, i: usize) -> T::Real {
        let [_, part_y, part_x] = &self.parts;
        let [a, b, c, d] = self.quads[i];
        let upper = mix(a.to_real(), b.to_real(), part_x[i]);
        let lower = mix(c.to_real(), d.to_real(), part_x[i]);
        mix(upper, lower, part_y[i])
    }

    #[inline(always)]
    fn anywhere(
        &mut self,
        image: View<'_, T>,
        starts: [f64; 3],
        steps: [f64; 3],
        first: i32,
        to: &mut [T::Real],
    ) {
        let dims = image.dims();
        let [nz, ny, _] = dims;
        let Self {
            lows,
            parts,
            pixels: around,
            ..
        } = self;
        let mut inside = [true; CHUNK];
        for axis in 0..3 {
            let last = (dims[axis] - 1) as f64;
            for i in 0..CHUNK {
                let at = starts[axis] + steps[axis] * f64::from(first + i as i32);
                let is_inside = at >= 0.0 && at <= last;
                let at = if is_inside { at } else { 0.0 };
                let (low, part) = parted(at);
                inside[i] &= is_inside;
                lows[axis][i] = low;
                parts[axis][i] = T::Real::from_f64(part);
            }
        }
        let planes = if nz == 1 { 1 } else { 2 };
        for i in 0..to.len() {
            let [z, y, x] = [0, 1, 2].map(|axis| lows[axis][i] as usize);
            let right = (x + 1).min(dims[2] - 1);
            for plane in 0..planes {
                let z = (z + plane).min(nz - 1);
                for line in 0..2 {
                    let pixels = image.row(z, (y + line).min(ny - 1));
                    let at = 4 * plane + 2 * line;
                    around[at][i] = pixels[x].to_real();
                    around[at + 1][i] = pixels[right].to_real();
                }
            }
        }
        let [part_z, part_y, part_x] = &self.parts;
        for (i, to) in to.iter_mut().enumerate() {
            let line = |at: usize| mix(around[at][i], around[at + 1][i], part_x[i]);
            let plane = |at: usize| {
                if ny == 1 {
                    line(at)
                } else {
                    mix(line(at), line(at + 2), part_y[i])
                }
            };
            let value = if nz == 1 {
                plane(0)
            } else {
                mix(plane(0), plane(4), part_z[i])
            };
            *to = if inside[i] { value } else { T::Real::ZERO };
        }
    }
}

/// The whole number that a place below 2^31 has, which is not negative, and what it has beyond that.
#[inline(always)]
fn parted(at: f64) -> (i32, f64) {
    // From here on `f64` has whole numbers only, and the last bits of one are the number. A cast
    // saturates, which is no vector code.
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    // A zero without its sign, which the part keeps.
    let low = (at + 0.0).floor();
    ((low + WHOLE).to_bits() as i32, at - low)
}

/// How many of some pixels lie between four of the image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Within {
    All,
    Some,
    None,
}

/// How many of these pixels of a plane do? Places go one way along every axis, so that what holds at
/// both ends holds between them.
fn within(dims: [usize; 3], starts: [f64; 3], steps: [f64; 3], first: i32, count: usize) -> Within {
    let ends = [first, first + count as i32 - 1].map(f64::from);
    // Along z there is one place only.
    let mut all = (starts[0], steps[0]) == (0.0, 0.0);
    for axis in [1, 2] {
        let last = (dims[axis] - 1) as f64;
        let [a, b] = ends.map(|x| starts[axis] + steps[axis] * x);
        if a.max(b) < 0.0 || a.min(b) > last {
            return Within::None;
        }
        all &= a.min(b) >= 0.0 && a.max(b) < last;
    }
    if all { Within::All } else { Within::Some }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_parted_as_casts_part_them() {
        let near = [
            0.0,
            -0.0,
            0.5,
            0.999_999_999,
            1.0,
            1.5,
            2.5,
            7.0,
            2_047.25,
            2_147_483_646.75,
        ];
        let more = (0..1000).map(|i| f64::from(i) * 0.123_456_789);
        for at in near.into_iter().chain(more) {
            let (low, part) = parted(at);
            assert_eq!(low, at as i32, "{at}");
            assert_eq!(part.to_bits(), (at - f64::from(low)).to_bits(), "{at}");
        }
    }
}
