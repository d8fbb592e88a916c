//! An operation on its way into a flow.

use std::array;

use warploom_core::DType;

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Number, Prim, ValueId, ValueKind};
use crate::image::ImageType;
use crate::op::{OpCall, ValueType};

/// A parameter whose number an earlier operation computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Computed<'a> {
    /// Which parameter.
    pub param: &'a str,
    /// The list it is in.
    pub list: ValueId,
    /// Its place in the list.
    pub index: u32,
}

/// Does the operation take differences of whole numbers that `f32` does not hold? What is left when
/// they cancel would be what they lost.
fn loses_digits(call: &OpCall) -> bool {
    let cancels = matches!(
        call.op.name,
        "affine_intensity"
            | "invert"
            | "add_images"
            | "subtract_images"
            | "absolute_difference"
            | "minmax_normalize"
            | "percentile_normalize"
            | "flat_field"
            | "sobel"
            | "gradient_x"
            | "gradient_y"
            | "gradient_z"
            | "laplace_diamond"
            | "laplace_box"
    );
    let long = |image: &ImageType| matches!(image.dtype, DType::I32 | DType::U32);
    cancels && call.inputs.iter().any(long)
}

/// The flow, the call and what it reads. Formulas are written over it.
pub(super) struct Lowering<'a> {
    pub(super) flow: &'a mut Flow,
    pub(super) call: &'a OpCall,
    pub(super) inputs: &'a [ValueId],
    /// Rows a table has room for.
    pub(super) rows: u64,
    /// Parameters that are computed: lists and places in them.
    pub(super) computed: &'a [Computed<'a>],
    /// What real-valued results are stored as.
    pub(super) real: DType,
    /// What expressions are computed in: the same, or with more digits.
    pub(super) ty: Ty,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(
        flow: &'a mut Flow,
        call: &'a OpCall,
        inputs: &'a [ValueId],
        rows: u64,
        computed: &'a [Computed<'a>],
    ) -> Self {
        let real = call.computes_in();
        let ty = if real == DType::F64 || loses_digits(call) {
            Ty::F64
        } else {
            Ty::F32
        };
        Self {
            flow,
            call,
            inputs,
            rows,
            computed,
            real,
            ty,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.call.op.name
    }

    /// For families that are asked for an operation they do not have.
    pub(super) fn unknown(&self) -> ! {
        unreachable!(
            "{} is not of the family {}",
            self.name(),
            self.call.op.family
        )
    }

    pub(super) fn number(&self, name: &str) -> f64 {
        self.call.params.number(name)
    }

    /// Is any parameter computed?
    pub(super) fn is_late(&self) -> bool {
        !self.computed.is_empty()
    }

    /// Where a number is found when the operation runs: what an earlier one computed, or a list of
    /// one number known now.
    pub(super) fn source(&mut self, name: &str, otherwise: f64) -> (ValueId, u32) {
        if let Some(late) = self.computed.iter().find(|late| late.param == name) {
            return (late.list, late.index);
        }
        let known = self.call.params.maybe_number(name).unwrap_or(otherwise);
        (self.flow.constant(&[known]), 0)
    }

    pub(super) fn boundary(&self) -> Boundary {
        self.call.params.boundary()
    }

    /// The image the result is.
    pub(super) fn result(&self) -> ImageType {
        match self.call.output() {
            ValueType::Image(image) => *image,
            other => unreachable!("{} gives {other}, no image", self.call),
        }
    }

    /// A primitive that gives the operation's image.
    pub(super) fn give(&mut self, prim: Prim, inputs: &[ValueId]) -> ValueId {
        let gives = self.result();
        self.flow.add_image(prim, inputs, gives)
    }

    /// A primitive that gives an image like another.
    pub(super) fn like(&mut self, prim: Prim, inputs: &[ValueId], like: ValueId) -> ValueId {
        let gives = self.flow.image(like);
        self.flow.add_image(prim, inputs, gives)
    }

    /// Sum, mean and so on of an image: min, max, sum, mean, std.
    pub(super) fn totals(&mut self, image: ValueId) -> ValueId {
        self.flow.add(Prim::Totals, &[image], ValueKind::scalars(5))
    }

    /// A formula over the same pixel of several images and over numbers, all real.
    pub(super) fn map<const I: usize, const N: usize>(
        &mut self,
        images: [ValueId; I],
        numbers: [f64; N],
        formula: impl for<'g> FnOnce([Ex<'g>; I], [Ex<'g>; N]) -> Ex<'g>,
    ) -> ValueId {
        self.map_to(self.real, images, numbers, formula)
    }

    /// As [`Lowering::map`], the result stored as another type.
    pub(super) fn map_to<const I: usize, const N: usize>(
        &mut self,
        dtype: DType,
        images: [ValueId; I],
        numbers: [f64; N],
        formula: impl for<'g> FnOnce([Ex<'g>; I], [Ex<'g>; N]) -> Ex<'g>,
    ) -> ValueId {
        self.map_with(dtype, images, [], numbers, |pixels, [], numbers| {
            formula(pixels, numbers)
        })
    }

    /// As [`Lowering::map_to`], over numbers computed before as well: lists and places in them.
    pub(super) fn map_with<const I: usize, const S: usize, const N: usize>(
        &mut self,
        dtype: DType,
        images: [ValueId; I],
        scalars: [(ValueId, u32); S],
        numbers: [f64; N],
        formula: impl for<'g> FnOnce([Ex<'g>; I], [Ex<'g>; S], [Ex<'g>; N]) -> Ex<'g>,
    ) -> ValueId {
        let ty = self.ty;
        let numbers = numbers.map(|value| Number::new(ty, value));
        self.terms(dtype, images, scalars, &numbers, |pixels, scalars, n| {
            let pixels = pixels.map(|pixel| pixel.cast(ty));
            let scalars = scalars.map(|scalar| scalar.cast(ty));
            formula(pixels, scalars, array::from_fn(|at| n[at]))
        })
    }

    /// A formula over pixels in the types they are loaded in.
    pub(super) fn native<const I: usize>(
        &mut self,
        dtype: DType,
        images: [ValueId; I],
        formula: impl for<'g> FnOnce([Ex<'g>; I]) -> Ex<'g>,
    ) -> ValueId {
        self.terms(dtype, images, [], &[], |pixels, [], _| formula(pixels))
    }

    /// A formula over everything in its own type: pixels as loaded, earlier numbers as `f64`.
    pub(super) fn terms<const I: usize, const S: usize>(
        &mut self,
        dtype: DType,
        images: [ValueId; I],
        scalars: [(ValueId, u32); S],
        numbers: &[Number],
        formula: impl for<'g> FnOnce([Ex<'g>; I], [Ex<'g>; S], &[Ex<'g>]) -> Ex<'g>,
    ) -> ValueId {
        let mut inputs = images.to_vec();
        let places = scalars.map(|(list, index)| {
            let known = inputs.iter().position(|id| *id == list);
            let at = known.unwrap_or_else(|| {
                inputs.push(list);
                inputs.len() - 1
            });
            (at, index)
        });
        self.flow
            .map(&inputs, images[0], dtype, numbers, |graph, ids, params| {
                let pixels = array::from_fn(|at| graph.pixel(ids[at]));
                let scalars = places.map(|(at, index)| graph.scalar(ids[at], index));
                formula(pixels, scalars, params)
            })
    }

    /// The image in the type the operation computes in.
    pub(super) fn as_real(&mut self, image: ValueId) -> ValueId {
        if self.flow.image(image).dtype == self.real {
            return image;
        }
        self.map([image], [], |[a], []| a)
    }

    /// A copy: what an operation gives that leaves the image as it is.
    pub(super) fn copy(&mut self, image: ValueId) -> ValueId {
        let dtype = self.flow.image(image).dtype;
        self.native(dtype, [image], |[a]| a)
    }

    /// What is not 0, as a mask primitives take.
    pub(super) fn mask(&mut self, image: ValueId) -> ValueId {
        if self.flow.image(image).dtype == DType::U8 {
            return image;
        }
        self.native(DType::U8, [image], |[a]| a.is_not(0))
    }

    /// Labels as primitives take them; what is below 0 is background.
    pub(super) fn labels(&mut self, image: ValueId) -> ValueId {
        if self.flow.image(image).dtype == DType::U32 {
            return image;
        }
        self.native(DType::U32, [image], |[a]| a)
    }
}
