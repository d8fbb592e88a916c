//! The extent of an image: up to six axes, each with a label.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dtype::DType;

/// Most axes a shape has.
pub const MAX_RANK: usize = 6;

/// What an axis means. The last axis of a shape varies fastest in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// Anything else: a batch, a position.
    N,
    /// Time.
    T,
    /// Channel.
    C,
    /// Depth.
    Z,
    /// Rows.
    Y,
    /// Columns.
    X,
}

const USUAL: [Axis; MAX_RANK] = [Axis::N, Axis::T, Axis::C, Axis::Z, Axis::Y, Axis::X];

/// Why numbers are not a [`Shape`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// Too many axes, or none.
    #[error("a shape has 1 to {MAX_RANK} axes, not {0}")]
    Rank(usize),
    /// Labels and extents do not pair up.
    #[error("{axes} axis labels for {dims} extents")]
    Labels {
        /// Labels given.
        axes: usize,
        /// Extents given.
        dims: usize,
    },
    /// A label given twice.
    #[error("axis {0:?} is named twice")]
    Repeated(Axis),
    /// More elements than 64 bits can count in bytes.
    #[error("a shape of {0:?} has more bytes than 64 bits can count")]
    TooLarge(Vec<u64>),
}

/// Extents with axis labels, row-major. A zero extent is allowed: an empty image is an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Shape {
    dims: [u64; MAX_RANK],
    axes: [Axis; MAX_RANK],
    rank: u8,
}

#[derive(Serialize, Deserialize)]
struct Parts {
    axes: Vec<Axis>,
    dims: Vec<u64>,
}

impl TryFrom<Parts> for Shape {
    type Error = ShapeError;
    fn try_from(parts: Parts) -> Result<Self, ShapeError> {
        Self::with_axes(&parts.axes, &parts.dims)
    }
}

impl From<Shape> for Parts {
    fn from(shape: Shape) -> Self {
        Self {
            axes: shape.axes().to_vec(),
            dims: shape.dims().to_vec(),
        }
    }
}

impl Shape {
    /// A shape with the usual labels: the last axes of `n t c z y x`.
    pub fn new(dims: &[u64]) -> Result<Self, ShapeError> {
        let from = MAX_RANK
            .checked_sub(dims.len())
            .ok_or(ShapeError::Rank(dims.len()))?;
        Self::with_axes(&USUAL[from..], dims)
    }

    /// A shape with labels of its own.
    pub fn with_axes(axes: &[Axis], dims: &[u64]) -> Result<Self, ShapeError> {
        if dims.is_empty() || dims.len() > MAX_RANK {
            return Err(ShapeError::Rank(dims.len()));
        }
        if axes.len() != dims.len() {
            return Err(ShapeError::Labels {
                axes: axes.len(),
                dims: dims.len(),
            });
        }
        if let Some(at) = (1..axes.len()).find(|at| axes[..*at].contains(&axes[*at])) {
            return Err(ShapeError::Repeated(axes[at]));
        }
        // The largest element has eight bytes; checking here once keeps `bytes` total.
        // Zero extents do not hide an overflow of the others, which strides would meet.
        let fits = dims
            .iter()
            .try_fold(8_u64, |sum, dim| sum.checked_mul((*dim).max(1)));
        if fits.is_none() {
            return Err(ShapeError::TooLarge(dims.to_vec()));
        }
        let mut shape = Self {
            dims: [1; MAX_RANK],
            axes: USUAL,
            rank: 0,
        };
        shape.dims[..dims.len()].copy_from_slice(dims);
        shape.axes[..axes.len()].copy_from_slice(axes);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most MAX_RANK, checked above"
        )]
        {
            shape.rank = dims.len() as u8;
        }
        Ok(shape)
    }

    /// How many axes.
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// The extents.
    pub fn dims(&self) -> &[u64] {
        &self.dims[..self.rank()]
    }

    /// The labels.
    pub fn axes(&self) -> &[Axis] {
        &self.axes[..self.rank()]
    }

    /// The extent of an axis, if the shape has it.
    pub fn extent(&self, axis: Axis) -> Option<u64> {
        self.axes()
            .iter()
            .position(|a| *a == axis)
            .map(|at| self.dims[at])
    }

    /// How many elements.
    pub fn elements(&self) -> u64 {
        self.dims().iter().product()
    }

    /// How many bytes as `dtype`, rows packed.
    pub fn bytes(&self, dtype: DType) -> u64 {
        self.elements() * dtype.bytes()
    }

    /// Elements from one index to the next along each axis.
    pub fn strides(&self) -> Vec<u64> {
        let mut strides = vec![1; self.rank()];
        for at in (1..self.rank()).rev() {
            strides[at - 1] = strides[at] * self.dims[at].max(1);
        }
        strides
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: Vec<String> = self.dims().iter().map(u64::to_string).collect();
        f.pad(&text.join("x"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_row_major() {
        let shape = Shape::new(&[40, 2048, 1024]).unwrap();
        assert_eq!(shape.strides(), [2048 * 1024, 1024, 1]);
        assert_eq!(shape.axes(), [Axis::Z, Axis::Y, Axis::X]);
        assert_eq!(shape.extent(Axis::Y), Some(2048));
        assert_eq!(shape.bytes(DType::U16), 40 * 2048 * 1024 * 2);
        assert_eq!(shape.to_string(), "40x2048x1024");
    }

    #[test]
    fn bad_shapes_are_refused() {
        assert_eq!(Shape::new(&[]), Err(ShapeError::Rank(0)));
        assert_eq!(Shape::new(&[1; 7]), Err(ShapeError::Rank(7)));
        assert!(matches!(
            Shape::new(&[u64::MAX, 2]),
            Err(ShapeError::TooLarge(_))
        ));
        assert!(matches!(
            Shape::new(&[0, u64::MAX, 2]),
            Err(ShapeError::TooLarge(_))
        ));
        assert_eq!(
            Shape::with_axes(&[Axis::X, Axis::X], &[1, 1]),
            Err(ShapeError::Repeated(Axis::X))
        );
        assert!(serde_json::from_str::<Shape>(r#"{"axes":["x"],"dims":[1,2]}"#).is_err());
    }

    #[test]
    fn an_empty_image_is_an_image() {
        let shape = Shape::new(&[0, 5]).unwrap();
        assert_eq!(shape.elements(), 0);
        let json = serde_json::to_string(&shape).unwrap();
        assert_eq!(serde_json::from_str::<Shape>(&json).unwrap(), shape);
    }
}
