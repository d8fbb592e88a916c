//! The primitives: what every backend can do.

use warploom_core::DType;

use crate::Boundary;
use crate::expr::{Dag, Ty};

/// A number of a [`Prim::Map`], in the type its expression wants.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// An `i32`.
    I32(i32),
    /// A `u32`.
    U32(u32),
    /// An `f32`.
    F32(f32),
    /// An `f64`; not for devices without.
    F64(f64),
}

impl Number {
    /// A real number in the type an expression computes in.
    ///
    /// # Panics
    /// When `ty` is no number.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded once, or whole by contract"
    )]
    pub fn new(ty: Ty, value: f64) -> Self {
        match ty {
            Ty::I32 => Self::I32(value as i32),
            Ty::U32 => Self::U32(value as u32),
            Ty::F32 => Self::F32(value as f32),
            Ty::F64 => Self::F64(value),
            Ty::Bool => panic!("a truth is no number"),
        }
    }

    /// Its type.
    pub fn ty(self) -> Ty {
        match self {
            Self::I32(_) => Ty::I32,
            Self::U32(_) => Ty::U32,
            Self::F32(_) => Ty::F32,
            Self::F64(_) => Ty::F64,
        }
    }
}

/// Weights of a one-dimensional neighbourhood.
#[derive(Clone, PartialEq, Debug)]
pub enum Weights {
    /// `w[0]` at the centre, `w[k]` at distance k on both sides:
    /// `acc = w0*a0; acc = fma(w[k], a[-k] + a[k], acc)` for k = 1, 2, …
    Even(Vec<f64>),
    /// `w[k-1]` at distance k to the right, its negative to the left:
    /// `acc = w[0]*(a[1] - a[-1]); acc = fma(w[k-1], a[k] - a[-k], acc)` for k = 2, 3, …
    Odd(Vec<f64>),
    /// From the left to the right, an odd number of them:
    /// `acc = w[0]*a[-r]; acc = fma(w[k], a[k-r], acc)`.
    Any(Vec<f64>),
}

impl Weights {
    /// How far the neighbourhood reaches.
    pub fn radius(&self) -> usize {
        match self {
            Self::Even(w) => w.len() - 1,
            Self::Odd(w) => w.len(),
            Self::Any(w) => w.len() / 2,
        }
    }

    /// The numbers, as they are handed to a kernel.
    pub fn values(&self) -> &[f64] {
        match self {
            Self::Even(w) | Self::Odd(w) | Self::Any(w) => w,
        }
    }
}

/// A weighted sum along one axis, computed in `f32`, or in `f64` for an `f64` image.
#[derive(Clone, PartialEq, Debug)]
pub struct Taps {
    /// Along z, y or x (0, 1, 2).
    pub axis: u8,
    /// The weights; rounded once to the type of the computation.
    pub weights: Weights,
    /// What is seen outside.
    pub boundary: Boundary,
}

/// How the elements of a window become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Combine {
    /// Their sum.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// How far a neighbourhood reaches along z, y, x.
pub type Reach = [u32; 3];

/// A neighbourhood.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Footprint {
    /// Everything within the reach along each axis.
    Box(Reach),
    /// What satisfies `sum((d/r)^2) <= 1`; axes of reach 0 do not extend. Radii need not be whole.
    Ball([f64; 3]),
}

impl Footprint {
    /// How far it reaches.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "radii are checked to be small"
    )]
    pub fn reach(&self) -> Reach {
        match self {
            Self::Box(reach) => *reach,
            Self::Ball(radii) => radii.map(|r| r.floor() as u32),
        }
    }

    /// Every offset in z, y, x, in C order.
    pub fn offsets(&self) -> Vec<[i32; 3]> {
        let reach = self.reach().map(u32::cast_signed);
        let mut offsets = Vec::new();
        for z in -reach[0]..=reach[0] {
            for y in -reach[1]..=reach[1] {
                for x in -reach[2]..=reach[2] {
                    let offset = [z, y, x];
                    if self.contains(offset) {
                        offsets.push(offset);
                    }
                }
            }
        }
        offsets
    }

    fn contains(&self, offset: [i32; 3]) -> bool {
        match self {
            Self::Box(_) => true,
            Self::Ball(radii) => {
                let terms = offset.iter().zip(radii);
                let sum: f64 = terms
                    .filter(|(_, r)| **r >= 1.0)
                    .map(|(d, r)| (f64::from(*d) / r).powi(2))
                    .sum();
                sum <= 1.0
            }
        }
    }
}

/// Which neighbours touch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Connectivity {
    /// Those that share an edge (a face): 4 or 6.
    Diamond,
    /// Those that share a corner: 8 or 26.
    Box,
}

/// Which binary morphology.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Morph {
    /// Set where all neighbours are; outside counts as set.
    Erode,
    /// Set where any neighbour is; outside counts as not set.
    Dilate,
}

/// What a projection along z computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Project {
    /// Sum, in `f64`.
    Sum,
    /// Largest.
    Max,
    /// Smallest.
    Min,
    /// Mean, summed in `f64`.
    Mean,
    /// Population standard deviation, two passes in `f64`.
    Std,
    /// Median; of an even number the mean of the middle two.
    Median,
    /// Where the first largest is.
    ArgMax,
}

/// What becomes of a tile of pixels when an image is binned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tile {
    /// Their mean, summed in `f64` in C order.
    Mean,
    /// Their sum, in `f64` in C order.
    Sum,
    /// The largest.
    Max,
}

/// How a threshold is found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ThresholdMethod {
    /// Largest variance between the two sides.
    Otsu,
    /// Farthest from the line from peak to tail.
    Triangle,
    /// Least cross entropy, by iteration over the image.
    Li,
    /// Largest correlation.
    Yen,
    /// Midway between the means of the two sides.
    Isodata,
    /// The mean.
    Mean,
}

/// The numbers of a [`Prim::Map`].
pub type Numbers = Vec<Number>;

/// A primitive. Images of all inputs and outputs have the same extents unless said otherwise.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Prim {
    /// An expression for each pixel of the outputs. Inputs and outputs are the expression's;
    /// inputs that are lists hold numbers computed earlier.
    Map {
        /// The expression.
        dag: Dag,
        /// Its numbers.
        numbers: Numbers,
    },
    /// A weighted sum along an axis; gives `f32`, or `f64` of `f64`.
    Taps(Taps),
    /// Windows of `2*radius + 1` along an axis, at a cost that does not depend on the radius.
    /// Sums give the output's type (`f32` or `f64`), the rest the input's.
    Window {
        /// Along z, y or x (0, 1, 2).
        axis: u8,
        /// How far it reaches.
        radius: u32,
        /// What is made of it.
        combine: Combine,
        /// What is seen outside.
        boundary: Boundary,
    },
    /// All elements of a neighbourhood made one, in C order of the offsets; sums in `f32`
    /// (`f64` for `f64`).
    Around {
        /// The neighbourhood.
        footprint: Footprint,
        /// What is made of it.
        combine: Combine,
        /// What is seen outside.
        boundary: Boundary,
    },
    /// The element of this rank (0 is the smallest) in a neighbourhood, as scipy's `rank_filter`.
    Rank {
        /// The neighbourhood.
        footprint: Footprint,
        /// Which element, counted from the smallest.
        rank: u32,
        /// What is seen outside.
        boundary: Boundary,
    },
    /// True convolution with the image of the second input, whose centre is at `extent / 2`.
    Convolve {
        /// What is seen outside.
        boundary: Boundary,
    },
    /// min, max, sum, mean, std of all pixels; gives five numbers. Pixels that are no number
    /// do not count for min and max.
    Totals,
    /// Counts of pixels in equal bins, as numpy; gives `u32`. The range is the second input's
    /// first two numbers when there is one.
    Histogram {
        /// How many bins.
        bins: u32,
        /// The range, when it is known.
        range: Option<[f64; 2]>,
    },
    /// Percentiles (0 to 100) of all pixels, linear between two; gives as many numbers.
    Percentiles {
        /// Which.
        q: Vec<f64>,
    },
    /// A threshold as scikit-image finds it; gives one number.
    Threshold {
        /// How.
        method: ThresholdMethod,
        /// Bins for real-valued images.
        bins: u32,
    },
    /// One plane of a stack.
    Project(Project),
    /// Tiles of `factor` along z, y, x, each made one pixel; the rest is cut off.
    Bin {
        /// Extents of a tile.
        factor: Reach,
        /// What is made of it.
        tile: Tile,
    },
    /// The part that starts here in z, y, x, as large as the output; negative starts and what is
    /// beyond are read by the boundary rule.
    Crop {
        /// Where it starts.
        start: [i64; 3],
        /// What is seen outside.
        boundary: Boundary,
        /// Read outside instead of zero, for [`Boundary::Zero`].
        fill: f64,
    },
    /// Reversed along an axis.
    Flip {
        /// Along z, y or x.
        axis: u8,
    },
    /// Two axes exchanged.
    Transpose {
        /// Which.
        axes: [u8; 2],
    },
    /// The input at `matrix * (z, y, x) + offset`, linear between pixels, zero outside: rows of
    /// the matrix are z, y, x, each with its offset last.
    Affine {
        /// Three rows of four.
        matrix: [[f64; 4]; 3],
    },
    /// Another extent: pixel centres at half integers, clamped. Scale is input over output extent.
    Resize {
        /// Linear between pixels, or the nearest.
        linear: bool,
        /// Input pixels per output pixel along z, y, x.
        scale: [f64; 3],
    },
    /// The second image to the right of the first, a linear ramp where they overlap.
    Blend {
        /// Columns both cover.
        overlap: u32,
    },
    /// Binary morphology with the 3^d neighbourhood; gives a mask.
    Binary {
        /// Which.
        morph: Morph,
        /// Which neighbours count.
        shape: Connectivity,
        /// How often.
        iterations: u32,
    },
    /// Background that does not touch the edge becomes foreground; gives a mask.
    FillHoles,
    /// Distance to the nearest background pixel; gives `f32` or `f64`.
    Distance,
    /// Connected components of what is not zero, numbered in scan order; gives labels.
    Label(Connectivity),
    /// Labels of objects outside this range of sizes become 0; the rest keep their numbers or,
    /// when `relabel`, become 1, 2, …
    KeepSizes {
        /// Smallest kept.
        least: u64,
        /// Largest kept.
        most: u64,
        /// New numbers?
        relabel: bool,
    },
    /// Objects that touch the edge become 0.
    ClearBorder,
    /// Numbers 1, 2, … in the order of the old ones.
    Relabel,
    /// Objects grown by at most this distance, not into each other.
    Expand {
        /// How far.
        distance: f64,
    },
    /// Flooding from markers (second input) inside an optional mask (third).
    Watershed,
    /// A table of objects: the second input is the image that is measured. Gives the number of
    /// rows, then the columns, in one list of `f64` of `1 + rows * columns` elements, row by row;
    /// as many rows as the output holds.
    Statistics,
    /// Background under a rolling ball.
    RollingBall {
        /// Of the ball.
        radius: f64,
    },
    /// Circular convolution by Fourier transform, as large as the first input.
    FftConvolve,
    /// Whole-pixel shift of the first against the second; gives two numbers, or three.
    PhaseShift,
}

impl Prim {
    /// A short name for plans and messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Map { .. } => "map",
            Self::Taps(_) => "taps",
            Self::Window { .. } => "window",
            Self::Around { .. } => "around",
            Self::Rank { .. } => "rank",
            Self::Convolve { .. } => "convolve",
            Self::Totals => "totals",
            Self::Histogram { .. } => "histogram",
            Self::Percentiles { .. } => "percentiles",
            Self::Threshold { .. } => "threshold",
            Self::Project(_) => "project",
            Self::Bin { .. } => "bin",
            Self::Crop { .. } => "crop",
            Self::Flip { .. } => "flip",
            Self::Transpose { .. } => "transpose",
            Self::Affine { .. } => "affine",
            Self::Resize { .. } => "resize",
            Self::Blend { .. } => "blend",
            Self::Binary { .. } => "binary",
            Self::FillHoles => "fill_holes",
            Self::Distance => "distance",
            Self::Label(_) => "label",
            Self::KeepSizes { .. } => "keep_sizes",
            Self::ClearBorder => "clear_border",
            Self::Relabel => "relabel",
            Self::Expand { .. } => "expand",
            Self::Watershed => "watershed",
            Self::Statistics => "statistics",
            Self::RollingBall { .. } => "rolling_ball",
            Self::FftConvolve => "fft_convolve",
            Self::PhaseShift => "phase_shift",
        }
    }
}

/// The type a real-valued result of an image is computed and stored in.
pub(crate) fn real(dtype: DType) -> DType {
    if dtype == DType::F64 {
        DType::F64
    } else {
        DType::F32
    }
}
