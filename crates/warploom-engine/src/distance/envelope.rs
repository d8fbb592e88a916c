//! The lower envelope of parabolas along a line.

/// Parabolas that matter, and what they give; its memory is used again for the next line.
///
/// The parabola of pixel `i` is `(x - i)^2 + f(i)`. With `h(i) = f(i) + i^2` it is
/// `x^2 + h(i) - 2 x i`, so that those on the envelope are the lower hull of the points
/// `(i, h(i))`, which needs products but no quotients.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    /// Position and height of the hull's points.
    hull: Vec<(i64, i64)>,
    length: usize,
}

impl Envelope {
    /// Finds the envelope over `length` pixels; `u64::MAX` means that a pixel has no parabola.
    #[inline(always)]
    pub(super) fn build(&mut self, length: usize, f: impl Fn(usize) -> u64) {
        self.length = length;
        self.hull.clear();
        for i in 0..length {
            let value = f(i);
            if value == u64::MAX {
                continue;
            }
            let i = i as i64;
            let new = (i, value as i64 + i * i);
            while let [.., a, b] = self.hull[..] {
                // The middle one stays if it lies below the line between its neighbours. Extents
                // are below 2^31, so the products are below 2^94.
                let keeps = if length < 1 << 20 {
                    (b.1 - a.1) * (new.0 - b.0) < (new.1 - b.1) * (b.0 - a.0)
                } else {
                    i128::from(b.1 - a.1) * i128::from(new.0 - b.0)
                        < i128::from(new.1 - b.1) * i128::from(b.0 - a.0)
                };
                if keeps {
                    break;
                }
                self.hull.pop();
            }
            self.hull.push(new);
        }
    }

    /// The envelope's value at every pixel, and whose parabola it is; the left one of two equal.
    #[inline(always)]
    pub(super) fn values(&self) -> impl Iterator<Item = (u64, Option<usize>)> {
        let mut at = 0;
        (0..self.length as i64).map(move |x| {
            let value = |(i, height): (i64, i64)| height - 2 * x * i;
            let Some(&first) = self.hull.get(at) else {
                return (u64::MAX, None);
            };
            let mut best = first;
            while let Some(&next) = self.hull.get(at + 1)
                && value(next) < value(best)
            {
                best = next;
                at += 1;
            }
            ((value(best) + x * x) as u64, Some(best.0 as usize))
        })
    }
}
