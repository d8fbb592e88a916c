//! Values that flow between primitives.

use std::sync::Arc;

use warploom_core::DType;

use super::prim::Prim;
use crate::image::ImageType;

/// A value's number in its flow.
pub type ValueId = u32;

/// A node's number in its flow.
pub type NodeId = u32;

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ValueKind {
    /// An image.
    Image(ImageType),
    /// Elements in a row: computed numbers (`f64`), counts, weights, columns of a table.
    List {
        /// Their type.
        dtype: DType,
        /// How many.
        length: u64,
    },
}

impl ValueKind {
    /// Numbers computed on the device.
    pub const fn scalars(length: u64) -> Self {
        Self::List {
            dtype: DType::F64,
            length,
        }
    }

    /// Its element type.
    pub fn dtype(&self) -> DType {
        match self {
            Self::Image(image) => image.dtype,
            Self::List { dtype, .. } => *dtype,
        }
    }

    /// How many elements.
    pub fn elements(&self) -> u64 {
        match self {
            Self::Image(image) => image.pixels(),
            Self::List { length, .. } => *length,
        }
    }

    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.elements() * self.dtype().bytes()
    }

    /// The image it is.
    pub fn image(&self) -> Option<ImageType> {
        match self {
            Self::Image(image) => Some(*image),
            Self::List { .. } => None,
        }
    }

    /// Extents in z, y, x; a list is one row.
    pub fn dims(&self) -> [u64; 3] {
        match self {
            Self::Image(image) => image.dims,
            Self::List { length, .. } => [1, 1, *length],
        }
    }
}

/// A value of a flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// What it is.
    pub kind: ValueKind,
    /// Its bytes, if they are known before anything runs: weights, tables.
    pub constant: Option<Arc<[u8]>>,
}

/// A primitive at work.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// What it does.
    pub prim: Prim,
    /// What it reads, in the primitive's order.
    pub inputs: Vec<ValueId>,
    /// What it writes, in the primitive's order.
    pub outputs: Vec<ValueId>,
}
