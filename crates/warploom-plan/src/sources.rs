//! What is known of the images before one is read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warploom_core::DType;
use warploom_kernels::{Dims, ImageType};

use crate::pipeline::Foreach;

/// What one record looks like. All records of a run look alike; those that do not are other runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// The type of its elements.
    pub dtype: DType,
    /// Extents in z, y, x.
    pub dims: Dims,
    /// 2 for planes, 3 for stacks.
    pub rank: u8,
    /// What its channels are called; empty when it has no such axis.
    pub channels: Vec<String>,
}

impl Record {
    /// One channel of it, or all of it if it has none.
    pub fn image(&self) -> ImageType {
        ImageType {
            dtype: self.dtype,
            dims: self.dims,
            rank: self.rank,
        }
    }

    /// What steps see of it, and how often per channel.
    pub fn unit(&self, foreach: Foreach) -> (ImageType, u64) {
        let image = self.image();
        match foreach {
            Foreach::Plane if self.rank == 3 => {
                let [z, y, x] = self.dims;
                (ImageType::plane(self.dtype, y, x), z)
            }
            _ => (image, 1),
        }
    }
}

/// The types of everything a pipeline is given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sources {
    /// A record.
    pub record: Record,
    /// The pipeline's constants, by name.
    pub constants: BTreeMap<String, ImageType>,
}

impl Sources {
    /// Records that are this image.
    pub fn new(image: ImageType) -> Self {
        Self {
            record: Record {
                dtype: image.dtype,
                dims: image.dims,
                rank: image.rank,
                channels: Vec::new(),
            },
            constants: BTreeMap::new(),
        }
    }

    /// Records that are planes.
    pub fn plane(dtype: DType, y: u64, x: u64) -> Self {
        Self::new(ImageType::plane(dtype, y, x))
    }

    /// Records that are stacks.
    pub fn stack(dtype: DType, z: u64, y: u64, x: u64) -> Self {
        Self::new(ImageType::stack(dtype, z, y, x))
    }

    /// With these channels.
    #[must_use]
    pub fn channels<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.record.channels = names.into_iter().map(str::to_owned).collect();
        self
    }

    /// With a constant.
    #[must_use]
    pub fn constant(mut self, name: &str, image: ImageType) -> Self {
        self.constants.insert(name.to_owned(), image);
        self
    }
}
