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

    /// All elements, when there are no gaps.
    pub fn as_packed(&self) -> Option<&'a [T]> {
        let packed = self.pitch == [self.dims[1] * self.dims[2], self.dims[2]];
        packed.then(|| &self.data[..self.dims.iter().product()])
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

    /// All elements, when there are no gaps.
    pub fn into_packed(self) -> Option<&'a mut [T]> {
        let packed = self.pitch == [self.dims[1] * self.dims[2], self.dims[2]];
        let count = self.dims.iter().product();
        packed.then(|| &mut self.data[..count])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
