//! One operation on images of known type: checked, with what comes out.

use std::fmt;

use serde::Serialize;
use warploom_core::DType;

use super::catalogue::find;
use super::error::{MAX_ELEMENTS, OpError};
use super::given::Given;
use super::infer;
use super::info::{OpInfo, Ranks, Role};
use super::param::ParamValue;
use super::params::Params;
use super::rule;
use crate::image::ImageType;

/// An operation, its parameters and the images it is called on. Whoever holds one may lower it
/// without checking anything again.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct OpCall {
    /// Which operation.
    pub op: &'static OpInfo,
    /// Its parameters, complete.
    pub params: Params,
    /// The images it reads, in the order of [`OpInfo::inputs`].
    pub inputs: Vec<ImageType>,
    /// What it gives; one value so far.
    pub outputs: Vec<ValueType>,
}

/// What is known of a value before it is computed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// An image.
    Image(ImageType),
    /// Numbers (f64) in a fixed order.
    Scalars {
        /// How many.
        count: u64,
        /// What each is called; empty when they have only a position.
        names: Vec<&'static str>,
    },
    /// A table; how many rows it has is known when it is there.
    Table {
        /// Its columns, in order.
        columns: Vec<&'static str>,
    },
}

impl ValueType {
    /// The image, if it is one.
    pub fn image(&self) -> Option<ImageType> {
        match self {
            Self::Image(image) => Some(*image),
            _ => None,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(image) => image.fmt(f),
            Self::Scalars { count, names } if names.is_empty() => write!(f, "{count} numbers"),
            Self::Scalars { names, .. } => write!(f, "numbers {}", names.join(", ")),
            Self::Table { columns } => write!(f, "table of {}", columns.join(", ")),
        }
    }
}

impl OpCall {
    /// Finds the operation, reads its parameters and checks them with the images.
    pub fn new(name: &str, given: &Given, inputs: &[ImageType]) -> Result<Self, OpError> {
        let op = find(name)?;
        Self::with(op, Params::read(op, given)?, inputs)
    }

    /// Checks parameters of this operation with images.
    pub fn with(
        op: &'static OpInfo,
        params: Params,
        inputs: &[ImageType],
    ) -> Result<Self, OpError> {
        check_inputs(op, inputs)?;
        let mut call = Self {
            op,
            params,
            inputs: inputs.to_vec(),
            outputs: Vec::new(),
        };
        call.check_axes()?;
        for rule in op.rules {
            rule::check(&call, *rule)?;
        }
        let output = infer::output(&call)?;
        if let ValueType::Image(image) = output {
            check_size(op, &image)?;
        }
        call.outputs.push(output);
        Ok(call)
    }

    /// The image all extents are measured on: the first.
    pub fn image(&self) -> ImageType {
        self.inputs[0]
    }

    /// The one result.
    pub fn output(&self) -> &ValueType {
        &self.outputs[0]
    }

    /// Is an optional input there?
    pub fn has_input(&self, name: &str) -> bool {
        let at = self.op.inputs.iter().position(|input| input.name == name);
        at.is_some_and(|at| at < self.inputs.len())
    }

    /// A per-axis parameter as z, y, x, and `idle` on axes with one pixel: operations leave those
    /// as they are.
    ///
    /// # Panics
    /// When the operation has no such parameter with a value: see [`Params`].
    pub fn per_axis(&self, name: &str, idle: f64) -> [f64; 3] {
        let mut axes = self.each_axis(name, idle);
        for (axis, extent) in axes.iter_mut().zip(self.image().dims) {
            if extent <= 1 {
                *axis = idle;
            }
        }
        axes
    }

    /// A per-axis parameter as z, y, x, for every axis the user sees; `idle` on the others.
    ///
    /// # Panics
    /// As [`OpCall::per_axis`].
    pub fn each_axis(&self, name: &str, idle: f64) -> [f64; 3] {
        let list = self.params.maybe_per_axis(name);
        let list = list.unwrap_or_else(|| panic!("no value is promised for parameter `{name}`"));
        let mut axes = [idle; 3];
        let skip = usize::from(3 - self.image().rank);
        for (axis, at) in axes.iter_mut().skip(skip).zip(0..) {
            *axis = list[if list.len() == 1 { 0 } else { at }];
        }
        axes
    }

    /// A radius as z, y, x in pixels, 0 on axes with one pixel.
    ///
    /// # Panics
    /// As [`OpCall::per_axis`].
    pub fn radius(&self, name: &str) -> [u64; 3] {
        infer::pixels(self.per_axis(name, 0.0))
    }

    /// The type the operation computes in: f64 if an image is f64, else f32.
    pub fn computes_in(&self) -> DType {
        infer::real(self)
    }

    fn check_axes(&self) -> Result<(), OpError> {
        let image = self.image();
        for param in self.op.params() {
            let Some(ParamValue::PerAxis(list)) = self.params.value(param.name) else {
                continue;
            };
            if list.len() != 1 && list.len() != usize::from(image.rank) {
                return Err(OpError::AxisCount {
                    op: self.op,
                    name: param.name,
                    given: list.len(),
                    image,
                });
            }
        }
        Ok(())
    }
}

/// `gaussian(sigma=2, boundary=clamp)`.
impl fmt::Display for OpCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.op.name, self.params)
    }
}

/// The type of an image of any shape, for the `index`-th input of an operation.
///
/// This is where files with one axis, or with more than three, are refused.
pub fn image_type(
    op: &'static OpInfo,
    index: usize,
    dtype: DType,
    shape: &[u64],
) -> Result<ImageType, OpError> {
    let given = index + 1;
    let input = op
        .inputs
        .get(index)
        .ok_or(OpError::InputCount { op, given })?;
    match shape {
        [y, x] => Ok(ImageType::plane(dtype, *y, *x)),
        [z, y, x] => Ok(ImageType::stack(dtype, *z, *y, *x)),
        other => Err(OpError::Rank {
            op,
            input: input.name,
            rank: other.len(),
        }),
    }
}

fn check_inputs(op: &'static OpInfo, inputs: &[ImageType]) -> Result<(), OpError> {
    let (least, most) = op.input_count();
    if inputs.len() < least || inputs.len() > most {
        let given = inputs.len();
        return Err(OpError::InputCount { op, given });
    }
    for (info, image) in op.inputs.iter().zip(inputs) {
        let input = info.name;
        let rank = usize::from(image.rank);
        let fits = match op.ranks {
            Ranks::Any => (2..=3).contains(&rank),
            Ranks::Stack => rank == 3,
        };
        if !fits {
            return Err(OpError::Rank { op, input, rank });
        }
        if !info.takes().contains(&image.dtype) {
            return Err(OpError::InputType {
                op,
                input,
                dtype: image.dtype,
                takes: info.takes(),
            });
        }
        if image.dims.contains(&0) {
            let image = *image;
            return Err(OpError::NoPixels { op, input, image });
        }
        check_size(op, image)?;
        let first = inputs[0];
        let (agrees, equal) = match info.role {
            Role::Kernel => (image.rank == first.rank, "numbers of axes"),
            _ => (infer::agree(op, &first, image), "extents"),
        };
        if !agrees {
            return Err(OpError::Extents {
                op,
                input,
                first: op.inputs[0].name,
                images: Box::new([first, *image]),
                must: equal,
            });
        }
    }
    Ok(())
}

pub(super) fn check_size(op: &'static OpInfo, image: &ImageType) -> Result<(), OpError> {
    let elements = image.dims.iter().map(|extent| u128::from(*extent));
    let elements = elements.fold(1_u128, u128::saturating_mul);
    if elements > u128::from(MAX_ELEMENTS) {
        let what = image.to_string();
        return Err(OpError::TooLarge { op, what, elements });
    }
    Ok(())
}
