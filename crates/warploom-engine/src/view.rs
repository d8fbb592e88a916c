//! Images in memory: rows without gaps inside, pitches between rows and planes.

/// An image to read.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    data: &'a [T],
    dims: [usize; 3],
    pitch: [usize; 2],
}

/// An image to write.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    data: &'a mut [T],
    dims: [usize; 3],
    pitch: [usize; 2],
}

/// Elements from the first of the first row to the last of the last, exclusive.
fn reach(dims: [usize; 3], pitch: [usize; 2]) -> usize {
    if dims.contains(&0) {
        return 0;
    }
    (dims[0] - 1) * pitch[0] + (dims[1] - 1) * pitch[1] + dims[2]
}

fn check(length: usize, dims: [usize; 3], pitch: [usize; 2]) {
    assert!(
        pitch[1] >= dims[2]
            && (dims[0] <= 1 || pitch[0] >= (dims[1].max(1) - 1) * pitch[1] + dims[2]),
        "rows of {dims:?} overlap at pitches {pitch:?}"
    );
    let needs = reach(dims, pitch);
    assert!(
        length >= needs,
        "{dims:?} at {pitch:?} needs {needs} elements, got {length}"
    );
}

impl<'a, T> View<'a, T> {
    /// An image of extents z, y, x without gaps.
    ///
    /// # Panics
    /// When `data` is shorter than the extents say.
    pub fn packed(data: &'a [T], dims: [usize; 3]) -> Self {
        Self::pitched(data, dims, [dims[1] * dims[2], dims[2]])
    }

    /// An image whose planes and rows start `pitch` elements apart.
    ///
    /// # Panics
    /// When rows would overlap or `data` is too short.
    pub fn pitched(data: &'a [T], dims: [usize; 3], pitch: [usize; 2]) -> Self {
        check(data.len(), dims, pitch);
        Self { data, dims, pitch }
    }

    /// Extents in z, y, x.
    pub fn dims(&self) -> [usize; 3] {
        self.dims
    }

    /// One row.
    pub fn row(&self, z: usize, y: usize) -> &'a [T] {
        let start = z * self.pitch[0] + y * self.pitch[1];
        &self.data[start..start + self.dims[2]]
    }

    /// Are there no gaps between rows and planes?
    pub fn is_packed(&self) -> bool {
        self.pitch == [self.dims[1] * self.dims[2], self.dims[2]]
    }

    /// All elements, when there are no gaps.
    pub fn as_packed(&self) -> Option<&'a [T]> {
        self.is_packed()
            .then(|| &self.data[..self.dims.iter().product()])
    }

    /// The same pixels in other rows and planes, when there are no gaps.
    ///
    /// # Panics
    /// When these are more pixels.
    pub fn regrouped(&self, dims: [usize; 3]) -> Option<Self> {
        self.as_packed().map(|data| Self::packed(data, dims))
    }
}

impl<'a, T> ViewMut<'a, T> {
    /// An image of extents z, y, x without gaps.
    ///
    /// # Panics
    /// When `data` is shorter than the extents say.
    pub fn packed(data: &'a mut [T], dims: [usize; 3]) -> Self {
        Self::pitched(data, dims, [dims[1] * dims[2], dims[2]])
    }

    /// An image whose planes and rows start `pitch` elements apart.
    ///
    /// # Panics
    /// When rows would overlap or `data` is too short.
    pub fn pitched(data: &'a mut [T], dims: [usize; 3], pitch: [usize; 2]) -> Self {
        check(data.len(), dims, pitch);
        Self { data, dims, pitch }
    }

    /// Extents in z, y, x.
    pub fn dims(&self) -> [usize; 3] {
        self.dims
    }

    /// One row.
    pub fn row(&mut self, z: usize, y: usize) -> &mut [T] {
        let start = z * self.pitch[0] + y * self.pitch[1];
        &mut self.data[start..start + self.dims[2]]
    }

    /// The same image, to read.
    pub fn as_view(&self) -> View<'_, T> {
        View {
            data: self.data,
            dims: self.dims,
            pitch: self.pitch,
        }
    }

    /// The first `rows` rows, counted through all planes, and the rest.
    ///
    /// # Panics
    /// When there are fewer rows, or the cut is inside a plane of several: a view holds whole
    /// planes or one.
    pub fn split_rows(self, rows: usize) -> (Self, Self) {
        let ([nz, ny, nx], pitch) = (self.dims, self.pitch);
        let (z, y) = if nz <= 1 { (0, rows) } else { (rows / ny, 0) };
        assert!(
            z * ny + y == rows && rows <= nz * ny,
            "{rows} rows cannot be cut from {:?}",
            self.dims
        );
        let (first, rest) = if nz <= 1 {
            ([nz, y, nx], [nz, ny - y, nx])
        } else {
            ([z, ny, nx], [nz - z, ny, nx])
        };
        let cut = (z * pitch[0] + y * pitch[1]).min(self.data.len());
        let (head, tail) = self.data.split_at_mut(cut);
        let part = |data, dims| Self { data, dims, pitch };
        (part(head, first), part(tail, rest))
    }

    /// Every row with its z and y, in order: the pieces that threads share out.
    pub fn rows(self) -> impl Iterator<Item = (usize, usize, &'a mut [T])> {
        let ([nz, ny, nx], [plane, row]) = (self.dims, self.pitch);
        let mut rest = self.data;
        let mut taken = 0;
        (0..nz)
            .flat_map(move |z| (0..ny).map(move |y| (z, y)))
            .map(move |(z, y)| {
                let start = z * plane + y * row;
                let (_, tail) = std::mem::take(&mut rest).split_at_mut(start - taken);
                let (line, tail) = tail.split_at_mut(nx);
                rest = tail;
                taken = start + nx;
                (z, y, line)
            })
    }

    /// The same image, to write for a while.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut {
            data: self.data,
            dims: self.dims,
            pitch: self.pitch,
        }
    }

    /// The memory from the first pixel on, the extents and the pitches.
    pub(crate) fn into_parts(self) -> (&'a mut [T], [usize; 3], [usize; 2]) {
        (self.data, self.dims, self.pitch)
    }

    /// All elements, when there are no gaps.
    pub fn into_packed(self) -> Option<&'a mut [T]> {
        let count = self.dims.iter().product();
        self.as_view().is_packed().then(|| &mut self.data[..count])
    }

    /// The same pixels in other rows and planes, when there are no gaps.
    ///
    /// # Panics
    /// When these are more pixels.
    pub fn regrouped(&mut self, dims: [usize; 3]) -> Option<ViewMut<'_, T>> {
        let data = self.reborrow().into_packed()?;
        Some(ViewMut::packed(data, dims))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_cut_at_planes_and_a_plane_at_rows() {
        let mut data = [0_u8; 2 * 3 * 5];
        let stack = ViewMut::pitched(&mut data, [2, 3, 4], [15, 5]);
        let (first, rest) = stack.split_rows(3);
        assert_eq!((first.dims(), rest.dims()), ([1, 3, 4], [1, 3, 4]));
        let (mut top, mut low) = rest.split_rows(2);
        top.row(0, 1).fill(1);
        low.row(0, 0).fill(2);
        assert_eq!(data[20..24], [1; 4]);
        assert_eq!(data[25..29], [2; 4]);
        assert_eq!(data[24], 0);
    }

    #[test]
    fn rows_skip_the_gaps() {
        let mut data = [0_u8; 2 * 3 * 5];
        for (z, y, row) in ViewMut::pitched(&mut data, [2, 2, 3], [15, 5]).rows() {
            row.fill(u8::try_from(10 * z + y + 1).unwrap());
        }
        let view = View::pitched(&data, [2, 2, 3], [15, 5]);
        assert_eq!(view.row(1, 1), [12; 3]);
        assert_eq!(data[3..5], [0; 2]);
        assert_eq!(view.as_packed(), None);
    }
}
