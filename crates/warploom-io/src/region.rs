//! Parts of images, and how pixels get from the piece they are stored in to where they belong.

use warploom_core::{Axis, MAX_RANK, Shape, ShapeError};

/// A box of an image: along each axis where it starts and how far it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    start: [u64; MAX_RANK],
    extent: [u64; MAX_RANK],
    rank: usize,
}

impl Region {
    /// All of an image.
    pub fn whole(shape: &Shape) -> Self {
        let mut region = Self {
            start: [0; MAX_RANK],
            extent: [1; MAX_RANK],
            rank: shape.rank(),
        };
        region.extent[..shape.rank()].copy_from_slice(shape.dims());
        region
    }

    /// A box with these corners; `None` for lists that differ in length, are empty or too long.
    pub fn new(start: &[u64], extent: &[u64]) -> Option<Self> {
        if start.len() != extent.len() || start.is_empty() || start.len() > MAX_RANK {
            return None;
        }
        let mut region = Self {
            start: [0; MAX_RANK],
            extent: [1; MAX_RANK],
            rank: start.len(),
        };
        region.start[..start.len()].copy_from_slice(start);
        region.extent[..start.len()].copy_from_slice(extent);
        Some(region)
    }

    /// The same, but along one axis of `shape` only from `start` on for `extent`. An axis that the
    /// shape does not have changes nothing.
    #[must_use]
    pub fn along(mut self, shape: &Shape, axis: Axis, start: u64, extent: u64) -> Self {
        if let Some(at) = shape.axes().iter().position(|found| *found == axis) {
            self.start[at] = start;
            self.extent[at] = extent;
        }
        self
    }

    /// Where it starts.
    pub fn start(&self) -> &[u64] {
        &self.start[..self.rank]
    }

    /// How far it goes.
    pub fn extent(&self) -> &[u64] {
        &self.extent[..self.rank]
    }

    /// How many elements are in it.
    pub fn elements(&self) -> u64 {
        self.extent().iter().product()
    }

    /// Is every element of it one of an image of this extent?
    pub fn is_inside(&self, shape: &Shape) -> bool {
        let ends = self.start().iter().zip(self.extent());
        self.rank == shape.rank()
            && ends
                .zip(shape.dims())
                .all(|((start, extent), dim)| start.checked_add(*extent).is_some_and(|e| e <= *dim))
    }

    /// The extent it has as an image of its own, with the labels of the image it is a part of.
    pub fn shape(&self, of: &Shape) -> Result<Shape, ShapeError> {
        Shape::with_axes(of.axes(), self.extent())
    }

    /// What it has in common with a box; `None` where that is nothing.
    pub(crate) fn common(&self, start: &[u64], extent: &[u64]) -> Option<Self> {
        let mut common = *self;
        for at in 0..self.rank {
            let low = self.start[at].max(start[at]);
            let high = (self.start[at] + self.extent[at]).min(start[at].saturating_add(extent[at]));
            if high <= low {
                return None;
            }
            common.start[at] = low;
            common.extent[at] = high - low;
        }
        Some(common)
    }
}

/// A box of pixels as they lie in memory, in C order, elements of `element` bytes.
pub(crate) struct Block<'b> {
    /// Where it is in the image.
    pub(crate) start: &'b [u64],
    pub(crate) extent: &'b [u64],
    pub(crate) bytes: &'b [u8],
    pub(crate) element: usize,
}

impl Block<'_> {
    /// Copies what is in `region` to where it belongs in `out`, which holds that region in C order.
    pub(crate) fn place(&self, region: &Region, out: &mut [u8]) {
        let Some(common) = region.common(self.start, self.extent) else {
            return;
        };
        let rank = region.rank;
        let from = strides(self.extent, self.element);
        let to = strides(region.extent(), self.element);
        let offset = |strides: &[usize; MAX_RANK], origin: &[u64]| -> usize {
            (0..rank)
                .map(|at| index(common.start[at] - origin[at]) * strides[at])
                .sum()
        };
        // As many of the last axes as are whole on both sides are copied in one piece.
        let mut run = index(common.extent[rank - 1]) * self.element;
        let mut outer = rank - 1;
        while outer > 0 && from[outer - 1] == run && to[outer - 1] == run {
            outer -= 1;
            run *= index(common.extent[outer]);
        }
        let (mut at_from, mut at_to) = (offset(&from, self.start), offset(&to, region.start()));
        let mut count = [0_u64; MAX_RANK];
        loop {
            out[at_to..at_to + run].copy_from_slice(&self.bytes[at_from..at_from + run]);
            let mut axis = outer;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                count[axis] += 1;
                at_from += from[axis];
                at_to += to[axis];
                if count[axis] < common.extent[axis] {
                    break;
                }
                count[axis] = 0;
                at_from -= from[axis] * index(common.extent[axis]);
                at_to -= to[axis] * index(common.extent[axis]);
            }
        }
    }
}

/// Bytes from one index to the next along each axis.
fn strides(extent: &[u64], element: usize) -> [usize; MAX_RANK] {
    let mut strides = [element; MAX_RANK];
    for at in (1..extent.len()).rev() {
        strides[at - 1] = strides[at] * index(extent[at]);
    }
    strides
}

/// An index into something that is in memory.
pub(crate) fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The box of a grid of boxes, `extent` each, that covers a region: from which to which.
pub(crate) fn cells(region: &Region, extent: &[u64]) -> ([u64; MAX_RANK], [u64; MAX_RANK]) {
    let (mut first, mut last) = ([0; MAX_RANK], [0; MAX_RANK]);
    for at in 0..region.rank {
        let size = extent[at].max(1);
        first[at] = region.start[at] / size;
        last[at] = (region.start[at] + region.extent[at]).saturating_sub(1) / size;
    }
    (first, last)
}

/// The next cell of a box of cells in C order; `false` after the last.
pub(crate) fn next_cell(cell: &mut [u64], first: &[u64], last: &[u64]) -> bool {
    for at in (0..cell.len()).rev() {
        if cell[at] < last[at] {
            cell[at] += 1;
            return true;
        }
        cell[at] = first[at];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ramp(shape: &Shape) -> Vec<u8> {
        (0..shape.elements())
            .flat_map(|at| u16::try_from(at % 65_521).unwrap().to_le_bytes())
            .collect()
    }

    proptest! {
        /// Cells of any size put together give any region of an image.
        #[test]
        fn cells_make_regions(
            dims in prop::collection::vec(1_u64..9, 1..5),
            sizes in prop::collection::vec(1_u64..6, 4),
            parts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 4),
        ) {
            let shape = Shape::new(&dims).unwrap();
            let image = ramp(&shape);
            let rank = dims.len();
            let start: Vec<u64> = (0..rank).map(|a| parts[a].0.index(index(dims[a])) as u64).collect();
            let extent: Vec<u64> = (0..rank)
                .map(|a| 1 + parts[a].1.index(index(dims[a] - start[a])) as u64)
                .collect();
            let region = Region::new(&start, &extent).unwrap();
            prop_assert!(region.is_inside(&shape));
            let mut out = vec![0xee; index(region.elements()) * 2];
            let (first, last) = cells(&region, &sizes);
            let mut cell = first;
            loop {
                let start: Vec<u64> = (0..rank).map(|a| cell[a] * sizes[a]).collect();
                // Cells reach beyond the image, as chunks do.
                let cell_region = Region::new(&start, &sizes[..rank]).unwrap();
                let mut bytes = vec![0; index(cell_region.elements()) * 2];
                Block { start: &vec![0; rank], extent: &dims, bytes: &image, element: 2 }
                    .place(&cell_region, &mut bytes);
                Block { start: &start, extent: &sizes[..rank], bytes: &bytes, element: 2 }
                    .place(&region, &mut out);
                if !next_cell(&mut cell[..rank], &first, &last) {
                    break;
                }
            }
            let strides = shape.strides();
            let (low, high) = (region.start(), region.extent());
            let mut at = vec![0_u64; rank];
            for value in out.chunks_exact(2) {
                let place: u64 = (0..rank).map(|a| (low[a] + at[a]) * strides[a]).sum();
                prop_assert_eq!(value, &image[index(place) * 2..][..2]);
                let last: Vec<u64> = high.iter().map(|extent| extent - 1).collect();
                next_cell(&mut at, &vec![0; rank], &last);
            }
        }
    }

    #[test]
    fn regions_are_inside_or_not() {
        let shape = Shape::new(&[3, 4, 5]).unwrap();
        let whole = Region::whole(&shape);
        assert!(whole.is_inside(&shape));
        assert!(whole.along(&shape, Axis::Z, 2, 1).is_inside(&shape));
        assert!(!whole.along(&shape, Axis::Z, 2, 2).is_inside(&shape));
        assert!(!whole.along(&shape, Axis::X, u64::MAX, 2).is_inside(&shape));
        assert_eq!(whole.along(&shape, Axis::T, 7, 7), whole);
        assert!(!whole.is_inside(&Shape::new(&[4, 5]).unwrap()));
        assert_eq!(Region::new(&[0], &[1, 2]), None);
    }
}
