//! What is known of an image before its pixels are read.

use serde::{Deserialize, Serialize};
use warploom_core::{DType, Shape};

/// What a file says of an image: enough to plan with, without a pixel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Header {
    /// The type of its elements.
    pub dtype: DType,
    /// Its extent, with what each axis means.
    pub shape: Shape,
    /// Names of its channels, as many as there are, or none.
    pub channels: Vec<String>,
    /// From one pixel to the next, in micrometres, along z, y and x, where the file says so.
    pub spacing: [Option<f64>; 3],
}

impl Header {
    /// An image of this type and extent, of which nothing else is known.
    pub fn new(dtype: DType, shape: Shape) -> Self {
        Self {
            dtype,
            shape,
            channels: Vec::new(),
            spacing: [None; 3],
        }
    }

    /// The same with names of channels; they say something only where there are as many as channels.
    #[must_use]
    pub fn with_channels(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.channels = names.into_iter().map(Into::into).collect();
        self
    }

    /// The same with distances of pixels in micrometres, along z, y and x.
    #[must_use]
    pub fn with_spacing(mut self, spacing: [Option<f64>; 3]) -> Self {
        self.spacing = spacing;
        self
    }

    /// How many bytes the whole image has in memory.
    pub fn bytes(&self) -> u64 {
        self.shape.bytes(self.dtype)
    }
}
