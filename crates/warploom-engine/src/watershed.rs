//! Flooding from markers, in the order of `skimage.segmentation.watershed`.

use super::share::{fit, for_rows};
use super::{Pixel, View, ViewMut};

/// A pixel that waits to be flooded from.
#[derive(Clone, Copy)]
struct Waiting {
    /// The level it is flooded at, as a key.
    level: u64,
    /// When it was found; markers were all found at 0.
    age: u32,
    place: u32,
}

impl Waiting {
    #[inline(always)]
    fn before(self, other: Self) -> bool {
        (self.level, self.age) < (other.level, other.age)
    }
}

/// A binary heap. Markers of one level are equal, and which of them comes first depends on how the
/// heap is built; this one exchanges parents and children exactly as the reference's does.
#[derive(Default)]
struct Heap {
    items: Vec<Waiting>,
}

impl Heap {
    fn push(&mut self, new: Waiting) {
        let mut at = self.items.len();
        self.items.push(new);
        while at > 0 {
            let parent = (at - 1) / 2;
            if !new.before(self.items[parent]) {
                break;
            }
            self.items[at] = self.items[parent];
            at = parent;
        }
        self.items[at] = new;
    }

    fn pop(&mut self) -> Option<Waiting> {
        let last = self.items.pop()?;
        let Some(&first) = self.items.first() else {
            return Some(last);
        };
        let mut at = 0;
        loop {
            let left = 2 * at + 1;
            if left >= self.items.len() {
                break;
            }
            // The left child when it is less, then the right one when it is still less.
            let mut least = last;
            let mut next = at;
            if self.items[left].before(least) {
                (least, next) = (self.items[left], left);
            }
            if let Some(&right) = self.items.get(left + 1)
                && right.before(least)
            {
                (least, next) = (right, left + 1);
            }
            if next == at {
                break;
            }
            self.items[at] = least;
            at = next;
        }
        self.items[at] = last;
        Some(first)
    }
}

/// Bytes allocated: a padded copy of labels and levels, and the heap at its largest.
pub fn scratch_bytes(dims: [usize; 3]) -> usize {
    let padded: usize = dims.iter().map(|n| n + 2).product();
    padded * (size_of::<u32>() + size_of::<u64>() + size_of::<Waiting>())
}

/// What a pixel of the padded copy outside image and mask has for a label.
const CLOSED: u32 = u32::MAX;

/// Floods `image` from `markers` (not 0), from low to high, over pixels that share a side; each
/// pixel takes the label that reaches it first. Pixels outside the mask, and those never reached,
/// become 0. Of pixels at one level the one found earlier goes first.
///
/// A label of `u32::MAX` is not possible. NaN has no place in the order of levels.
pub fn watershed<T: Pixel>(
    image: View<'_, T>,
    markers: View<'_, u32>,
    mask: Option<View<'_, u8>>,
    out: ViewMut<'_, u32>,
) {
    fit(image.dims(), out.dims());
    fit(markers.dims(), out.dims());
    let [nz, ny, nx] = image.dims();
    let (row, plane) = (nx + 2, (nx + 2) * (ny + 2));
    let mut labels = vec![CLOSED; plane * (nz + 2)];
    let mut levels = vec![0_u64; labels.len()];
    let mut heap = Heap::default();
    for z in 0..nz {
        for y in 0..ny {
            let first = (z + 1) * plane + (y + 1) * row + 1;
            let (values, seeds) = (image.row(z, y), markers.row(z, y));
            let open = mask.map(|mask| mask.row(z, y));
            for x in 0..nx {
                // Adding zero makes one of both zeros, which are the same level.
                levels[first + x] = (values[x].to_f64() + 0.0).key();
                if open.is_none_or(|open| open[x] != 0) {
                    labels[first + x] = seeds[x];
                    if seeds[x] != 0 {
                        heap.push(Waiting {
                            level: levels[first + x],
                            age: 0,
                            place: (first + x) as u32,
                        });
                    }
                }
            }
        }
    }
    flood(&mut heap, &levels, &mut labels, [plane, row]);
    for_rows(out, |z, y, line| {
        let first = (z + 1) * plane + (y + 1) * row + 1;
        for (to, &label) in line.iter_mut().zip(&labels[first..first + nx]) {
            *to = if label == CLOSED { 0 } else { label };
        }
    });
}

fn flood(heap: &mut Heap, levels: &[u64], labels: &mut [u32], [plane, row]: [usize; 2]) {
    let mut age = 1;
    while let Some(from) = heap.pop() {
        let place = from.place as usize;
        let label = labels[place];
        let neighbours = [
            place - plane,
            place - row,
            place - 1,
            place + 1,
            place + row,
            place + plane,
        ];
        for next in neighbours {
            if labels[next] != 0 {
                continue;
            }
            age += 1;
            labels[next] = label;
            heap.push(Waiting {
                level: levels[next].max(from.level),
                age,
                place: next as u32,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basins_meet_at_the_ridge() {
        let image = [3.0_f32, 1.0, 2.0, 9.0, 2.0, 0.0, 4.0];
        let markers = [0, 7, 0, 0, 0, 8, 0];
        let mut out = [9; 7];
        let dims = [1, 1, 7];
        watershed(
            View::packed(&image, dims),
            View::packed(&markers, dims),
            None,
            ViewMut::packed(&mut out, dims),
        );
        assert_eq!(out, [7, 7, 7, 8, 8, 8, 8]);
        let mask = [1_u8, 1, 0, 1, 1, 1, 1];
        watershed(
            View::packed(&image, dims),
            View::packed(&markers, dims),
            Some(View::packed(&mask, dims)),
            ViewMut::packed(&mut out, dims),
        );
        assert_eq!(out, [7, 7, 0, 8, 8, 8, 8]);
    }

    #[test]
    fn a_heap_gives_its_items_in_order() {
        let mut heap = Heap::default();
        for i in 0..1000_u32 {
            heap.push(Waiting {
                level: u64::from(i * 7919 % 31),
                age: i,
                place: i,
            });
        }
        let mut last = (0, 0);
        let mut count = 0;
        while let Some(next) = heap.pop() {
            assert!((next.level, next.age) >= last);
            last = (next.level, next.age);
            count += 1;
        }
        assert_eq!(count, 1000);
    }
}
