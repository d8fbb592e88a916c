//! Why a call of an operation is refused.

use warploom_core::{Code, Coded, DType};

use super::info::{OpInfo, PIXELS, Ranks};
use crate::image::ImageType;

/// A call that makes no sense, found before a pixel is touched.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpError {
    /// No operation of this name. (WL0601)
    #[error("there is no operation `{name}`{}", meant(*near))]
    UnknownOp {
        /// What was asked for.
        name: String,
        /// What was probably meant.
        near: Option<&'static str>,
    },
    /// A text that should be `key=value`. (WL0602)
    #[error("`{text}` is no parameter: a parameter is written key=value")]
    NotAssignment {
        /// What was written.
        text: String,
    },
    /// No parameter of this name. (WL0603)
    #[error("{} has no parameter `{name}`{}", op.name, meant(*near))]
    UnknownParam {
        /// Of which operation.
        op: &'static OpInfo,
        /// What was given.
        name: String,
        /// What was probably meant.
        near: Option<&'static str>,
    },
    /// One parameter, two values. (WL0604)
    #[error("parameter `{name}` of {} is given twice", op.name)]
    RepeatedParam {
        /// Of which operation.
        op: &'static OpInfo,
        /// Which.
        name: &'static str,
    },
    /// A parameter without which nothing can be done. (WL0605)
    #[error("{} needs parameter `{name}`: {doc}", op.name)]
    MissingParam {
        /// Which operation.
        op: &'static OpInfo,
        /// What it needs.
        name: &'static str,
        /// What that means.
        doc: &'static str,
    },
    /// A value that this parameter cannot have. (WL0606)
    #[error("parameter `{name}` of {} is `{given}`; it takes {takes}", op.name)]
    BadValue {
        /// Of which operation.
        op: &'static OpInfo,
        /// Which parameter.
        name: &'static str,
        /// What was given.
        given: String,
        /// What would have been taken.
        takes: String,
    },
    /// One number per axis, but not as many as there are axes. (WL0607)
    #[error(
        "parameter `{name}` of {} has {given} numbers, but {image} has {} axes",
        op.name, image.rank
    )]
    AxisCount {
        /// Of which operation.
        op: &'static OpInfo,
        /// Which parameter.
        name: &'static str,
        /// Numbers given.
        given: usize,
        /// The image.
        image: ImageType,
    },
    /// Two parameters in the wrong order. (WL0608)
    #[error("{}: `{low}` is {low_value}, which is not {} `{high}`, {high_value}", op.name, below(*equal))]
    Order {
        /// Which operation.
        op: &'static OpInfo,
        /// The one that must be lower.
        low: &'static str,
        /// What it is.
        low_value: f64,
        /// The one that must be higher.
        high: &'static str,
        /// What it is.
        high_value: f64,
        /// May they be equal?
        equal: bool,
    },
    /// A neighbourhood of one pixel. (WL0609)
    #[error("parameter `{name}` of {} is 0 on every axis; one axis at least needs more", op.name)]
    NoNeighbourhood {
        /// Of which operation.
        op: &'static OpInfo,
        /// Which parameter.
        name: &'static str,
    },
    /// A parameter that planes do not have. (WL0610)
    #[error("parameter `{name}` of {} is for stacks; {image} is a plane", op.name)]
    StackParam {
        /// Of which operation.
        op: &'static OpInfo,
        /// Which parameter.
        name: &'static str,
        /// The image.
        image: ImageType,
    },
    /// Neither or both of two things that do the same. (WL0611)
    #[error(
        "{} takes either parameter `{param}` or input `{input}`; it got {}",
        op.name, if *both { "both" } else { "neither" }
    )]
    ParamOrInput {
        /// Which operation.
        op: &'static OpInfo,
        /// The parameter.
        param: &'static str,
        /// The input.
        input: &'static str,
        /// Were both given?
        both: bool,
    },
    /// A matrix that does not fit the image's axes. (WL0612)
    #[error("parameter `{name}` of {} {what}", op.name)]
    Matrix {
        /// Of which operation.
        op: &'static OpInfo,
        /// Which parameter.
        name: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// Too few or too many images. (WL0613)
    #[error("{} takes {}, not {given}", op.name, inputs_text(op))]
    InputCount {
        /// Which operation.
        op: &'static OpInfo,
        /// Images given.
        given: usize,
    },
    /// An image with a number of axes that the operation does not take. (WL0614)
    #[error("input `{input}` of {} has {}; it takes {}", op.name, axes_text(*rank), ranks_text(op))]
    Rank {
        /// Which operation.
        op: &'static OpInfo,
        /// Which input.
        input: &'static str,
        /// Its axes.
        rank: usize,
    },
    /// An element type that the operation does not take. (WL0615)
    #[error("input `{input}` of {} is {dtype}; it takes {}", op.name, names(takes))]
    InputType {
        /// Which operation.
        op: &'static OpInfo,
        /// Which input.
        input: &'static str,
        /// What it is.
        dtype: DType,
        /// What is taken.
        takes: &'static [DType],
    },
    /// Images that should be equally large and are not. (WL0616)
    #[error(
        "input `{input}` of {} is {}, but `{first}` is {}; their {must} must agree",
        op.name, images[1], images[0]
    )]
    Extents {
        /// Which operation.
        op: &'static OpInfo,
        /// The input that differs.
        input: &'static str,
        /// The input it is held against.
        first: &'static str,
        /// What they are, the one it is held against first.
        images: Box<[ImageType; 2]>,
        /// What must be equal: extents, or for kernels the number of axes.
        must: &'static str,
    },
    /// An image without pixels. (WL0617)
    #[error("input `{input}` of {} is {image}: it has no pixels", op.name)]
    NoPixels {
        /// Which operation.
        op: &'static OpInfo,
        /// Which input.
        input: &'static str,
        /// What it is.
        image: ImageType,
    },
    /// A result, or an input, with more elements than kernels can count. (WL0618)
    #[error("{} on {what} would count {elements} elements; it takes up to {MAX_ELEMENTS}", op.name)]
    TooLarge {
        /// Which operation.
        op: &'static OpInfo,
        /// What is too large.
        what: String,
        /// How many.
        elements: u128,
    },
    /// A part that is not inside the image. (WL0619)
    #[error(
        "{} was asked for {axis} {start}..{end} of an image with {axis} 0..{extent}", op.name
    )]
    Outside {
        /// Which operation.
        op: &'static OpInfo,
        /// Along which axis.
        axis: &'static str,
        /// First asked for.
        start: u64,
        /// One past the last.
        end: u64,
        /// What there is.
        extent: u64,
    },
    /// A result without pixels. (WL0620)
    #[error("{} would leave nothing of {image}: {why}", op.name)]
    NothingLeft {
        /// Which operation.
        op: &'static OpInfo,
        /// Of what.
        image: ImageType,
        /// Why.
        why: String,
    },
}

/// The most elements one image may have: kernels count in 32 bits.
pub const MAX_ELEMENTS: u64 = (1 << 31) - 1;

impl OpError {
    /// The operation whose call was refused, if it is known.
    pub fn op(&self) -> Option<&'static OpInfo> {
        match self {
            Self::UnknownOp { .. } | Self::NotAssignment { .. } => None,
            Self::UnknownParam { op, .. }
            | Self::RepeatedParam { op, .. }
            | Self::MissingParam { op, .. }
            | Self::BadValue { op, .. }
            | Self::AxisCount { op, .. }
            | Self::Order { op, .. }
            | Self::NoNeighbourhood { op, .. }
            | Self::StackParam { op, .. }
            | Self::ParamOrInput { op, .. }
            | Self::Matrix { op, .. }
            | Self::InputCount { op, .. }
            | Self::Rank { op, .. }
            | Self::InputType { op, .. }
            | Self::Extents { op, .. }
            | Self::NoPixels { op, .. }
            | Self::TooLarge { op, .. }
            | Self::Outside { op, .. }
            | Self::NothingLeft { op, .. } => Some(op),
        }
    }
}

impl Coded for OpError {
    fn code(&self) -> Code {
        Code(match self {
            Self::UnknownOp { .. } => 601,
            Self::NotAssignment { .. } => 602,
            Self::UnknownParam { .. } => 603,
            Self::RepeatedParam { .. } => 604,
            Self::MissingParam { .. } => 605,
            Self::BadValue { .. } => 606,
            Self::AxisCount { .. } => 607,
            Self::Order { .. } => 608,
            Self::NoNeighbourhood { .. } => 609,
            Self::StackParam { .. } => 610,
            Self::ParamOrInput { .. } => 611,
            Self::Matrix { .. } => 612,
            Self::InputCount { .. } => 613,
            Self::Rank { .. } => 614,
            Self::InputType { .. } => 615,
            Self::Extents { .. } => 616,
            Self::NoPixels { .. } => 617,
            Self::TooLarge { .. } => 618,
            Self::Outside { .. } => 619,
            Self::NothingLeft { .. } => 620,
        })
    }

    fn help(&self) -> Option<String> {
        let first = match self {
            Self::UnknownOp {
                near: Some(near), ..
            } => {
                return Some(format!(
                    "see `warploom ops {near}`; `warploom ops` lists them all"
                ));
            }
            Self::UnknownOp { .. } => return Some("`warploom ops` lists them all".into()),
            Self::NotAssignment { .. } => {
                return Some(
                    "write the name, `=` and the value without spaces, such as sigma=2".into(),
                );
            }
            Self::UnknownParam { op, .. } if op.params().count() == 0 => "it takes none; ".into(),
            Self::UnknownParam { op, .. } => {
                let names: Vec<&str> = op.params().map(|param| param.name).collect();
                format!("it takes {}; ", names.join(", "))
            }
            Self::InputType { takes, .. } if *takes == PIXELS => "convert the file first; ".into(),
            Self::InputType { .. } => "make labels with `label_box`, or `cast` the image; ".into(),
            Self::Rank { op, rank, .. } if op.ranks == Ranks::Stack && *rank == 2 => {
                "it works along z, which a plane does not have; ".into()
            }
            Self::Rank { .. } => "axes are y,x or z,y,x; ".into(),
            Self::TooLarge { .. } => "`crop` the image into parts; ".into(),
            Self::AxisCount { image, .. } => {
                format!("give 1 number or {}; ", image.rank)
            }
            _ => String::new(),
        };
        let op = self.op()?;
        Some(format!("{first}see `warploom ops {}`", op.name))
    }
}

/// A text as messages show it: not longer than a line.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 48;
    let visible: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    match visible.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &visible[..at]),
        None => visible,
    }
}

fn meant(near: Option<&str>) -> String {
    near.map_or(String::new(), |near| format!("; did you mean `{near}`?"))
}

fn below(equal: bool) -> &'static str {
    if equal { "at most" } else { "below" }
}

fn names(dtypes: &[DType]) -> String {
    let names: Vec<&str> = dtypes.iter().map(|dtype| dtype.name()).collect();
    names.join(", ")
}

fn axes_text(rank: usize) -> String {
    let plural = if rank == 1 { "axis" } else { "axes" };
    format!("{rank} {plural}")
}

fn ranks_text(op: &OpInfo) -> &'static str {
    match op.ranks {
        Ranks::Any => "planes (2 axes) and stacks (3 axes)",
        Ranks::Stack => "stacks (3 axes)",
    }
}

/// `2 images (image, mask)`, or `1 or 2 images (image, psf)`.
fn inputs_text(op: &OpInfo) -> String {
    let (least, most) = op.input_count();
    let names: Vec<&str> = op.inputs.iter().map(|input| input.name).collect();
    let count = match (least, most) {
        (1, 1) => "1 image".to_owned(),
        (least, most) if least == most => format!("{most} images"),
        (least, most) => format!("{least} to {most} images"),
    };
    format!("{count} ({})", names.join(", "))
}
