//! Order statistics of neighbourhoods.

use super::catalogue::{BALL, EXACT, LONG_WINDOWS, MAP, NAN_IGNORED, RADIUS, SAME, required};
use super::info::{Family, OpInfo, Rule};
use super::param::{ParamKind, Span};

/// What sorting leaves open.
pub(super) const ZEROS: &str = "zeros of either sign are equal; either may come out";

const RANK: OpInfo = OpInfo {
    family: Family::Rank,
    own_params: &[RADIUS],
    boundary: true,
    rules: &[Rule::SomeAxis("radius")],
    gives: SAME,
    nan: "NaN counts as larger than every number",
    tolerance: EXACT,
    ..MAP
};

/// Where every pixel of the window is looked at.
const SORTED: OpInfo = OpInfo {
    notes: &[ZEROS, LONG_WINDOWS],
    rules: &[Rule::SomeAxis("radius"), Rule::Window("radius")],
    ..RANK
};

const EXTREME: OpInfo = OpInfo {
    nan: NAN_IGNORED,
    ..RANK
};

const EXTREME_SPHERE: OpInfo = OpInfo {
    notes: &[LONG_WINDOWS],
    nan: NAN_IGNORED,
    own_params: &[BALL],
    ..SORTED
};

const BOX_COST: &[&str] = &["cost does not depend on the radius"];

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "median_box",
        summary: "median of a box",
        formula: "the middle of the sorted window of 2*radius+1 pixels along each axis",
        reference: "scipy.ndimage.median_filter(a, 2*radius+1, mode=\"nearest\")",
        ..SORTED
    },
    OpInfo {
        name: "median_sphere",
        summary: "median of a ball",
        formula: "element n//2 of the n sorted pixels with sum((offset/radius)^2) <= 1",
        own_params: &[BALL],
        reference: "scipy.ndimage.median_filter(a, footprint=footprint, mode=\"nearest\")",
        ..SORTED
    },
    OpInfo {
        name: "percentile_box",
        summary: "percentile of a box",
        formula: "element int(n*q/100) of the n sorted pixels of the window, the last for q = 100",
        own_params: &[
            RADIUS,
            required(
                "q",
                ParamKind::Number(Span::between(0.0, 100.0)),
                "the percentile: 0 is the minimum, 50 the median, 100 the maximum",
            ),
        ],
        reference: "scipy.ndimage.percentile_filter(a, q, 2*radius+1, mode=\"nearest\")",
        ..SORTED
    },
    OpInfo {
        name: "minimum_box",
        summary: "minimum of a box",
        formula: "min of the window of 2*radius+1 pixels along each axis",
        notes: BOX_COST,
        reference: "scipy.ndimage.minimum_filter(a, 2*radius+1, mode=\"nearest\")",
        ..EXTREME
    },
    OpInfo {
        name: "maximum_box",
        summary: "maximum of a box",
        formula: "max of the window of 2*radius+1 pixels along each axis",
        notes: BOX_COST,
        reference: "scipy.ndimage.maximum_filter(a, 2*radius+1, mode=\"nearest\")",
        ..EXTREME
    },
    OpInfo {
        name: "minimum_sphere",
        summary: "minimum of a ball",
        formula: "min of the pixels with sum((offset/radius)^2) <= 1",
        reference: "scipy.ndimage.minimum_filter(a, footprint=footprint, mode=\"nearest\")",
        ..EXTREME_SPHERE
    },
    OpInfo {
        name: "maximum_sphere",
        summary: "maximum of a ball",
        formula: "max of the pixels with sum((offset/radius)^2) <= 1",
        reference: "scipy.ndimage.maximum_filter(a, footprint=footprint, mode=\"nearest\")",
        ..EXTREME_SPHERE
    },
];
