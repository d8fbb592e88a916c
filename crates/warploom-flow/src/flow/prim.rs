//! The primitives: what every backend can do.
//!
//! The order of operations is part of a primitive's meaning, so that strict backends give the same
//! bits: nothing is reassociated, and a fused multiply-add stands where `fma` is written and
//! nowhere else. "Real" is `f64` for an `f64` image and `f32` for every other.

use warploom_core::DType;

use super::custom::Custom;
use super::footprint::{Footprint, Reach};
use super::number::Numbers;
use super::taps::Taps;
use crate::Boundary;
use crate::expr::Dag;

/// How the elements of a window become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Combine {
    /// Their sum.
    Sum,
    /// The smallest: `(b < a) ? b : a` from the type's largest (infinity), NaN ignored.
    Min,
    /// The largest: `(b > a) ? b : a` from the type's smallest (minus infinity), NaN ignored.
    Max,
}

/// Which neighbours touch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Connectivity {
    /// Those that share an edge (a face): 4 or 6.
    Diamond,
    /// Those that share a corner: 8 or 26.
    Box,
}

/// What a projection along z computes, from z = 0 upwards.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Project {
    /// Sum in `f64`, rounded to real.
    Sum,
    /// Largest, as [`Combine::Max`].
    Max,
    /// Smallest, as [`Combine::Min`].
    Min,
    /// The sum divided by the number, both in `f64`, rounded to real.
    Mean,
    /// `sqrt(sum((a - mean)^2) / n)` in `f64`: differences squared and added one by one.
    Std,
    /// Median; of an even number `(a + b) * 0.5` of the middle two, in real. A NaN makes it NaN.
    Median,
    /// Where the first largest is; 0 for a column of NaN.
    ArgMax,
}

/// What becomes of a tile of pixels when an image is binned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tile {
    /// Their sum in `f64` in C order, divided by their number, rounded to real.
    Mean,
    /// Their sum in `f64` in C order, rounded to real.
    Sum,
    /// The largest, as [`Combine::Max`].
    Max,
}

/// How a threshold is found, as in scikit-image; in `f64`.
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

/// A primitive.
///
/// Masks are `u8` and set where they are not 0; labels are `u32` and 0 is background. Images of all
/// inputs and outputs have the same extents unless said otherwise, and axes with one pixel do not
/// count: nothing touches along them and no edge is there. (An image of one pixel is all edge.)
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
    /// A weighted sum along an axis, of any image; gives real.
    Taps(Taps),
    /// Windows of `2*radius + 1` along an axis, at a cost that does not depend on the radius.
    /// Sums give the output's type (`f32` or `f64`) and are computed in it, of elements converted
    /// to it; the rest gives the input's type.
    ///
    /// With `w = 2*radius + 1`, block `b` is the positions `b*w - radius` to `b*w + radius`. The
    /// window of `i` starts in block `b` and ends in `b + 1`: `suffix + prefix`, the suffix of
    /// block `b` added from its end leftwards, the prefix of block `b + 1` from its start
    /// rightwards; a window that is a block is that block's prefix.
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
    /// All elements of a neighbourhood made one, in C order of the offsets: a sum starts with the
    /// first element and adds the others, in real, and gives real; the rest gives the input's type.
    Around {
        /// The neighbourhood.
        footprint: Footprint,
        /// What is made of it.
        combine: Combine,
        /// What is seen outside.
        boundary: Boundary,
    },
    /// The element of this rank (0 is the smallest) in a neighbourhood, as scipy's `rank_filter`.
    /// NaN counts as larger than every number; zeros of either sign are equal, either may result.
    Rank {
        /// The neighbourhood.
        footprint: Footprint,
        /// Which element, counted from the smallest.
        rank: u32,
        /// What is seen outside.
        boundary: Boundary,
    },
    /// Convolution with the second input, real, `k` of extents `n`:
    /// `sum over j of k[j]*a[i + n/2 - j]`, or mirrored `sum over j of k[j]*a[i + j - n/2]` (a
    /// correlation). In C order of the kernel: `acc = fma(k, a, acc)` from 0 on, in real; gives
    /// real.
    Convolve {
        /// Mirrored along every axis?
        mirrored: bool,
        /// What is seen outside.
        boundary: Boundary,
    },
    /// min, max, sum, mean, std of all pixels; gives five `f64`. Pixels that are no number do not
    /// count for min and max. An engine may leave out what nobody reads.
    ///
    /// Sums are in `f64` over elements in C order, cut into chunks of 4096: lane `l` of 16 adds
    /// elements `l, l + 16, …`; lanes are added from 0 to 15; chunks are added in order in groups
    /// of 256, then the groups in order. `mean = sum/n`; `std = sqrt(sum((a - mean)^2)/n)` with the
    /// same order of additions.
    Totals,
    /// Counts of pixels in equal bins, as numpy; gives `u32`. Bin `k` holds
    /// `edge[k] <= a < edge[k + 1]`, the last its right edge too; `edge[k] = low + k*step`,
    /// `step = (high - low)/bins`, the last edge `high` itself, all in `f64`. Where `high = low`
    /// they stand for `low - 0.5` and `high + 0.5`. A limit that is not given is the first (low) or
    /// second (high) number of the second input, as [`Prim::Totals`] gives them.
    Histogram {
        /// How many bins.
        bins: u32,
        /// The left edge of the first, when it is known.
        low: Option<f64>,
        /// The right edge of the last, when it is known.
        high: Option<f64>,
    },
    /// Percentiles (0 to 100) of all pixels that are numbers, linear between two as numpy: at
    /// `v = q/100*(n - 1)`, `g = v - floor(v)`, from `a` to `b`: `a + (b - a)*g`, or
    /// `b - (b - a)*(1 - g)` for `g >= 0.5`. In `f64`; gives as many `f64`.
    Percentiles {
        /// Which.
        q: Vec<f64>,
    },
    /// A threshold as scikit-image finds it, of all pixels that are numbers; gives one `f64`.
    Threshold {
        /// How.
        method: ThresholdMethod,
        /// Bins for real-valued images; others have one bin per value.
        bins: u32,
    },
    /// One plane of a stack. Gives real; for extremes the input's type; for positions `u32`.
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
        /// Read outside instead of zero, for [`Boundary::Zero`]; rounded and saturated.
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
    /// The input at `matrix * (z, y, x) + offset`, linear between pixels, zero outside; gives real.
    ///
    /// Along each axis the position is `p = ((offset + m[0]*z) + m[1]*y) + m[2]*x` in `f64`. Below
    /// 0 or above `n - 1` along any axis the result is 0. Otherwise `i = floor(p)`,
    /// `t = p - i` rounded to real, and `between(a, b) = fma(t, b - a, a)` of the pixels at `i` and
    /// `min(i + 1, n - 1)`, along x first, then y, then z.
    Affine {
        /// Three rows (z, y, x) of four: three factors and the offset.
        matrix: [[f64; 4]; 3],
    },
    /// Another extent, pixel centres at half integers: `p = ((i + 0.5)*n_in)/n_out` in `f64`. The
    /// nearest is at `floor(p)` and keeps the type. Linear is at `p - 0.5` clamped to
    /// `0..=n_in - 1`, and gives real as [`Prim::Affine`] does.
    Resize {
        /// Linear between pixels, or the nearest.
        linear: bool,
    },
    /// Distance of each set pixel of a mask to the nearest that is not set. The squared distance is
    /// a whole number; its root is rounded once, to the output's `f32` or `f64`. With nothing not
    /// set, distances are to position -1 of the first axis longer than 1 and 0 of the others.
    Distance,
    /// Connected components of a mask, numbered in scan order of their first pixel; gives labels.
    Label(Connectivity),
    /// Labels of objects outside this range of sizes in pixels become 0.
    KeepSizes {
        /// Smallest kept.
        least: u64,
        /// Largest kept.
        most: u64,
    },
    /// Labels of objects that touch the edge of an axis longer than 1 become 0.
    ClearBorder,
    /// Labels become 1, 2, … in the order of the old numbers.
    Relabel,
    /// Labels grown by at most this distance, not into each other.
    Expand {
        /// How far.
        distance: f64,
    },
    /// Flooding from labels (the markers) over the second image, inside an optional third, a mask;
    /// gives labels.
    Watershed,
    /// A table of objects: labels, and the image that is measured. Gives one list of `f64`: the
    /// number of objects, then that many rows of `columns` numbers; rows that the list cannot hold
    /// are left out, so whoever reads it compares the number with what fits.
    Statistics {
        /// Numbers per row: as many as the catalogue has columns for an image of this rank.
        columns: u32,
    },
    /// Background under a rolling ball: `min over offsets d, |d| <= radius, in C order of
    /// a[i + d] + h[d]` in real, `h = radius - sqrt(radius^2 - |d|^2)` computed in `f64` and
    /// rounded to real; pixels outside and NaN do not count. Gives real.
    RollingBall {
        /// Of the ball.
        radius: f64,
    },
    /// Circular convolution of an image with a real kernel no larger than it, by Fourier transform:
    /// `sum over j of k[j]*a[(i + n/2 - j) mod N]`; in real, gives real. Extents are products of
    /// small primes.
    FftConvolve,
    /// Whole-pixel shift of the first against the second; gives two `f64` for planes, three for
    /// stacks.
    PhaseShift,
    /// What somebody else wrote, over values of any extents.
    Custom(Custom),
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
            Self::Distance => "distance",
            Self::Label(_) => "label",
            Self::KeepSizes { .. } => "keep_sizes",
            Self::ClearBorder => "clear_border",
            Self::Relabel => "relabel",
            Self::Expand { .. } => "expand",
            Self::Watershed => "watershed",
            Self::Statistics { .. } => "statistics",
            Self::RollingBall { .. } => "rolling_ball",
            Self::FftConvolve => "fft_convolve",
            Self::PhaseShift => "phase_shift",
            Self::Custom(_) => "custom",
        }
    }
}

/// The type a real-valued result of an image is computed and stored in.
pub fn real(dtype: DType) -> DType {
    if dtype == DType::F64 {
        DType::F64
    } else {
        DType::F32
    }
}
