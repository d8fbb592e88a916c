//! Boxes: windows along one axis after the other.

use warploom_core::DType;

use super::lowering::Lowering;
use crate::Boundary;
use crate::flow::{Combine, Flow, Footprint, Prim, ValueId};

/// The smallest or largest pixel of a box around each. Axes with one pixel and radius 0 are left
/// as they are: an image may come back as it was given.
pub(super) fn extreme(
    flow: &mut Flow,
    image: ValueId,
    radius: [u32; 3],
    combine: Combine,
    boundary: Boundary,
) -> ValueId {
    let dtype = flow.image(image).dtype;
    passes(flow, image, radius, combine, boundary, dtype)
}

fn passes(
    flow: &mut Flow,
    image: ValueId,
    radius: [u32; 3],
    combine: Combine,
    boundary: Boundary,
    sum: DType,
) -> ValueId {
    let axes = flow.axes(image).into_iter();
    let axes = axes.map(|axis| (axis, radius[usize::from(axis)]));
    axes.filter(|(_, radius)| *radius > 0)
        .fold(image, |value, (axis, radius)| {
            flow.window(value, axis, radius, combine, boundary, sum)
        })
}

impl Lowering<'_> {
    /// A radius in whole pixels, 0 along axes with one.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "radii are limited to 15 bits"
    )]
    pub(super) fn radius(&self) -> [u32; 3] {
        self.call.radius("radius").map(|radius| radius as u32)
    }

    /// The neighbourhood that `radius` stands for: a ball in operations named so, else a box.
    pub(super) fn footprint(&self) -> Footprint {
        if self.name().ends_with("_sphere") {
            Footprint::Ball(self.call.per_axis("radius", 0.0))
        } else {
            Footprint::Box(self.radius())
        }
    }

    /// How many pixels a box has.
    pub(super) fn box_count(&self) -> f64 {
        self.radius().iter().map(|r| f64::from(2 * r + 1)).product()
    }

    /// Sums of boxes, accumulated in `sum`, and how many pixels a box has.
    pub(super) fn box_sums(&mut self, image: ValueId, sum: DType) -> (ValueId, f64) {
        let (radius, boundary, count) = (self.radius(), self.boundary(), self.box_count());
        let sums = passes(self.flow, image, radius, Combine::Sum, boundary, sum);
        if self.flow.image(sums).dtype == sum {
            return (sums, count);
        }
        (self.native(sum, [sums], |[a]| a), count)
    }

    /// The smallest or largest of each neighbourhood.
    pub(super) fn extreme(&mut self, image: ValueId, combine: Combine) -> ValueId {
        let boundary = self.boundary();
        if self.radius() == [0; 3] {
            return self.alone(image, combine);
        }
        match self.footprint() {
            Footprint::Box(radius) => extreme(self.flow, image, radius, combine, boundary),
            footprint @ Footprint::Ball(_) => {
                let prim = Prim::Around {
                    footprint,
                    combine,
                    boundary,
                };
                self.like(prim, &[image], image)
            }
        }
    }

    /// The smallest or largest of the pixel itself: NaN is ignored here as in larger windows, and then
    /// nothing is left.
    fn alone(&mut self, image: ValueId, combine: Combine) -> ValueId {
        let dtype = self.flow.image(image).dtype;
        let nothing = match combine {
            Combine::Min => f64::INFINITY,
            Combine::Max => f64::NEG_INFINITY,
            Combine::Sum => return self.copy(image),
        };
        self.native(dtype, [image], |[a]| {
            if a.ty().is_float() {
                a.is_nan().select(a.graph().number(a.ty(), nothing), a)
            } else {
                a
            }
        })
    }
}
