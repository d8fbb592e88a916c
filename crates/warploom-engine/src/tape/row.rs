//! Rows that a tape reads and writes.

use warploom_core::DType;

/// A row to read; 32-bit types by their bits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowIn<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    I16(&'a [i16]),
    Word(&'a [f32]),
    Wide(&'a [f64]),
}

/// A row to write; 32-bit types by their bits.
#[derive(Debug)]
pub(crate) enum RowOut<'a> {
    U8(&'a mut [u8]),
    U16(&'a mut [u16]),
    I16(&'a mut [i16]),
    Word(&'a mut [f32]),
    Wide(&'a mut [f64]),
}

impl<'a> RowIn<'a> {
    /// Elements of `dtype`, given as bytes.
    // Not a call: what it returns by way of memory would be read in other pieces than it was written in, and wait.
    #[inline(always)]
    pub(crate) fn new(dtype: DType, bytes: &'a [u8]) -> Self {
        match dtype {
            DType::U8 => Self::U8(bytes),
            DType::U16 => Self::U16(bytemuck::cast_slice(bytes)),
            DType::I16 => Self::I16(bytemuck::cast_slice(bytes)),
            DType::F64 => Self::Wide(bytemuck::cast_slice(bytes)),
            _ => Self::Word(bytemuck::cast_slice(bytes)),
        }
    }

    /// The bytes from a pixel on.
    #[inline(always)]
    pub(super) fn bytes_from(&self, x: usize) -> &'a [u8] {
        match self {
            Self::U8(row) => &row[x..],
            Self::U16(row) => bytemuck::cast_slice(&row[x..]),
            Self::I16(row) => bytemuck::cast_slice(&row[x..]),
            Self::Word(row) => bytemuck::cast_slice(&row[x..]),
            Self::Wide(row) => bytemuck::cast_slice(&row[x..]),
        }
    }

    #[inline(always)]
    pub(super) fn words(&self) -> &'a [f32] {
        match self {
            Self::Word(row) => row,
            _ => unreachable!("the tape knows which rows have words"),
        }
    }

    #[inline(always)]
    pub(super) fn wide(&self) -> &'a [f64] {
        match self {
            Self::Wide(row) => row,
            _ => unreachable!("the tape knows which rows are wide"),
        }
    }

    /// The rest of the row from `x`, copied to the beginning of `memory`.
    pub(super) fn tail<'b>(&self, x: usize, memory: &'b mut [f64]) -> RowIn<'b> {
        fn copy<'b, T: bytemuck::Pod>(row: &[T], x: usize, memory: &'b mut [f64]) -> &'b [T] {
            let memory: &mut [T] = bytemuck::cast_slice_mut(memory);
            memory[..row.len() - x].copy_from_slice(&row[x..]);
            memory
        }
        match self {
            Self::U8(row) => RowIn::U8(copy(row, x, memory)),
            Self::U16(row) => RowIn::U16(copy(row, x, memory)),
            Self::I16(row) => RowIn::I16(copy(row, x, memory)),
            Self::Word(row) => RowIn::Word(copy(row, x, memory)),
            Self::Wide(row) => RowIn::Wide(copy(row, x, memory)),
        }
    }
}

impl<'a> RowOut<'a> {
    /// Elements of `dtype`, given as bytes.
    #[inline(always)]
    pub(crate) fn new(dtype: DType, bytes: &'a mut [u8]) -> Self {
        match dtype {
            DType::U8 => Self::U8(bytes),
            DType::U16 => Self::U16(bytemuck::cast_slice_mut(bytes)),
            DType::I16 => Self::I16(bytemuck::cast_slice_mut(bytes)),
            DType::F64 => Self::Wide(bytemuck::cast_slice_mut(bytes)),
            _ => Self::Word(bytemuck::cast_slice_mut(bytes)),
        }
    }

    /// The bytes from a pixel on.
    #[inline(always)]
    pub(super) fn bytes_from(&mut self, x: usize) -> &mut [u8] {
        match self {
            Self::U8(row) => &mut row[x..],
            Self::U16(row) => bytemuck::cast_slice_mut(&mut row[x..]),
            Self::I16(row) => bytemuck::cast_slice_mut(&mut row[x..]),
            Self::Word(row) => bytemuck::cast_slice_mut(&mut row[x..]),
            Self::Wide(row) => bytemuck::cast_slice_mut(&mut row[x..]),
        }
    }

    /// A row as long as `memory` of the same type.
    pub(super) fn like<'b>(&self, memory: &'b mut [f64]) -> RowOut<'b> {
        match self {
            Self::U8(_) => RowOut::U8(bytemuck::cast_slice_mut(memory)),
            Self::U16(_) => RowOut::U16(bytemuck::cast_slice_mut(memory)),
            Self::I16(_) => RowOut::I16(bytemuck::cast_slice_mut(memory)),
            Self::Word(_) => RowOut::Word(bytemuck::cast_slice_mut(memory)),
            Self::Wide(_) => RowOut::Wide(memory),
        }
    }

    /// Fills the rest of the row from `x`.
    pub(super) fn fill(&mut self, x: usize, from: &RowOut<'_>) {
        fn copy<T: Copy>(to: &mut [T], x: usize, from: &[T]) {
            let count = to.len() - x;
            to[x..].copy_from_slice(&from[..count]);
        }
        match (self, from) {
            (Self::U8(to), RowOut::U8(from)) => copy(to, x, from),
            (Self::U16(to), RowOut::U16(from)) => copy(to, x, from),
            (Self::I16(to), RowOut::I16(from)) => copy(to, x, from),
            (Self::Word(to), RowOut::Word(from)) => copy(to, x, from),
            (Self::Wide(to), RowOut::Wide(from)) => copy(to, x, from),
            _ => unreachable!("one is made like the other"),
        }
    }
}
