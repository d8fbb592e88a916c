//! Grey-value morphology: minima and maxima one after the other.

use super::catalogue::{BALL, EXACT, LONG_WINDOWS, MAP, NAN_IGNORED, RADIUS, SAME};
use super::info::{Family, OpInfo, Rule};

const BOX: OpInfo = OpInfo {
    family: Family::Morphology,
    own_params: &[RADIUS],
    boundary: true,
    rules: &[Rule::SomeAxis("radius")],
    gives: SAME,
    nan: NAN_IGNORED,
    tolerance: EXACT,
    ..MAP
};

const SPHERE: OpInfo = OpInfo {
    notes: &[LONG_WINDOWS],
    own_params: &[BALL],
    rules: &[Rule::SomeAxis("radius"), Rule::Window("radius")],
    ..BOX
};

/// Differences of two values of one type.
const SATURATED: &[&str] = &["the difference is taken in the image's type and saturates"];
const SATURATED_SPHERE: &[&str] = &[SATURATED[0], LONG_WINDOWS];
const NAN_DIFFERENCE: &str = "NaN is ignored in windows; a NaN pixel gives NaN";

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "opening_box",
        summary: "remove what is bright and smaller than a box",
        formula: "maximum_box(minimum_box(a))",
        reference: "scipy.ndimage.grey_opening(a, 2*radius+1, mode=\"nearest\")",
        ..BOX
    },
    OpInfo {
        name: "closing_box",
        summary: "fill what is dark and smaller than a box",
        formula: "minimum_box(maximum_box(a))",
        reference: "scipy.ndimage.grey_closing(a, 2*radius+1, mode=\"nearest\")",
        ..BOX
    },
    OpInfo {
        name: "top_hat_box",
        summary: "keep what is bright and smaller than a box",
        formula: "a - opening_box(a)",
        notes: SATURATED,
        nan: NAN_DIFFERENCE,
        reference: "scipy.ndimage.white_tophat(a, 2*radius+1, mode=\"nearest\")",
        ..BOX
    },
    OpInfo {
        name: "bottom_hat_box",
        summary: "keep what is dark and smaller than a box",
        formula: "closing_box(a) - a",
        notes: SATURATED,
        nan: NAN_DIFFERENCE,
        reference: "scipy.ndimage.black_tophat(a, 2*radius+1, mode=\"nearest\")",
        ..BOX
    },
    OpInfo {
        name: "opening_sphere",
        summary: "remove what is bright and smaller than a ball",
        formula: "maximum_sphere(minimum_sphere(a))",
        reference: "scipy.ndimage.grey_opening(a, footprint=footprint, mode=\"nearest\")",
        ..SPHERE
    },
    OpInfo {
        name: "closing_sphere",
        summary: "fill what is dark and smaller than a ball",
        formula: "minimum_sphere(maximum_sphere(a))",
        reference: "scipy.ndimage.grey_closing(a, footprint=footprint, mode=\"nearest\")",
        ..SPHERE
    },
    OpInfo {
        name: "top_hat_sphere",
        summary: "keep what is bright and smaller than a ball",
        formula: "a - opening_sphere(a)",
        notes: SATURATED_SPHERE,
        nan: NAN_DIFFERENCE,
        reference: "scipy.ndimage.white_tophat(a, footprint=footprint, mode=\"nearest\")",
        ..SPHERE
    },
    OpInfo {
        name: "bottom_hat_sphere",
        summary: "keep what is dark and smaller than a ball",
        formula: "closing_sphere(a) - a",
        notes: SATURATED_SPHERE,
        nan: NAN_DIFFERENCE,
        reference: "scipy.ndimage.black_tophat(a, footprint=footprint, mode=\"nearest\")",
        ..SPHERE
    },
];
