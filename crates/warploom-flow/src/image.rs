//! What an operation knows of an image before it sees a pixel.

use std::fmt;

use serde::{Deserialize, Serialize};
use warploom_core::DType;

/// Extents in z, y, x; a plane has one z.
pub type Dims = [u64; 3];

/// An image's element type and extents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ImageType {
    /// The type of its elements.
    pub dtype: DType,
    /// Extents in z, y, x.
    pub dims: Dims,
    /// Axes the user sees: 2 for a plane, 3 for a stack.
    pub rank: u8,
}

impl ImageType {
    /// A plane.
    pub fn plane(dtype: DType, y: u64, x: u64) -> Self {
        Self {
            dtype,
            dims: [1, y, x],
            rank: 2,
        }
    }

    /// A stack of planes.
    pub fn stack(dtype: DType, z: u64, y: u64, x: u64) -> Self {
        Self {
            dtype,
            dims: [z, y, x],
            rank: 3,
        }
    }

    /// The same extents with other elements.
    #[must_use]
    pub fn with_dtype(self, dtype: DType) -> Self {
        Self { dtype, ..self }
    }

    /// How many pixels.
    pub fn pixels(&self) -> u64 {
        self.dims.iter().product()
    }

    /// How many bytes, rows packed.
    pub fn bytes(&self) -> u64 {
        self.pixels() * self.dtype.bytes()
    }

    /// The extents the user sees, slowest first.
    pub fn shape(&self) -> &[u64] {
        &self.dims[3 - usize::from(self.rank)..]
    }
}

impl fmt::Display for ImageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: Vec<String> = self.shape().iter().map(u64::to_string).collect();
        write!(f, "{} {}", text.join("x"), self.dtype)
    }
}
