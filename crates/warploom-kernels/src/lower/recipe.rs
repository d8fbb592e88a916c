//! Several operations as one flow.

use super::lower_into;
use crate::flow::{Flow, ValueId, ValueKind};
use crate::image::ImageType;
use crate::op::{Given, OpCall, OpError};

/// Operations of the catalogue, each on images that were given or that others made. The flow that
/// comes of it is compiled as a whole, so that its operations share passes over memory.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    flow: Flow,
}

impl Recipe {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next image that is given.
    pub fn image(&mut self, image: ImageType) -> ValueId {
        self.flow.input(ValueKind::Image(image))
    }

    /// What is known of a value.
    pub fn kind(&self, value: ValueId) -> ValueKind {
        self.flow.kind(value)
    }

    /// An operation on images; gives what it makes. It is checked at once.
    ///
    /// # Panics
    /// When one of `images` is none, but numbers or a table.
    pub fn apply(
        &mut self,
        op: &str,
        given: &Given,
        images: &[ValueId],
    ) -> Result<ValueId, OpError> {
        let types: Vec<ImageType> = images.iter().map(|id| self.flow.image(*id)).collect();
        let call = OpCall::new(op, given, &types)?;
        // Operations give one result each.
        Ok(lower_into(&mut self.flow, &call, images)[0])
    }

    /// The next result is this value. Numbers can be given once.
    pub fn give(&mut self, value: ValueId) {
        // A result has memory of its own, even if it is an image that was given, or given already.
        let is_bound = self.flow.inputs().contains(&value) || self.flow.outputs().contains(&value);
        let result = match self.flow.kind(value) {
            ValueKind::Image(image) if is_bound => {
                self.flow
                    .map(&[value], value, image.dtype, &[], |g, images, _| {
                        g.pixel(images[0])
                    })
            }
            _ => value,
        };
        self.flow.output(result);
    }

    /// The flow, to compile.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }
}
