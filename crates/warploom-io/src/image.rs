//! An image in memory.

use std::fmt;

use bytemuck::{cast_slice, cast_slice_mut};
use warploom_core::{Bytes, Code, Coded, DType, Element, Shape};

/// Why there is no such image in memory.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The machine has no room for it. (WL0714)
    #[error("an image of {shape} {dtype}, for whose {} there is no room in memory", Bytes(*bytes))]
    Memory {
        /// Its extent.
        shape: Shape,
        /// Its elements.
        dtype: DType,
        /// How many bytes it needs.
        bytes: u64,
    },
    /// Data that is shorter or longer than the image. (WL0715)
    #[error("an image of {shape} {dtype} has {wanted} bytes, not {given}")]
    Length {
        /// Its extent.
        shape: Shape,
        /// Its elements.
        dtype: DType,
        /// Bytes it has.
        wanted: u64,
        /// Bytes that were given.
        given: u64,
    },
}

impl Coded for ImageError {
    fn code(&self) -> Code {
        match self {
            Self::Memory { .. } => Code(714),
            Self::Length { .. } => Code(715),
        }
    }

    fn help(&self) -> Option<String> {
        match self {
            Self::Memory { .. } => Some("use a smaller part of it, or a machine with more".into()),
            Self::Length { .. } => None,
        }
    }
}

/// A whole image: elements of one type, in C order, packed, at addresses that suit any type.
#[derive(Clone, PartialEq)]
pub struct Image {
    dtype: DType,
    shape: Shape,
    /// Words and not bytes, because a `Vec<u8>` may start anywhere; the last one may be in part
    /// beyond the image, and is zero there.
    words: Vec<u64>,
}

impl Image {
    /// An image of zeros.
    pub fn zeroed(dtype: DType, shape: Shape) -> Result<Self, ImageError> {
        let bytes = shape.bytes(dtype);
        let no_room = || ImageError::Memory {
            shape,
            dtype,
            bytes,
        };
        let count = usize::try_from(bytes.div_ceil(8)).map_err(|_| no_room())?;
        // `vec!` gets pages that the system zeroes when they are touched, but aborts where there is
        // no room. So the same room is asked for first in a way that can fail.
        let mut probe: Vec<u64> = Vec::new();
        probe.try_reserve_exact(count).map_err(|_| no_room())?;
        drop(probe);
        Ok(Self {
            dtype,
            shape,
            words: vec![0; count],
        })
    }

    /// Moves the elements out. What is left is to be dropped.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            dtype: self.dtype,
            shape: self.shape,
            words: std::mem::take(&mut self.words),
        }
    }

    /// Makes it one of this type and extent, in the same memory where that is enough; what its elements
    /// are then is not said.
    pub(crate) fn become_like(&mut self, dtype: DType, shape: Shape) -> Result<(), ImageError> {
        let bytes = shape.bytes(dtype);
        let no_room = || ImageError::Memory {
            shape,
            dtype,
            bytes,
        };
        let count = usize::try_from(bytes.div_ceil(8)).map_err(|_| no_room())?;
        if count > self.words.capacity() {
            // Not to be copied along, and not to be there twice.
            self.words = Vec::new();
            *self = Self::zeroed(dtype, shape)?;
            return Ok(());
        }
        self.words.resize(count, 0);
        // Nothing is beyond the image but zeros, by which images are compared.
        if let Some(last) = self.words.last_mut() {
            *last = 0;
        }
        self.dtype = dtype;
        self.shape = shape;
        Ok(())
    }

    /// An image of these elements, given in C order.
    pub fn new<T: Element>(shape: Shape, elements: &[T]) -> Result<Self, ImageError> {
        Self::from_bytes(T::DTYPE, shape, cast_slice(elements))
    }

    /// An image of elements given as the bytes they have on this machine, in C order.
    pub fn from_bytes(dtype: DType, shape: Shape, bytes: &[u8]) -> Result<Self, ImageError> {
        if bytes.len() as u64 != shape.bytes(dtype) {
            return Err(ImageError::Length {
                shape,
                dtype,
                wanted: shape.bytes(dtype),
                given: bytes.len() as u64,
            });
        }
        let mut image = Self::zeroed(dtype, shape)?;
        image.bytes_mut().copy_from_slice(bytes);
        Ok(image)
    }

    /// The type of its elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its extent.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Its elements as bytes.
    pub fn bytes(&self) -> &[u8] {
        &cast_slice(&self.words)[..self.length()]
    }

    /// Its elements as bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let length = self.length();
        &mut cast_slice_mut(&mut self.words)[..length]
    }

    /// Its elements, if they are of this type.
    pub fn elements<T: Element>(&self) -> Option<&[T]> {
        (T::DTYPE == self.dtype).then(|| cast_slice(self.bytes()))
    }

    /// Its elements, to be changed, if they are of this type.
    pub fn elements_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        (T::DTYPE == self.dtype).then(|| cast_slice_mut(self.bytes_mut()))
    }

    /// The same elements in the same order with another extent of as many elements.
    pub fn reshaped(self, shape: Shape) -> Result<Self, ImageError> {
        if shape.elements() == self.shape.elements() {
            return Ok(Self { shape, ..self });
        }
        Err(ImageError::Length {
            shape,
            dtype: self.dtype,
            wanted: shape.bytes(self.dtype),
            given: self.length() as u64,
        })
    }

    fn length(&self) -> usize {
        self.words.len() * 8 - self.slack()
    }

    /// Bytes of the last word that are beyond the image.
    fn slack(&self) -> usize {
        match self.shape.bytes(self.dtype) % 8 {
            0 => 0,
            used => 8 - usize::try_from(used).unwrap_or(0),
        }
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The elements are left out: they are millions.
        write!(f, "Image({} {})", self.shape, self.dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_seen_as_their_type_only() {
        let shape = Shape::new(&[1, 3]).unwrap();
        let mut image = Image::new(shape, &[1_u16, 2, 65535]).unwrap();
        assert_eq!(image.bytes().len(), 6);
        assert_eq!(image.elements::<u16>(), Some(&[1_u16, 2, 65535][..]));
        assert_eq!(image.elements::<i16>(), None);
        image.elements_mut::<u16>().unwrap()[1] = 7;
        assert_eq!(image.elements::<u16>().unwrap()[1], 7);
        assert_eq!(format!("{image:?}"), "Image(1x3 u16)");
    }

    #[test]
    fn lengths_have_to_agree() {
        let shape = Shape::new(&[2, 2]).unwrap();
        let error = Image::new(shape, &[1_u8]).unwrap_err();
        assert_eq!(error.to_string(), "an image of 2x2 u8 has 4 bytes, not 1");
        let image = Image::new(shape, &[1_u8, 2, 3, 4]).unwrap();
        let row = Shape::new(&[4]).unwrap();
        assert_eq!(image.clone().reshaped(row).unwrap().bytes(), [1, 2, 3, 4]);
        assert!(image.reshaped(Shape::new(&[5]).unwrap()).is_err());
    }

    #[test]
    fn an_image_too_large_for_any_machine_is_an_error() {
        let shape = Shape::new(&[1 << 30, 1 << 28]).unwrap();
        assert!(matches!(
            Image::zeroed(DType::F64, shape),
            Err(ImageError::Memory { bytes, .. }) if bytes == 1 << 61
        ));
    }

    #[test]
    fn an_empty_image_has_no_bytes() {
        let image = Image::zeroed(DType::F32, Shape::new(&[0, 5]).unwrap()).unwrap();
        assert!(image.bytes().is_empty());
        assert_eq!(image.elements::<f32>(), Some(&[][..]));
    }
}
