//! What is known of an operation before it meets an image: plain, static data.

use std::fmt;

use serde::Serialize;
use warploom_core::DType;

use super::param::{BOUNDARY, ParamInfo};

/// The element types of images.
pub const PIXELS: &[DType] = &[
    DType::U8,
    DType::U16,
    DType::I16,
    DType::I32,
    DType::U32,
    DType::F32,
    DType::F64,
];

/// The element types of label images.
pub const WHOLE: &[DType] = &[DType::U8, DType::U16, DType::I16, DType::I32, DType::U32];

/// One operation of the catalogue. Two with one name are the same.
#[derive(Clone, Copy)]
pub struct OpInfo {
    /// What people call it.
    pub name: &'static str,
    /// Where it is listed.
    pub family: Family,
    /// What it is for, in a clause.
    pub summary: &'static str,
    /// What it computes; `a` is the first image, `b` the second.
    pub formula: &'static str,
    /// Anything else one must know to get the same numbers.
    pub notes: &'static [&'static str],
    /// Its images, in order; optional ones last.
    pub inputs: &'static [InputInfo],
    /// Its own parameters; [`OpInfo::params`] adds what neighbourhoods share.
    pub own_params: &'static [ParamInfo],
    /// Does it read beyond the edge, and so take `boundary`?
    pub boundary: bool,
    /// What parameters and inputs must satisfy together.
    pub rules: &'static [Rule],
    /// Planes, stacks or both.
    pub ranks: Ranks,
    /// What comes out.
    pub gives: Gives,
    /// What becomes of NaN.
    pub nan: &'static str,
    /// The least memory traffic it can be done with.
    pub traffic: Traffic,
    /// The call whose numbers it gives.
    pub reference: &'static str,
    /// How far its numbers may be off.
    pub tolerance: Tolerance,
    /// Where it runs.
    pub backends: Backends,
}

impl OpInfo {
    /// Every parameter, `boundary` last.
    pub fn params(&self) -> impl Iterator<Item = &'static ParamInfo> + use<> {
        let shared = self.boundary.then_some(&BOUNDARY);
        self.own_params.iter().chain(shared)
    }

    /// One parameter.
    pub fn param(&self, name: &str) -> Option<&'static ParamInfo> {
        self.params().find(|param| param.name == name)
    }

    /// The parameters that may be computed by an earlier operation: numbers of a formula, which
    /// decide neither how much work there is nor what comes out.
    pub fn computable(&self) -> &'static [&'static str] {
        match self.name {
            "greater" | "greater_equal" | "less" | "less_equal" | "equal" => &["value"],
            "between" | "clip" => &["low", "high"],
            "affine_intensity" => &["scale", "offset"],
            _ => &[],
        }
    }

    /// The fewest and the most images it takes.
    pub fn input_count(&self) -> (usize, usize) {
        let needed = self.inputs.iter().filter(|input| !input.optional).count();
        (needed, self.inputs.len())
    }

    /// Bytes read and written per pixel at least, for images of one element type.
    pub fn bytes_per_pixel(&self, dtype: DType) -> (u64, u64) {
        let read = |input: &InputInfo| match input.role {
            Role::Image => dtype.bytes(),
            Role::Mask => DType::U8.bytes(),
            Role::Labels => DType::U32.bytes(),
            Role::Kernel => 0,
        };
        let needed = self.inputs.iter().filter(|input| !input.optional);
        let once: u64 = needed.map(read).sum();
        let written = match self.gives {
            Gives::Image { dtype: rule, shape } if shape != ShapeRule::DropZ => {
                rule.of_one(dtype).bytes()
            }
            _ => 0,
        };
        let scratch = u64::from(self.traffic.scratch);
        (
            once * u64::from(self.traffic.passes) + scratch,
            written + scratch,
        )
    }
}

impl PartialEq for OpInfo {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for OpInfo {}

/// Only the name: the rest is in the catalogue.
impl fmt::Debug for OpInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpInfo").field(&self.name).finish()
    }
}

/// Groups of operations that belong together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// One pixel in, one pixel out.
    Pointwise,
    /// A pixel against a number.
    Compare,
    /// Several images, pixel by pixel.
    Combine,
    /// Intensities made comparable.
    Normalize,
    /// Weighted sums of neighbourhoods.
    Filter,
    /// Order statistics of neighbourhoods.
    Rank,
    /// Grey-value morphology.
    Morphology,
    /// Masks.
    Binary,
    /// From image to mask.
    Threshold,
    /// Objects.
    Label,
    /// Fewer numbers than pixels.
    Reduce,
    /// Pixels moved.
    Geometry,
    /// By Fourier transform.
    Fourier,
    /// Images made sharper than they were taken.
    Restore,
}

impl Family {
    /// Every family, in the order of the list.
    pub const ALL: &'static [Self] = &[
        Self::Pointwise,
        Self::Compare,
        Self::Combine,
        Self::Normalize,
        Self::Filter,
        Self::Rank,
        Self::Morphology,
        Self::Binary,
        Self::Threshold,
        Self::Label,
        Self::Reduce,
        Self::Geometry,
        Self::Fourier,
        Self::Restore,
    ];

    /// Its name in lists.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pointwise => "pointwise",
            Self::Compare => "compare",
            Self::Combine => "combine",
            Self::Normalize => "normalize",
            Self::Filter => "filter",
            Self::Rank => "rank",
            Self::Morphology => "morphology",
            Self::Binary => "binary",
            Self::Threshold => "threshold",
            Self::Label => "label",
            Self::Reduce => "reduce",
            Self::Geometry => "geometry",
            Self::Fourier => "fourier",
            Self::Restore => "restore",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One image that an operation takes.
#[derive(Clone, Copy, Debug)]
pub struct InputInfo {
    /// What it is called.
    pub name: &'static str,
    /// What it is, in a clause.
    pub doc: &'static str,
    /// May it be left out?
    pub optional: bool,
    /// What it is used as.
    pub role: Role,
}

impl InputInfo {
    /// The element types it may have.
    pub const fn takes(&self) -> &'static [DType] {
        match self.role {
            Role::Image | Role::Mask | Role::Kernel => PIXELS,
            Role::Labels => WHOLE,
        }
    }
}

/// What an input is used as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Intensities.
    Image,
    /// Set where it is not 0.
    Mask,
    /// Objects numbered from 1; 0 is background.
    Labels,
    /// Weights around a pixel: the one input whose extents need not be the others'.
    Kernel,
}

/// How many axes the images must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ranks {
    /// Planes and stacks.
    Any,
    /// Stacks only: it works along z.
    Stack,
}

/// What parameters and inputs must satisfy together, beyond each on its own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rule {
    /// The first parameter may not be above the second.
    Ordered(&'static str, &'static str),
    /// The first parameter must be below the second.
    Below(&'static str, &'static str),
    /// Some axis must have more than 0 of it.
    SomeAxis(&'static str),
    /// The box of this radius has at most 2^24 pixels: more are looked at one by one by nobody.
    Window(&'static str),
    /// Only stacks take this parameter.
    StackParam(&'static str),
    /// Either this parameter or that input, not both.
    ParamOrInput(&'static str, &'static str),
    /// At most one of this parameter and that input.
    NotBoth(&'static str, &'static str),
    /// Where the boundary is zero or wrap the image is computed with as many pixels more to each
    /// side, which must be few enough to count.
    Margin(&'static str),
    /// A matrix of as many rows as the image has axes, with or without a column of offsets.
    AffineMatrix(&'static str),
    /// A range: one number above 0, or two in ascending order.
    Scale(&'static str),
}

/// What an operation gives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Gives {
    /// An image.
    Image {
        /// Of which element type.
        dtype: DTypeRule,
        /// How large.
        shape: ShapeRule,
    },
    /// Numbers (f64) in a fixed order.
    Scalars(ScalarRule),
    /// A row per object.
    Table(TableRule),
}

/// The element type of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DTypeRule {
    /// That of the first input used as an image.
    Same,
    /// The images' type if they agree, else as for [`DTypeRule::Real`].
    Common,
    /// f64 if an image is f64, else f32.
    Real,
    /// u8, 0 or 1.
    Mask,
    /// u32 labels.
    Labels,
    /// u32 positions.
    Index,
    /// What this parameter says.
    Param(&'static str),
}

impl DTypeRule {
    /// The type of the result when every image is of one type and no parameter says otherwise.
    pub const fn of_one(self, dtype: DType) -> DType {
        match self {
            Self::Same | Self::Common | Self::Param(_) => dtype,
            Self::Real => match dtype {
                DType::F64 => DType::F64,
                _ => DType::F32,
            },
            Self::Mask => DType::U8,
            Self::Labels | Self::Index => DType::U32,
        }
    }

    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Same => "the input's type",
            Self::Common => "the inputs' type if they agree, else f32 (f64 if one is f64)",
            Self::Real => "f32 (f64 from f64)",
            Self::Mask => "u8, 0 or 1",
            Self::Labels => "u32 labels",
            Self::Index => "u32",
            Self::Param(_) => "the type asked for",
        }
    }
}

/// The extents of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShapeRule {
    /// The input's.
    Same,
    /// A plane: the stack without z.
    DropZ,
    /// What `z, y, x, depth, height, width` cut out.
    Crop,
    /// Larger by `before` and `after`.
    Pad,
    /// Two axes change places; 0 is z.
    Swap(usize, usize),
    /// Smaller by `factor`, rest cut off.
    Bin,
    /// `factor` times as large, rounded.
    Resize,
    /// The second to the right of the first, less `overlap`.
    Beside,
}

impl ShapeRule {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Same => "as large as the input",
            Self::DropZ => "one plane",
            Self::Crop => "the part asked for",
            Self::Pad => "larger by `before` and `after`",
            Self::Swap(1, 2) => "y and x exchanged",
            Self::Swap(0, 2) => "z and x exchanged",
            Self::Swap(..) => "z and y exchanged",
            Self::Bin => "each axis divided by `factor`, rest cut off",
            Self::Resize => "each axis times `factor`, rounded to the nearest whole number",
            Self::Beside => "as wide as both together less `overlap`",
        }
    }
}

/// Which numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScalarRule {
    /// These.
    Named(&'static [&'static str]),
    /// As many as this whole-number parameter says.
    Count(&'static str),
    /// One per number of this list parameter.
    Each(&'static str),
    /// A shift: dz for stacks, dy, dx.
    Shift,
}

/// Which columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableRule {
    /// Label, area, intensities, centroid and box, per object.
    Objects,
}

/// The least traffic with memory an operation can be done with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// How often each input is read.
    pub passes: u32,
    /// Bytes per pixel of intermediates that are written and read again.
    pub scratch: u32,
}

/// How far results may be off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Tolerance {
    /// The CPU backend against the reference, computed in f64.
    pub reference: Bound,
    /// OpenCL and CUDA against the CPU backend, in strict mode.
    pub strict: Bound,
    /// wgpu against the CPU backend.
    pub wgpu: Bound,
    /// Fast mode on any device against the CPU backend in strict mode, for images without NaN and
    /// infinities. What a comparison decides may then tip either way where both sides are equal
    /// but for this.
    pub fast: Bound,
}

/// A distance between numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The same bits (any NaN is NaN).
    Exact,
    /// This many units in the last place of single precision (of double, where the reference is
    /// concerned and the image is f64), at the largest magnitude of the image and the result.
    Ulp(u32),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Ulp(count) => write!(f, "{count} ulp"),
        }
    }
}

/// Where an operation runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backends {
    /// On every backend.
    All,
    /// On the CPU backend; a plan for another device routes the image there and back.
    CpuOnly {
        /// Why no GPU version is sensible.
        why: &'static str,
    },
}
